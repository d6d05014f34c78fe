//! Draws: which blocks of fast mode stand between guards, without a countdown in `malloc`.
//!
//! ```text
//!   refill of a list    drawn?  --yes--> the caller makes a guarded block, and the list stays empty
//!                         | no
//!                         v
//!   the list            block | block | block | ... | the one that is drawn | ...
//!                       +--- stays in the list ----+ +--- back to the depot --->
//! ```
//!
//! Only refills look: `malloc` and `free` are what they are without guards, instruction by instruction. A refill counts
//! the blocks that it puts into the list. Where the countdown ends among them, the list is cut before that block, and the
//! call that finds the list empty is the drawn one: so each position in a list has the same chance, and a program
//! whose refills always come from one place is drawn elsewhere, too. The distances are geometric, on
//! average [`rate`] blocks; what goes back to the depot was not counted, and the distribution has no memory.
//!
//! What a thread frees and takes again from its list is not counted: the rate is one of so many blocks that come
//! into lists. With a rate of 1 each refill is drawn, so no list is ever filled, and every call is.
//!
//! A refill that is not drawn may ask its caller to *look* at who calls: a stack that has no guarded block yet gets
//! one. Looks cost a stack, so they become rare where they find nothing new, and begin again where they do.
//!
//! **Pace.** Without a rate of the user's, blocks are drawn often and made seldom: at most one in [`PAUSE_MS`]
//! in the whole process, by the clock of the slow paths, so that it costs about as little in any program.
//!
//! Called by the slow paths of `cache`, and by `heap::guards`.

use core::cell::Cell;

use super::{Cache, sampling};
use crate::os;
use crate::poisson;
use crate::sync;
use crate::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Blocks from one that is drawn to the next, on average; 0: none is.
static RATE: AtomicUsize = AtomicUsize::new(0);
/// When the last one was made, in milliseconds, where they have a pace; [`UNPACED`] where they have none.
static LAST: AtomicU32 = AtomicU32::new(UNPACED);
const UNPACED: u32 = u32::MAX;
/// The rate of those that have a pace.
const PACED_RATE: usize = 1000;
/// Milliseconds between two of them, at least.
const PAUSE_MS: u32 = 3;
/// Refills between two looks, at most.
const LOOKS_MOST: u32 = 255;

/// Blocks from one that is drawn to the next, on average; 0: none is.
#[inline(always)]
pub(crate) fn rate() -> usize {
    RATE.load(Ordering::Relaxed)
}

/// Draws one of `every` blocks from now on; `None`: at a pace of its own. Before any thread has a cache.
pub(crate) fn begin(every: Option<usize>) {
    if every.is_none() {
        // A process that ends before its first pays for none.
        LAST.store(os::coarse_ms().min(UNPACED - 1), Ordering::Relaxed);
    }
    RATE.store(every.unwrap_or(PACED_RATE).max(1), Ordering::Relaxed);
    sampling::watch_again();
}

/// Draws as [`begin`] says, for a heap that asks by itself ([`draws_apart`]): nothing of `cache` looks.
pub(crate) fn begin_apart(every: Option<usize>) {
    APART.store(true, Ordering::Relaxed);
    AT_ONCE.store(AT_START, Ordering::Relaxed);
    EARLY.store(FIRST_REFILLS, Ordering::Relaxed);
    begin(every);
}

/// Blocks that a heap which asks by itself makes without a pause when a process starts: short programs have a chance, too.
const AT_START: u32 = 32;
/// How many are left of them.
static AT_ONCE: AtomicU32 = AtomicU32::new(0);

/// Refills of that heap that are early when a process starts: each looks at who calls, and brings one block, so that the next
/// call looks, too. So the first block of a call in a small program, or of the start of a large one, is seen.
const FIRST_REFILLS: u32 = 512;
/// How many are left of them.
static EARLY: AtomicU32 = AtomicU32::new(0);

/// Whether the next refill of the heap that asks by itself is an early one.
#[inline]
pub(crate) fn is_early() -> bool {
    EARLY.load(Ordering::Relaxed) > 0
}

/// Whether it is another heap that asks.
static APART: AtomicBool = AtomicBool::new(false);

/// Whether the slow paths of `cache` look.
pub(super) fn is_watched() -> bool {
    rate() != 0 && !APART.load(Ordering::Relaxed)
}

/// Refills of that heap to the next look at who calls, and from that one to the one after it, if it finds nothing.
static TO_LOOK: AtomicU32 = AtomicU32::new(0);
static LOOK_PAUSE: AtomicU32 = AtomicU32::new(0);

