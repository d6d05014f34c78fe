//! Draws: which blocks become samples of a heap profile, and which are guarded (`guard=sample`).
//!
//! ```text
//!   a sample          once in `period` bytes            distances are random, so that each
//!   a guarded block   once in `rate` blocks             byte or block has the same chance
//!
//!   a countdown is    a cache's, for the blocks of its thread      (`sampling`, `guard_draw`)
//!                     one of 64, for all other calls                       ([`Shared`])
//! ```
//!
//! **Pace.** Unless the user sets a rate, guarded blocks are drawn often and made rarely: at most
//! one in [`PAUSE_MS`] ms (hardened: after [`AT_START`]). So any program pays about the same.
//!
//! A refill that is not drawn may make its caller *look* at the stack. A new stack gets a guarded
//! block. A look costs a stack trace, so looks become rare while they find nothing new.
//!
//! Called by `sampling`, `guard_draw`, `arrays` and `magazines`, by `drawn`, `heap`, `hardened` and
//! `debug`, and by `profile` and `status` (the period).

use core::cell::Cell;

use crate::os;
use crate::poisson;
use crate::sync;
use crate::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// The mean distance of samples in bytes, or 0 if nothing is sampled.
static PERIOD: AtomicUsize = AtomicUsize::new(0);

#[inline(always)]
pub(crate) fn period() -> usize {
    PERIOD.load(Ordering::Relaxed)
}

static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Whether some blocks are sampled or guarded, so that slow paths check calls.
#[inline(always)]
pub(crate) fn is_watched() -> bool {
    IS_WATCHED.load(Ordering::Relaxed)
}

fn watch_again() {
    IS_WATCHED.store(period() != 0 || guards_are_watched(), Ordering::Relaxed);
}

/// Callers must notify the caches afterwards.
pub(super) fn set_period(bytes: usize) {
    PERIOD.store(bytes, Ordering::Relaxed);
    watch_again();
    // Pairs with [`look_again`]: either a new cache sees this period, or the caller's notification,
    // which comes after this fence, sees the cache.
    fence(Ordering::SeqCst);
}

/// Makes a new per-CPU entry or shared cache count its calls if blocks are sampled.
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

/// The mean distance of drawn blocks, in blocks, or 0 if none is drawn.
static RATE: AtomicUsize = AtomicUsize::new(0);
/// When the last guarded block was made, in milliseconds, or [`UNPACED`] if the user set a rate.
static LAST: AtomicU32 = AtomicU32::new(UNPACED);
const UNPACED: u32 = u32::MAX;
/// The rate if the user set none.
const PACED_RATE: usize = 1000;
const PAUSE_MS: u32 = 3;
/// The most refills between two looks.
const LOOKS_MOST: u32 = 255;

#[inline(always)]
pub(crate) fn rate() -> usize {
    RATE.load(Ordering::Relaxed)
}

/// Draws one of `every` blocks. `None` means one of [`PACED_RATE`], made rarely: see **Pace**. Call
/// this before any thread has a cache.
pub(crate) fn begin(every: Option<usize>) {
    if every.is_none() {
        // (So a process that ends within the first pause makes no guarded block.)
        LAST.store(os::coarse_ms().min(UNPACED - 1), Ordering::Relaxed);
    }
    RATE.store(every.unwrap_or(PACED_RATE).max(1), Ordering::Relaxed);
    watch_again();
}

/// [`begin`] for the hardened heap, whose own slow paths check ([`draws_apart`]).
pub(crate) fn begin_apart(every: Option<usize>) {
    APART.store(true, Ordering::Relaxed);
    AT_ONCE.store(AT_START, Ordering::Relaxed);
    EARLY.store(FIRST_REFILLS, Ordering::Relaxed);
    begin(every);
}

/// Guarded blocks without a pause when a hardened process starts, for short programs.
const AT_START: u32 = 32;
/// The number of these that is left.
static AT_ONCE: AtomicU32 = AtomicU32::new(0);

/// Early refills of the hardened heap when a process starts. Each looks at the stack and brings one
/// block, so that each call site's first block gets a look.
const FIRST_REFILLS: u32 = 512;
/// The number of these that is left.
static EARLY: AtomicU32 = AtomicU32::new(0);

#[inline]
pub(crate) fn is_early() -> bool {
    EARLY.load(Ordering::Relaxed) > 0
}

/// Whether the hardened heap draws, instead of `cache`.
static APART: AtomicBool = AtomicBool::new(false);

