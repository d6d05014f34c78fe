//! The fast paths: counted in instructions, and kept that way by CI.
//!
//! ```text
//! malloc   fast word; list by mask; pop; count                       13
//! free     fast word; unit; entry: mine, and of which class?         22
//!          slot start? push; count
//! ```
//!
//! Everything else is a tail call, with the arguments still in the registers they came in:
//!
//! ```text
//! malloc
//! |- list has a block                        pop                          here
//! |- list is empty: `missed`
//! |  |- the thread's own cache               exclusive::missed -> Cache::refill
//! |  |- a shared cache                       shared::missed -> Magazines
//! |  |- the CPU's arrays (head < 0)          per_cpu::malloc
//! |  '- no cache yet, or looked at           door::malloc_cold -> allocate
//! '- beyond the linear classes               malloc_medium, or door::malloc_cold -> large
//!
//! free
//! |- of this thread's cache                  push                         here
//! |  '- the list is too long                 door::overflow -> Cache::overflow
//! |- common, by the CPU's arrays             per_cpu::free
//! |- common, by a shared cache               shared::free -> Magazines
//! |- of the outgoing batch's owner           cache::send_along
//! '- else                                    door::free_cold
//!    |- of another cache                     Cache::free_remote, first of a batch
//!    |- of a first-class heap, a large one   first_class, large
//!    '- foreign, or no block                 foreign, misuse
//! ```

use crate::address_map::CLASS_STEP;
use crate::cache::arrays::Gate;
use crate::cache::{self, Hardness, Hot, OnMiss, Residue};
use crate::hardened;
use crate::os::tls;
use crate::remote::Block;
use crate::size_class::{self, LINEAR_MAX, MIN_ALIGN, SLAB_MAX, UNIT};

use super::{SENTINEL, door, exclusive, per_cpu, sampling, shared};
use crate::request::{ALIGNED, MALLOC};

// A linear class's list is where the request's size says.
const _: () = assert!(CLASS_STEP == MIN_ALIGN);

#[inline(always)]
pub(super) fn hot() -> &'static Hot {
    // SAFETY: the fast word leads to the sentinel, to the hot part of this thread's cache, to
    // the stub of a shared cache, or to the gate's; none of the four is ever freed.
    unsafe { &*tls::fast((&raw const SENTINEL).cast()).cast::<Hot>() }
}

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
            Err(true) => per_cpu::malloc(size, Gate::of(hot), offset),
            Err(false) => missed(size, hot, offset),
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

/// [`malloc_fast`] for all sizes; the class takes a few instructions more.
///
/// ```
/// let block = heapwright::heap::malloc_medium_fast(10_000);
/// // SAFETY: null, or a block of our own.
/// unsafe { heapwright::heap::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc_medium_fast(size: usize) -> *mut u8 {
    let hot = hot();
    if size.wrapping_sub(1) < SLAB_MAX {
        return hot.list(size_class::of(size)).pop().cast();
    }
    large_quickly(size, hot)
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
            Err(true) => per_cpu::malloc(size, Gate::of(hot), class * CLASS_STEP),
            Err(false) => missed(size, hot, class * CLASS_STEP),
        };
    }
    malloc_large(size, hot())
}

/// Sizes of large blocks.
#[inline(never)]
fn malloc_large(size: usize, hot: &Hot) -> *mut u8 {
    match exclusive::large(size, hot) {
        Some(block) => block,
        None => malloc_large_shared(size, hot),
    }
}

/// [`malloc_large`] for threads whose own cache keeps no such run.
#[inline(never)]
fn malloc_large_shared(size: usize, hot: &Hot) -> *mut u8 {
    if hot.on_miss() == OnMiss::PerCpu {
        return per_cpu::malloc_large(size, Gate::of(hot));
    }
    let block = shared::large(size, hot);
    if block.is_null() { door::malloc_cold::<MALLOC>(size) } else { block }
}

