//! What assembly outside this library needs to know: the C layer's `malloc` and `free`.
//!
//! In Rust, `malloc` and `free` are a test and a tail call away from a CPU's arrays. The C layer
//! writes the two in assembly on x86-64, with the sequences in them, and saves five instructions of
//! a pair; what it does for threads' own caches is, instruction for instruction, what the compiler
//! makes of `fast`. This is what it refers to: places in a hot part, its table and a gate, and the
//! functions for cases that no table has, with the C ABI.
//!
//! The descriptor of `malloc`'s sequence lies at the start of the gate, so that arming it takes one
//! store: the thread's fast word is its address. `__heapwright_0_1_malloc_sequence` is where the C
//! layer has it; a program without one never gets there.
//!
//! Called by the C layer. Not part of the interface.

use core::mem::offset_of;

use super::{cpu, fast, own, shared};
use crate::address_map::{SLAB_KINDS, TABLE_GAP};
use crate::cache::arrays::{self, Gate};
use crate::cache::{Hot, Residue, Serve, hot as hot_part};
use crate::size_class::{LINEAR_MAX as LINEAR, MIN_ALIGN};

/// The largest size that a list is found for by its size alone.
pub const LINEAR_MAX: usize = LINEAR;
/// What is left of a size less one when it is the offset of a list.
pub const OFFSET_MASK: usize = (LINEAR - 1) & !(MIN_ALIGN - 1);
/// Places in a hot part.
pub const LISTS: usize = Hot::LISTS;
/// The window's base.
pub const BASE: usize = Hot::BASE;
/// The units that can be looked up.
pub const LIMIT: usize = Hot::LIMIT;
/// The owner's tag.
pub const TAG: usize = Hot::TAG;
/// Where the table is that serves all else, and places in that.
pub const SERVE: usize = Hot::SERVE;
/// Serves a `malloc` whose list is empty.
pub const MALLOC: usize = offset_of!(Serve, malloc);
/// Frees a block whose unit is not known, or where no slot begins.
pub const UNKNOWN: usize = offset_of!(Serve, unknown);
/// Bytes from an entry table to the window.
pub const GAP: usize = TABLE_GAP;
/// What is left of the entry of a slab of one's own is below this.
pub const KINDS: usize = SLAB_KINDS;
/// What is added to the offset of a list in what is left of a common slab's entry.
pub const TO_CPU: usize = hot_part::BIASED_TO_CPU;
/// The same, where the thread shares caches.
pub const TO_SHARED: usize = hot_part::BIASED_TO_SHARED;
/// The place of a thread's area, less this, is in the heads of the gate's lists.
pub const BIAS: usize = hot_part::AREA_BIAS;
/// Places in a gate.
pub const RSEQ: usize = arrays::RSEQ;
/// Where takes go.
pub const SOURCES: usize = arrays::SOURCES;
/// Where puts go.
pub const SINKS: usize = arrays::SINKS;
/// The bits of a place that are 0 behind a row's last.
pub const ROW_MASK: usize = arrays::ROW_MASK;

/// A request that is larger than the linear classes, or 0.
pub extern "C" fn malloc_other(size: usize) -> *mut u8 {
    fast::malloc_medium(size)
}

/// A request whose CPU has no block of the list at `offset`.
///
/// # Safety
///
/// `hot` is the calling thread's fast word, which leads to the gate.
pub unsafe extern "C" fn malloc_empty(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
    // SAFETY: by the contract it leads to the gate, which is never freed.
    cpu::empty(size, unsafe { &*hot.cast::<Gate>() }, offset)
}

/// A request whose sequence was begun in vain.
///
/// # Safety
///
/// As [`malloc_empty`].
pub unsafe extern "C" fn malloc_aborted(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
    // SAFETY: by the contract it leads to the gate, which is never freed.
    cpu::aborted_malloc(size, unsafe { &*hot.cast::<Gate>() }, offset)
}

/// A block that is not one of the thread's own, nor common.
///
/// # Safety
///
/// As `free`; `hot` is the calling thread's fast word, and `residue` what it left of the block's
/// entry.
pub unsafe extern "C" fn free_other(block: *mut u8, hot: *const u8, residue: usize) {
    // SAFETY: the fast word leads to a hot part, and none is ever freed while threads use it.
    let hot = unsafe { &*hot.cast::<Hot>() };
    // SAFETY: by the contract it is what is left of an entry.
    let residue = unsafe { Residue::of(residue) };
    // SAFETY: by the contract a block in use, or what is refused.
    unsafe { fast::free_other(block, hot, residue) }
}

/// A block that goes to the shared cache behind `hot`.
///
/// # Safety
///
/// As `free`; `residue` is what is left of the block's entry, and says so.
pub unsafe extern "C" fn free_shared(block: *mut u8, hot: *const u8, residue: usize) {
    // SAFETY: the fast word leads to a stub, which is never freed.
    let hot = unsafe { &*hot.cast::<Hot>() };
    // SAFETY: by the contract it is what is left of an entry.
    let residue = unsafe { Residue::of(residue) };
    // SAFETY: the entry says that the block is of a common slab; it is in use.
    unsafe { shared::free_common(block, hot, residue) }
}

/// A block that the CPU has no room for.
///
/// # Safety
///
/// As `free`, for a block of the common owner's; `hot` leads to the gate, and `residue` is what
/// is left of the block's entry.
pub unsafe extern "C" fn free_full(block: *mut u8, hot: *const u8, residue: usize) {
    // SAFETY: by the contract it leads to the gate, which is never freed.
    let gate = unsafe { &*hot.cast::<Gate>() };
    // SAFETY: by the contract it is what is left of an entry.
    let residue = unsafe { Residue::of(residue) };
    // SAFETY: by the contract a block in use, of a common slab of the class that `residue` names.
    unsafe { cpu::full(block, gate, residue) }
}

/// A block whose sequence was begun in vain.
///
/// # Safety
///
/// As [`free_full`].
pub unsafe extern "C" fn free_aborted(block: *mut u8, hot: *const u8, residue: usize) {
    // SAFETY: by the contract it leads to the gate, which is never freed.
    let gate = unsafe { &*hot.cast::<Gate>() };
    // SAFETY: by the contract it is what is left of an entry.
    let residue = unsafe { Residue::of(residue) };
    // SAFETY: by the contract a block in use, of a common slab of the class that `residue` names.
    unsafe { cpu::aborted_free(block, gate, residue) }
}

/// A list of the thread's own that is too long now.
pub extern "C" fn overflow(class: usize) {
    own::overflow(class);
}
