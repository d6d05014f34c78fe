//! Per-CPU caches: what happens where a restartable sequence does not serve a call.
//!
//! ```text
//!   malloc, free --> sequence in `cache::arrays`: done
//!                      | empty, full                      | begun in vain
//!                      v                                  v
//!                    half a row from, or to,           this block from, or to,
//!                    the CPU's shared cache            the CPU's shared cache
//! ```
//!
//! Each CPU has a shared cache (`cache::magazines`), with a lock. Filling and
//! emptying the arrays is done block by block, with sequences of its own: the thread may
//! be on another CPU by then, and fill that one's.
//!
//! The functions with the C ABI are jumped to by the sequences, with the arguments of the
//! call still in place.
//!
//! Called by `fast` (the calls below), by the C layer (through `assembly`) and by `door`.

#[cfg_attr(all(target_os = "linux", not(miri), target_arch = "x86_64"), path = "per_cpu/x86_64.rs")]
#[cfg_attr(
    not(all(target_os = "linux", not(miri), target_arch = "x86_64")),
    path = "per_cpu/other.rs"
)]
mod calls;

pub(super) use calls::{free, malloc};

use core::ptr;

use super::{door, fast, guards, large, own_word, sampling, shared, start};
use crate::address_map::{CLASS_STEP, MAP};
use crate::cache::arrays::{self, Gate, Put, Taken};
use crate::cache::central::{self, ROW};
use crate::cache::magazines::Magazines;
use crate::cache::{Allocated, Hot, OnMiss, Residue};
use crate::chunk;
use crate::remote::Block;
use crate::request::MALLOC;
use crate::size_class::UNIT;
use crate::sync;

/// The CPU has no block of the list at `offset`.
#[cold]
pub(crate) extern "C" fn empty(size: usize, gate: &Gate, offset: usize) -> *mut u8 {
    if guards::is_on()
        && let Some(block) =
            guards::draw_for_shared(size, gate.half(gate.cpu(), offset / CLASS_STEP))
    {
        return block.as_ptr();
    }
    let block = refill(gate, offset / CLASS_STEP);
    if block.is_null() { door::malloc_cold::<MALLOC>(size) } else { block.cast() }
}

/// The sequence of a request was begun in vain.
#[cold]
pub(crate) extern "C" fn aborted_malloc(size: usize, _gate: &Gate, offset: usize) -> *mut u8 {
    arrays::note_abort();
    let block = shared::acquire().and_then(|held| {
        Magazines::note_fallback(&held);
        held.alloc(offset / CLASS_STEP)
    });
    block.map_or_else(|| door::malloc_cold::<MALLOC>(size), |Allocated { block, .. }| block)
}

/// The CPU has no room for another block of the list that `residue` names.
///
/// # Safety
///
/// As `heap::free`, for a block of the common owner's.
#[cold]
pub(crate) unsafe extern "C" fn full(block: *mut u8, gate: &Gate, residue: Residue) {
    // SAFETY: the caller gives the block of a common slab away, whose class `residue` names.
    unsafe { drain(gate, residue.class(), block.cast()) };
}

/// The sequence of a free was begun in vain.
///
/// # Safety
///
/// As [`full`].
#[cold]
pub(crate) unsafe extern "C" fn aborted_free(block: *mut u8, _gate: &Gate, residue: Residue) {
    arrays::note_abort();
    // SAFETY: the caller gives the block of a common slab away, whose class `residue` names.
    unsafe { put_in_shared(residue.class(), block.cast()) };
}

/// No block begins at the address.
///
/// # Safety
///
/// As `heap::free`.
#[cold]
pub(crate) unsafe extern "C" fn odd(block: *mut u8, _gate: &Gate, _rest: Residue) {
    // SAFETY: the caller gives the block away, whatever begins there.
    unsafe { door::free_cold::<MALLOC>(block) }
}

/// Takes a block of `class` for a call that comes by the door.
pub(super) fn take(gate: &Gate, class: usize) -> *mut Block {
    match gate.take(class) {
        Taken::Block(block) => block,
        Taken::Empty => refill(gate, class),
        Taken::Aborted => {
            arrays::note_abort();
            core::ptr::null_mut()
        }
    }
}

/// Takes a block of `class` back for a call that comes by the door.
///
/// # Safety
///
/// The block is of `class`, of a common slab, and in use.
pub(super) unsafe fn give(gate: &Gate, class: usize, block: *mut Block) {
    // SAFETY: a block of the class and the common owner, which the caller gives away.
    match unsafe { gate.put(class, block) } {
        Put::Done => {}
        // SAFETY: a block of the class and the common owner, which the caller gives away.
        Put::Full => unsafe { drain(gate, class, block) },
        Put::Aborted => {
            arrays::note_abort();
            // SAFETY: a block of the class and the common owner, which the caller gives away.
            unsafe { put_in_shared(class, block) };
        }
    }
}

