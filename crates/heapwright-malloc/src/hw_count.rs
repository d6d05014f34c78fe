//! Counts of what a thread asks of the heap, in C: allocation budgets for tests and benchmarks.
//!
//! The comments on the public items are the header's documentation (see `hw_api`).
//!
//! **Invariants.** A visitor is called while the thread's counts are looked at: what it asks of the
//! heap is served, and not counted.

use core::ffi::{c_int, c_void};
use heapwright::heap::{self, CannotCount};

use crate::errno;
use crate::hw_pool::write_known;

/// For hw_count_begin: keep the stack of each call, for hw_count_sites.
pub const COUNT_STACKS: u32 = 1;

/// What a thread asked of the heap, in blocks and bytes. Bytes are those that were asked
/// for, not those that a block has.
///
/// Later versions add fields at the end: give hw_count_end the size of the struct you
/// were compiled with.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Counts {
    /// Blocks that were allocated: by malloc, calloc, aligned_alloc, new and their kin, by realloc
    /// of NULL too.
    pub allocations: u64,
    /// Blocks that were given another size.
    pub reallocations: u64,
    /// Blocks that were freed, by realloc to 0 bytes too.
    pub frees: u64,
    /// Bytes that were asked for: of all allocations, and what reallocations added.
    pub bytes: u64,
    /// The most bytes that were live at once, of those that were not before.
    pub peak_bytes: u64,
    /// Live bytes at the end less those at the beginning: what is kept. Negative if more was
    /// freed.
    pub kept_bytes: i64,
}

/// What one stack asked for, as hw_count_sites shows it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CountSite {
    /// Return addresses, the innermost first; for backtrace_symbols_fd of execinfo.h, say. They
    /// stay valid.
    pub frames: *const *mut c_void,
    /// How many there are. A static program's stacks are followed as far as it keeps frame
    /// pointers.
    pub depth: c_int,
    /// Blocks that were allocated.
    pub allocations: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
}

/// What hw_count_sites calls for each stack. Return false to stop.
pub type CountVisitor =
    Option<unsafe extern "C" fn(site: *const CountSite, context: *mut c_void) -> bool>;

/// Begins to count what the calling thread asks of malloc and its kin, exactly, until
/// hw_count_end. What other threads do meanwhile is not counted, so tests may run side by side;
/// nor are first-class heaps, pools, arenas and collected heaps, and signal handlers that interrupt
/// the counting. In any mode. flags is 0 or HW_COUNT_STACKS.
///
/// Counts may be nested, sixteen deep: what the inner one counts, the outer one counts as well. Of
/// a block that was made before the outermost one, or by another thread, the size is what was asked
/// for in mode=debug and mode=hardened, and what malloc_usable_size says in mode=fast.
///
/// A thread that counts allocates more slowly, by some 100 ns a call, some microseconds with
/// stacks.
///
/// Returns false with errno EINVAL for other flags, ENOMEM if there is no memory, EAGAIN if
/// sixteen counts are open, and ENOTSUP where another allocator, or another copy of this library,
/// serves malloc; then nothing was begun.
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

/// Ends the calling thread's innermost count and writes what it came to to *out, which is size
/// bytes: pass sizeof(hw_counts). A smaller struct of an older program gets the fields it knows; of
/// a larger one the rest is set to zero. out may be NULL.
///
/// Returns false with errno EINVAL, and all fields zero, if the thread counts nothing; false with
/// errno EINVAL for a size of 0 or beyond 64 KiB. Returns false with errno ENOMEM if there was no
/// memory to remember each block meanwhile: peak_bytes and kept_bytes may be wrong.
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
    // SAFETY: words without padding, and the caller's struct has `size` bytes.
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

/// Shows what each stack has asked for since the calling thread's innermost count began, which was
/// with HW_COUNT_STACKS, and is still open: visit is called with each, most bytes first, and with
/// context, until it returns false. visit may allocate and print; that is not counted. It may
/// neither begin nor end a count.
///
/// Returns how many stacks there are; 0 if none are kept.
///
/// # Safety
///
/// visit is NULL or a function that keeps to the above.
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