fn guards_are_watched() -> bool {
    rate() != 0 && !APART.load(Ordering::Relaxed)
}

/// The hardened heap's refills before the next look, and the last pause ([`next_pause`]).
static TO_LOOK: AtomicU32 = AtomicU32::new(0);
static LOOK_PAUSE: AtomicU32 = AtomicU32::new(0);

/// The kind of block for a call whose refill brings `blocks` blocks. `None` for an ordinary block.
pub(crate) fn draws_apart(blocks: usize) -> Option<Draw> {
    if rate() == 0 {
        return None;
    }
    if draws_shared(blocks) {
        return Some(Draw::Drawn);
    }
    // (Here and below, two threads may count as one. Then a look comes a little later.)
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

pub(crate) fn looked_apart(found: bool) {
    let pause = next_pause(LOOK_PAUSE.load(Ordering::Relaxed), found);
    LOOK_PAUSE.store(pause, Ordering::Relaxed);
    TO_LOOK.store(pause, Ordering::Relaxed);
}

/// The next pause, in refills. `pause` is the last one. `found`: the look has found a new stack.
pub(super) fn next_pause(pause: u32, found: bool) -> u32 {
    if found { 0 } else { (2 * pause + 1).min(LOOKS_MOST) }
}

pub(super) fn is_time(now: u32) -> bool {
    let last = LAST.load(Ordering::Relaxed);
    last == UNPACED || is_later(now, last) || AT_ONCE.load(Ordering::Relaxed) > 0
}

/// A slow path may have read `now` before `last`.
fn is_later(now: u32, last: u32) -> bool {
    now.wrapping_sub(last).cast_signed() >= PAUSE_MS.cast_signed()
}

/// Claims the next guarded block. Returns false if one was made, or begun, within the last pause.
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Draw {
    Drawn,
    /// Made only if its stack is new.
    IfNew,
}

/// The distance to the next draw, which is included: `mean` on average, and 0 means never.
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

/// A thread's countdown. If all fields are zero, nothing is drawn.
pub(super) struct Countdown {
    /// Blocks or bytes to the next draw, which is included.
    left: Cell<usize>,
    random: Cell<u64>,
}

impl Countdown {
    pub(super) fn begin(&self, mean: usize) {
        self.random.set(seed(core::ptr::from_ref(self).addr()));
        self.draw(mean);
    }

    pub(super) fn end(&self) {
        self.left.set(0);
    }

    #[inline(always)]
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    /// `amount` must be less than [`Countdown::left`].
    #[inline(always)]
    pub(super) fn pass(&self, amount: usize) {
        self.left.set(self.left.get() - amount);
    }

    #[cold]
    pub(super) fn draw(&self, mean: usize) {
        let mut random = self.random.get();
        self.left.set(distance(&mut random, mean));
        self.random.set(random);
    }
}

/// Countdowns for calls that are counted one by one. Each countdown serves a CPU, or some of the
/// shared caches or threads, so that few threads use it at a time.
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

    pub(crate) fn begin(&self, mean: usize) {
        for countdown in &self.0 {
            countdown.draw(mean);
        }
    }

    /// Counts `amount` for a call on the CPU, or of the shared cache, `number`. Returns whether the
    /// call is drawn.
    #[inline(always)]
    pub(crate) fn counts_out(&self, number: usize, amount: usize, mean: usize) -> bool {
        let countdown = &self.0[number % COUNTDOWNS];
        if countdown.random.load(Ordering::Relaxed) == 0 {
            countdown.draw(mean);
        }
        // A count of another thread may be lost now. This is rare, and favours no block.
        let left = countdown.left.load(Ordering::Relaxed) - amount as i64;
        if left > 0 {
            countdown.left.store(left, Ordering::Relaxed);
            return false;
        }
        countdown.draw(mean);
        true
    }

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

/// For refills of shared caches and of the hardened heap, and for sharing threads' large blocks.
static REFILLS: Shared = Shared::new();

/// Counts the `blocks` of a refill, or one block from no list. Returns whether the call is drawn.
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
            // The standard deviation is the mean, so 20,000 draws' mean deviates by a 140th.
            assert!((mean / rate as f64 - 1.0).abs() < 0.1, "{rate}: {mean}");
        }
    }

    #[test]
    fn the_pace_holds_when_the_clock_was_read_before() {
        assert!(is_later(13, 10) && !is_later(12, 10) && !is_later(9, 10));
        assert!(is_later(2, u32::MAX));
    }
}
