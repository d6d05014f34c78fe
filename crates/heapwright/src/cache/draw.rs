//! Draws: which blocks are samples of a heap profile, and which stand between guards
//! (`guard=sample`).
//!
//! ```text
//!   a sample          every so many bytes (`period`)      a countdown: distances at random, so that each
//!   a guarded block   every so many blocks (`rate`)       byte, and each block, has the same chance
//!
//!   a countdown is    a cache's, which counts what comes into its lists    (`sampling`, `guard_draw`)
//!                     one of 64, for calls of threads that share caches    ([`Shared`])
//! ```
//!
//! **Pace.** Without a rate of the user's, guarded blocks are drawn often and made seldom: at most
//! one in [`PAUSE_MS`] in the whole process, by the clock of the slow paths, so that it costs about
//! as little in any program.
//!
//! A refill that is not drawn may ask its caller to *look* at who calls: a stack that has no
//! guarded block yet gets one. Looks cost a stack, so they become rare where they find nothing new,
//! and begin again where they do.
//!
//! Called by `sampling` and `guard_draw`, by caches that threads share, and by `heap`.

use core::cell::Cell;

use crate::os;
use crate::poisson;
use crate::sync;
use crate::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Bytes from one sample to the next, on average; 0: nothing is sampled.
static PERIOD: AtomicUsize = AtomicUsize::new(0);

/// Bytes from one sample to the next, on average; 0: nothing is sampled.
#[inline(always)]
pub(crate) fn period() -> usize {
    PERIOD.load(Ordering::Relaxed)
}

/// Whether some calls are to be looked at that the lists do not serve: for samples, or for guards.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Whether blocks are sampled, or some guarded.
#[inline(always)]
pub(crate) fn is_watched() -> bool {
    IS_WATCHED.load(Ordering::Relaxed)
}

/// What is sampled or guarded has changed.
fn watch_again() {
    IS_WATCHED.store(period() != 0 || guards_are_watched(), Ordering::Relaxed);
}

/// Sets the period. Its callers have those that draw follow.
pub(super) fn set_period(bytes: usize) {
    PERIOD.store(bytes, Ordering::Relaxed);
    watch_again();
    // What is made meanwhile looks at the period after it is there for all to see, and here it is
    // looked for after that is set.
    fence(Ordering::SeqCst);
}

/// Has a per-CPU entry or a shared cache that was just made count its calls, by `count`, if blocks
/// are sampled.
pub(super) fn look_again(count: fn(bool)) {
    fence(Ordering::SeqCst);
    if period() != 0 {
        count(true);
        fence(Ordering::SeqCst);
        if period() == 0 {
            count(false);
        }
    }
}

/// Blocks from one that is drawn to the next, on average; 0: none is.
static RATE: AtomicUsize = AtomicUsize::new(0);
/// When the last one was made, in milliseconds, where they have a pace; [`UNPACED`] where they have
/// none.
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

/// Draws one of `every` blocks from now on; `None`: at a pace of its own. Before any thread has a
/// cache.
pub(crate) fn begin(every: Option<usize>) {
    if every.is_none() {
        // A process that ends before its first pays for none.
        LAST.store(os::coarse_ms().min(UNPACED - 1), Ordering::Relaxed);
    }
    RATE.store(every.unwrap_or(PACED_RATE).max(1), Ordering::Relaxed);
    watch_again();
}

/// Draws as [`begin`] says, for a heap that asks by itself ([`draws_apart`]): nothing of `cache`
/// looks.
pub(crate) fn begin_apart(every: Option<usize>) {
    APART.store(true, Ordering::Relaxed);
    AT_ONCE.store(AT_START, Ordering::Relaxed);
    EARLY.store(FIRST_REFILLS, Ordering::Relaxed);
    begin(every);
}

/// Blocks that a heap which asks by itself makes without a pause when a process starts: short
/// programs have a chance, too.
const AT_START: u32 = 32;
/// How many are left of them.
static AT_ONCE: AtomicU32 = AtomicU32::new(0);

/// Refills of that heap that are early when a process starts: each looks at who calls, and brings
/// one block, so that the next call looks, too. So the first block of a call in a small program, or
/// of the start of a large one, is seen.
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
fn guards_are_watched() -> bool {
    rate() != 0 && !APART.load(Ordering::Relaxed)
}

