//! The fast paths: counted in instructions, and kept that way by CI.
//!
//! ```text
//! malloc   fast word; list by mask; pop; count                       13
//! free     fast word; unit; entry: mine, and of which class?         22
//!          slot start? push; count
//! ```
//!
//! Everything else is a tail call, with the arguments still in the registers they came in, and
//! nearly all by the table that the hot part leads to (`Serve`; the tables are in `start`):
//!
//! ```text
//! malloc
//! |- list has a block                        pop                          here
//! |- head < 0: the CPU's arrays              cpu::malloc
//! |- list is empty                           table: malloc
//! '- beyond the slabs' classes               table: large
//!
//! free
//! |- of this thread's cache                  push                         here
//! |  '- the list is too long                 own::overflow
//! |- common, by the CPU's arrays             cpu::free
//! |- common, by a shared cache               shared::free
//! |- of the outgoing batch's owner           cache::send_along
//! '- else                                    table: free, unknown, give_back
//! ```
//!
//! What else a call says (its size, its alignment, who makes it) goes along as a constant, or in
//! the register in which it came.
//!
//! Called by the C layer and the adapters.

use super::words::hot;
use super::{cpu, own, shared};
use crate::address_map::CLASS_STEP;
use crate::cache::arrays::CpuEntry;
use crate::cache::{self, Hot, Mismatch};
use crate::remote::Block;
use crate::request::{ALIGNED, MALLOC, Origin, Said};
use crate::size_class::{self, LINEAR_MAX, MIN_ALIGN, SLAB_MAX, UNIT};

// A linear class's list is where the request's size says.
const _: () = assert!(CLASS_STEP == MIN_ALIGN);

/// Allocates `size` bytes, aligned to 16.
///
/// A size of 0 gives a block of its own. Null where there is no memory or the
/// size exceeds `isize::MAX`; then `errno` is `ENOMEM`. Takes constant time but
/// for refills, which are bounded by a chain of blocks.
///
/// ```
/// let block = heapwright::heap::malloc(24);
/// assert!(block as usize % 16 == 0);
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc(size: usize) -> *mut u8 {
    let last = size.wrapping_sub(1);
    if last < LINEAR_MAX {
        let (hot, offset) = (hot(), last & !(MIN_ALIGN - 1));
        // SAFETY: checked above: the offset of one of the linear classes' lists.
        match unsafe { hot.list_at(offset) }.pop_open() {
            Ok(block) => block.cast(),
            Err(true) => cpu::malloc(size, CpuEntry::of(hot), offset),
            Err(false) => (hot.serve().malloc)(size, hot, offset),
        }
    } else {
        malloc_medium(size)
    }
}

/// The fast path of [`malloc`] alone: null where that is not enough.
///
/// For callers with a slow path of their own, such as `operator new`.
///
/// ```
/// let block = heapwright::heap::malloc_fast(24);
/// // SAFETY: null, or a block of our own.
/// unsafe { heapwright::heap::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc_fast(size: usize) -> *mut u8 {
    let last = size.wrapping_sub(1);
    if last < LINEAR_MAX {
        // SAFETY: the size was just found to be a linear class's.
        unsafe { pop_linear(last) }
    } else {
        core::ptr::null_mut()
    }
}

/// [`malloc_fast`] for all sizes; the class takes a few instructions more. `None`: the class's list
/// is empty. Null: there is no memory for a large block.
///
/// ```
/// use heapwright::heap::{self, NEW};
/// if let Some(block) = heap::malloc_medium_fast::<NEW>(10_000) {
///     // SAFETY: null, or a block of our own.
///     unsafe { heapwright::heap::free(block) };
/// }
/// ```
#[inline(always)]
#[must_use]
pub fn malloc_medium_fast<const FROM: u8>(size: usize) -> Option<*mut u8> {
    let hot = hot();
    if size.wrapping_sub(1) < SLAB_MAX {
        let block = hot.list(size_class::of(size)).pop();
        return (!block.is_null()).then(|| block.cast());
    }
    Some((hot.serve().large)(size, hot, Origin::of::<FROM>()))
}

/// A block for `last + 1` bytes; null where the list is empty.
///
/// # Safety
///
/// `last < LINEAR_MAX`.
#[inline(always)]
unsafe fn pop_linear(last: usize) -> *mut u8 {
    // SAFETY: the offset of one of the linear classes' lists.
    unsafe { hot().list_at(last & !(MIN_ALIGN - 1)) }.pop().cast()
}

