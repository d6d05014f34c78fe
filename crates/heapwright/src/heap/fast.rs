//! The fast paths. CI checks their counts of instructions:
//!
//! ```text
//! malloc   fast word; list by mask; pop; count                       13
//! free     fast word; unit; entry: mine, and of which class?         22
//!          slot start? push; count
//! ```
//!
//! All other calls are tail calls with the arguments still in their registers. Most of them go
//! through the hot part's table (`Serve`, tables in `start`):
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
//! Called by the C layer, the adapters, `resize` and `control`.

use super::words::hot;
use super::{cpu, own, shared};
use crate::address_map::CLASS_STEP;
use crate::cache::arrays::CpuEntry;
use crate::cache::{self, Hot, Mismatch};
use crate::remote::Block;
use crate::request::{ALIGNED, MALLOC, Origin, Said};
use crate::size_class::{self, LINEAR_MAX, MIN_ALIGN, SLAB_MAX, UNIT};

// The request's size gives the offset of a linear class's list.
const _: () = assert!(CLASS_STEP == MIN_ALIGN);

/// Allocates `size` bytes, aligned to 16.
///
/// A size of 0 gives a block of its own. Returns null, with `errno` set to `ENOMEM`, if there is no
/// memory or the size exceeds `isize::MAX`.
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
        // SAFETY: the size is at most `LINEAR_MAX`, so this is the offset of a linear class's list.
        match unsafe { hot.list_at(offset) }.pop_open() {
            Ok(block) => block.cast(),
            Err(true) => cpu::malloc(size, CpuEntry::of(hot), offset),
            Err(false) => (hot.serve().malloc)(size, hot, offset),
        }
    } else {
        malloc_medium(size)
    }
}

/// The fast path of [`malloc`] alone, for callers with a slow path of their own, such as `operator
/// new`. Returns null if the fast path does not serve the call.
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

/// [`malloc_fast`] for all sizes. Returns `None` if the class's list is empty, and null if there is
/// no memory for a large block.
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

/// Returns null if the list is empty.
///
/// # Safety
///
/// `last < LINEAR_MAX`.
#[inline(always)]
unsafe fn pop_linear(last: usize) -> *mut u8 {
    // SAFETY: by the contract this is the offset of a linear class's list.
    unsafe { hot().list_at(last & !(MIN_ALIGN - 1)) }.pop().cast()
}

/// [`malloc`] for sizes above the linear classes.
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

/// [`malloc_medium`] with an alignment of at most 16.
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

/// Serves a call that no list serves, except C's plain `malloc`.
#[inline(always)]
fn missed<const FROM: u8>(size: usize, align: usize, zero: bool, hot: &Hot) -> *mut u8 {
    (hot.serve().allocate)(size, align, zero, Origin::of::<FROM>(), hot)
}

/// Allocates `size` zeroed bytes, aligned to 16, like [`malloc`]. A large block that is fresh from
/// the kernel is not zeroed again.
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

/// [`calloc_aligned_for`] if the fast path does not serve the call.
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

/// Allocates `size` bytes, aligned to `align` and to 16, like [`malloc`]. An alignment that is no
/// power of two is rounded up to the next one.
///
/// If size and alignment are at most 32 KiB, the block is a slot of a class whose slots are all so
/// aligned. Otherwise it is a run of units.
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

/// [`malloc_aligned`] for a caller outside C's family of `aligned_alloc`. An alignment of 1 means
/// that the caller gave none.
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
        // SAFETY: the size is at most `LINEAR_MAX`, so this is the offset of a linear class's list.
        match unsafe { hot.list_at(offset) }.pop_open() {
            Ok(block) => block.cast(),
            Err(true) => cpu::malloc(size, CpuEntry::of(hot), offset),
            Err(false) => missed::<FROM>(size, align, false, hot),
        }
    } else {
        malloc_medium_aligned::<FROM>(size, align)
    }
}

