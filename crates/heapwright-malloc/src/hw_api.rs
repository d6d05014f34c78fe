//! The functions of `include/heapwright.h`: what heapwright can do that
//! malloc's interface has no name for.
//!
//! The comments on the public items are the header's documentation: cbindgen
//! copies them. So they speak of C, name no Rust, and say for each function
//! what it costs, what it gives on failure, and what the caller owes.
//!
//! **Invariants.** A null heap or null block is answered as `free(NULL)` is:
//! with nothing. A visitor is called while the library walks its tables: it may
//! look and count, and may neither allocate nor throw.

use crate::errno;
use crate::hw_pool::write_known;
use crate::hw_types::{Amount, Block, Description, Heap, LeakCheck, Statistics, Visitor};
use core::ffi::{c_char, c_int, c_void};
use heapwright::{heap, limit, profile, stats};
use heapwright_record::Stats;

/// The version with the zero byte that C wants.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Makes a heap of its own. Any thread may use it, and several at once.
///
/// Returns NULL with errno ENOMEM if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn hw_heap_new() -> *mut Heap {
    let made = heap::Heap::create();
    if made.is_null() {
        errno::set(libc::ENOMEM);
    }
    made.cast()
}

/// Gives a block of at least size bytes from a heap, aligned to 16 bytes. Free
/// it with hw_heap_free, or with free, or all at once with hw_heap_destroy.
///
/// Returns NULL with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// heap is a heap of hw_heap_new that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_alloc(heap: *mut Heap, size: usize) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { allocate(heap, size, 1, false) }
}

/// Like hw_heap_alloc, with count * size bytes of zeros.
///
/// Returns NULL with errno ENOMEM if there is no memory or the product
/// overflows.
///
/// # Safety
///
/// heap is a heap of hw_heap_new that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_alloc_zeroed(
    heap: *mut Heap,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the caller promises.
        Some(total) => unsafe { allocate(heap, total, 1, true) },
        None => errno::fail(libc::ENOMEM),
    }
}

/// Like hw_heap_alloc, at a multiple of alignment, which is a power of two.
///
/// Returns NULL with errno EINVAL if it is not one, ENOMEM if there is no
/// memory.
///
/// # Safety
///
/// heap is a heap of hw_heap_new that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_alloc_aligned(
    heap: *mut Heap,
    size: usize,
    alignment: usize,
) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return errno::fail(libc::EINVAL);
    }
    // SAFETY: as the caller promises.
    unsafe { allocate(heap, size, alignment, false) }
}

/// What the allocating functions share.
///
/// # Safety
///
/// As theirs.
unsafe fn allocate(heap: *mut Heap, size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    // SAFETY: as the caller promises.
    let block = unsafe { heap::Heap::alloc(heap.cast(), size, alignment, zeroed) };
    if block.is_null() {
        return errno::fail(libc::ENOMEM);
    }
    block.cast()
}

/// Gives a block back to its heap. NULL is ignored; errno is kept.
///
/// A block of another heap ends the program with a line that names its owner.
///
/// # Safety
///
/// heap is a heap of hw_heap_new that was not destroyed; block is NULL or a
/// block of it that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_free(heap: *mut Heap, block: *mut c_void) {
    if !block.is_null() {
        // SAFETY: as the caller promises.
        unsafe { heap::Heap::free(heap.cast(), block.cast()) };
    }
}

/// Gives back a heap and every block in it. NULL is ignored.
///
/// # Safety
///
/// heap is NULL or a heap of hw_heap_new that was not destroyed. No thread uses
/// the heap or a block of it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_destroy(heap: *mut Heap) {
    if !heap.is_null() {
        // SAFETY: as the caller promises.
        unsafe { heap::Heap::destroy(heap.cast()) };
    }
}

/// Raises the number of caches that threads share (HEAPWRIGHT="cache=shared:K") to
/// count, up to 1024; it is never lowered. Threads that run go on undisturbed.
///
/// Returns how many there are now: count or more, or fewer where there is no memory;
/// 0 where threads have caches of their own. With a count of 0 it only returns the number.
#[unsafe(no_mangle)]
pub extern "C" fn hw_raise_shared_caches(count: usize) -> usize {
    heap::raise_shared_caches(count)
}

/// Whether an address lies in a block of heapwright's, in use or waiting to be
/// used again. Any address may be asked about; the memory at it is not touched.
#[unsafe(no_mangle)]
pub extern "C" fn hw_owns(address: *const c_void) -> bool {
    heap::owns(address.cast())
}