/// What the call is to be whose refill brings `blocks` blocks. `None`: a call like any.
pub(crate) fn draws_apart(blocks: usize) -> Option<Draw> {
    if rate() == 0 {
        return None;
    }
    if draws_shared(blocks) {
        return Some(Draw::Drawn);
    }
    // (Two threads may count one refill, here and below: then a look comes a little later.)
    let early = EARLY.load(Ordering::Relaxed);
    if early > 0 {
        EARLY.store(early - 1, Ordering::Relaxed);
        return is_time(os::coarse_ms()).then_some(Draw::IfNew);
    }
    let to_look = TO_LOOK.load(Ordering::Relaxed);
    if to_look > 0 {
        TO_LOOK.store(to_look - 1, Ordering::Relaxed);
        return None;
    }
    is_time(os::coarse_ms()).then_some(Draw::IfNew)
}

/// A look of [`draws_apart`]'s has found a new stack, or none.
pub(crate) fn looked_apart(found: bool) {
    let pause = next_pause(LOOK_PAUSE.load(Ordering::Relaxed), found);
    LOOK_PAUSE.store(pause, Ordering::Relaxed);
    TO_LOOK.store(pause, Ordering::Relaxed);
}

/// Refills from a look, which has found a new stack or none, to the next one.
fn next_pause(pause: u32, found: bool) -> u32 {
    if found { 0 } else { (2 * pause + 1).min(LOOKS_MOST) }
}

/// Whether one may be made now, by the pace.
fn is_time(now: u32) -> bool {
    let last = LAST.load(Ordering::Relaxed);
    last == UNPACED || is_later(now, last) || AT_ONCE.load(Ordering::Relaxed) > 0
}

/// Whether it is time again at `now`, which a slow path may have read a while ago, before `last`.
fn is_later(now: u32, last: u32) -> bool {
    now.wrapping_sub(last).cast_signed() >= PAUSE_MS.cast_signed()
}

/// One is about to be made. False: another thread makes one just now, or has.
pub(crate) fn take_turn() -> bool {
    let last = LAST.load(Ordering::Relaxed);
    if last == UNPACED || sync::take_one(&AT_ONCE).is_some() {
        return true;
    }
    let now = os::coarse_ms();
    is_later(now, last)
        && LAST
            .compare_exchange(last, now.min(UNPACED - 1), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// Blocks to the next one that is drawn, that one among them; on average about `rate`.
fn distance(random: &mut u64, rate: usize) -> u32 {
    match rate {
        0 | 1 => 1,
        rate => poisson::distance(random, rate - 1).min(u32::MAX as usize) as u32,
    }
}

fn seed(of: usize) -> u64 {
    of as u64 ^ os::now_ns().rotate_left(32) | 1
}

/// No [`Draw`], and each of them, as numbers.
const NOTHING: u8 = 0;
const DRAWN: u8 = 1;
const IF_NEW: u8 = 2;

/// Why a guarded block is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Draw {
    /// It was drawn.
    Drawn,
    /// It is made if its stack is new.
    IfNew,
}

/// A thread's draws. Zero: nothing is drawn.
pub(crate) struct GuardDraw {
    /// Blocks to the next one that is drawn, that one among them; 0: none is.
    left: Cell<u32>,
    /// Classes whose next refill is drawn.
    due: Cell<u128>,
    /// What the refill that has just failed is to be: a [`Draw`] as a number, and 0 for nothing, for a cache is made of
    /// zeros.
    pending: Cell<u8>,
    /// The next refill is not looked at.
    skips: Cell<bool>,
    /// Refills to the next look, and from that one to the one after it, if it finds nothing.
    to_look: Cell<u32>,
    pause: Cell<u32>,
    random: Cell<u64>,
}

impl GuardDraw {
    /// Whether blocks are drawn.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.left.get() != 0
    }

    fn draw(&self) {
        let mut random = self.random.get();
        self.left.set(distance(&mut random, rate()));
        self.random.set(random);
    }

    /// Whether a refill failed because a guarded block is to be made.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.get() != NOTHING
    }

    /// What the call whose refill failed is to be. `None`: it failed for want of memory, or there was none.
    pub(crate) fn take_pending(&self) -> Option<Draw> {
        match self.pending.replace(NOTHING) {
            NOTHING => None,
            DRAWN => Some(Draw::Drawn),
            _ => Some(Draw::IfNew),
        }
    }

    /// Counts a block that comes from no list. True: it is drawn.
    pub(crate) fn count_one(&self) -> bool {
        let left = self.left.get();
        if left > 1 {
            self.left.set(left - 1);
            return false;
        }
        if left == 0 {
            return false;
        }
        self.draw();
        is_time(os::coarse_ms())
    }

    /// The next refill is not looked at, for there can be no guarded block; or it is, again.
    pub(crate) fn skip(&self, skips: bool) {
        self.skips.set(skips);
    }

    /// A look has found a new stack, or none.
    pub(crate) fn looked(&self, found: bool) {
        self.pause.set(next_pause(self.pause.get(), found));
        self.to_look.set(self.pause.get());
    }
}