/// The fast path of [`malloc_aligned`] alone, for alignments above 16. Returns null if the fast
/// path does not serve the call.
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

/// Allocates `size` zeroed bytes, aligned to `align` and to 16, like [`calloc`] and
/// [`malloc_aligned`].
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

/// [`calloc_aligned`] for a caller outside C's family of `aligned_alloc`.
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

/// Frees a block. Null does nothing. Keeps `errno`.
///
/// In fast mode, a pointer that is not the start of a block ends the process, with a line about it.
/// A block that the C library made before heapwright took over goes back to the C library.
///
/// # Safety
///
/// The block is in use, and no code uses it afterwards.
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

/// [`free`] for callers other than C's `free`.
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
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target, for a
    // common block.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free(block, hot, mismatch) };
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target.
    let other = |hot: &Hot, mismatch| unsafe { free_from_other::<FROM>(block, hot, mismatch) };
    // SAFETY: the caller gives the block away. At most one of the two closures is called.
    unsafe { free_by(block, shared, other) };
}

/// Frees a block whose size and alignment the caller knows. Takes as long as [`free`], because the
/// block's entry gives the class faster than the size would.
///
/// # Safety
///
/// As [`free`]. `size` and `align` are the values that the block was allocated with.
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
/// As [`free`]. `size` is the size that the block was allocated with.
///
/// ```
/// use heapwright::heap::{self, MALLOC};
/// let block = heap::malloc(10);
/// // SAFETY: allocated above with this size, freed once.
/// unsafe { heap::free_sized_from::<MALLOC>(block, 10) };
/// ```
#[inline(always)]
pub unsafe fn free_sized_from<const FROM: u8>(block: *mut u8, size: usize) {
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target, for a
    // common block.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free_sized(block, size, hot, mismatch) };
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target.
    let other =
        |hot: &Hot, mismatch| unsafe { free_sized_other::<FROM>(block, size, hot, mismatch) };
    // SAFETY: the caller gives the block away. At most one of the two closures is called.
    unsafe { free_by(block, shared, other) };
}

/// [`free_from`] for a caller that knows the alignment.
///
/// # Safety
///
/// As [`free`]. `align` is the alignment that the block was allocated with.
///
/// ```
/// use heapwright::heap::{self, NEW};
/// let block = heap::malloc_aligned_for::<NEW>(10, 64);
/// // SAFETY: allocated above with this alignment, freed once.
/// unsafe { heap::free_aligned_from::<NEW>(block, 64) };
/// ```
#[inline(always)]
pub unsafe fn free_aligned_from<const FROM: u8>(block: *mut u8, align: usize) {
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target, for a
    // common block.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free(block, hot, mismatch) };
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target.
    let other =
        |hot: &Hot, mismatch| unsafe { free_aligned_other::<FROM>(block, align, hot, mismatch) };
    // SAFETY: the caller gives the block away. At most one of the two closures is called.
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
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target, for a
    // common block.
    let shared = |hot: &Hot, mismatch| unsafe { shared::free(block, hot, mismatch) };
    // SAFETY: the caller gives the block away. `free_by` passes the fast word's target.
    let other = |hot: &Hot, mismatch| unsafe {
        free_sized_aligned_other::<FROM>(block, size, align, hot, mismatch)
    };
    // SAFETY: the caller gives the block away. At most one of the two closures is called.
    unsafe { free_by(block, shared, other) };
}

