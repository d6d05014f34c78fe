//! Runs of units as samples of a heap profile: what pools, arenas and collected heaps take.
//!
//! ```text
//!   runs::take (substrate) --> took --> chosen? its stack, kind and size are noted, under the lock of samples
//!   runs::give             --> gave --> no longer live
//! ```
//!
//! Runs come and go with locks of pools and collected heaps held, which a signal handler that
//! interrupted looks like: there the lock is waited for a second at most, and a run that is not
//! looked at is counted.

use heapwright_record::debug::Memory;

use super::ledger::Samples;
use super::site::Site;
use super::{DEPTH, SAMPLES, WAIT_MS};
use crate::address_map::Kind;
use crate::runs::{self, Sampler};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{self, Guard};
use crate::{os, poisson, stacks, substrate};

static SAMPLER: Sampler = Sampler { took, gave };
/// Runs of which it was not looked whether they are samples, because the lock was held for very
/// long.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Whether runs of units are to be samples from now on. (Of blocks `cache` knows.)
pub(crate) fn sample_runs(are: bool) {
    runs::sample(are.then_some(&SAMPLER));
}

/// Runs of which it was not looked whether they are samples.
pub(super) fn missed() -> u64 {
    MISSED.load(Ordering::Relaxed)
}

/// A run of `bytes` bytes was taken, for this kind of memory. Whether it is a sample.
fn took(start: *mut u8, bytes: usize, kind: Kind) -> bool {
    // A prefork handler of others', with all locks held, makes no samples either way.
    if sync::holds_all() {
        return false;
    }
    let Some(mut samples) = lock_under_others() else {
        MISSED.fetch_add(1, Ordering::Relaxed);
        return false;
    };
    let is_sample = samples.is_chosen(bytes);
    if is_sample {
        let memory = match kind {
            Kind::PoolHead => Memory::Pool,
            Kind::Arena => Memory::Arena,
            Kind::Collected(_) => Memory::Collected,
            _ => Memory::Unknown,
        };
        let stack = stacks::here(&mut samples.scratch, DEPTH);
        samples.add(start.addr(), bytes, bytes, Site::key_of(stack, memory));
    }
    is_sample
}

/// A run that is a sample is about to be given back.
fn gave(start: *mut u8) {
    if let Some(mut samples) = lock_under_others() {
        samples.remove(start.addr());
    }
}

/// The lock, for a thread that may have others. `None`: it is a signal handler that has interrupted
/// the lock's holder, or the holder takes very long.
fn lock_under_others() -> Option<Guard<'static, Samples>> {
    match sync::is_interrupted() {
        true => SAMPLES.lock_within(WAIT_MS),
        false => Some(SAMPLES.lock()),
    }
}

impl Samples {
    /// Whether a run of so many bytes is to be a sample.
    fn is_chosen(&mut self, bytes: usize) -> bool {
        // A forked child draws others than its siblings.
        let process = substrate::process();
        if self.random == 0 || self.drawn_in != process {
            self.random = os::now_ns().rotate_left(32) ^ u64::from(process) | 1;
            self.drawn_in = process;
        }
        poisson::distance(&mut self.random, self.period) <= bytes
    }
}