/// Returns how many bytes there are from an address to the end of the block that it lies in: what a
/// program may write there. SIZE_MAX if the address is not in a block of heapwright's (or in an
/// arena, which does not remember its blocks), 0 if the block was freed, or there is none. Any
/// address may be asked about; the memory at it is not touched. Takes constant time: a few
/// nanoseconds.
///
/// In mode=hardened and mode=debug the block ends with the last byte that was asked for. In
/// mode=fast it ends where malloc_usable_size says, and small blocks that were freed count as if
/// they were in use.
#[unsafe(no_mangle)]
pub extern "C" fn hw_object_size(address: *const c_void) -> usize {
    heap::room(address.addr())
}

/// Says what lies at an address. Any address may be asked about; the memory at
/// it is not touched; the time does not depend on the size of the heap.
///
/// The answer is true of the moment it was made: for a block that another
/// thread may free meanwhile, it may be old when it arrives.
#[unsafe(no_mangle)]
pub extern "C" fn hw_describe(address: *const c_void) -> Description {
    heapwright::describe(address.cast()).into()
}

/// Writes the process's statistics to *out, which is size bytes: pass
/// sizeof(hw_statistics). A smaller struct of an older program gets the fields
/// it knows; of a larger one the rest is set to zero.
///
/// Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
/// of 0 or beyond 64 KiB. Returns 0, and all fields zero, if the heap stays locked because the
/// caller is a signal handler that interrupted it. Never allocates. Takes time in proportion to the
/// memory in use: this is for reports.
///
/// # Safety
///
/// out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_get_stats(out: *mut Statistics, size: usize) -> usize {
    // SAFETY: the caller's struct has `size` bytes.
    unsafe { write_stats(stats::snapshot, out, size) }
}

/// Writes what `take` fills in to the caller's struct; zeros, and 0 is returned, if it fills
/// nothing in.
///
/// # Safety
///
/// `out` points to `size` bytes that can be written.
unsafe fn write_stats(
    take: impl FnOnce(&mut Stats) -> bool,
    out: *mut Statistics,
    size: usize,
) -> usize {
    let mut now = Stats::zero();
    let taken = take(&mut now);
    if !taken {
        now = Stats::zero();
    }
    // SAFETY: `Stats` is words without padding, and laid out as the header's struct;
    // the caller's has `size` bytes.
    let known = unsafe { write_known(&now, out.cast(), size) };
    if taken { known } else { 0 }
}

/// As hw_get_stats, but without asking the kernel: memory that was handed out and not given back is
/// taken for resident, rss, peak_rss and rss_not_ours are 0, and what other threads' caches hold is
/// as they last published it. For programs that ask often: takes some 20 ns for each 64 KiB of the
/// heap, and no system call.
///
/// Returns how many bytes of the struct this library knows; 0, and all fields zero, where the heap
/// is locked just now.
///
/// # Safety
///
/// out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_estimate_stats(out: *mut Statistics, size: usize) -> usize {
    // SAFETY: the caller's struct has `size` bytes.
    unsafe { write_stats(stats::estimate, out, size) }
}

/// Whether memory would become free sooner if the program moved a block: whether the block lies in
/// one of the slabs, the sparsest of their size class, that could be emptied into free slots of the
/// others. A program that can move its blocks asks this for each of them, one after another, and
/// moves those for which it is so:
///
///     void *new = hw_malloc_uncached(size);
///     memcpy(new, block, size);
///     hw_free_uncached(block);
///
/// Ask in the thread that allocates: it moves blocks among its own slabs, or, where threads share
/// caches, among the common ones. False for all other blocks: other threads', first-class heaps',
/// other allocators', samples of a heap profile; for sizes of whole pages, whose memory goes back
/// by itself; in mode=debug, and where calls are traced or counted. Any address may be asked about.
///
/// The answer is advice, from a survey of the heap that is 100 ms old, or more where a survey takes
/// more than a hundredth of that. A call that makes one takes some 20 ns for each 64 KiB of the
/// heap, the others constant time.
#[unsafe(no_mangle)]
pub extern "C" fn hw_should_move(block: *const c_void) -> bool {
    heap::should_move(block.cast())
}

/// Allocates as malloc does, but where a moved block should lie: in a free slot of a slab that is
/// not worth being emptied. Where there is none, where hw_should_move was not asked lately, and for
/// blocks over 32 KiB, it is malloc. Free the block with free or hw_free_uncached. Takes longer
/// than malloc.
///
/// Returns null, with errno ENOMEM, if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn hw_malloc_uncached(size: usize) -> *mut c_void {
    heap::malloc_uncached(size).cast()
}