/// Sizes above the linear classes: the class takes a few instructions more.
#[inline(never)]
pub(super) fn malloc_medium(size: usize) -> *mut u8 {
    if size.wrapping_sub(1) < SLAB_MAX {
        let (hot, class) = (hot(), size_class::of(size));
        return match hot.list(class).pop_open() {
            Ok(block) => block.cast(),
            Err(true) => cpu::malloc(size, CpuEntry::of(hot), class * CLASS_STEP),
            Err(false) => (hot.serve().malloc)(size, hot, class * CLASS_STEP),
        };
    }
    let hot = hot();
    (hot.serve().large)(size, hot, Origin::Malloc)
}

/// [`malloc_medium`] for callers that give an alignment, if only a small one.
#[inline(never)]
fn malloc_medium_aligned<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    let hot = hot();
    if size.wrapping_sub(1) < SLAB_MAX {
        let class = size_class::of(size);
        match hot.list(class).pop_open() {
            Ok(block) => return block.cast(),
            Err(true) => return cpu::malloc(size, CpuEntry::of(hot), class * CLASS_STEP),
            Err(false) => {}
        }
    }
    missed::<FROM>(size, align, false, hot)
}

/// A call that is not `malloc`'s, or has an alignment, or is to be zeroed, where the lists do not
/// serve it.
#[inline(always)]
fn missed<const FROM: u8>(size: usize, align: usize, zero: bool, hot: &Hot) -> *mut u8 {
    (hot.serve().allocate)(size, align, zero, Origin::of::<FROM>(), hot)
}

/// Allocates `size` zeroed bytes, aligned to 16.
///
/// Like [`malloc`]; memory that is fresh from the kernel is not zeroed again.
///
/// ```
/// let block = heapwright::heap::calloc(4096);
/// // SAFETY: a block of 4096 initialised bytes.
/// let bytes = unsafe { core::slice::from_raw_parts(block, 4096) };
/// assert!(bytes.iter().all(|&b| b == 0));
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[inline]
#[must_use]
pub fn calloc(size: usize) -> *mut u8 {
    let block = malloc_fast(size);
    if block.is_null() {
        return calloc_medium::<MALLOC>(size, 1);
    }
    // SAFETY: the block has room for `size` bytes.
    unsafe { block.write_bytes(0, size) };
    block
}

/// [`calloc_aligned_for`] where the fast path is not enough.
#[inline(never)]
fn calloc_medium<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    let hot = hot();
    let block = if align <= MIN_ALIGN && size.wrapping_sub(1) < SLAB_MAX {
        hot.list(size_class::of(size)).pop().cast()
    } else {
        core::ptr::null_mut::<u8>()
    };
    if block.is_null() {
        return missed::<FROM>(size, align, true, hot);
    }
    // SAFETY: the block has room for `size` bytes.
    unsafe { block.write_bytes(0, size) };
    block
}

/// Allocates `size` bytes, aligned to `align` and to 16. An alignment that is no power of two is
/// rounded up to the next one.
///
/// Like [`malloc`]. Alignments up to 32 KiB are slots of a class that is a
/// multiple of the alignment; larger ones are runs of units.
///
/// ```
/// let block = heapwright::heap::malloc_aligned(100, 4096);
/// assert!(block as usize % 4096 == 0);
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[inline]
#[must_use]
pub fn malloc_aligned(size: usize, align: usize) -> *mut u8 {
    malloc_aligned_for::<ALIGNED>(size, align)
}

/// [`malloc_aligned`] for a caller that is not C's family of `aligned_alloc`. An
/// alignment of 1 says that the caller gave none.
///
/// ```
/// use heapwright::heap::{self, RUST};
/// let block = heap::malloc_aligned_for::<RUST>(100, 8);
/// assert!(block as usize % 16 == 0);
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc_aligned_for<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    if align > MIN_ALIGN {
        return malloc_aligned_above::<FROM>(size, align);
    }
    let last = size.wrapping_sub(1);
    if last < LINEAR_MAX {
        let (hot, offset) = (hot(), last & !(MIN_ALIGN - 1));
        // SAFETY: checked above: the offset of one of the linear classes' lists.
        match unsafe { hot.list_at(offset) }.pop_open() {
            Ok(block) => block.cast(),
            Err(true) => cpu::malloc(size, CpuEntry::of(hot), offset),
            Err(false) => missed::<FROM>(size, align, false, hot),
        }
    } else {
        malloc_medium_aligned::<FROM>(size, align)
    }
}

