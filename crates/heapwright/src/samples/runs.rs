//! Runs of units as samples of a heap profile: the memory of pools, arenas and collected heaps.
//!
//! ```text
//!   runs::take (substrate) --> took --> chosen? note stack, kind and size, under the samples' lock
//!   runs::give             --> gave --> no longer live
//! ```
//!
//! A thread takes or gives a run while it holds a lock of a pool or a collected heap. Code cannot
//! tell this thread from a signal handler that interrupted the holder of the samples' lock. So the
//! thread waits for this lock only for a limited time.

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
/// The number of runs that were skipped because the lock was held too long.
static MISSED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn sample_runs(are: bool) {
    runs::sample(are.then_some(&SAMPLER));
}

pub(super) fn missed() -> u64 {
    MISSED.load(Ordering::Relaxed)
}

/// Makes a new run a sample if it is chosen. Returns whether it is.
fn took(start: *mut u8, bytes: usize, kind: Kind) -> bool {
    // A foreign prefork handler, which runs with all locks held, makes no samples.
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

fn gave(start: *mut u8) {
    if let Some(mut samples) = lock_under_others() {
        samples.remove(start.addr());
    }
}

/// Locks the samples for a thread that may hold other locks. Returns `None` if the lock is not free
/// in time: the caller may be a signal handler that interrupted the holder.
fn lock_under_others() -> Option<Guard<'static, Samples>> {
    match sync::is_interrupted() {
        true => SAMPLES.lock_within(WAIT_MS),
        false => Some(SAMPLES.lock()),
    }
}

impl Samples {
    fn is_chosen(&mut self, bytes: usize) -> bool {
        // A forked child draws other runs than its siblings.
        let process = substrate::process();
        if self.random == 0 || self.drawn_in != process {
            self.random = os::now_ns().rotate_left(32) ^ u64::from(process) | 1;
            self.drawn_in = process;
        }
        poisson::distance(&mut self.random, self.period) <= bytes
    }
}
