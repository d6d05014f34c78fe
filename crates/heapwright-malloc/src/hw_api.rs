//! Functions of `include/heapwright.h`: first-class heaps, statistics, profiles, limits, queries.
//!
//! cbindgen copies the comments on the public items into the header. So they speak of C, name no
//! Rust, and give each function's result on failure and the caller's duties.
//!
//! **Invariants.** A null heap or null block is ignored, as `free(NULL)` is. A visitor runs while
//! the library walks its tables: it may read and count, and may neither allocate nor throw.

use crate::errno;
use crate::hw_pool::write_known;
use crate::hw_types::{Amount, Block, Description, Heap, LeakCheck, Statistics, Visitor};
use crate::owned::Owned;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use heapwright::debug::Owner;
use heapwright::{heap, limit, profile, stats};
use heapwright_record::Stats;

/// The version with the zero byte that C wants.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Makes a first-class heap. Any thread may use it, and several at once.
///
/// Returns NULL with errno ENOMEM if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn hw_heap_new() -> *mut Heap {
    if heap::debugging() {
        return CheckedHeap::create().cast();
    }
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
/// Returns NULL with errno ENOMEM if there is no memory or the product overflows.
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
/// Returns NULL with errno EINVAL if alignment is no power of two, ENOMEM if there is no memory.
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

/// A heap in `mode=debug`: its blocks are blocks of the process's heap.
struct CheckedHeap {
    is_locked: AtomicBool,
    blocks: UnsafeCell<Owned>,
}

impl CheckedHeap {
    /// Returns null if there is no memory.
    fn create() -> *mut Self {
        let at: *mut Self = heap::malloc_aligned(size_of::<Self>(), align_of::<Self>()).cast();
        if at.is_null() {
            return errno::fail(libc::ENOMEM).cast();
        }
        let blocks = UnsafeCell::new(Owned::new(Owner::Heap));
        // SAFETY: `at` has room for the record, and only this call knows it.
        unsafe { at.write(Self { is_locked: AtomicBool::new(false), blocks }) };
        at
    }

    /// Calls `act` with a heap's blocks, which no other thread uses meanwhile.
    ///
    /// # Safety
    ///
    /// The heap is one of `create` that was not destroyed.
    unsafe fn with<T>(heap: *mut Heap, act: impl FnOnce(&mut Owned) -> T) -> T {
        // SAFETY: as the caller promises.
        let heap = unsafe { &*heap.cast::<Self>() };
        while heap.is_locked.swap(true, Ordering::Acquire) {
            // SAFETY: the call has no preconditions.
            unsafe { libc::sched_yield() };
        }
        // SAFETY: this thread has the lock.
        let result = act(unsafe { &mut *heap.blocks.get() });
        heap.is_locked.store(false, Ordering::Release);
        result
    }
}

/// The common part of hw_heap_alloc and its kin.
///
/// # Safety
///
/// As hw_heap_alloc.
unsafe fn allocate(heap: *mut Heap, size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    let block = if heap::debugging() {
        // SAFETY: as the caller promises, and in this mode all heaps are checked.
        unsafe { CheckedHeap::with(heap, |blocks| blocks.allocate(size, alignment, zeroed)) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { heap::Heap::alloc(heap.cast(), size, alignment, zeroed) }
    };
    if block.is_null() {
        return errno::fail(libc::ENOMEM);
    }
    block.cast()
}

/// Gives a block back to its heap. NULL is ignored; errno is kept.
///
/// A block of another heap ends the program with a line that names its owner. In mode=debug such a
/// block is a finding, as a second free is, and the program goes on.
///
/// # Safety
///
/// heap is a heap of hw_heap_new that was not destroyed; block is NULL or a
/// block of it that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_free(heap: *mut Heap, block: *mut c_void) {
    if block.is_null() {
        return;
    }
    if heap::debugging() {
        let free = |blocks: &mut Owned| blocks.free(block.cast(), "hw_heap_free", b"heap");
        // SAFETY: as the caller promises, and in this mode all heaps are checked.
        return unsafe { CheckedHeap::with(heap, free) };
    }
    // SAFETY: as the caller promises.
    unsafe { heap::Heap::free(heap.cast(), block.cast()) };
}