/// The fast path of [`malloc_aligned`] alone, for alignments above 16: null where that is not
/// enough.
///
/// ```
/// let block = heapwright::heap::malloc_aligned_fast(100, 64);
/// // SAFETY: null, or a block of our own.
/// unsafe { heapwright::heap::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc_aligned_fast(size: usize, align: usize) -> *mut u8 {
    match size_class::of_aligned(size, align) {
        Some(class) => hot().list(class).pop().cast(),
        None => core::ptr::null_mut(),
    }
}

/// [`malloc_aligned_for`] for an alignment that not every class has.
#[inline(never)]
fn malloc_aligned_above<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    let hot = hot();
    if let Some(class) = size_class::of_aligned(size, align) {
        let block = hot.list(class).pop();
        if !block.is_null() {
            return block.cast();
        }
    }
    missed::<FROM>(size, align, false, hot)
}

/// Allocates `size` zeroed bytes, aligned to `align` and to 16. An alignment that is no power of
/// two is rounded up to the next one.
///
/// Like [`calloc`] and [`malloc_aligned`].
///
/// ```
/// let block = heapwright::heap::calloc_aligned(100, 256);
/// // SAFETY: a block of 100 initialised bytes.
/// assert_eq!(unsafe { block.add(99).read() }, 0);
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[inline]
#[must_use]
pub fn calloc_aligned(size: usize, align: usize) -> *mut u8 {
    calloc_aligned_for::<ALIGNED>(size, align)
}

/// [`calloc_aligned`] for a caller that is not C's family of `aligned_alloc`.
///
/// ```
/// use heapwright::heap::{self, RUST};
/// let block = heap::calloc_aligned_for::<RUST>(100, 8);
/// // SAFETY: a block of 100 initialised bytes.
/// assert_eq!(unsafe { block.add(99).read() }, 0);
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[inline]
#[must_use]
pub fn calloc_aligned_for<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    let block = if align <= MIN_ALIGN { malloc_fast(size) } else { core::ptr::null_mut() };
    if block.is_null() {
        return calloc_medium::<FROM>(size, align);
    }
    // SAFETY: the block has room for `size` bytes.
    unsafe { block.write_bytes(0, size) };
    block
}

/// Frees a block; null does nothing. Keeps `errno`.
///
/// A pointer that is not the start of a block ends the process with one line
/// that says what it is. A block of another allocator that heapwright knows
/// (the C library's) is passed on to it.
///
/// # Safety
///
/// The block is in use, and nobody uses it afterwards.
///
/// ```
/// let block = heapwright::heap::malloc(10);
/// // SAFETY: allocated above, freed once.
/// unsafe { heapwright::heap::free(block) };
/// ```
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    // SAFETY: the caller gives the block away.
    unsafe { free_from::<MALLOC>(block) };
}

/// [`free`] for a caller that is not C's `free`.
///
/// # Safety
///
/// As [`free`].
///
/// ```
/// use heapwright::heap::{self, NEW};
/// let block = heap::malloc_aligned_for::<NEW>(10, 1);
/// // SAFETY: allocated above, freed once.
/// unsafe { heap::free_from::<NEW>(block) };
/// ```
#[inline(always)]
pub unsafe fn free_from<const FROM: u8>(block: *mut u8) {
    // SAFETY: the caller gives the block away; `free_by` calls this for a common one, with the
    // thread's fast word.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free(block, hot, mismatch) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other = |hot: &Hot, mismatch| unsafe { free_from_other::<FROM>(block, hot, mismatch) };
    // SAFETY: the caller gives the block away; one of the two is called, if at all.
    unsafe { free_by(block, shared, other) };
}

/// Frees a block whose size and alignment the caller knows.
///
/// As fast as [`free`]: the block's own record answers faster than the size.
///
/// # Safety
///
/// As [`free`]; `size` and `align` are those the block was allocated with.
///
/// ```
/// let block = heapwright::heap::malloc_aligned(10, 64);
/// // SAFETY: allocated above with this size and alignment, freed once.
/// unsafe { heapwright::heap::free_sized(block, 10, 64) };
/// ```
#[inline(always)]
pub unsafe fn free_sized(block: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller gives the block away, and says what it was allocated with.
    unsafe { free_sized_aligned_from::<MALLOC>(block, size, align) };
}

