//! The purge delay: the time that free pages wait until they go back to the kernel.
//!
//! ```text
//!              given back ---- touched again, after a pause of up to MAX ---> a bit over the pause
//!   delay  <
//!              given back ---- not touched again in a long time ------> half (at least MIN)
//! ```
//!
//! The delay follows *regret*: each page that the program touches again soon after it was given
//! back costs a fault. (This resembles the ski rental problem: Karlin, Manasse, Rudolph and
//! Sleator, "Competitive snoopy caching", 1988.) The user sets the bounds (`purge=MIN..MAX`). No
//! memory safety depends on these values. If two threads note at once, one note may be lost.
#![forbid(unsafe_code)]

use crate::memory_limit;
use crate::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

/// The default lower bound, in milliseconds.
pub const DEFAULT_MIN_MS: i32 = 250;
/// The default upper bound.
pub const DEFAULT_MAX_MS: i32 = 5500;
const FORGOTTEN_MS: u32 = 15_000;
/// The delay grows only if this many bytes, and 1 / `SHARE` of the given bytes, are touched again.
const MANY: usize = 256 << 10;
const SHARE: usize = 4;
/// The new delay exceeds the pause by 1 / `LONGER`, because pauses differ.
const LONGER: i32 = 10;
const LOOKS: i32 = 4;
const LOOK_MS: i32 = 250;

/// In milliseconds; negative: for ever.
static DELAY: AtomicI32 = AtomicI32::new(DEFAULT_MIN_MS);
static MIN: AtomicI32 = AtomicI32::new(DEFAULT_MIN_MS);
static MAX: AtomicI32 = AtomicI32::new(DEFAULT_MAX_MS);
/// Bytes given back lately, the time when the first were last needed, and bytes touched again.
static GIVEN: AtomicUsize = AtomicUsize::new(0);
static UNUSED_SINCE: AtomicU32 = AtomicU32::new(0);
static TOUCHED: AtomicUsize = AtomicUsize::new(0);

/// Sets the purge delay in milliseconds, like the option `purge`. Negative: for ever.
pub fn set_purge_delay_ms(ms: i32) {
    set_bounds(ms, ms);
}

/// Sets the bounds of the delay, which starts at the lower bound. Negative: for ever.
pub fn set_bounds(min: i32, max: i32) {
    MIN.store(min, Ordering::Relaxed);
    MAX.store(max, Ordering::Relaxed);
    DELAY.store(min, Ordering::Relaxed);
    forget();
}

/// The delay in force in milliseconds (negative: for ever), short if the memory limit is not far.
#[inline]
pub fn purge_ms() -> i32 {
    memory_limit::delay(DELAY.load(Ordering::Relaxed))
}

/// The delay in milliseconds far from the memory limit; negative: for ever.
pub fn wanted_ms() -> i32 {
    DELAY.load(Ordering::Relaxed)
}

/// The milliseconds that free memory waits before it goes back; `None`: for ever.
#[inline]
pub fn purge_delay() -> Option<i32> {
    Some(purge_ms()).filter(|&delay| delay >= 0)
}

/// The milliseconds between two looks for pages that have waited for `delay`.
#[inline]
pub fn interval(delay: i32) -> i32 {
    (delay / LOOKS).max(LOOK_MS).min(delay)
}

/// Notes that free pages went back after a wait of this many milliseconds.
pub fn note_given(bytes: usize, now: u32, waited: i32) {
    if bytes == 0 || !is_adaptive() {
        return;
    }
    let pause = now.wrapping_sub(UNUSED_SINCE.load(Ordering::Relaxed));
    if pause >= FORGOTTEN_MS && were_given() {
        DELAY.store(
            shorter(DELAY.load(Ordering::Relaxed), MIN.load(Ordering::Relaxed)),
            Ordering::Relaxed,
        );
        forget();
    }
    if !were_given() {
        UNUSED_SINCE.store(now.wrapping_sub(waited.cast_unsigned()), Ordering::Relaxed);
    }
    GIVEN.fetch_add(bytes, Ordering::Relaxed);
}

/// Whether pages were given back lately. Then callers must note pages that are taken again.
#[inline]
pub fn were_given() -> bool {
    GIVEN.load(Ordering::Relaxed) > 0
}

/// Notes that the program takes pages that may have been given back.
#[cold]
pub fn note_touched(bytes: usize, now: u32) {
    let touched = TOUCHED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    let given = GIVEN.load(Ordering::Relaxed);
    if touched < MANY.max(given / SHARE) {
        return;
    }
    let pause = now.wrapping_sub(UNUSED_SINCE.load(Ordering::Relaxed));
    let max = MAX.load(Ordering::Relaxed);
    DELAY.store(longer(DELAY.load(Ordering::Relaxed), pause, max), Ordering::Relaxed);
    forget();
}

fn is_adaptive() -> bool {
    MIN.load(Ordering::Relaxed) < MAX.load(Ordering::Relaxed)
}

fn forget() {
    GIVEN.store(0, Ordering::Relaxed);
    TOUCHED.store(0, Ordering::Relaxed);
}

/// The delay after a pause. It stays the same if no delay up to `max` were long enough.
fn longer(delay: i32, pause: u32, max: i32) -> i32 {
    let pause = i32::try_from(pause).unwrap_or(i32::MAX);
    if pause > max {
        return delay;
    }
    pause.saturating_add(pause / LONGER).clamp(delay, max.max(delay))
}

fn shorter(delay: i32, min: i32) -> i32 {
    (delay / 2).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::cases(500))]

        #[test]
        fn the_delay_stays_within_its_bounds(
            (min, max) in (0..10_000_i32).prop_flat_map(|min| (Just(min), min..100_000)),
            steps in prop::collection::vec(prop::option::of(any::<u32>()), 0..50),
        ) {
            let mut delay = min;
            for step in steps {
                let next = match step {
                    Some(pause) => longer(delay, pause, max),
                    None => shorter(delay, min),
                };
                prop_assert!((min..=max).contains(&next));
                let is_right_way = if step.is_some() { next >= delay } else { next <= delay };
                prop_assert!(is_right_way);
                delay = next;
            }
        }

        #[test]
        fn a_pause_is_regretted_once(delay in 0..5500_i32, pause in 0..20_000_i32) {
            prop_assert!(longer(delay, pause as u32, 5500) >= pause || pause > 5500);
        }

        #[test]
        fn looks_are_neither_rare_nor_many(delay in 0..i32::MAX) {
            let every = interval(delay);
            prop_assert!(every <= delay && (every >= LOOK_MS || every == delay));
            prop_assert!(every <= LOOK_MS.max(delay / LOOKS));
        }
    }
}
