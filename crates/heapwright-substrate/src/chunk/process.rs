//! The process's chunk: one lock around it, and most system calls outside of that lock.
//!
//! ```text
//!   take      lock, a run, its entries, unlock         no run: purge all, cut tails, try again
//!   give      lock, the run is free, unlock     \
//!   tick      purge_waiting                      > expire a run, unlock, decommit, lock, attach
//! ```
//!
//! A run is in no index while its pages go back. Called by `cache` (slabs, large blocks), `heap`,
//! `hardened`, `debug`, `runs` (units of pools, arenas and collected heaps), `side` and `metadata`.
//! `limit` releases memory, and `stats`, `status` and `walk` read figures.

use super::address_limit::MOST_HOLES;
use super::{Back, Chunk, LONG, Run, Want, large_block, waited};
use crate::address_map::{Entry, MAP, MAX_UNITS};
use crate::memory_limit::{self, Nearness};
use crate::os::{self, Memory, SYSTEM, System};
use crate::purge_delay;
use crate::size_class::UNIT;
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Guard, Lock};
use crate::ticks;

const PURGES: usize = 4;
const PURGES_A_TICK: usize = 32;

pub(super) static CHUNK: Lock<Chunk<System>> = Lock::new(Chunk::closed(SYSTEM, &MAP));

static REFUSED_AT: AtomicU32 = AtomicU32::new(0);
const RETRY_MS: i32 = 2000;
static PURGED: AtomicU64 = AtomicU64::new(0);

/// Opens the process's window with at most `most` bytes. Call this once. `scattered`: window and
/// tables lie at random places, if possible.
pub fn open(most: usize, scattered: bool) -> bool {
    CHUNK.lock().open_as(most, scattered)
}

/// The most units that the window can have.
pub fn most_units() -> usize {
    CHUNK.lock().window.span_bytes() / UNIT
}

/// Reserves `size` bytes at a random place, or where the system chooses. Null: there is no room.
pub fn reserve_anywhere(size: usize) -> *mut u8 {
    let got = super::window::reserve_anywhere(&SYSTEM, size, UNIT);
    if !got.is_null() {
        // SAFETY: `got` is a reservation of `size` bytes, made just now.
        unsafe { super::window::note_records(got, size) };
    }
    got
}

/// Sets the process's limit of address space in bytes (`usize::MAX`: no limit).
pub fn set_limit(most: usize) {
    CHUNK.lock().become_piecewise(|window| window.set_limit(most));
}

/// Releases unused address space, which counts against the `most` bytes that the process may lock.
pub fn give_up_reserve(most: usize) {
    CHUNK.lock().become_piecewise(|window| window.give_up_reserve(most));
}

/// If possible, makes the address map's table readable for the whole window, until the reserve is
/// given up. Returns the number of units with readable entries.
pub fn expose_table() -> usize {
    CHUNK.lock().window.expose_table()
}

/// Sets whether dense memory may lie in huge pages.
pub fn allow_huge_pages(allow: bool) {
    CHUNK.lock().huge_pages = allow && os::kernel_page_size() == 4096;
}

/// Whether memory that will be filled may lie in huge pages.
pub fn may_have_huge_pages() -> bool {
    os::HAS_HUGE_PAGES && CHUNK.lock().huge_pages
}