/// [`free_from`] for a caller that knows the size.
///
/// # Safety
///
/// As [`free`]; `size` is that the block was allocated with.
///
/// ```
/// use heapwright::heap::{self, MALLOC};
/// let block = heap::malloc(10);
/// // SAFETY: allocated above with this size, freed once.
/// unsafe { heap::free_sized_from::<MALLOC>(block, 10) };
/// ```
#[inline(always)]
pub unsafe fn free_sized_from<const FROM: u8>(block: *mut u8, size: usize) {
    // SAFETY: the caller gives the block away; `free_by` calls this for a common one, with the
    // thread's fast word.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free_sized(block, size, hot, mismatch) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other =
        |hot: &Hot, mismatch| unsafe { free_sized_other::<FROM>(block, size, hot, mismatch) };
    // SAFETY: the caller gives the block away; one of the two is called, if at all.
    unsafe { free_by(block, shared, other) };
}

/// [`free_from`] for a caller that knows the alignment.
///
/// # Safety
///
/// As [`free`]; `align` is that the block was allocated with.
///
/// ```
/// use heapwright::heap::{self, NEW};
/// let block = heap::malloc_aligned_for::<NEW>(10, 64);
/// // SAFETY: allocated above with this alignment, freed once.
/// unsafe { heap::free_aligned_from::<NEW>(block, 64) };
/// ```
#[inline(always)]
pub unsafe fn free_aligned_from<const FROM: u8>(block: *mut u8, align: usize) {
    // SAFETY: the caller gives the block away; `free_by` calls this for a common one, with the
    // thread's fast word.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free(block, hot, mismatch) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other =
        |hot: &Hot, mismatch| unsafe { free_aligned_other::<FROM>(block, align, hot, mismatch) };
    // SAFETY: the caller gives the block away; one of the two is called, if at all.
    unsafe { free_by(block, shared, other) };
}

/// [`free_from`] for a caller that knows the size and the alignment.
///
/// # Safety
///
/// As [`free_sized`].
///
/// ```
/// use heapwright::heap::{self, RUST};
/// let block = heap::malloc_aligned_for::<RUST>(10, 64);
/// // SAFETY: allocated above with this size and alignment, freed once.
/// unsafe { heap::free_sized_aligned_from::<RUST>(block, 10, 64) };
/// ```
#[inline(always)]
pub unsafe fn free_sized_aligned_from<const FROM: u8>(block: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller gives the block away; `free_by` calls this for a common one, with the
    // thread's fast word.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free(block, hot, mismatch) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other = |hot: &Hot, mismatch| unsafe {
        free_sized_aligned_other::<FROM>(block, size, align, hot, mismatch)
    };
    // SAFETY: the caller gives the block away; one of the two is called, if at all.
    unsafe { free_by(block, shared, other) };
}

/// The fast path of [`free_sized`] alone: false where that is not enough, and
/// for every block once [`forward_sized_frees`] was called.
///
/// For `operator delete(void*, size_t)`, which has a slow path of its own.
///
/// # Safety
///
/// As [`free`].
#[inline(always)]
#[must_use]
pub unsafe fn free_sized_fast(block: *mut u8, size: usize) -> bool {
    let hot = hot();
    let mismatch = hot.residue_of_sized(block.addr());
    if mismatch.is_mine() {
        // SAFETY: the caller gives the block away, and its slab is one of ours.
        return unsafe { free_here(hot, mismatch, block) };
    }
    if mismatch.is_to_cpu() {
        // SAFETY: the entry says that the slab is common, and the tag that this is a per-CPU entry.
        unsafe { cpu::free(block, CpuEntry::of(hot), mismatch.bits()) };
        return true;
    }
    if mismatch.is_to_shared() {
        // SAFETY: the entry says that the slab is common; `hot` is the fast word's.
        unsafe { shared::free_sized(block, size, hot, mismatch) };
        return true;
    }
    false
}

/// The fast path of every free; they differ in what they say of the block where it is
/// another one's: `shared` frees one of a cache that threads share, `other` all others.
///
/// # Safety
///
/// As [`free`].
#[inline(always)]
unsafe fn free_by(
    block: *mut u8,
    shared: impl FnOnce(&Hot, Mismatch),
    other: impl FnOnce(&Hot, Mismatch),
) {
    let hot = hot();
    let mismatch = hot.residue_of(block.addr());
    if mismatch.is_mine() {
        // SAFETY: the caller gives the block away, and its slab is one of ours.
        if !unsafe { free_here(hot, mismatch, block) } {
            other(hot, mismatch);
        }
    } else if mismatch.is_to_cpu() {
        // SAFETY: the entry says that the slab is common, and the tag that this is a per-CPU entry.
        unsafe { cpu::free(block, CpuEntry::of(hot), mismatch.bits()) };
    } else if mismatch.is_to_shared() {
        shared(hot, mismatch);
    } else {
        other(hot, mismatch);
    }
}

