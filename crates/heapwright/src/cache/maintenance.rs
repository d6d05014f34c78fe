//! Maintenance: how a quiet program is made to look after caches that threads share.
//!
//! There is no background thread, so a thread of the program must come by for free pages to go
//! back; and a program that has become quiet does nothing slowly any more. So while there is
//! something to be given back, operations *poll*: they come by the slow paths, and look at the
//! clock. All of a quiet program's do, and of a busy one's a few in each tick.
//!
//! ```text
//!   no work --- work found at a new tick, or later in one ----------> polling
//!      ^                                                               |  ^
//!      |  a new tick, and nothing is left                              |  | a slow operation
//!      +---------------------------------------------------------------+  | after a PAUSE
//!                                                  POLLS without a PAUSE |  |
//!                                                                      v  |
//!                                          lists forced slow, all that poll are answered
//! ```
//!
//! A shared cache polls as a whole: unlocking it takes the slow path. A CPU's arrays are diverted.
//! A cache that begins to poll asks all others to, as the next operation may use any of them. Once
//! a busy program has polled enough, once a tick, the lists are *forced slow*: their blocks are put
//! aside, so that a list has no block and no room. Lists in use are soon restored; the rest make
//! the first operation after the busy phase poll: see `forced_slow`. (Arrays are never forced
//! slow.)
//!
//! Called by `magazines`, and by `heap` on behalf of shared caches that poll.

use super::abandoned;
use super::arrays;
use super::central;
use super::depot::DepotChain;
use super::forced_slow::PAUSE_NS;
use super::magazines::{self, ALL, Magazines, PASS, Pass, SharedCache, are_of_cpus};
use super::visit;
use super::{CACHES, Cache};
use crate::chunk;
use crate::os;
use crate::purge_delay;
use crate::remote::Block;
use crate::size_class::CLASSES;
use crate::sync;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::ticks;

/// Operations in a row that poll before a program counts as busy.
const POLLS: u32 = 32;
/// Polls at one list that it then stays forced slow for.
const POLLS_A_LIST: u8 = 4;
/// The first pause after which all caches are asked again, in nanoseconds; it doubles each time.
const LONG_PAUSE_NS: u64 = 100_000;
/// All caches are asked to poll so many times more in a tick at most.
const ASKS: u32 = 8;
/// A program that polls at a forced-slow list so long after it was busy may be quiet.
const AGAIN_NS: u64 = 1_000_000;

/// Classes that one tick's pass looks at.
const CLASSES_A_TICK: usize = 8;

/// Does the maintenance that a thread polled for, which has just unlocked the cache.
#[cold]
pub(crate) fn answer(cache: &'static SharedCache) {
    if cache.try_lock() {
        // SAFETY: just locked.
        unsafe { cache.value() }.tend();
        // SAFETY: locked above.
        unsafe { cache.unlock() };
    }
}

/// Gives back to the kernel what is free and in no list of a thread: of `held`, which the caller's
/// slow path holds, of caches that no other slow path holds, and of the heap.
#[cold]
#[inline(never)]
pub(super) fn trim(held: Option<&Cache>) {
    let me = held.map_or(0, Cache::id);
    let give_back = |cache: &Cache| {
        cache.release_unlisted();
        cache.purge_slabs();
    };
    held.into_iter().for_each(give_back);
    for other in CACHES.all().filter(|other| other.id() != me) {
        if let Some(_order) = other.visit() {
            give_back(other);
        }
    }
    abandoned::purge_abandoned();
    magazines::release_all(me);
    chunk::purge_all(0);
}

/// Asks operations by all caches that threads share to poll, for there is something to be done, and
/// the program may go on by any of them: once in the tick `now` of the clock, and again after
/// pauses, each twice as long as the last.
pub(super) fn ask_all(now: u32, pause_ns: u64) {
    static ASKED_AT: AtomicU32 = AtomicU32::new(0);
    static AGAIN: AtomicU32 = AtomicU32::new(0);
    if ALL.count() == 0 {
        return;
    }
    if ASKED_AT.swap(now, Ordering::Relaxed) == now {
        let again = AGAIN.load(Ordering::Relaxed);
        if again >= ASKS || pause_ns < LONG_PAUSE_NS << again {
            return;
        }
        AGAIN.store(again + 1, Ordering::Relaxed);
    } else {
        AGAIN.store(0, Ordering::Relaxed);
    }
    for cache in ALL.all().filter(|cache| !is_asked(cache)) {
        if are_of_cpus() {
            _ = arrays::divert(cache.number(), true);
        } else {
            cache.ask_to_poll(true);
        }
    }
}