/// A large block of `size` bytes from a run that the thread's cache, or the one it shares, keeps; else null.
#[inline(always)]
fn large_quickly(size: usize, hot: &Hot) -> *mut u8 {
    match exclusive::large(size, hot) {
        Some(block) => block,
        None if hot.on_miss() == OnMiss::Door => core::ptr::null_mut(),
        None => shared::large(size, hot),
    }
}

/// [`malloc_medium`] for callers that give an alignment, if only a small one.
#[inline(never)]
fn malloc_medium_aligned<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    if size.wrapping_sub(1) < SLAB_MAX {
        let (hot, class) = (hot(), size_class::of(size));
        match hot.list(class).pop_open() {
            Ok(block) => return block.cast(),
            Err(true) => return per_cpu::malloc(size, Gate::of(hot), class * CLASS_STEP),
            Err(false) => return missed_from::<FROM>(size, align, hot, class * CLASS_STEP),
        }
    }
    let block = large_quickly(size, hot());
    if block.is_null() { door::malloc_aligned_cold::<FROM>(size, align) } else { block }
}

/// A request of `size` bytes whose list in `hot`, at `offset`, is empty.
#[inline(never)]
fn missed(size: usize, hot: &Hot, offset: usize) -> *mut u8 {
    // The hardened heap's own fast path is for sizes that lead to their class without a table.
    if size > LINEAR_MAX && hot.hardness() != Hardness::None {
        return hardened::malloc_medium::<MALLOC>(size, hot);
    }
    missed_here(size, hot, offset)
}

/// [`missed`], for a caller that is jumped to itself, and a size of a linear class.
#[inline(always)]
pub(super) fn missed_here(size: usize, hot: &Hot, offset: usize) -> *mut u8 {
    // First, because with a shared cache every call comes here, and with the hardened heap.
    if hot.misses_to_shared() {
        return shared::missed(size, hot, offset);
    }
    match hot.hardness() {
        Hardness::None => exclusive::missed(size, hot, offset),
        Hardness::Light => hardened::malloc::<MALLOC, false>(size, hot),
        Hardness::Full => hardened::malloc::<MALLOC, true>(size, hot),
    }
}

/// [`missed`] for a call that gives a small alignment, or none (1).
#[inline(never)]
fn missed_from<const FROM: u8>(size: usize, align: usize, hot: &Hot, offset: usize) -> *mut u8 {
    if hot.misses_to_shared() {
        return shared::missed(size, hot, offset);
    }
    match hot.hardness() {
        Hardness::Light | Hardness::Full if !hardened::is_plain::<FROM>(align) => {
            door::malloc_aligned_cold::<FROM>(size, align)
        }
        Hardness::Light | Hardness::Full if size > LINEAR_MAX => {
            hardened::malloc_medium::<FROM>(size, hot)
        }
        Hardness::Light => hardened::malloc::<FROM, false>(size, hot),
        Hardness::Full => hardened::malloc::<FROM, true>(size, hot),
        Hardness::None => exclusive::missed_from::<FROM>(size, align, hot, offset),
    }
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
    let is_listed = align <= MIN_ALIGN && size <= SLAB_MAX;
    let block = if is_listed { malloc_medium_fast(size) } else { core::ptr::null_mut() };
    if block.is_null() {
        return door::calloc_aligned_cold::<FROM>(size, align);
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
            Err(true) => per_cpu::malloc(size, Gate::of(hot), offset),
            Err(false) => missed_from::<FROM>(size, align, hot, offset),
        }
    } else {
        malloc_medium_aligned::<FROM>(size, align)
    }
}