/// Frees a block by `free` that is not this thread's, nor common.
///
/// # Safety
///
/// As [`free`]; `hot` is what the thread's fast word leads to, and `mismatch` what it left of the
/// block's entry.
#[inline(always)]
pub(super) unsafe fn free_other(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    if let Err(mismatch) = unsafe { cache::send_along(hot, mismatch, block) } {
        // SAFETY: the caller gives the block away, and this is what is left of its entry.
        unsafe { (hot.serve().free)(block, hot, mismatch) };
    }
}

/// [`free_other`] for a call that may not be C's.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn free_from_other<const FROM: u8>(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    if FROM == MALLOC {
        // SAFETY: the caller gives the block away, and says what is left of its entry.
        return unsafe { free_other(block, hot, mismatch) };
    }
    let said = Said::free(Origin::of::<FROM>(), false, false);
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, 0, 0) };
}

/// [`free_other`] for a caller that says more of the block.
///
/// # Safety
///
/// As there; what it says is so.
#[inline(always)]
unsafe fn give_back_other(
    block: *mut u8,
    hot: &Hot,
    mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    if let Err(mismatch) = unsafe { cache::send_along(hot, mismatch, block) } {
        // SAFETY: the caller gives the block away, and says what it is.
        unsafe { (hot.serve().give_back)(block, hot, mismatch, said, size, align) };
    }
}

/// [`give_back_other`] for a caller that knows the size.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn free_sized_other<const FROM: u8>(
    block: *mut u8,
    size: usize,
    hot: &Hot,
    mismatch: Mismatch,
) {
    let said = Said::free(Origin::of::<FROM>(), true, false);
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, size, 0) };
}

/// [`give_back_other`] for a caller that knows the alignment.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn free_aligned_other<const FROM: u8>(
    block: *mut u8,
    align: usize,
    hot: &Hot,
    mismatch: Mismatch,
) {
    let said = Said::free(Origin::of::<FROM>(), false, true);
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, 0, align) };
}

/// [`give_back_other`] for a caller that knows both.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn free_sized_aligned_other<const FROM: u8>(
    block: *mut u8,
    size: usize,
    align: usize,
    hot: &Hot,
    mismatch: Mismatch,
) {
    let said = Said::free(Origin::of::<FROM>(), true, true);
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, size, align) };
}

/// The class of a block that begins in a slab of the calling thread's own cache, and whose frees
/// the lists serve.
#[inline(always)]
pub(super) fn class_of_mine(block: *mut u8) -> Option<usize> {
    let hot = hot();
    let mismatch = hot.residue_of(block.addr());
    if !mismatch.is_mine() {
        return None;
    }
    // SAFETY: the entry is a slab's of the hot part's owner.
    let list = unsafe { hot.list_of(mismatch) };
    list.is_slot_start((block.addr() & (UNIT - 1)) as u32).then(|| mismatch.class())
}

/// Frees a block of one of this thread's lists; false if none begins there.
///
/// # Safety
///
/// As [`free`]; `mismatch` is what `hot`, the calling thread's, left of the entry of the block's
/// slab, and [`Mismatch::is_mine`].
#[inline(always)]
unsafe fn free_here(hot: &Hot, mismatch: Mismatch, block: *mut u8) -> bool {
    // SAFETY: the entry is a slab's of the hot part's owner.
    let list = unsafe { hot.list_of(mismatch) };
    if !list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
        return false;
    }
    // SAFETY: by the contract the block is in use, of the list's class, and free from now on.
    if unsafe { list.push(block.cast::<Block>()) } {
        own::overflow(mismatch.class());
    }
    true
}

#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
#[doc(hidden)]
pub mod assembly {
    //! What assembly outside this library needs to know: the C layer's `malloc` and `free`.
    //!
    //! In Rust, `malloc` and `free` are a test and a tail call away from a CPU's arrays. The C
    //! layer writes the two in assembly on x86-64, with the sequences in them, and saves five
    //! instructions of a pair; what it does for threads' own caches is, instruction for
    //! instruction, what the compiler makes of `fast`. This is what it refers to: places in a hot
    //! part, its table and a per-CPU entry, and the functions for cases that no table has, with the
    //! C ABI.
    //!
    //! The descriptor of `malloc`'s sequence lies at the start of the per-CPU entry, so that arming
    //! it takes one store: the thread's fast word is its address.
    //! `__heapwright_0_1_malloc_sequence` is where the C layer has it; a program without one never
    //! gets there.
    //!
    //! Called by the C layer. Not part of the interface.