/// Whether operations by a cache poll.
fn is_asked(cache: &SharedCache) -> bool {
    if are_of_cpus() { arrays::is_diverted(cache.number()) } else { cache.is_asked_to_poll() }
}

/// What changes in how operations come by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// They are to poll from now on.
    Begin,
    /// No more: the program is busy.
    Enough,
    /// No more: nothing is left to be done.
    End,
}

impl Magazines {
    /// Looks after free memory, once a tick of the clock. Called by slow operations,
    /// which hold this cache.
    pub(crate) fn tend(&self) {
        self.turn(self.tick());
    }

    fn turn(&self, turn: Option<Turn>) {
        let Some(turn) = turn else { return };
        let poll = turn == Turn::Begin;
        // SAFETY: all magazines are in a slot of `ALL`.
        let cache = unsafe { SharedCache::containing(self) };
        if !are_of_cpus() {
            cache.ask_to_poll(poll);
            if turn == Turn::Enough && !self.has_forced_slow.replace(true) {
                self.force_lists_slow();
            }
        } else if !arrays::divert(cache.number(), poll) {
            // Not done: operations stay slow, and the next one tries again.
            self.polls.left.set(1);
        } else if turn == Turn::Enough && !self.has_forced_slow.replace(true) {
            // What the arrays hold would serve a program that becomes quiet, which would poll no
            // more.
            arrays::drain(cache.number(), false);
        }
    }

    /// Looks at the clock. Returns what changes.
    fn tick(&self) -> Option<Turn> {
        if sync::is_interrupted() {
            return None;
        }
        let now = os::coarse_ms();
        let polls = self.polls.left.get();
        let is_new_tick = self.now.replace(now) != now;
        if is_new_tick || ticks::is_first() {
            ticks::pass(now);
            if ticks::is_to_trim() {
                trim(None);
            }
        }
        if is_new_tick {
            self.rested.set(false);
            self.has_forced_slow.set(false);
            self.has_polled.set(false);
            self.publish();
            let more = tend_all(now, polls > 0) || ticks::has_status();
            self.polls.left.set(0);
            return if more { Some(self.begin(0)) } else { self.end() };
        }
        if polls == 0 {
            // Work that came up since the tick began: it may have been the program's last.
            // (What others write to is looked at last.)
            let has_new_work = !self.has_polled.get()
                && purge_delay::purge_delay().is_some()
                && (central::has_work() || chunk::has_waiting());
            return if has_new_work { Some(self.begin(u64::MAX)) } else { self.end() };
        }
        let since = self.polls.note();
        self.polls.left.set(polls - 1);
        if since >= PAUSE_NS {
            self.polls.left.set(POLLS);
            // Other caches may have been busy until just now.
            ask_all(now, since);
        }
        (self.polls.left.get() == 0).then_some(Turn::Enough)
    }

    /// From now on operations poll, those by other caches too.
    fn begin(&self, pause_ns: u64) -> Turn {
        self.polls.left.set(POLLS);
        self.has_polled.set(true);
        ask_all(self.now.get(), pause_ns);
        Turn::Begin
    }

    /// They do no more, if they do.
    fn end(&self) -> Option<Turn> {
        // SAFETY: all magazines are in a slot of `ALL`.
        is_asked(unsafe { SharedCache::containing(self) }).then_some(Turn::End)
    }

    /// Forces all lists slow.
    #[cold]
    fn force_lists_slow(&self) {
        for (class, bin) in self.bins.iter().enumerate() {
            if bin.forced_slow.is_on() {
                bin.forced_slow.polls_left.set(POLLS_A_LIST);
            } else {
                let chain = self.empty(class);
                self.force_slow(class, &chain, POLLS_A_LIST);
            }
        }
    }

    /// Forces the list of `class` slow, which is empty, and keeps `chain` for it.
    fn force_slow(&self, class: usize, chain: &DepotChain, polls: u8) {
        let bin = &self.bins[class];
        bin.forced_slow.put(chain);
        bin.forced_slow.polls_left.set(polls);
        bin.base.set(0);
        self.list(class).room.set(0);
    }