/// A block of `class` from the shared cache, and half a row more for the CPU. Null: there is no
/// memory, or no lock to be had.
fn refill(gate: &Gate, class: usize) -> *mut Block {
    gate.provide(gate.cpu());
    let Some(held) = shared::acquire() else { return core::ptr::null_mut() };
    held.tend();
    // A signal handler must not wait for a class's lock, which its thread may hold.
    if !sync::is_interrupted() && held.is_empty_of(class) {
        let mut row = [core::ptr::null_mut(); ROW];
        let count = central::take_row(class, &mut row);
        if count > 0 {
            for (at, &more) in row[..count].iter().enumerate().skip(1) {
                // SAFETY: a free block of the class, which was in the row.
                if unsafe { gate.put(class, more) } != Put::Done {
                    for &rest in &row[at..count] {
                        // SAFETY: a free block of the class, which was in the row.
                        unsafe { held.free(class, rest) };
                    }
                    break;
                }
            }
            return row[0];
        }
    }
    let Some(Allocated { block, .. }) = held.alloc(class) else { return core::ptr::null_mut() };
    for _ in 1..half_of(gate, &held, class) {
        let more = held.list(class).pop();
        if more.is_null() {
            break;
        }
        // SAFETY: a free block of the class, which was in the list.
        if unsafe { gate.put(class, more) } != Put::Done {
            // SAFETY: a free block of the class, which was in the list and found no room
            // elsewhere.
            unsafe { held.free(class, more) };
            break;
        }
    }
    block.cast()
}

/// How many blocks of `class` half the arrays of the CPU are, which hold more where the class is busy: it had another slow
/// operation.
fn half_of(gate: &Gate, held: &Magazines, class: usize) -> usize {
    let cpu = gate.cpu();
    if !sync::is_interrupted() && held.is_busy(class) {
        gate.grow(cpu, class);
    }
    gate.half(cpu, class)
}

/// Takes a block of `class` to the shared cache, and half a row of the CPU's.
///
/// # Safety
///
/// The block is of `class`, of a common slab, and in use.
unsafe fn drain(gate: &Gate, class: usize, block: *mut Block) {
    gate.provide(gate.cpu());
    let Some(held) = shared::acquire() else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { central::defer(class, block) };
    };
    held.tend();
    let mut row = [block; ROW];
    let mut count = 1;
    let half = half_of(gate, &held, class);
    let most = if held.has_room_for(class, half + 1) { half.min(ROW - 1) } else { ROW - 2 };
    while count <= most {
        let Taken::Block(more) = gate.take(class) else { break };
        row[count] = more;
        count += 1;
    }
    let is_row = !sync::is_interrupted() && !held.has_room_for(class, count);
    // SAFETY: free blocks of the class and the common owner: the caller's, and such as were in the arrays.
    if is_row && unsafe { central::give_row(class, &row[..count]) } {
        return;
    }
    for &more in &row[..count] {
        // SAFETY: a free block of the class and the common owner, which found no room elsewhere.
        unsafe { held.free(class, more) };
    }
}

/// # Safety
///
/// As [`drain`].
unsafe fn put_in_shared(class: usize, block: *mut Block) {
    let Some(held) = shared::acquire() else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { central::defer(class, block) };
    };
    Magazines::note_fallback(&held);
    // SAFETY: a block of the class and the common owner, which the caller gives away.
    unsafe { held.free(class, block) };
}

/// A large block of `size` bytes.
pub(super) fn malloc_large(size: usize, gate: &Gate) -> *mut u8 {
    // Where blocks are sampled or guarded, the door counts them.
    if arrays::RUN_SIZES.contains(&size) && !sampling::is_watched() {
        let block = take_run(gate, size);
        return if block.is_null() { door::malloc_cold::<MALLOC>(size) } else { block };
    }
    malloc_larger(size)
}

/// [`malloc_large`] for runs that are in no row.
#[cold]
#[inline(never)]
fn malloc_larger(size: usize) -> *mut u8 {
    // Looked up again, so that the way here need not keep it.
    let block = shared::large(size, fast::hot());
    if block.is_null() { door::malloc_cold::<MALLOC>(size) } else { block }
}