/// Refills of that heap to the next look at who calls, and from that one to the one after it, if it
/// finds nothing.
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
pub(super) fn next_pause(pause: u32, found: bool) -> u32 {
    if found { 0 } else { (2 * pause + 1).min(LOOKS_MOST) }
}

/// Whether one may be made now, by the pace.
pub(super) fn is_time(now: u32) -> bool {
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

/// Why a guarded block is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Draw {
    /// It was drawn.
    Drawn,
    /// It is made if its stack is new.
    IfNew,
}

/// The distance to the next draw, the drawn one included; on average `mean`. 0: never, as far as
/// counts go.
fn distance(random: &mut u64, mean: usize) -> usize {
    match mean {
        0 => usize::MAX / 2,
        1 => 1,
        mean => poisson::distance(random, mean - 1),
    }
}

fn seed(of: usize) -> u64 {
    of as u64 ^ os::now_ns().rotate_left(32) | 1
}

/// A thread's countdown. Zero: nothing is drawn.
pub(super) struct Countdown {
    /// What is left to the drawn one, that one included.
    left: Cell<usize>,
    random: Cell<u64>,
}

impl Countdown {
    /// Begins, with draws that are `mean` apart on average.
    pub(super) fn begin(&self, mean: usize) {
        self.random.set(seed(core::ptr::from_ref(self).addr()));
        self.draw(mean);
    }

    /// Ends.
    pub(super) fn end(&self) {
        self.left.set(0);
    }

    /// What is left; 0: nothing is drawn.
    #[inline(always)]
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    /// Counts `amount`, less than what is left.
    #[inline(always)]
    pub(super) fn pass(&self, amount: usize) {
        self.left.set(self.left.get() - amount);
    }

    /// Draws the next one.
    #[cold]
    pub(super) fn draw(&self, mean: usize) {
        let mut random = self.random.get();
        self.left.set(distance(&mut random, mean));
        self.random.set(random);
    }
}

/// Countdowns for calls that are counted one by one: for a CPU each, or for some of the shared
/// caches or threads, so that few threads use one at a time.
pub(crate) struct Shared([SharedCountdown; COUNTDOWNS]);

const COUNTDOWNS: usize = 64;

#[repr(align(64))]
struct SharedCountdown {
    left: AtomicI64,
    random: AtomicU64,
}

impl Shared {
    pub(crate) const fn new() -> Self {
        Self(
            [const { SharedCountdown { left: AtomicI64::new(0), random: AtomicU64::new(0) } };
                COUNTDOWNS],
        )
    }

    /// Begins all anew, with draws that are `mean` apart on average.
    pub(crate) fn begin(&self, mean: usize) {
        for countdown in &self.0 {
            countdown.draw(mean);
        }
    }

    /// Counts `amount` for a call on the CPU, or by the shared cache, with that number. True: it is
    /// drawn.
    #[inline(always)]
    pub(crate) fn counts_out(&self, number: usize, amount: usize, mean: usize) -> bool {
        let countdown = &self.0[number % COUNTDOWNS];
        if countdown.random.load(Ordering::Relaxed) == 0 {
            countdown.draw(mean);
        }
        // What another thread counts just now may be lost, which is seldom, and no block's fault.
        let left = countdown.left.load(Ordering::Relaxed) - amount as i64;
        if left > 0 {
            countdown.left.store(left, Ordering::Relaxed);
            return false;
        }
        countdown.draw(mean);
        true
    }

    /// The same for a call of the calling thread.
    #[inline(always)]
    pub(crate) fn counts_out_here(&self, amount: usize, mean: usize) -> bool {
        let token = os::thread_token() as u64;
        self.counts_out((token.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize, amount, mean)
    }
}

impl SharedCountdown {
    fn draw(&self, mean: usize) {
        let mut random = self.random.load(Ordering::Relaxed);
        if random == 0 {
            random = seed(core::ptr::from_ref(self).addr());
        }
        self.left.store(distance(&mut random, mean) as i64, Ordering::Relaxed);
        self.random.store(random, Ordering::Relaxed);
    }
}

/// Of refills of caches that threads share, and of large blocks of theirs.
static REFILLS: Shared = Shared::new();

/// Counts `blocks` that a refill of caches that threads share brings, or one that comes from no
/// list. True: the call that asked for them is drawn.
pub(crate) fn draws_shared(blocks: usize) -> bool {
    REFILLS.counts_out_here(blocks, rate()) && is_time(os::coarse_ms())
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
            let sum: u64 = (0..draws).map(|_| distance(&mut random, rate) as u64).sum();
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