    use core::mem::offset_of;

    use super::super::{cpu, own, shared};
    use crate::address_map::{SLAB_KINDS, TABLE_GAP};
    use crate::cache::arrays::{self, CpuEntry};
    use crate::cache::{Hot, Mismatch, Serve, hot as hot_part};
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
    /// The place of a thread's area, less this, is in the heads of the per-CPU entry's lists.
    pub const BIAS: usize = hot_part::AREA_BIAS;
    /// Places in a per-CPU entry.
    pub const RSEQ: usize = arrays::RSEQ;
    /// Where takes go.
    pub const SOURCES: usize = arrays::SOURCES;
    /// Where puts go.
    pub const TARGETS: usize = arrays::TARGETS;
    /// The bits of a place that are 0 behind a row's last.
    pub const ROW_MASK: usize = arrays::ROW_MASK;

    /// A request that is larger than the linear classes, or 0.
    pub extern "C" fn malloc_other(size: usize) -> *mut u8 {
        super::malloc_medium(size)
    }

    /// A request whose CPU has no block of the list at `offset`.
    ///
    /// # Safety
    ///
    /// `hot` is the calling thread's fast word, which leads to the per-CPU entry.
    pub unsafe extern "C" fn malloc_empty(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
        // SAFETY: by the contract it leads to the per-CPU entry, which is never freed.
        cpu::empty(size, unsafe { &*hot.cast::<CpuEntry>() }, offset)
    }

    /// A request whose sequence was begun in vain.
    ///
    /// # Safety
    ///
    /// As [`malloc_empty`].
    pub unsafe extern "C" fn malloc_aborted(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
        // SAFETY: by the contract it leads to the per-CPU entry, which is never freed.
        cpu::aborted_malloc(size, unsafe { &*hot.cast::<CpuEntry>() }, offset)
    }

    /// A block that is not one of the thread's own, nor common.
    ///
    /// # Safety
    ///
    /// As `free`; `hot` is the calling thread's fast word, and `mismatch` what it left of the
    /// block's entry.
    pub unsafe extern "C" fn free_other(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: the fast word leads to a hot part, and none is ever freed while threads use it.
        let hot = unsafe { &*hot.cast::<Hot>() };
        // SAFETY: by the contract it is what is left of an entry.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: by the contract a block in use, or what is refused.
        unsafe { super::free_other(block, hot, mismatch) }
    }

    /// A block that goes to the shared cache behind `hot`.
    ///
    /// # Safety
    ///
    /// As `free`; `mismatch` is what is left of the block's entry, and says so.
    pub unsafe extern "C" fn free_shared(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: the fast word leads to a stub, which is never freed.
        let hot = unsafe { &*hot.cast::<Hot>() };
        // SAFETY: by the contract it is what is left of an entry.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: the entry says that the block is of a common slab; it is in use.
        unsafe { shared::free_common(block, hot, mismatch) }
    }

    /// A block that the CPU has no room for.
    ///
    /// # Safety
    ///
    /// As `free`, for a block of the common owner's; `hot` leads to the per-CPU entry, and
    /// `mismatch` is what is left of the block's entry.
    pub unsafe extern "C" fn free_full(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: by the contract it leads to the per-CPU entry, which is never freed.
        let cpu_entry = unsafe { &*hot.cast::<CpuEntry>() };
        // SAFETY: by the contract it is what is left of an entry.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: by the contract a block in use, of a common slab of the class that `mismatch`
        // names.
        unsafe { cpu::full(block, cpu_entry, mismatch) }
    }

    /// A block whose sequence was begun in vain.
    ///
    /// # Safety
    ///
    /// As [`free_full`].
    pub unsafe extern "C" fn free_aborted(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: by the contract it leads to the per-CPU entry, which is never freed.
        let cpu_entry = unsafe { &*hot.cast::<CpuEntry>() };
        // SAFETY: by the contract it is what is left of an entry.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: by the contract a block in use, of a common slab of the class that `mismatch`
        // names.
        unsafe { cpu::aborted_free(block, cpu_entry, mismatch) }
    }

    /// A list of the thread's own that is too long now.
    pub extern "C" fn overflow(class: usize) {
        own::overflow(class);
    }
}