    /// Answers a poll for a block of `class`. `None`: the list is not forced slow, or
    /// no more, for there is none in it.
    pub(super) fn pop_forced_slow(&self, class: usize) -> Option<*mut Block> {
        let forced_slow = &self.bins[class].forced_slow;
        let polls = forced_slow.polls();
        if polls == 0 {
            return None;
        }
        let first = forced_slow.pop();
        let rest = forced_slow.take();
        self.fill(class, DepotChain::EMPTY);
        if first.is_null() {
            return None;
        }
        self.put_back(class, rest, polls - 1);
        Some(first)
    }

    /// Answers a poll that has put a block into the list of `class`. False: it is
    /// not forced slow, but too long.
    pub(super) fn push_forced_slow(&self, class: usize) -> bool {
        let forced_slow = &self.bins[class].forced_slow;
        let polls = forced_slow.polls();
        if polls == 0 {
            return false;
        }
        let rest = forced_slow.take();
        // One block, and what signal handlers have left.
        let new = self.empty(class);
        let chain = new.before(rest);
        // A list that is full is no place for more.
        let left = if chain.count() < self.chain_length(class) { polls - 1 } else { 0 };
        self.put_back(class, chain, left);
        true
    }

    /// Puts back what was in a forced-slow list, which stays forced slow for so many more polls.
    fn put_back(&self, class: usize, chain: DepotChain, polls: u8) {
        if polls > 0 {
            self.force_slow(class, &chain, polls);
        } else {
            self.fill(class, chain);
        }
        self.tend();
        if self.polls.left.get() == 0 && !sync::is_interrupted() && self.polls.since() >= AGAIN_NS {
            self.turn(Some(self.begin(AGAIN_NS)));
        }
    }

    /// Forces the list of `class` slow again, which was empty and has been filled.
    pub(super) fn stay_forced_slow(&self, class: usize, polls: u8) {
        if polls > 0 {
            let chain = self.empty(class);
            self.force_slow(class, &chain, polls);
        }
    }
}

/// A part of the pass; `is_quiet` if the calling thread has time. Returns whether there is more to
/// be done, now or later.
fn tend_all(now: u32, is_quiet: bool) -> bool {
    let Some(delay) = purge_delay::purge_delay() else { return false };
    // The thread that is at it may find more than it does.
    let Some(mut pass) = PASS.try_lock() else { return true };
    let others_wait = visit::look_after_others(0, now, delay, is_quiet);
    if pass.class == CLASSES {
        if chunk::waited(pass.began, now) < purge_delay::interval(delay) {
            return others_wait || central::has_work();
        }
        *pass = Pass { began: now, class: 0, begins: true };
        central::begin_pass();
        release_rested();
        abandoned::cool_abandoned(now, delay);
    }
    for _ in 0..CLASSES_A_TICK {
        let is_done = central::pass(pass.class, pass.begins, now, delay);
        pass.begins = is_done;
        if is_done {
            pass.class += 1;
            if pass.class == CLASSES {
                return others_wait || central::has_work();
            }
        }
    }
    true
}

/// Gives back what is free in caches that did nothing slowly since the last pass.
fn release_rested() {
    arrays::drain_rested();
    for slot in ALL.all() {
        if !slot.try_lock() {
            continue;
        }
        // SAFETY: just locked.
        let magazines = unsafe { slot.value() };
        if magazines.rested.replace(true) {
            magazines.release();
        } else {
            magazines.stash.pass();
        }
        // SAFETY: locked above.
        unsafe { slot.unlock() };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::super::magazines::raise;
    use super::*;

    #[test]
    fn a_cache_that_is_busy_keeps_no_run_that_nobody_fetches() {
        use crate::address_map::Entry;
        use crate::chunk::Want;
        assert!(crate::substrate::open_and_begin());
        assert!(raise(1, crate::heap::SHARING.shared) >= 1);
        let run = chunk::take(1, 1, Want::Any, Entry::LARGE_HEAD, Entry::large_rest).unwrap();
        let reached = || ALL.acquire_this(ALL.slot(0));
        let Some(held) = reached() else { return };
        assert!(held.stash.keep(run.unit, 1));
        // Once to begin, and once to see that nobody needed it meanwhile.
        drop(held);
        for _ in 0..2 {
            // A thread was here since the last pass.
            reached().unwrap().rested.set(false);
            release_rested();
        }
        assert!(reached().unwrap().stash.is_empty());
    }
}