/// Takes a run of `units` units. The first is at a multiple of `align_units` (a power of two) and
/// has the entry `head`; the others have `rest(first unit)`.
pub fn take(
    units: usize,
    align_units: usize,
    want: Want,
    head: Entry,
    rest: fn(usize) -> Entry,
) -> Option<Run> {
    #[cfg(feature = "testing")]
    if crate::refusals::is_refused() {
        return None;
    }
    let padded = units.checked_add(align_units - 1).filter(|&padded| padded < MAX_UNITS)?;
    let has_no_use =
        || purge_delay::purge_delay() == Some(0) || memory_limit::nearness() >= Nearness::Near;
    let want = if want == Want::Dense && has_no_use() { Want::Any } else { want };
    let mut chunk = CHUNK.lock();
    if padded > chunk.window.span_bytes() / UNIT {
        // No run can be this long. A search would purge everything in vain.
        return None;
    }
    let mut run = chunk.take(padded, want);
    if run.is_none() {
        chunk.end_region(os::coarse_ms());
        chunk.purge_all(0);
        run = chunk.take(padded, want);
        if run.is_none() && (chunk.cut_tails() || chunk.retract_free()) {
            run = chunk.take(padded, want);
        }
    }
    let mut run = run?;
    let first = run.unit;
    let base_units = MAP.base().addr() / UNIT;
    run.unit = (base_units + first).next_multiple_of(align_units) - base_units;
    // The entries are set first. Otherwise the padding would merge with the taken run.
    let record = MAP.record(run.unit);
    record.units.store(units as u32, Ordering::Relaxed);
    // The owner may set fewer usable bytes.
    record.usable.store(units * UNIT, Ordering::Relaxed);
    MAP.set_entry(run.unit, head);
    MAP.set_entries(run.unit + 1, units - 1, rest(run.unit));
    let behind = run.unit + units;
    for (unit, units) in [(first, run.unit - first), (behind, first + padded - behind)] {
        if units > 0 && run.zero {
            chunk.give_unused(unit, units);
        } else if units > 0 {
            chunk.give(unit, units, os::coarse_ms());
        }
    }
    if run.dense {
        WAITING.store(chunk.waiting(), Ordering::Relaxed);
    }
    pay_at_once(chunk, units);
    if run.dense {
        // SAFETY: the first unit is the caller's and reads as zero.
        unsafe { os::put_huge_page(MAP.address_of(run.unit)) };
    }
    if run.zero || units >= LONG {
        ticks::catch_up();
    }
    Some(run)
}

/// Purges owed units after a long run, which the program may fill before its next slow path.
fn pay_at_once(mut chunk: Guard<'static, Chunk<System>>, units: usize) {
    if units < LONG || chunk.owed == 0 {
        return;
    }
    let now = os::coarse_ms();
    if purge_delay::purge_delay().is_none() || is_refused(now) {
        return;
    }
    while let Some(run) = chunk.expire_owed() {
        let purged;
        (chunk, purged) = purge_detached(chunk, run, now);
        if !purged {
            return;
        }
    }
}

/// The state of a unit without memory, after [`withdraw`].
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Absent {
    /// Inaccessible: it no longer counts as writable memory.
    Shut = 1,
    /// Unmapped: it no longer counts as address space.
    Unmapped = 2,
}

/// Gives the memory of a unit to the kernel, because memory ran out. The unit keeps its entry, so
/// no other request gets its address. `None`: the kernel refused.
///
/// # Safety
///
/// The unit is the caller's, and no thread uses its contents.
pub unsafe fn withdraw(unit: usize) -> Option<Absent> {
    let mut chunk = CHUNK.lock();
    // (The kernel allows only so many mappings. Units that lie together are one hole.)
    if chunk.absent.runs() + chunk.withdrawn >= 2 * MOST_HOLES {
        return None;
    }
    let how = if chunk.window.is_generous() { Absent::Shut } else { Absent::Unmapped };
    // SAFETY: by the contract the unit is committed, and no thread uses it.
    let gone = unsafe { chunk.window.give_back(MAP.address_of(unit), UNIT) };
    chunk.withdrawn += usize::from(gone);
    gone.then_some(how)
}

/// In a generous window, makes all free runs inaccessible, so that they no longer count as writable
/// memory. Returns whether any run became inaccessible.
pub fn retract_free() -> bool {
    CHUNK.lock().retract_free()
}

/// Undoes [`withdraw`].
pub fn put_back(unit: usize, how: Absent) -> Back {
    let mut chunk = CHUNK.lock();
    let back = chunk.window.get_back_as(MAP.address_of(unit), UNIT, how == Absent::Shut);
    chunk.withdrawn -= usize::from(back != Back::NoMemory);
    back
}

/// Whether address space is limited. If so, free runs take address space from its other users.
pub fn is_limited() -> bool {
    CHUNK.lock().window.is_limited()
}

