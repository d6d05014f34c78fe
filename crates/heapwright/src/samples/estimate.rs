//! Estimates of all blocks from samples: sums and their errors.
//!
//! A sample of `n` bytes stands for `1/p` blocks, where `p` is the probability of a sample at its
//! size (`poisson`). Sums of `1/p` estimate counts, and sums of `n/p` estimate bytes. The sum of
//! `(1-p)/p^2` estimates the variance of a count. For bytes, each term is multiplied by `n^2`
//! (Horvitz and Thompson). Called by the other files of `samples`, under its lock.

use crate::paged_table::Keyed;

#[derive(Clone, Copy)]
pub(super) struct Estimate {
    pub(super) samples: u64,
    pub(super) blocks: f64,
    pub(super) bytes: f64,
    pub(super) variance: f64,
}

impl Estimate {
    pub(super) const ZERO: Self = Self { samples: 0, blocks: 0.0, bytes: 0.0, variance: 0.0 };

    pub(super) fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.blocks += sample.weight;
        self.bytes += sample.bytes();
        self.variance += sample.variance();
    }

    pub(super) fn take_away(&mut self, sample: &Sample) {
        self.samples -= 1;
        if self.samples == 0 {
            *self = Self::ZERO;
            return;
        }
        self.blocks -= sample.weight;
        self.bytes -= sample.bytes();
        self.variance -= sample.variance();
    }

    /// Replaces a changed sample, unless the profile began after the sample was made.
    pub(super) fn replace(&mut self, before: &Sample, now: &Sample) {
        if self.samples != 0 {
            self.take_away(before);
            self.add(now);
        }
    }

    pub(super) fn error(&self) -> u64 {
        deviation(self.variance)
    }

    pub(super) fn copy(&self) -> Copied {
        Copied { bytes: self.bytes, blocks: self.blocks as f32, variance: self.variance as f32 }
    }
}

pub(super) fn deviation(variance: f64) -> u64 {
    u64::try_from((variance.max(0.0) as u128).isqrt()).unwrap_or(u64::MAX)
}

/// An estimate at an earlier moment, in few bytes.
#[derive(Clone, Copy)]
pub(super) struct Copied {
    pub(super) bytes: f64,
    pub(super) blocks: f32,
    pub(super) variance: f32,
}

impl Copied {
    pub(super) const ZERO: Self = Self { bytes: 0.0, blocks: 0.0, variance: 0.0 };
}

#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) address: u64,
    pub(super) site: u64,
    pub(super) thread: u32,
    pub(super) size: u64,
    /// The bytes that decide the sample's probability: the most that were counted for it.
    pub(super) counted: u64,
    pub(super) weight: f64,
    pub(super) born_ns: u64,
}

impl Sample {
    pub(super) fn bytes(&self) -> f64 {
        self.size as f64 * self.weight
    }

    pub(super) fn variance(&self) -> f64 {
        // (1-p)/p^2 is w(w-1).
        let size = self.size as f64;
        size * size * self.weight * (self.weight - 1.0)
    }
}

// SAFETY: all fields are numbers; the key of zeros is 0.
unsafe impl Keyed for Sample {
    fn key(&self) -> u64 {
        self.address
    }
}
