//! Counts of a thread's calls for memory, in C: allocation budgets for tests and benchmarks.
//!
//! The comments on the public items are the header's documentation (see `hw_api`).
//!
//! **Invariants.** A visitor runs while the thread's counts are read. The visitor's own calls for
//! memory are served, but not counted.

use core::ffi::{c_int, c_void};
use heapwright::heap::{self, CannotCount};

use crate::errno;
use crate::hw_pool::write_known;

/// For hw_count_begin: keep the stack of each call, for hw_count_sites.
pub const COUNT_STACKS: u32 = 1;

/// A thread's calls for memory, in blocks and bytes. Bytes are requested bytes, not the sizes of
/// the blocks.
///
/// Later versions add fields at the end: pass hw_count_end the size of the struct you were compiled
/// with.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Counts {
    /// Allocated blocks: by malloc, calloc, aligned_alloc, new and their kin, and by realloc of
    /// NULL.
    pub allocations: u64,
    /// Blocks whose size was changed.
    pub reallocations: u64,
    /// Freed blocks, also by realloc to 0 bytes.
    pub frees: u64,
    /// Requested bytes: of all allocations, and the growth of reallocations.
    pub bytes: u64,
    /// The most bytes live at once, of blocks allocated since the beginning.
    pub peak_bytes: u64,
    /// Live bytes at the end minus those at the beginning. Negative if the thread freed more.
    pub kept_bytes: i64,
}

/// The allocations of one stack, for hw_count_sites.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CountSite {
    /// Return addresses, the innermost first; for backtrace_symbols_fd of execinfo.h, say. They
    /// stay valid.
    pub frames: *const *mut c_void,
    /// The number of frames. A static program's stacks end at code without frame pointers.
    pub depth: c_int,
    /// Allocated blocks.
    pub allocations: u64,
    /// Requested bytes.
    pub bytes: u64,
}

/// The function that hw_count_sites calls for each stack. Return false to stop.
pub type CountVisitor =
    Option<unsafe extern "C" fn(site: *const CountSite, context: *mut c_void) -> bool>;

/// Begins an exact count of the calling thread's calls of malloc and its kin, until hw_count_end.
/// Works in any mode. Other threads are not counted, so tests may run side by side. First-class
/// heaps, pools, arenas, collected heaps, and signal handlers that interrupt the counting are not
/// counted, either. flags is 0 or HW_COUNT_STACKS.
///
/// Counts may be nested, sixteen deep; an outer count includes its inner ones. A block may be made
/// before the outermost count, or by another thread. Such a block counts with its requested size in
/// mode=debug and mode=hardened, and with the size of malloc_usable_size in mode=fast.
///
/// Counting costs a thread some 100 ns a call, or some microseconds with stacks.
///
/// Returns false, and begins nothing, with errno EINVAL for other flags, ENOMEM if there is no
/// memory, and EAGAIN if sixteen counts are open. Returns false with errno ENOTSUP if another
/// allocator, or another copy of this library, serves malloc.
#[unsafe(no_mangle)]
pub extern "C" fn hw_count_begin(flags: u32) -> bool {
    if flags & !COUNT_STACKS != 0 {
        errno::set(libc::EINVAL);
        return false;
    }
    let begun = heap::count_begin(flags & COUNT_STACKS != 0);
    if let Err(why) = begun {
        errno::set(match why {
            CannotCount::TooDeep => libc::EAGAIN,
            CannotCount::NotServing => libc::ENOTSUP,
            _ => libc::ENOMEM,
        });
    }
    begun.is_ok()
}

/// Ends the calling thread's innermost count and writes the result to *out, which is size bytes:
/// pass sizeof(hw_counts). A smaller struct of an older program gets the fields that it has. A
/// larger struct gets zeros behind the fields that this library knows. out may be NULL.
///
/// Returns false with errno EINVAL, and all fields zero, if the thread counts nothing. Returns
/// false with errno EINVAL for a size of 0 or beyond 64 KiB. Returns false with errno ENOMEM if
/// there was no memory to remember each block; peak_bytes and kept_bytes may then be wrong.
///
/// # Safety
///
/// out is NULL or points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_count_end(out: *mut Counts, size: usize) -> bool {
    let ended = heap::count_end();
    let counted = ended.map_or(Counts::default(), |(counted, _)| Counts {
        allocations: counted.allocations,
        reallocations: counted.reallocations,
        frees: counted.frees,
        bytes: counted.bytes,
        peak_bytes: counted.peak_bytes,
        kept_bytes: counted.kept_bytes,
    });
    // SAFETY: `counted` is words without padding, and the caller's struct has `size` bytes.
    if !out.is_null() && unsafe { write_known(&counted, out, size) } == 0 {
        return false;
    }
    match ended {
        Some((_, true)) => return true,
        Some((_, false)) => errno::set(libc::ENOMEM),
        None => errno::set(libc::EINVAL),
    }
    false
}

/// Shows the allocations of each stack in the calling thread's innermost open count, if that count
/// began with HW_COUNT_STACKS. Calls visit with each stack, most bytes first, and with context,
/// until visit returns false. visit may allocate and print; these calls are not counted. It may
/// neither begin nor end a count.
///
/// Returns the number of stacks; 0 if no stacks are kept.
///
/// # Safety
///
/// visit is NULL or a function that obeys these rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_count_sites(visit: CountVisitor, context: *mut c_void) -> usize {
    heap::count_sites(&mut |frames, allocations, bytes| {
        let Some(visit) = visit else { return false };
        let depth = c_int::try_from(frames.len()).unwrap_or(c_int::MAX);
        let site = CountSite { frames: frames.as_ptr().cast(), depth, allocations, bytes };
        // SAFETY: as the caller promises.
        unsafe { visit(&raw const site, context) }
    })
}
