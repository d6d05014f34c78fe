//! The timeline: live bytes at moments since the start, with their sequence numbers.
//!
//! ```text
//!   | ns, sequence, blocks, bytes | ...        512 places
//!   full: every second moment goes, and the time between two doubles
//! ```
//!
//! So the timeline stays nearly even, for a run of a millisecond or of a month. It converts a
//! block's sequence number to a time. Called by `leaks`. The moments are from `heap::counts`.

use heapwright_record::debug::Sample;

pub(super) const LENGTH: usize = 512;
/// Nanoseconds between the first moments.
const FIRST_STEP: u64 = 200_000;

const NOTHING: Sample = Sample { ns: 0, sequence: 0, blocks: 0, bytes: 0 };

pub(super) struct Timeline {
    samples: [Sample; LENGTH],
    count: usize,
    doublings: u32,
}

impl Timeline {
    /// Returns an empty timeline, which equals zeroed memory.
    pub(super) const fn new() -> Self {
        Self { samples: [NOTHING; LENGTH], count: 0, doublings: 0 }
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples[..self.count]
    }

    pub(super) fn is_due(&self, ns: u64) -> bool {
        let step = FIRST_STEP << self.doublings;
        self.samples().last().is_none_or(|last| ns >= last.ns + step)
    }

    /// Adds a moment, which must not be before the last moment.
    pub(super) fn note(&mut self, sample: Sample) {
        if self.count == LENGTH {
            for index in 0..LENGTH / 2 {
                self.samples[index] = self.samples[2 * index];
            }
            self.count = LENGTH / 2;
            self.doublings += 1;
        }
        self.samples[self.count] = sample;
        self.count += 1;
    }

    /// Returns the earliest and the latest possible time of an operation.
    pub(super) fn when(&self, sequence: u32, now: (u64, u32)) -> (u64, u64) {
        // Sequence numbers wrap.
        let ago = |of: u64| now.1.wrapping_sub(of as u32);
        let mine = now.1.wrapping_sub(sequence);
        let after = self.samples().partition_point(|sample| ago(sample.sequence) >= mine);
        let from = after.checked_sub(1).map_or(0, |before| self.samples[before].ns);
        let to = self.samples().get(after).map_or(now.0, |sample| sample.ns);
        (from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_covers_all_time_evenly() {
        let mut timeline = Timeline::new();
        let mut number = 0;
        for ns in (0..10_000_000_000).step_by(100_000) {
            number += 3;
            if timeline.is_due(ns) {
                timeline.note(Sample { ns, sequence: number, blocks: 1, bytes: ns });
            }
        }
        let samples = timeline.samples();
        assert!(samples.len() > LENGTH / 2 && samples[0].ns == 0);
        let gaps = samples.windows(2).map(|pair| pair[1].ns - pair[0].ns);
        let (least, most) = (gaps.clone().min().unwrap(), gaps.max().unwrap());
        assert!(most <= 2 * least, "{least} to {most}");
        let now = (10_000_000_000, number as u32);
        let (from, to) = timeline.when(150_000, now);
        assert!((from..=to).contains(&5_000_000_000), "{from} to {to}");
        assert_eq!(timeline.when(number as u32, now).1, now.0);
        assert_eq!(timeline.when(1, now).0, 0);
    }
}