/// Frees a block as free does, but back to its slab at once, and not to a list of the thread's.
///
/// # Safety
///
/// block is null or of this heap, in use, and used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_free_uncached(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_uncached(block.cast()) };
}

/// Looks for leaks in the process's blocks, now: in mode=debug, among what malloc
/// and its kin have handed out. What is found is written to *out, which is size
/// bytes (pass sizeof(hw_leak_check)); it is also in the record (option record),
/// with stacks, and on standard error where findings are.
///
/// The program stands still for a moment, while its threads say what is in their
/// registers and the process is copied; the copy does the rest, and the caller
/// waits for it.
///
/// Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
/// of 0 or beyond 64 KiB. Returns 0, and all fields zero, if malloc is not the debug heap's,
/// another check is under way, there is no /proc, or there is no memory.
///
/// # Safety
///
/// out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_check_leaks(out: *mut LeakCheck, size: usize) -> usize {
    let found = heapwright::debug::check_leaks();
    let amount = |of: heapwright::debug::Amount| Amount { blocks: of.blocks, bytes: of.bytes };
    let now = found.map_or(LeakCheck::default(), |found| LeakCheck {
        definite: amount(found.definite),
        indirect: amount(found.indirect),
        possible: amount(found.possible),
        reachable: amount(found.reachable),
    });
    // SAFETY: words without padding, and the caller's struct has `size` bytes.
    let known = unsafe { write_known(&now, out.cast(), size) };
    if found.is_some() { known } else { 0 }
}

/// Gives free memory back to the kernel now: the free blocks of all threads (but for what lies in
/// the lists of others that live), pages of slabs without a block in use, and all free runs. For
/// the end of a phase that needed much; what is allocated next faults its pages in again. As
/// malloc_trim(0).
///
/// Returns whether any memory went back.
#[unsafe(no_mangle)]
pub extern "C" fn hw_purge() -> bool {
    heap::trim(0)
}

/// Sets a limit for this process's own resident memory, in bytes, at least 1 MiB; 0: the
/// memory limit of its control groups counts again. Near it free memory goes back to the
/// kernel sooner, and at it one line is written to standard error. It is a soft limit: no
/// allocation fails because of it. Takes effect within moments, at the heap's next slow operation.
#[unsafe(no_mangle)]
pub extern "C" fn hw_set_soft_limit(bytes: usize) {
    limit::set(bytes);
}

/// Begins a heap profile. Samples are a Poisson process over allocated bytes with a
/// mean distance of bytes: a block of n bytes is a sample with the probability
/// 1 - exp(-n / bytes). The stack of a sample is kept, and its free is seen.
/// Values outside of 1 KiB to 1 GiB are clamped; 524288 costs a few per cent of a
/// program's time at most. Blocks that were allocated before are not seen. A thread
/// follows at its next slow path: in a program that allocates, within moments.
///
/// Returns whether it has begun: not in mode=debug, nor where another copy of the
/// library serves malloc, nor where there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn hw_profile_begin(bytes: usize) -> bool {
    profile::begin(bytes)
}

/// Makes no samples from now on. Those that are live stay in the profile until
/// they are freed.
#[unsafe(no_mangle)]
pub extern "C" fn hw_profile_end() {
    profile::end();
}

/// Writes the heap profile, as it is now, to an open file, pipe or socket: a record
/// that is complete in itself, for the command (heapwright report FILE). Never
/// allocates. Takes time in proportion to the number of samples.
///
/// Returns whether it was written whole.
#[unsafe(no_mangle)]
pub extern "C" fn hw_profile_write(file: c_int) -> bool {
    profile::write(file)
}

/// Visits every block of the process's heaps in the order of addresses.
///
/// visit is called with each block and with context; where it returns false,
/// the walk stops. The block is valid during the call only. visit may not
/// allocate, free or throw. Blocks that other threads allocate or free
/// meanwhile may or may not be seen.
///
/// Returns whether the walk came to the end.
///
/// # Safety
///
/// visit is a function that keeps to the above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_walk(visit: Visitor, context: *mut c_void) -> bool {
    let Some(visit) = visit else { return true };
    heap::walk(&mut |block: heap::Block| {
        let block = Block {
            address: core::ptr::without_provenance(block.address),
            size: block.size,
            owner: block.owner,
            in_use: block.in_use,
        };
        // SAFETY: as the caller promises.
        unsafe { visit(&raw const block, context) }
    })
}

/// The library's version as a string, "0.1.0" for example. Neither change nor
/// free it.
#[unsafe(no_mangle)]
pub extern "C" fn hw_version() -> *const c_char {
    VERSION.as_ptr().cast()
}