/// Gives back a heap and every block in it. NULL is ignored.
///
/// # Safety
///
/// heap is NULL or a heap of hw_heap_new that was not destroyed. No thread uses
/// the heap or a block of it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_heap_destroy(heap: *mut Heap) {
    if heap.is_null() {
        return;
    }
    if heap::debugging() {
        // SAFETY: as the caller promises, and in this mode all heaps are checked.
        unsafe { CheckedHeap::with(heap, |blocks| blocks.free_from(0)) };
        let heap = heap.cast::<CheckedHeap>();
        // SAFETY: no code uses the heap any more.
        unsafe { heap.drop_in_place() };
        // SAFETY: `CheckedHeap::create` allocated the block, and its contents are dropped.
        return unsafe { heap::free(heap.cast()) };
    }
    // SAFETY: as the caller promises.
    unsafe { heap::Heap::destroy(heap.cast()) };
}

/// Raises the number of caches that threads share (HEAPWRIGHT="cache=shared:K") to count, at most
/// 1024. The number is never lowered. Running threads are not disturbed.
///
/// Returns the number of caches now: count or more, or fewer if there is no memory. Returns 0 if
/// threads have caches of their own. A count of 0 changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn hw_raise_shared_caches(count: usize) -> usize {
    heap::raise_shared_caches(count)
}

/// Whether an address lies in a block of heapwright's, in use or free. Any address is allowed; the
/// memory at it is not touched.
#[unsafe(no_mangle)]
pub extern "C" fn hw_owns(address: *const c_void) -> bool {
    heap::owns(address.cast())
}

/// Returns the number of bytes from an address to the end of its block, which the program may
/// write. Returns SIZE_MAX if the address is in no block of heapwright's, or in an arena, which
/// does not remember its blocks. Returns 0 if the block was freed or never handed out. Any address
/// is allowed; the memory at it is not touched. Takes constant time: a few nanoseconds.
///
/// In mode=hardened and mode=debug the block ends with the last byte that the program requested. In
/// mode=fast it ends with its usable bytes (malloc_usable_size), and freed small blocks count as
/// blocks in use.
#[unsafe(no_mangle)]
pub extern "C" fn hw_object_size(address: *const c_void) -> usize {
    heap::room(address.addr())
}

/// Describes the memory at an address. Any address is allowed; the memory at it is not touched; the
/// time does not depend on the size of the heap.
///
/// Another thread may free the block meanwhile, so the answer may be old when it arrives.
#[unsafe(no_mangle)]
pub extern "C" fn hw_describe(address: *const c_void) -> Description {
    heapwright::describe(address.cast()).into()
}

/// Writes the process's statistics to *out, which is size bytes: pass sizeof(hw_statistics). A
/// smaller struct of an older program gets the fields that it has. A larger struct gets zeros
/// behind the fields that this library knows.
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

/// Writes the statistics that `take` fills in to the caller's struct. If `take` fills nothing in,
/// writes zeros and returns 0.
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
    // SAFETY: `Stats` is the header's struct, without padding; the caller's has `size` bytes.
    let known = unsafe { write_known(&now, out.cast(), size) };
    if taken { known } else { 0 }
}

/// As hw_get_stats, but without system calls, for programs that call it often. Handed out memory
/// counts as resident until it is given back. rss, peak_rss and rss_not_ours are 0. Other threads'
/// caches count as they last published their contents. Takes some 20 ns for each 64 KiB of the
/// heap.
///
/// Returns how many bytes of the struct this library knows. Returns 0, and all fields zero, if the
/// heap is locked at this moment.
///
/// # Safety
///
/// out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_estimate_stats(out: *mut Statistics, size: usize) -> usize {
    // SAFETY: the caller's struct has `size` bytes.
    unsafe { write_stats(stats::estimate, out, size) }
}

/// Returns whether the program should move a block, so that memory becomes free sooner. The block
/// then lies in one of the sparsest slabs of its size class, and other slabs have room for the
/// blocks of those slabs. A program that can move its blocks calls this for each block in turn. It
/// moves the block if this returns true:
///
///     void *new = hw_malloc_uncached(size);
///     memcpy(new, block, size);
///     hw_free_uncached(block);
///
/// Call it in the thread that allocates. Blocks move among the slabs of this thread or, if threads
/// share caches, among the common slabs. Returns false for blocks of other threads, first-class
/// heaps and other allocators, and for samples of a heap profile. Returns false for sizes of whole
/// pages, whose memory goes back by itself. Returns false in mode=debug, and while calls are traced
/// or counted. Any address is allowed.
///
/// The answer is advice from a survey of the heap. The survey is up to 100 ms old, or older if
/// surveys take over 1 ms. A call that makes a survey takes some 20 ns for each 64 KiB of the heap;
/// other calls take constant time. At most four threads with caches of their own get answers at a
/// time.
#[unsafe(no_mangle)]
pub extern "C" fn hw_should_move(block: *const c_void) -> bool {
    heap::should_move(block.cast())
}