/// The fast path of [`malloc_aligned`] alone, for alignments above 16: null where that is not enough.
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
    if let Some(class) = size_class::of_aligned(size, align) {
        let hot = hot();
        // The rare ways out of an empty list are all the door's.
        let block = hot.list(class).pop();
        if !block.is_null() {
            return block.cast();
        }
        if hot.on_miss() == OnMiss::Door {
            return exclusive::missed_from::<FROM>(size, align, hot, class * CLASS_STEP);
        }
    } else if align <= UNIT
        && let Some(block) = exclusive::large(size, hot())
    {
        return block;
    }
    door::malloc_aligned_cold::<FROM>(size, align)
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
    let shared = |hot: &Hot, residue| unsafe { shared::free(block, hot, residue) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other = |hot: &Hot, residue| unsafe { free_other::<FROM>(block, hot, residue) };
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
    let shared = |hot: &Hot, residue| unsafe { shared::free_sized(block, size, hot, residue) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other = |hot: &Hot, residue| unsafe { free_sized_other::<FROM>(block, size, hot, residue) };
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
    let shared = |hot: &Hot, residue| unsafe { shared::free(block, hot, residue) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other =
        |hot: &Hot, residue| unsafe { free_aligned_other::<FROM>(block, align, hot, residue) };
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
    let shared = |hot: &Hot, residue| unsafe { shared::free(block, hot, residue) };
    // SAFETY: the caller gives the block away; `free_by` calls this with the thread's fast word.
    let other = |hot: &Hot, residue| unsafe {
        free_sized_aligned_other::<FROM>(block, size, align, hot, residue)
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
    let residue = hot.residue_of_sized(block.addr());
    if residue.is_mine() {
        // SAFETY: the caller gives the block away, and its slab is one of ours.
        return unsafe { free_here(hot, residue, block) };
    }
    if residue.is_to_cpu() {
        // SAFETY: the entry says that the slab is common, and the tag that this is a gate.
        unsafe { per_cpu::free(block, Gate::of(hot), residue.bits()) };
        return true;
    }
    if residue.is_to_shared() {
        // SAFETY: the entry says that the slab is common; `hot` is the fast word's.
        unsafe { shared::free_sized(block, size, hot, residue) };
        return true;
    }
    false
}

/// Makes [`free_sized_fast`] refuse every block, in this thread and in threads
/// that start to allocate from now on: the program has an `operator delete` of
/// its own, which the sized one must call.
///
/// # Safety
///
/// No other thread uses the heap meanwhile: it is called when a process starts.
pub unsafe fn forward_sized_frees() {
    // SAFETY: by the contract there is no other thread.
    unsafe { super::start::forward_sized_frees() };
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
    shared: impl FnOnce(&Hot, Residue),
    other: impl FnOnce(&Hot, Residue),
) {
    let hot = hot();
    let residue = hot.residue_of(block.addr());
    if residue.is_mine() {
        // SAFETY: the caller gives the block away, and its slab is one of ours.
        if !unsafe { free_here(hot, residue, block) } {
            other(hot, residue);
        }
    } else if residue.is_to_cpu() {
        // SAFETY: the entry says that the slab is common, and the tag that this is a gate.
        unsafe { per_cpu::free(block, Gate::of(hot), residue.bits()) };
    } else if residue.is_to_shared() {
        shared(hot, residue);
    } else {
        other(hot, residue);
    }
}

/// Frees a block of the outgoing batch's owner, or a large one. `Err`: it is neither, or more is to be done. It has
/// `residue`.
///
/// # Safety
///
/// As [`free`]; `hot` is what the thread's fast word leads to, and `residue` what it left of the
/// block's entry.
#[inline(always)]
unsafe fn free_elsewhere(block: *mut u8, hot: &Hot, residue: Residue) -> Result<(), Residue> {
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    let Err(residue) = (unsafe { cache::send_along(hot, residue, block) }) else { return Ok(()) };
    // SAFETY: the caller gives the block away, and this is what is left of its entry.
    if unsafe { exclusive::free_large(block, hot, residue) } { Ok(()) } else { Err(residue) }
}

/// A block that is not this thread's, nor common.
///
/// # Safety
///
/// As [`free`]; `hot` is what the thread's fast word leads to, and `residue` what it left of the
/// block's entry.
#[inline(never)]
pub(super) unsafe fn free_other<const FROM: u8>(block: *mut u8, hot: &Hot, residue: Residue) {
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    if let Err(residue) = unsafe { free_elsewhere(block, hot, residue) } {
        // SAFETY: the caller gives the block away, and this is what is left of its entry.
        unsafe { per_cpu::free_large::<FROM>(block, hot, residue) };
    }
}

/// [`free_other`] for a caller that knows the size.
///
/// # Safety
///
/// As [`free`]; `hot` is what the thread's fast word leads to, and `residue` what it left of the
/// block's entry.
#[inline(never)]
unsafe fn free_sized_other<const FROM: u8>(
    block: *mut u8,
    size: usize,
    hot: &Hot,
    residue: Residue,
) {
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    if unsafe { free_elsewhere(block, hot, residue) }.is_err() {
        // SAFETY: the caller gives the block away, and the door looks what it is.
        unsafe { door::free_sized_cold::<FROM>(block, size) };
    }
}

/// [`free_other`] for a caller that knows the alignment.
///
/// # Safety
///
/// As [`free`]; `hot` is what the thread's fast word leads to, and `residue` what it left of the
/// block's entry.
#[inline(never)]
unsafe fn free_aligned_other<const FROM: u8>(
    block: *mut u8,
    align: usize,
    hot: &Hot,
    residue: Residue,
) {
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    if unsafe { free_elsewhere(block, hot, residue) }.is_err() {
        // SAFETY: the caller gives the block away, and the door looks what it is.
        unsafe { door::free_aligned_cold::<FROM>(block, align) };
    }
}

/// [`free_other`] for a caller that knows both.
///
/// # Safety
///
/// As [`free`]; `hot` is what the thread's fast word leads to, and `residue` what it left of the
/// block's entry.
#[inline(never)]
unsafe fn free_sized_aligned_other<const FROM: u8>(
    block: *mut u8,
    size: usize,
    align: usize,
    hot: &Hot,
    residue: Residue,
) {
    // SAFETY: the caller gives the block away, and says what is left of its entry.
    if unsafe { free_elsewhere(block, hot, residue) }.is_err() {
        // SAFETY: the caller gives the block away, and the door looks what it is.
        unsafe { door::free_sized_aligned_cold::<FROM>(block, size, align) };
    }
}

/// The class of a block that begins in a slab of the calling thread's own cache.
#[inline(always)]
pub(super) fn class_of_mine(block: *mut u8) -> Option<usize> {
    let hot = hot();
    let mut residue = hot.residue_of(block.addr());
    if !residue.is_mine() {
        // A hot part whose thread's blocks are sampled knows none.
        if !sampling::is_on() || !exclusive::is_sampled(hot) {
            return None;
        }
        residue = hot.residue_by_map(block.addr());
        if !residue.is_mine() {
            return None;
        }
    }
    // SAFETY: the entry is a slab's of the hot part's owner.
    let list = unsafe { hot.list_of(residue) };
    list.is_slot_start((block.addr() & (UNIT - 1)) as u32).then(|| residue.class())
}

/// Frees a block of one of this thread's lists; false if none begins there.
///
/// # Safety
///
/// As [`free`]; `residue` is what `hot`, the calling thread's, left of the entry of the block's
/// slab, and [`Residue::is_mine`].
#[inline(always)]
unsafe fn free_here(hot: &Hot, residue: Residue, block: *mut u8) -> bool {
    // SAFETY: the entry is a slab's of the hot part's owner.
    let list = unsafe { hot.list_of(residue) };
    if !list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
        return false;
    }
    // SAFETY: by the contract the block is in use, of the list's class, and free from now on.
    if unsafe { list.push(block.cast::<Block>()) } {
        door::overflow(residue.class());
    }
    true
}