/// Whether the chunk has a dirty run of at least `units` units.
pub fn has_dirty(units: usize) -> bool {
    let chunk = CHUNK.lock();
    units <= chunk.dirty.units() && chunk.dirty.find(units).is_some()
}

/// The last known result of `Chunk::waiting`.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Whether units may go back to the kernel later.
#[inline]
pub fn has_waiting() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// If the lock is free, purges up to `PURGES_A_TICK` expired runs. Returns whether units wait.
pub fn purge_waiting(now: u32) -> bool {
    if has_waiting()
        && let Some(chunk) = CHUNK.try_lock()
    {
        purge_expired(chunk, now, PURGES_A_TICK);
    }
    has_waiting()
}

/// Takes a run back, and purges runs that have waited long enough.
pub fn give(unit: usize, units: usize) {
    give_moved(unit, units, 0);
}

/// Takes back a run that may be inaccessible in parts, because the kernel refused to change that.
/// False: the run is lost.
///
/// # Safety
///
/// The run is the caller's, and no thread uses it.
pub unsafe fn give_inaccessible(unit: usize, units: usize) -> bool {
    CHUNK.lock().give_absent(unit, units)
}

/// Takes a run back whose first `bytes` bytes have no pages, because the caller moved them away.
pub fn give_moved(unit: usize, units: usize, bytes: usize) {
    let now = os::coarse_ms();
    let mut chunk = CHUNK.lock();
    let units = chunk.settle_tail(unit, units, 0);
    let empty = (bytes / UNIT).min(units);
    if empty > 0 {
        chunk.give_unused(unit, empty);
    }
    if empty < units {
        chunk.give(unit + empty, units - empty, now);
    }
    purge_expired(chunk, now, PURGES);
}

/// Lengthens a large block's run in place. Returns whether the new part reads as zero.
pub fn extend(unit: usize, units: usize, more: usize, rest: Entry, usable: usize) -> Option<bool> {
    let mut chunk = CHUNK.lock();
    if !chunk.mend_tail(unit) {
        return None;
    }
    let zero = chunk.extend(unit, units, more)?;
    let record = MAP.record(unit);
    record.units.store((units + more) as u32, Ordering::Relaxed);
    record.usable.store(usable, Ordering::Relaxed);
    MAP.set_entries(unit + units, more, rest);
    pay_at_once(chunk, more);
    if zero || more >= LONG {
        ticks::catch_up();
    }
    Some(zero)
}

/// Shortens a large block's run in place to `keep` units and `usable` bytes.
pub fn shorten(unit: usize, units: usize, keep: usize, usable: usize) {
    let now = os::coarse_ms();
    let mut chunk = CHUNK.lock();
    let have = chunk.settle_tail(unit, units, keep);
    let record = MAP.record(unit);
    record.units.store(keep as u32, Ordering::Relaxed);
    large_block::set_usable_locked(record, usable);
    if keep < have {
        chunk.give(unit + keep, have - keep, now);
    }
    purge_expired(chunk, now, PURGES);
}

fn purge_expired(mut chunk: Guard<'static, Chunk<System>>, now: u32, most: usize) {
    WAITING.store(chunk.waiting(), Ordering::Relaxed);
    if is_refused(now) {
        return;
    }
    let delay = purge_delay::purge_ms();
    for _ in 0..most {
        let Some(run) = chunk.expire(now, delay) else { return };
        // A run that goes back because of growth has not waited. So the delay ignores it.
        let for_growth = chunk.pay(run.1);
        let waited = chunk.due_waited;
        let purged;
        (chunk, purged) = purge_detached(chunk, run, now);
        if !purged {
            return;
        }
        if !for_growth {
            purge_delay::note_given(run.1 * UNIT, now, waited);
        }
    }
}

/// Whether the kernel has lately refused to take pages back (locked memory).
fn is_refused(now: u32) -> bool {
    let refused = REFUSED_AT.load(Ordering::Relaxed);
    refused != 0 && waited(refused, now) < RETRY_MS
}