/// The fast path of [`free_sized`] alone, for `operator delete(void*, size_t)`, which has a slow
/// path of its own. Returns false if the fast path does not serve the call, or after
/// `forward_sized_frees`.
///
/// # Safety
///
/// As [`free`].
#[inline(always)]
#[must_use]
pub unsafe fn free_sized_fast(block: *mut u8, size: usize) -> bool {
    let hot = hot();
    let mismatch = hot.mismatch_of_sized(block.addr());
    if mismatch.is_mine() {
        // SAFETY: the caller gives the block away, and its slab is one of ours.
        return unsafe { free_here(hot, mismatch, block) };
    }
    if mismatch.is_to_cpu() {
        // SAFETY: by its entry the slab is common, and by the tag `hot` is a per-CPU entry.
        unsafe { cpu::free(block, CpuEntry::of(hot), mismatch.bits()) };
        return true;
    }
    if mismatch.is_to_shared() {
        // SAFETY: by its entry the slab is common; `hot` is the fast word's.
        unsafe { shared::free_sized(block, size, hot, mismatch) };
        return true;
    }
    false
}

/// The fast path of every free. `shared` frees a block of a common slab to a shared cache. `other`
/// frees all blocks that are neither common nor the thread's own.
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
    let mismatch = hot.mismatch_of(block.addr());
    if mismatch.is_mine() {
        // SAFETY: the caller gives the block away, and its slab is one of ours.
        if !unsafe { free_here(hot, mismatch, block) } {
            other(hot, mismatch);
        }
    } else if mismatch.is_to_cpu() {
        // SAFETY: by its entry the slab is common, and by the tag `hot` is a per-CPU entry.
        unsafe { cpu::free(block, CpuEntry::of(hot), mismatch.bits()) };
    } else if mismatch.is_to_shared() {
        shared(hot, mismatch);
    } else {
        other(hot, mismatch);
    }
}

/// Frees a block that is neither of this thread's cache nor common.
///
/// # Safety
///
/// As [`free`]. The fast word leads to `hot`; `mismatch` is that of the block's entry with `hot`.
#[inline(always)]
pub(super) unsafe fn free_other(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
    if let Err(mismatch) = unsafe { cache::send_along(hot, mismatch, block) } {
        // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
        unsafe { (hot.serve().free)(block, hot, mismatch) };
    }
}

/// # Safety
///
/// As [`free_other`].
#[inline(never)]
unsafe fn free_from_other<const FROM: u8>(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    if FROM == MALLOC {
        // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
        return unsafe { free_other(block, hot, mismatch) };
    }
    let said = Said::free(Origin::of::<FROM>(), false, false);
    // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, 0, 0) };
}

/// # Safety
///
/// As [`free_other`]. `said`, `size` and `align` describe the block truly.
#[inline(always)]
unsafe fn give_back_other(
    block: *mut u8,
    hot: &Hot,
    mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
    if let Err(mismatch) = unsafe { cache::send_along(hot, mismatch, block) } {
        // SAFETY: the caller gives the block away, and describes it truly.
        unsafe { (hot.serve().give_back)(block, hot, mismatch, said, size, align) };
    }
}

/// # Safety
///
/// As [`give_back_other`].
#[inline(never)]
unsafe fn free_sized_other<const FROM: u8>(
    block: *mut u8,
    size: usize,
    hot: &Hot,
    mismatch: Mismatch,
) {
    let said = Said::free(Origin::of::<FROM>(), true, false);
    // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, size, 0) };
}

/// # Safety
///
/// As [`give_back_other`].
#[inline(never)]
unsafe fn free_aligned_other<const FROM: u8>(
    block: *mut u8,
    align: usize,
    hot: &Hot,
    mismatch: Mismatch,
) {
    let said = Said::free(Origin::of::<FROM>(), false, true);
    // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, 0, align) };
}

/// # Safety
///
/// As [`give_back_other`].
#[inline(never)]
unsafe fn free_sized_aligned_other<const FROM: u8>(
    block: *mut u8,
    size: usize,
    align: usize,
    hot: &Hot,
    mismatch: Mismatch,
) {
    let said = Said::free(Origin::of::<FROM>(), true, true);
    // SAFETY: the caller gives the block away, and `mismatch` is that of its entry.
    unsafe { give_back_other(block, hot, mismatch, said, size, align) };
}