/// Frees a block that is not of the thread's own, nor common, nor of an owner that a batch goes to.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to, and `residue` what it left of the block's entry.
// Inline its call would give the caller, which is short, a prologue.
#[inline(never)]
pub(super) unsafe fn free_large<const FROM: u8>(block: *mut u8, hot: &Hot, residue: Residue) {
    if block.addr().is_multiple_of(UNIT)
        && hot.is_large_head(residue)
        && hot.on_miss() == OnMiss::PerCpu
    {
        // SAFETY: the caller gives the large block away.
        if unsafe { give_run(Gate::of(hot), hot.unit_of(block.addr()), block) } {
            return;
        }
    }
    // SAFETY: the caller gives the block away, and the door looks what it is.
    unsafe { door::free_cold::<FROM>(block) }
}

/// A large block of `size` bytes, one of [`arrays::RUN_SIZES`]. Null: there is no memory, or no lock to be had.
#[inline(always)]
pub(super) fn take_run(gate: &Gate, size: usize) -> *mut u8 {
    let units = size.div_ceil(UNIT);
    match gate.take_run(units) {
        Taken::Block(run) => large::reuse(run.cast(), units, size),
        Taken::Empty => refill_runs(size),
        Taken::Aborted => {
            arrays::note_abort();
            ptr::null_mut()
        }
    }
}

/// [`take_run`] from the shared cache, which gives the CPU half a row more, if it can.
#[cold]
#[inline(never)]
fn refill_runs(size: usize) -> *mut u8 {
    // A signal handler must not wait for a lock that its thread may hold. (Looked up again, as above.)
    let Some(gate) = my_gate().filter(|_| !sync::is_interrupted()) else { return ptr::null_mut() };
    let units = size.div_ceil(UNIT);
    gate.provide(gate.cpu());
    let Some(held) = shared::acquire() else { return ptr::null_mut() };
    let Some(unit) = held.stash.take_exactly(units) else {
        let new = large::alloc(size, 1, false, &*held);
        return new.map_or(ptr::null_mut(), |new| new.block);
    };
    held.tend();
    for _ in 1..gate.half_of_runs(gate.cpu(), units) {
        let Some(more) = held.stash.take_exactly(units) else { break };
        // SAFETY: a run of this length that the stash kept, and nobody else has.
        let put = unsafe { gate.put_run(units, MAP.address_of(more).cast()) };
        if put != Put::Done {
            keep_or_give(&held, more, units);
            break;
        }
    }
    large::reuse(MAP.address_of(unit), units, size)
}

/// Keeps the run of the large block at `unit`, which the caller gives away. False: it stays a block, for the arrays have
/// no row for its length, it is a first-class heap's, or it was freed before.
///
/// # Safety
///
/// As `heap::free`; the block begins at the unit.
#[inline(always)]
pub(super) unsafe fn give_run(gate: &Gate, unit: usize, block: *mut u8) -> bool {
    let Some(units) = large::give_up(unit, arrays::LONGEST) else { return false };
    // SAFETY: a run that is kept since now, and the caller's.
    let put = unsafe { gate.put_run(units, block.cast()) };
    if put != Put::Done {
        drain_runs(gate, unit, units, put);
    }
    true
}

/// Keeps a run in the shared cache, and half a row of the CPU's.
#[cold]
#[inline(never)]
fn drain_runs(gate: &Gate, unit: usize, units: usize, put: Put) {
    if put == Put::Aborted {
        arrays::note_abort();
    }
    gate.provide(gate.cpu());
    let Some(held) = (!sync::is_interrupted()).then(shared::acquire).flatten() else {
        // SAFETY: the caller gives the run away, which was a block a moment ago.
        return unsafe { central::defer_run(unit) };
    };
    held.tend();
    keep_or_give(&held, unit, units);
    if put == Put::Aborted {
        return;
    }
    for _ in 1..gate.half_of_runs(gate.cpu(), units) {
        let Taken::Block(more) = gate.take_run(units) else { break };
        keep_or_give(&held, MAP.unit_of(more.addr()), units);
    }
}

/// Keeps a run in a shared cache, or gives it to the chunk.
fn keep_or_give(held: &Magazines, unit: usize, units: usize) {
    if !held.stash.keep(unit, units) {
        chunk::give(unit, units);
    }
}

/// The gate, if the calling thread may go by it: put common blocks into its arrays, whatever it allocates from.
pub(super) fn any_gate() -> Option<&'static Gate> {
    arrays::gate().filter(|gate| gate.serves_this_thread() || start::enter_sequences())
}

/// The gate that the calling thread goes by, if it does.
pub(super) fn my_gate() -> Option<&'static Gate> {
    own_word::goes_by_gate().then(arrays::gate).flatten()
}
