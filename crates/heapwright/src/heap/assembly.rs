//! What assembly outside this library needs to know: the C layer's `malloc` and `free`.
//!
//! In Rust, `malloc` and `free` are a test and a tail call away from a CPU's arrays. The
//! C layer writes the two in assembly on x86-64, with the sequences in them, and saves five
//! instructions of a pair; what it does for exclusive caches is, instruction for
//! instruction, what the compiler makes of `fast`. This is what it refers to: places in a
//! hot part and a gate, and the functions for all other cases, with the C ABI.
//!
//! The descriptor of `malloc`'s sequence lies at the start of the gate, so that arming it
//! takes one store: the thread's fast word is its address. `__heapwright_0_1_malloc_sequence`
//! is where the C layer has it; a program without one never gets there.
//!
//! Called by the C layer. Not part of the interface.

use core::arch::asm;

use super::{door, exclusive, fast, per_cpu, shared};
use crate::address_map::{MAP, SLAB_KINDS, TABLE_GAP};
use crate::cache::arrays::{self, Gate};
use crate::cache::{Hot, Residue, hot};
use crate::hardened;
use crate::request::MALLOC;
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
/// Bytes from an entry table to the window.
pub const GAP: usize = TABLE_GAP;
/// What is left of the entry of a slab of one's own is below this.
pub const KINDS: usize = SLAB_KINDS;
/// What is added to the offset of a list in what is left of a common slab's entry.
pub const TO_CPU: usize = hot::BIASED_TO_CPU;
/// The same, where the thread shares caches.
pub const TO_SHARED: usize = hot::BIASED_TO_SHARED;
/// The place of a thread's area, less this, is in the heads of the gate's lists.
pub const BIAS: usize = hot::AREA_BIAS;
/// Places in a gate.
pub const RSEQ: usize = arrays::RSEQ;
/// Where takes go.
pub const SOURCES: usize = arrays::SOURCES;
/// Where puts go.
pub const SINKS: usize = arrays::SINKS;
/// The bits of a place that are 0 behind a row's last.
pub const ROW_MASK: usize = arrays::ROW_MASK;

/// The descriptor of the C layer's `malloc`, if there is one.
pub(crate) fn malloc_sequence() -> Option<&'static [u64; 4]> {
    let at: *const [u64; 4];
    // SAFETY: reads an entry of our own offset table: 0 for a weak symbol that nobody defines.
    unsafe {
        asm!(
            ".weak __heapwright_0_1_malloc_sequence",
            ".hidden __heapwright_0_1_malloc_sequence",
            "mov {0}, qword ptr [rip + __heapwright_0_1_malloc_sequence@GOTPCREL]",
            out(reg) at,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: null, or the descriptor, which nobody writes to.
    unsafe { at.as_ref() }
}

/// A request that is larger than the linear classes, or 0.
pub extern "C" fn malloc_other(size: usize) -> *mut u8 {
    fast::malloc_medium(size)
}

/// A request whose list in a hot part, at `offset`, is empty.
///
/// # Safety
///
/// `hot` is the calling thread's fast word.
pub unsafe extern "C" fn malloc_missed(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
    // SAFETY: the fast word leads to a hot part, and none is ever freed while threads use it.
    fast::missed_here(size, unsafe { &*hot.cast::<Hot>() }, offset)
}

/// A request whose CPU has no block of the list at `offset`.
///
/// # Safety
///
/// As [`malloc_missed`]; the word leads to the gate.
pub unsafe extern "C" fn malloc_empty(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
    // SAFETY: by the contract it leads to the gate, which is never freed.
    per_cpu::empty(size, unsafe { &*hot.cast::<Gate>() }, offset)
}

/// A request whose sequence was begun in vain.
///
/// # Safety
///
/// As [`malloc_empty`].
pub unsafe extern "C" fn malloc_aborted(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
    // SAFETY: by the contract it leads to the gate, which is never freed.
    per_cpu::aborted_malloc(size, unsafe { &*hot.cast::<Gate>() }, offset)
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
    // SAFETY: by the contract a block in use, or what the door refuses.
    unsafe { fast::free_other::<MALLOC>(block, hot, residue) }
}

/// An address that lies in no unit that is known, or where no block begins.
///
/// # Safety
///
/// As `free`; `hot` is the calling thread's fast word, and `unit` the unit of the address, from the base that it has.
pub unsafe extern "C" fn free_unknown(block: *mut u8, hot: *const u8, _any: usize, unit: usize) {
    // SAFETY: the fast word leads to a hot part, and none is ever freed while threads use it.
    let hot = unsafe { &*hot.cast::<Hot>() };
    // In a hardened process, all come here.
    // SAFETY: by the contract a block in use, or what is refused.
    if unsafe { !hardened::free::<MALLOC>(block, hot, unit, None) } {
        // SAFETY: by the contract a block in use, or what is refused.
        unsafe { free_unknown_cold(block, hot) };
    }
}

/// [`free_unknown`], but for blocks of the hardened heap that are as they should be.
///
/// # Safety
///
/// As there.
#[cold]
#[inline(never)]
unsafe fn free_unknown_cold(block: *mut u8, hot: &Hot) {
    // SAFETY: by the contract a block in use, or what is refused.
    if unsafe { hardened::free_slowly::<MALLOC>(block, hot, MAP.unit_of(block.addr()), None) } {
        return;
    }
    // Of a thread whose blocks are sampled, all come here.
    // SAFETY: by the contract a block in use, or what is refused.
    if unsafe { !exclusive::free_sampled(block, hot) } {
        // SAFETY: by the contract a block in use, which nobody has taken, or what the door refuses.
        unsafe { door::free_cold::<MALLOC>(block) }
    }
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
    if unsafe { !shared::free_here(block, hot, residue) } {
        // SAFETY: by the contract: a block in use, or what the door refuses.
        unsafe { door::free_cold::<MALLOC>(block) }
    }
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
    unsafe { per_cpu::full(block, gate, residue) }
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
    unsafe { per_cpu::aborted_free(block, gate, residue) }
}

/// A list of the thread's own that is too long now.
pub extern "C" fn overflow(class: usize) {
    door::overflow(class);
}