/// Allocates as malloc does, but in a free slot of a slab that need not be emptied: the new place
/// for a block that the program moves. The function does as malloc if there is no such slot, if
/// hw_should_move was not called lately, and for blocks over 32 KiB. Free the block with free or
/// hw_free_uncached. Takes longer than malloc.
///
/// Returns null, with errno ENOMEM, if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn hw_malloc_uncached(size: usize) -> *mut c_void {
    heap::malloc_uncached(size).cast()
}

/// Frees a block as free does, but puts it into its slab at once, not into a list of the thread.
///
/// # Safety
///
/// block is null, or a block of this heap in use that the program no longer needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_free_uncached(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_uncached(block.cast()) };
}

/// Looks for leaks now, in mode=debug, among the blocks of malloc and its kin. Writes the result to
/// *out, which is size bytes (pass sizeof(hw_leak_check)). The record (option record) gets the
/// leaks with their stacks, and standard error gets them if findings go there.
///
/// The program stops for a moment, while each thread reports its registers and the process is
/// copied. The copy does the remaining work, and the caller waits for it.
///
/// Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
/// of 0 or beyond 64 KiB. Returns 0, and all fields zero, if malloc is not the debug heap's, or if
/// another check is under way. Returns the same without /proc or memory, and in a sandbox.
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
    // SAFETY: `now` is words without padding, and the caller's struct has `size` bytes.
    let known = unsafe { write_known(&now, out.cast(), size) };
    if found.is_some() { known } else { 0 }
}

/// Gives free memory back to the kernel now, as malloc_trim(0) does: free blocks, empty pages of
/// slabs, and all free runs. Free blocks in the lists of other live threads stay. Call it at the
/// end of a phase that needed much memory. Later allocations fault their pages in again.
///
/// Returns whether any memory went back.
#[unsafe(no_mangle)]
pub extern "C" fn hw_purge() -> bool {
    heap::trim(0)
}

/// Sets a limit for this process's own resident memory, in bytes, at least 1 MiB. With 0 the memory
/// limit of its control groups counts again. Near the limit free memory goes back to the kernel
/// sooner, and at the limit one line is written to standard error. It is a soft limit: no
/// allocation fails because of it. Takes effect within moments, at the heap's next slow operation.
#[unsafe(no_mangle)]
pub extern "C" fn hw_set_soft_limit(bytes: usize) {
    limit::set(bytes);
}

/// Begins a heap profile. Samples are a Poisson process over allocated bytes with a mean distance
/// of bytes: a block of n bytes is a sample with the probability 1 - exp(-n / bytes). The stack of
/// a sample is kept, and its free is seen. Values outside of 1 KiB to 1 GiB are clamped; 524288
/// costs a few per cent of a program's time at most. Blocks that were allocated before are not
/// seen. A thread follows at its next slow path: in a program that allocates, within moments.
///
/// Returns whether the profile has begun. It does not begin in mode=debug, if another copy of the
/// library serves malloc, or if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn hw_profile_begin(bytes: usize) -> bool {
    profile::begin(bytes)
}

/// Ends the profile's sampling. Live samples stay in the profile until they are freed.
#[unsafe(no_mangle)]
pub extern "C" fn hw_profile_end() {
    profile::end();
}

/// Writes the present heap profile to an open file, pipe or socket: a complete record for the
/// command (heapwright report FILE). Never allocates. Takes time in proportion to the number of
/// samples.
///
/// Returns whether the whole record was written.
#[unsafe(no_mangle)]
pub extern "C" fn hw_profile_write(file: c_int) -> bool {
    profile::write(file)
}

/// Visits every block of the process's heaps in the order of addresses, except those of mode=debug.
///
/// Calls visit with each block and with context, until visit returns false. The block is valid
/// during the call only. visit may not allocate, free or throw. The walk may miss blocks that other
/// threads allocate or free meanwhile.
///
/// Returns whether the walk came to the end.
///
/// # Safety
///
/// visit is a function that obeys these rules.
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

/// The library's version as a string, "0.1.0" for example. Neither change nor free it.
#[unsafe(no_mangle)]
pub extern "C" fn hw_version() -> *const c_char {
    VERSION.as_ptr().cast()
}