impl Cache {
    /// Begins to draw, if the process does. The cache is about to be a thread's.
    pub(super) fn begin_guards(&self) {
        let draw = &self.guard_draw;
        if rate() == 0 || self.is_heap() {
            return;
        }
        draw.random.set(seed(core::ptr::from_ref(self).addr()));
        draw.draw();
        draw.due.set(0);
        draw.pending.set(NOTHING);
        self.watch(true);
    }

    /// Draws none from now on.
    pub(super) fn end_guards(&self) {
        self.guard_draw.left.set(0);
        self.watch(self.sampling.is_on());
    }

    /// Looks at a refill of `class`, whose list is empty. False: it is drawn, or is to be looked at by its caller, who
    /// finds out by [`GuardDraw::take_pending`].
    pub(super) fn draws_guarded(&self, class: usize) -> bool {
        let draw = &self.guard_draw;
        let left = draw.left.get();
        if left == 0 || draw.skips.replace(false) {
            return true;
        }
        let (bit, due) = (1 << class, draw.due.get());
        if due & bit != 0 || left == 1 {
            if due & bit != 0 {
                draw.due.set(due & !bit);
            } else {
                draw.draw();
            }
            if is_time(self.scavenger.now.get()) {
                draw.pending.set(DRAWN);
                return false;
            }
            return true;
        }
        draw.left.set(left - 1);
        let to_look = draw.to_look.get();
        if to_look > 0 {
            draw.to_look.set(to_look - 1);
        } else if is_time(self.scavenger.now.get()) {
            draw.pending.set(IF_NEW);
            return false;
        }
        true
    }

    /// Counts the blocks that a refill has put into the list of `class`, and cuts the list before the one that is drawn.
    pub(super) fn count_for_guards(&self, class: usize) {
        let (draw, listed) = (&self.guard_draw, self.length(class) as u32);
        let left = draw.left.get();
        if left > listed {
            draw.left.set(left - listed);
            return;
        }
        if left == 0 || listed == 0 {
            return;
        }
        draw.draw();
        // To cut a list is to walk along it, which is not done in vain.
        if !is_time(self.scavenger.now.get()) {
            return;
        }
        draw.due.set(draw.due.get() | 1 << class);
        // A list that is withheld, or has samples beside it, is left as it is.
        if self.bins[class].withheld.is_withheld() || self.sampling.is_on() {
            return;
        }
        let room = self.hot.list(class).room.get();
        let chain = self.empty(class);
        match left as usize - 1 {
            0 => self.keep(class, chain),
            stay => {
                let (stay, rest) = chain.cut(stay);
                let room = room + rest.count() as i32;
                self.fill(class, stay, room);
                self.keep(class, rest);
            }
        }
    }
}

/// Counts for threads that share caches: by thread, more or less, so that few use one at a time.
#[repr(align(64))]
struct Counter {
    left: AtomicI64,
    random: AtomicU64,
}

const COUNTERS: usize = 64;
static COUNTED: [Counter; COUNTERS] =
    [const { Counter { left: AtomicI64::new(0), random: AtomicU64::new(0) } }; COUNTERS];

/// Counts `blocks` that a refill of caches that threads share brings, or one that comes from no list. True: the call that
/// asked for them is drawn.
pub(crate) fn draws_shared(blocks: usize) -> bool {
    let token = os::thread_token() as u64;
    let counter = &COUNTED[(token.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % COUNTERS];
    let mut random = counter.random.load(Ordering::Relaxed);
    if random == 0 {
        random = seed(core::ptr::from_ref(counter).addr());
        counter.left.store(distance(&mut random, rate()).into(), Ordering::Relaxed);
        counter.random.store(random, Ordering::Relaxed);
    }
    // What another thread counts just now may be lost, which is seldom, and no block's fault.
    let left = counter.left.load(Ordering::Relaxed) - blocks as i64;
    if left > 0 {
        counter.left.store(left, Ordering::Relaxed);
        return false;
    }
    counter.left.store(distance(&mut random, rate()).into(), Ordering::Relaxed);
    counter.random.store(random, Ordering::Relaxed);
    is_time(os::coarse_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_as_long_as_was_asked_for() {
        let mut random = 1;
        assert!((0..100).all(|_| distance(&mut random, 1) == 1));
        for rate in [10, 100, 5000] {
            let draws = 20_000;
            let sum: u64 = (0..draws).map(|_| u64::from(distance(&mut random, rate))).sum();
            let mean = sum as f64 / f64::from(draws);
            // Their deviation is as large as their mean: of so many, a 140th.
            assert!((mean / rate as f64 - 1.0).abs() < 0.1, "{rate}: {mean}");
        }
    }

    #[test]
    fn the_pace_holds_when_the_clock_was_read_before() {
        assert!(is_later(13, 10) && !is_later(12, 10) && !is_later(9, 10));
        assert!(is_later(2, u32::MAX));
    }
}