fn purge_detached(
    chunk: Guard<'static, Chunk<System>>,
    run: (usize, usize),
    now: u32,
) -> (Guard<'static, Chunk<System>>, bool) {
    drop(chunk);
    let purged = Chunk::<System>::purge_run(&MAP, &SYSTEM, run);
    note_purged(if purged { run.1 * UNIT } else { 0 });
    REFUSED_AT.store(if purged { 0 } else { now.max(1) }, Ordering::Relaxed);
    let mut chunk = CHUNK.lock();
    chunk.attach(run, purged, now);
    WAITING.store(chunk.waiting(), Ordering::Relaxed);
    (chunk, purged)
}

/// Purges all dirty runs except about `keep` bytes. Returns the purged bytes.
pub fn purge_all(keep: usize) -> usize {
    let bytes = CHUNK.lock().purge_all(keep / UNIT) * UNIT;
    note_purged(bytes);
    bytes
}

/// Takes a run back, and gives its pages to the kernel at once.
///
/// # Safety
///
/// The run is the caller's, and no thread uses its contents.
pub unsafe fn give_purged(unit: usize, units: usize) {
    // SAFETY: the run is the caller's, whose units are whole pages, committed and not used.
    if unsafe { purge_pages(MAP.address_of(unit), units * UNIT) } > 0 {
        CHUNK.lock().give_unused(unit, units);
    } else {
        give(unit, units);
    }
}

/// Purges pages of the caller's run. Returns the purged bytes; 0: the kernel refuses.
///
/// # Safety
///
/// The pages are whole, the caller's and committed, and no thread uses their contents.
pub unsafe fn purge_pages(at: *mut u8, size: usize) -> usize {
    // SAFETY: by the contract the pages are whole, committed, the caller's and not used.
    let purged = if unsafe { SYSTEM.decommit(at, size) } { size } else { 0 };
    note_purged(purged);
    purged
}

/// Counts bytes given back.
#[inline]
pub fn note_purged(bytes: usize) {
    PURGED.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Figures for statistics.
pub struct Usage {
    /// Bytes of the window's span.
    pub window_bytes: usize,
    /// Bytes of the window that are reserved, from its beginning on.
    pub reserved_bytes: usize,
    /// Bytes made writable so far, metadata included.
    pub committed_bytes: usize,
    /// Bytes that were given back to the kernel so far.
    pub purged_bytes: u64,
    /// The committed parts of table, records and bitmaps, for counts of resident pages.
    pub side_ranges: [(*const u8, usize); 3],
    /// Units below the frontier.
    pub frontier: usize,
    /// Bytes in free runs that may have pages.
    pub dirty_bytes: usize,
    /// Bytes of the window that may be in memory: in use, or free and not given back.
    pub resident_bytes: usize,
    /// The address where the window begins.
    pub window_at: usize,
}

/// The window's figures. `None`: the lock stays held, perhaps by code that the caller interrupted.
pub fn usage() -> Option<Usage> {
    CHUNK.lock_soon().map(|chunk| usage_of(&chunk))
}

/// [`usage`] without waiting. `None` if the lock is held.
pub fn usage_now() -> Option<Usage> {
    CHUNK.try_lock().map(|chunk| usage_of(&chunk))
}

fn usage_of(chunk: &Chunk<System>) -> Usage {
    Usage {
        window_bytes: chunk.window.span_bytes(),
        reserved_bytes: chunk.window.reserved_bytes(),
        committed_bytes: chunk.window.committed_bytes(),
        purged_bytes: PURGED.load(Ordering::Relaxed),
        side_ranges: chunk.window.side_ranges(),
        frontier: chunk.window.frontier(),
        dirty_bytes: chunk.dirty.units() * UNIT,
        resident_bytes: (chunk.taken + chunk.dirty.units()) * UNIT,
        window_at: MAP.address_of(0).addr(),
    }
}

/// Holds the lock across a fork.
pub fn before_fork() {
    CHUNK.acquire();
}

/// Gives the lock back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub unsafe fn after_fork() {
    // SAFETY: by the contract this thread (in a child: its original) holds the lock.
    unsafe { CHUNK.release() };
}
