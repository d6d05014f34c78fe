//! Low water: the fewest dirty units during the purge delay.
//!
//! ```text
//!   lows     [now .. ] [ .. ] [ .. ] [ .. ]    the fewest in each part of the delay, newest first
//!                        \_______ at the end of a part: the fewest of all are due
//! ```
//!
//! The delay has parts, so that unneeded units are due at most one part after the delay. Only
//! `chunk` calls this module, under its lock.
#![forbid(unsafe_code)]

use super::waited;
use crate::purge_delay;

const PARTS: usize = 4;

pub(super) struct LowWater {
    lows: [usize; PARTS],
    /// The time in milliseconds at which the newest part began.
    since: u32,
}

impl LowWater {
    pub(super) const fn new() -> Self {
        Self { lows: [0; PARTS], since: 0 }
    }

    pub(super) fn note(&mut self, dirty: usize) {
        self.lows[0] = self.lows[0].min(dirty);
    }

    /// This number of units of the low water went back.
    pub(super) fn give(&mut self, units: usize) {
        for low in &mut self.lows {
            *low = low.saturating_sub(units);
        }
    }

    pub(super) fn due(&mut self, now: u32, delay: i32, dirty: usize) -> Option<usize> {
        let part = purge_delay::interval(delay);
        if waited(self.since, now) < part {
            return None;
        }
        self.since = now;
        let parts = (delay as usize).div_ceil(part.max(1) as usize).clamp(1, PARTS);
        let due = self.lows[..parts].iter().copied().min();
        self.lows.rotate_right(1);
        self.lows[0] = dirty;
        due
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    proptest! {
        #![proptest_config(crate::testing::cases(500))]

        #[test]
        fn what_is_not_needed_is_due_in_time(
            delay in prop::sample::select(vec![0, 20, 250, 500, 1000, 2000, 6500]),
            steps in prop::collection::vec((1..200_u32, 0..100_usize), 1..400),
        ) {
            let mut low = LowWater::new();
            let mut history = vec![(0, 0)];
            let mut now = 10_000;
            for (wait, dirty) in steps {
                now += wait;
                if let Some(due) = low.due(now, delay, history[history.len() - 1].1) {
                    let fewest_since = |since: u32| {
                        let from = history.partition_point(|&(at, _)| at <= since) - 1;
                        history[from..].iter().map(|&(_, dirty)| dirty).min().unwrap_or(0)
                    };
                    prop_assert!(due <= fewest_since(now - delay as u32));
                    let parts = PARTS as u32 + 1;
                    let longest = delay as u32 + purge_delay::interval(delay) as u32 + parts * 200;
                    prop_assert!(due >= fewest_since(now - longest));
                }
                history.push((now, dirty));
                low.note(dirty);
            }
        }
    }
}