/// The class of a block of the thread's own cache, if the fast path frees the block.
#[inline(always)]
pub(super) fn class_of_mine(block: *mut u8) -> Option<usize> {
    let hot = hot();
    let mismatch = hot.mismatch_of(block.addr());
    if !mismatch.is_mine() {
        return None;
    }
    // SAFETY: the entry is a slab's of the hot part's owner.
    let list = unsafe { hot.list_of(mismatch) };
    list.is_slot_start((block.addr() & (UNIT - 1)) as u32).then(|| mismatch.class())
}

/// Frees a block of one of this thread's slabs. Returns false if no slot begins there.
///
/// # Safety
///
/// As [`free`]. `hot` is the calling thread's, `mismatch` is the tag mismatch of the block's entry
/// with `hot`, and [`Mismatch::is_mine`] holds.
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
    //! Names for assembly outside this library: the C layer's `malloc` and `free`.
    //!
    //! On x86-64 the C layer's `malloc` and `free` are assembly, with the sequences for a CPU's
    //! arrays inline. This saves five instructions for each pair of calls. Some names are offsets
    //! in a hot part, its table and a per-CPU entry. The others are functions with the C ABI, for
    //! cases that no table has.
    //!
    //! The descriptor of `malloc`'s sequence lies at the start of the per-CPU entry, whose address
    //! is the fast word. So arming takes one store. The C layer defines the descriptor as
    //! `__heapwright_0_1_malloc_sequence`. A program without this symbol has no such sequence.
    //!
    //! Not part of the interface.

    use core::mem::offset_of;

    use super::super::{cpu, own, shared};
    use crate::address_map::{SLAB_KINDS, TABLE_GAP};
    use crate::cache::arrays::{self, CpuEntry};
    use crate::cache::{Hot, Mismatch, Serve, hot as hot_part};
    use crate::size_class::{LINEAR_MAX as LINEAR, MIN_ALIGN};

    /// The largest size whose list needs no lookup.
    pub const LINEAR_MAX: usize = LINEAR;
    /// A mask that makes the offset of a size's list from the size less one.
    pub const OFFSET_MASK: usize = (LINEAR - 1) & !(MIN_ALIGN - 1);
    /// The lists' offset in a hot part.
    pub const LISTS: usize = Hot::LISTS;
    /// The offset of the window's base.
    pub const BASE: usize = Hot::BASE;
    /// The offset of the number of units that can be looked up.
    pub const LIMIT: usize = Hot::LIMIT;
    /// The offset of the owner's tag.
    pub const TAG: usize = Hot::TAG;
    /// The offset of the table for all other calls. The next constants are offsets in that table.
    pub const SERVE: usize = Hot::SERVE;
    /// Serves a `malloc` whose list is empty.
    pub const MALLOC: usize = offset_of!(Serve, malloc);
    /// Serves `free` for an address whose unit is unknown, or at which no slot begins.
    pub const UNKNOWN: usize = offset_of!(Serve, unknown);
    /// Bytes from an entry table to the window.
    pub const GAP: usize = TABLE_GAP;
    /// A slab of the thread's own cache has a tag mismatch below this.
    pub const KINDS: usize = SLAB_KINDS;
    /// A common slab's tag mismatch is its list's offset plus this.
    pub const TO_CPU: usize = hot_part::BIASED_TO_CPU;
    /// [`TO_CPU`] for a thread that has a shared cache.
    pub const TO_SHARED: usize = hot_part::BIASED_TO_SHARED;
    /// Each list head of the per-CPU entry is the rseq area's offset from the thread pointer, less
    /// this.
    pub const BIAS: usize = hot_part::AREA_BIAS;
    /// Offsets in a per-CPU entry.
    pub const RSEQ: usize = arrays::RSEQ;
    /// The offset of the places to take blocks from.
    pub const SOURCES: usize = arrays::SOURCES;
    /// The offset of the places to put blocks at.
    pub const TARGETS: usize = arrays::TARGETS;
    /// These bits of a place are 0 past the end of its row.
    pub const ROW_MASK: usize = arrays::ROW_MASK;

    /// Serves a request for more bytes than the linear classes have, or for 0 bytes.
    pub extern "C" fn malloc_other(size: usize) -> *mut u8 {
        super::malloc_medium(size)
    }

    /// Serves a request if the CPU's array for the list at `offset` is empty.
    ///
    /// # Safety
    ///
    /// `hot` is the calling thread's fast word, which leads to the per-CPU entry.
    pub unsafe extern "C" fn malloc_empty(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
        // SAFETY: by the contract `hot` leads to the per-CPU entry, which is never freed.
        cpu::empty(size, unsafe { &*hot.cast::<CpuEntry>() }, offset)
    }

    /// Serves a request whose sequence was aborted.
    ///
    /// # Safety
    ///
    /// As [`malloc_empty`].
    pub unsafe extern "C" fn malloc_aborted(size: usize, hot: *const u8, offset: usize) -> *mut u8 {
        // SAFETY: by the contract `hot` leads to the per-CPU entry, which is never freed.
        cpu::aborted_malloc(size, unsafe { &*hot.cast::<CpuEntry>() }, offset)
    }

    /// Frees a block that is neither of the thread's own cache nor common.
    ///
    /// # Safety
    ///
    /// As `free`. `hot` is the calling thread's fast word, and `mismatch` is the tag mismatch of
    /// the block's entry with `hot`.
    pub unsafe extern "C" fn free_other(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: the fast word leads to a hot part, and none is freed while threads use it.
        let hot = unsafe { &*hot.cast::<Hot>() };
        // SAFETY: by the contract the number is an entry's tag mismatch.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: by the contract the block is in use, or it is refused.
        unsafe { super::free_other(block, hot, mismatch) }
    }

    /// Frees a block to the shared cache behind `hot`.
    ///
    /// # Safety
    ///
    /// As `free`. `mismatch` is the block's tag mismatch, and says that the block is common.
    pub unsafe extern "C" fn free_shared(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: the fast word leads to a stub, which is never freed.
        let hot = unsafe { &*hot.cast::<Hot>() };
        // SAFETY: by the contract the number is an entry's tag mismatch.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: by its entry the block is of a common slab; it is in use.
        unsafe { shared::free_common(block, hot, mismatch) }
    }

    /// Frees a block to a CPU whose array is full.
    ///
    /// # Safety
    ///
    /// As `free`, for a block of a common slab. `hot` leads to the per-CPU entry, and `mismatch` is
    /// the block's tag mismatch.
    pub unsafe extern "C" fn free_full(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: by the contract `hot` leads to the per-CPU entry, which is never freed.
        let cpu_entry = unsafe { &*hot.cast::<CpuEntry>() };
        // SAFETY: by the contract the number is an entry's tag mismatch.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: by the contract a block in use, of a common slab and of the class in `mismatch`.
        unsafe { cpu::full(block, cpu_entry, mismatch) }
    }

    /// Frees a block whose sequence was aborted.
    ///
    /// # Safety
    ///
    /// As [`free_full`].
    pub unsafe extern "C" fn free_aborted(block: *mut u8, hot: *const u8, mismatch: usize) {
        // SAFETY: by the contract `hot` leads to the per-CPU entry, which is never freed.
        let cpu_entry = unsafe { &*hot.cast::<CpuEntry>() };
        // SAFETY: by the contract the number is an entry's tag mismatch.
        let mismatch = unsafe { Mismatch::of(mismatch) };
        // SAFETY: by the contract a block in use, of a common slab and of the class in `mismatch`.
        unsafe { cpu::aborted_free(block, cpu_entry, mismatch) }
    }

    /// Shortens a list of the thread's own cache that is too long.
    pub extern "C" fn overflow(class: usize) {
        own::overflow(class);
    }
}
