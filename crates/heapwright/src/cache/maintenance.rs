//! Maintenance: how the threads of a quiet program look after shared caches.
//!
//! There is no background thread, so free pages go back only on a slow path. A quiet program takes
//! none. So while memory can be given back, operations *poll*: they take a slow path and read the
//! clock. A quiet program polls with every operation, a busy one a few times in each tick.
//!
//! ```text
//!   no work --- work found at a new tick, or later in one ----------> polling
//!      ^                                                               |  ^
//!      |  a new tick, and nothing is left                              |  | a slow operation
//!      +---------------------------------------------------------------+  | after a PAUSE
//!                                                  POLLS without a PAUSE |  |
//!                                                                      v  |
//!                                          lists forced slow: only calls for them poll
//! ```
//!
//! If a shared cache polls, its unlock takes the slow path. If a CPU's arrays poll, their
//! operations are diverted to the CPU's shared cache. A cache that begins to poll makes all others
//! poll, because the next operation may use any cache. When a busy program has polled enough in a
//! tick, the lists are *forced slow*: their blocks are put aside. Such a list has no block and no
//! room. Lists in use are soon restored. The others make the first operation after the busy phase
//! poll (`forced_slow`). (Arrays are never forced slow.)
//!
//! Called by `magazines`, `large` and `scavenger`, and by `heap` for shared caches.

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

/// Polls without a pause after which a program counts as busy.
const POLLS: u32 = 32;
/// Polls at a list before it is restored.
const POLLS_A_LIST: u8 = 4;
/// A pause this long, in nanoseconds, makes all caches poll again. In a tick it doubles each time.
const LONG_PAUSE_NS: u64 = 100_000;
/// How often in a tick all caches are made to poll again, at most.
const ASKS: u32 = 8;
/// A program that polls at a forced-slow list this long after its last poll may be quiet.
const AGAIN_NS: u64 = 1_000_000;

const CLASSES_A_TICK: usize = 8;

/// Does the maintenance for a thread that polls, and has just unlocked the cache.
#[cold]
pub(crate) fn answer(cache: &'static SharedCache) {
    if cache.try_lock() {
        // SAFETY: this thread has just locked the cache.
        unsafe { cache.value() }.tend();
        // SAFETY: this thread holds the cache's lock.
        unsafe { cache.unlock() };
    }
}

/// Gives free memory outside threads' lists back to the kernel. Skips caches whose threads are in
/// slow paths. `held` is the caller's cache.
#[cold]
#[inline(never)]
pub(super) fn trim(held: Option<&Cache>) {
    let me = held.map_or(0, Cache::id);
    if let Some(held) = held {
        held.give_back_unlisted();
    }
    for other in CACHES.all().filter(|other| other.id() != me) {
        if let Some(_order) = other.visit() {
            other.give_back_unlisted();
        }
    }
    abandoned::purge_abandoned();
    magazines::release_all(me);
    chunk::purge_all(0);
}

/// Makes operations on all shared caches poll, because there is work. Does this once in the tick
/// `now`, and again if `pause_ns` is long enough ([`LONG_PAUSE_NS`]).
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

fn is_asked(cache: &SharedCache) -> bool {
    if are_of_cpus() { arrays::is_diverted(cache.number()) } else { cache.is_asked_to_poll() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Begin,
    /// The program is busy.
    Enough,
    /// No work is left.
    End,
}

impl Magazines {
    /// Looks after free memory, once a tick of the clock. The caller must hold the cache.
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
            // Operations stay slow, and the next one tries again.
            self.polls.left.set(1);
        } else if turn == Turn::Enough && !self.has_forced_slow.replace(true) {
            // If the arrays had blocks, a program that becomes quiet would use them, and not poll.
            arrays::drain(cache.number(), false);
        }
    }

    /// Returns the change of polling, if any.
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
            // Work may have come up after the start of the tick, and the program may be quiet from
            // now on. (Data that other threads write is read last.)
            let has_new_work = !self.has_polled.get()
                && purge_delay::purge_delay().is_some()
                && (central::has_work() || chunk::has_waiting());
            return if has_new_work { Some(self.begin(u64::MAX)) } else { self.end() };
        }
        let since = self.polls.note();
        self.polls.left.set(polls - 1);
        if since >= PAUSE_NS {
            self.polls.left.set(POLLS);
            // Other caches may have been busy until now.
            ask_all(now, since);
        }
        (self.polls.left.get() == 0).then_some(Turn::Enough)
    }

    /// Begins to poll, in all caches.
    fn begin(&self, pause_ns: u64) -> Turn {
        self.polls.left.set(POLLS);
        self.has_polled.set(true);
        ask_all(self.now.get(), pause_ns);
        Turn::Begin
    }

    fn end(&self) -> Option<Turn> {
        // SAFETY: all magazines are in a slot of `ALL`.
        is_asked(unsafe { SharedCache::containing(self) }).then_some(Turn::End)
    }

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

    /// Forces the empty list of `class` slow, and keeps `chain` for it.
    fn force_slow(&self, class: usize, chain: &DepotChain, polls: u8) {
        let bin = &self.bins[class];
        bin.forced_slow.put(chain);
        bin.forced_slow.polls_left.set(polls);
        bin.base.set(0);
        self.list(class).room.set(0);
    }

    /// Answers a poll for a block. `None` if the list is not, or no longer, forced slow.
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

    /// Answers a poll that has put a block in. False if the list is too long, and not forced slow.
    pub(super) fn push_forced_slow(&self, class: usize) -> bool {
        let forced_slow = &self.bins[class].forced_slow;
        let polls = forced_slow.polls();
        if polls == 0 {
            return false;
        }
        let rest = forced_slow.take();
        // The list has the freed block, and blocks that signal handlers have left.
        let new = self.empty(class);
        let chain = new.before(rest);
        // A full list does not poll any more.
        let left = if chain.count() < self.chain_length(class) { polls - 1 } else { 0 };
        self.put_back(class, chain, left);
        true
    }

    /// Puts a forced-slow list's blocks back. It stays forced slow for `polls` more polls.
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

    /// Forces the refilled list of `class` slow again.
    pub(super) fn stay_forced_slow(&self, class: usize, polls: u8) {
        if polls > 0 {
            let chain = self.empty(class);
            self.force_slow(class, &chain, polls);
        }
    }
}

/// Does a part of the pass. `is_quiet` says that the thread has time. Returns whether work is left.
fn tend_all(now: u32, is_quiet: bool) -> bool {
    let Some(delay) = purge_delay::purge_delay() else { return false };
    // Another thread makes the pass, and may leave work.
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

/// Gives back free memory in caches without a slow operation since the last pass.
fn release_rested() {
    arrays::drain_rested();
    for slot in ALL.all() {
        if !slot.try_lock() {
            continue;
        }
        // SAFETY: this thread has just locked the cache.
        let magazines = unsafe { slot.value() };
        if magazines.rested.replace(true) {
            magazines.release();
        } else {
            magazines.stash.pass();
        }
        // SAFETY: this thread holds the cache's lock.
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
        // The first pass notes the run. The second pass sees that no thread needed it.
        drop(held);
        for _ in 0..2 {
            // As if a thread had used the cache since the last pass.
            reached().unwrap().rested.set(false);
            release_rested();
        }
        assert!(reached().unwrap().stash.is_empty());
    }
}
