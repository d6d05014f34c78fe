//! glibc's queries and settings: `malloc_trim`, `mallinfo`, `mallinfo2`, `mallopt`, `malloc_info`,
//! `malloc_stats`.
//!
//! A field without a meaning here is zero. A setting without a meaning is accepted without effect,
//! as glibc accepts unknown settings.
//!
//! | `mallinfo2` field | its value here |
//! |---|---|
//! | `arena` | `uordblks + fordblks` |
//! | `ordblks` | 0: free blocks are not counted one by one |
//! | `hblks`, `hblkhd` | large blocks, their bytes |
//! | `uordblks` | bytes in live blocks, without large blocks |
//! | `fordblks` | free bytes that have memory: in caches, slabs and free runs |
//! | `keepcost` | bytes that wait for the purge: `malloc_trim` could give them back |
//! | `smblks`, `fsmblks`, `usmblks` | 0 |

use crate::report;
use heapwright::{heap, options, process, stats};
use heapwright_record::Stats;
use libc::{c_int, size_t};

const M_TRIM_THRESHOLD: c_int = -1;
/// scudo's name for the number of caches that threads share.
const M_TSDS_COUNT_MAX: c_int = -202;

/// glibc's `struct mallinfo2`. (musl's headers have no such thing; a program brings its own.)
#[repr(C)]
struct Mallinfo2 {
    arena: size_t,
    ordblks: size_t,
    smblks: size_t,
    hblks: size_t,
    hblkhd: size_t,
    usmblks: size_t,
    fsmblks: size_t,
    uordblks: size_t,
    fordblks: size_t,
    keepcost: size_t,
}

#[repr(C)]
struct Mallinfo {
    arena: c_int,
    ordblks: c_int,
    smblks: c_int,
    hblks: c_int,
    hblkhd: c_int,
    usmblks: c_int,
    fsmblks: c_int,
    uordblks: c_int,
    fordblks: c_int,
    keepcost: c_int,
}

/// The statistics at this moment. All are zero if the heap stays locked.
pub(crate) fn snapshot() -> Stats {
    let mut now = Stats::zero();
    if !stats::snapshot(&mut now) {
        now = Stats::zero();
    }
    now
}

/// Gives free memory back to the kernel, except `keep` bytes. Returns 1 if some memory went.
#[unsafe(no_mangle)]
extern "C" fn malloc_trim(keep: size_t) -> c_int {
    c_int::from(heap::trim(keep))
}

#[unsafe(no_mangle)]
extern "C" fn mallinfo2() -> Mallinfo2 {
    let now = snapshot();
    let small = now.live_bytes.saturating_sub(now.large_bytes);
    let free = now.rss_caches + now.rss_remote + now.rss_partial + now.rss_lazy;
    Mallinfo2 {
        arena: (small + free) as size_t,
        ordblks: 0,
        smblks: 0,
        hblks: now.large_blocks as size_t,
        hblkhd: now.large_bytes as size_t,
        usmblks: 0,
        fsmblks: 0,
        uordblks: small as size_t,
        fordblks: free as size_t,
        keepcost: now.rss_lazy as size_t,
    }
}

/// As [`mallinfo2`], with fields of 32 bits. A value that does not fit is `INT_MAX`.
#[unsafe(no_mangle)]
extern "C" fn mallinfo() -> Mallinfo {
    let wide = mallinfo2();
    let narrow = |value: size_t| c_int::try_from(value).unwrap_or(c_int::MAX);
    Mallinfo {
        arena: narrow(wide.arena),
        ordblks: narrow(wide.ordblks),
        smblks: narrow(wide.smblks),
        hblks: narrow(wide.hblks),
        hblkhd: narrow(wide.hblkhd),
        usmblks: narrow(wide.usmblks),
        fsmblks: narrow(wide.fsmblks),
        uordblks: narrow(wide.uordblks),
        fordblks: narrow(wide.fordblks),
        keepcost: narrow(wide.keepcost),
    }
}

/// `M_TRIM_THRESHOLD` decides when memory goes back: never if it is negative, at once if it is 0.
/// Other values leave the purge delay as it is. `M_TSDS_COUNT_MAX` raises the number of shared
/// caches. The result is 0 if threads share no caches, or if so many cannot be made. All other
/// parameters do nothing and return 1, as unknown parameters do in glibc.
#[unsafe(no_mangle)]
extern "C" fn mallopt(parameter: c_int, value: c_int) -> c_int {
    if parameter == M_TRIM_THRESHOLD && value <= 0 {
        options::set_purge_delay_ms(if value < 0 { -1 } else { 0 });
    }
    if parameter == M_TSDS_COUNT_MAX {
        let count = usize::try_from(value).unwrap_or(0);
        return c_int::from(count > 0 && heap::raise_shared_caches(count) >= count);
    }
    1
}

/// Writes the state of the heap as XML. `options` is 0. Returns the error, or 0.
///
/// # Safety
///
/// `stream` is an open stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 {
        return libc::EINVAL;
    }
    let mut document = report::Report::new();
    report::xml(&mut document, &snapshot());
    let bytes = document.bytes();
    // SAFETY: the bytes are ours, and the stream is open, as the caller promises. The stream may
    // allocate its buffer: this thread holds no lock of the heap.
    unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stream) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn malloc_stats() {
    print();
}

/// `malloc_stats`, for all its names.
#[inline(never)]
pub(crate) fn print() {
    _ = process::write_all(libc::STDERR_FILENO, text().bytes());
}

pub(crate) fn text() -> report::Report {
    let mut text = report::Report::new();
    report::text(&mut text, &snapshot());
    text
}
