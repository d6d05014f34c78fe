//! Samples: the blocks of a heap profile, and the estimates from them.
//!
//! ```text
//!   live      address                -> site, size, thread, time, and the number of blocks
//!                                       that the sample stands for
//!   sites     stack, kind of memory  -> live, allocated, temporary, live at the peak and at two
//!                                       earlier moments
//!   threads   thread                 -> live, allocated
//!   points    time                   -> live bytes, bytes in memory
//!
//!   estimate   a sample, and sums of samples         ledger    all sums, as samples come and go
//!   site       the record of a stack, of a thread    written   the profile's file
//!   points     the curve over time                   (paged_table: the storage)
//! ```
//!
//! One lock protects all records. A thread takes it when a sample is made, resized or freed. The
//! callers ensure that no signal handler calls these functions after it interrupted the lock's
//! holder. For runs of units see `runs`, for tracers of the whole machine `probes`. Called by
//! `drawn`, `profile`, `limit`, `status`, `heap` (at the start), and the substrate's `runs`.

mod estimate;
mod ledger;
mod points;
pub(crate) mod probes;
mod runs;
mod site;
mod written;

pub(crate) use runs::sample_runs;

use heapwright_record::debug::Memory;

use crate::files::{PATH, Prefix};
use crate::fork::{self, Part};
use crate::os;
use crate::stacks;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{self, Lock};
use estimate::Sample;
use ledger::Samples;
use site::Site;

const DEPTH: usize = 32;
/// The longest wait for the lock in a caller that may have interrupted its holder, in milliseconds.
const WAIT_MS: u64 = 1000;

static HAS_JOINED: AtomicBool = AtomicBool::new(false);
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
static SAMPLES: Lock<Samples> = Lock::new(Samples::new());

/// Forgets past allocations, but no live samples. From now on samples come each `period` bytes.
pub(crate) fn begin(period: usize) {
    join();
    HAS_BEGUN.store(true, Ordering::Relaxed);
    SAMPLES.lock().begin(period);
}

/// Registers for forks before the first use of the lock. The caller must hold no lock.
pub(crate) fn join() {
    if !HAS_JOINED.load(Ordering::Acquire) {
        fork::join(Part::Samples, &HANDLERS);
        HAS_JOINED.store(true, Ordering::Release);
    }
}

pub(crate) fn has_joined() -> bool {
    HAS_JOINED.load(Ordering::Acquire)
}

pub(crate) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// Saves the profile in the file `prefix.<pid>` now and then, and at the process's end.
pub(crate) fn save_in(prefix: &[u8]) {
    join();
    SAMPLES.lock().prefix.set(prefix);
}

/// Adds a block of `size` bytes as a sample. Its probability was that of `counted` bytes.
#[inline(always)]
pub(crate) fn made(block: *mut u8, size: usize, counted: usize) {
    let mut samples = SAMPLES.lock();
    let stack = stacks::here(&mut samples.scratch, DEPTH);
    samples.add(block.addr(), size, counted, Site::key_of(stack, Memory::Block));
}

pub(crate) fn freed(block: *mut u8) {
    SAMPLES.lock().remove(block.addr());
}

pub(crate) fn resized(block: *mut u8, size: usize) {
    let mut samples = SAMPLES.lock();
    if let Some(sample) = samples.take(block.addr()) {
        samples.put_back(sample, block.addr(), size as u64);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Moving(Sample);

pub(crate) fn take(block: *mut u8) -> Option<Moving> {
    SAMPLES.lock().take(block.addr()).map(Moving)
}

pub(crate) fn put_back(moving: Moving, block: *mut u8, size: Option<usize>) {
    let size = size.map_or(moving.0.size, |size| size as u64);
    SAMPLES.lock().put_back(moving.0, block.addr(), size);
}

/// Removes the samples of a destroyed heap: those at addresses for which `is_gone` holds.
pub(crate) fn forget(is_gone: impl Fn(usize) -> bool) {
    let mut samples = SAMPLES.lock();
    let mut from = 0;
    while let Some((at, address)) = samples.live.key_from(from, |key| is_gone(key as usize)) {
        samples.remove(address as usize);
        from = at;
    }
}

pub(crate) fn save() -> bool {
    if sync::holds_all() {
        return SAMPLES.lock().save();
    }
    // A signal handler that interrupted the lock's holder may end the process.
    SAMPLES.lock_within(WAIT_MS).is_some_and(|mut samples| samples.save())
}

/// Saves the present profile near the memory limit, in the file of [`save_in`] or in a file in
/// `/tmp` whose name other users cannot guess. Returns the path, or `None` after a failure.
pub(crate) fn save_at_limit() -> Option<[u8; PATH]> {
    let mut samples = SAMPLES.lock_within(WAIT_MS)?;
    let is_named = samples.prefix.is_given();
    if !is_named {
        samples.name_for_limit();
    }
    let path = samples.prefix.of(os::process_id());
    let saved = samples.save();
    if !is_named {
        samples.prefix = Prefix::none();
    }
    saved.then_some(path)
}

/// Writes the present profile to the open file `file`, as a complete record.
pub(crate) fn write_in(file: i32) -> bool {
    join();
    SAMPLES.lock().write_in(file)
}

/// Writes the present profile to a new file for this user alone. `path` ends with a zero byte.
/// Returns false if the write failed, or if forks may not know the lock yet.
pub(crate) fn write_to(path: &[u8]) -> bool {
    HAS_JOINED.load(Ordering::Acquire) && os::replace_private_file(path, write_in)
}

static HANDLERS: fork::Handlers = fork::Handlers { before: before_fork, unlock, in_child };

fn before_fork() {
    SAMPLES.acquire();
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
    unsafe { SAMPLES.release() };
}

/// Does nothing, because the recorder notices the new process by its id.
fn in_child(_alone: bool) {}
