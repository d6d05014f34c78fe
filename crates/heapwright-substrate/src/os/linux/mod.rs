//! Linux: memory, time, threads and files, through the C library's thin wrappers. If a wrapper is a
//! cancellation point, `calls` makes the system call instead.
//!
//! Nothing here allocates. Functions that make system calls restore `errno` (one says otherwise).

mod calls;
#[cfg(feature = "debug")]
mod interrupted;
mod operators;
#[cfg(feature = "debug")]
mod proc_mem;
mod process;
#[cfg_attr(target_arch = "x86_64", path = "registers_x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "registers_aarch64.rs")]
mod registers;
#[cfg(feature = "debug")]
mod reservations;
pub mod rseq;
mod sandbox;
#[cfg(feature = "debug")]
mod shared_file;
#[cfg(feature = "debug")]
mod standstill;
mod stdio;
mod symbols;
#[cfg(feature = "debug")]
mod thread_tag;
mod threads;
#[cfg_attr(target_arch = "x86_64", path = "tls_x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "tls_aarch64.rs")]
pub mod tls;

use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

pub use operators::*;
#[cfg(feature = "debug")]
pub use proc_mem::*;
pub use process::*;
pub use registers::*;
#[cfg(feature = "debug")]
pub use reservations::{is_own, next_own};
pub use sandbox::remember;
#[cfg(feature = "debug")]
pub use shared_file::map_sealed;
#[cfg(feature = "debug")]
pub use standstill::*;
pub use stdio::*;
pub use symbols::*;
#[cfg(feature = "debug")]
pub use thread_tag::*;
pub use threads::*;

use super::{Memory, Sandbox, is_filtered, sandbox};

/// Whether the table of the address map lies at a fixed distance below the window.
pub const TABLE_ADJACENT: bool = true;

/// The largest window tried: 1 TiB.
pub const MAX_WINDOW: usize = 1 << 40;

/// Runs `call` and leaves `errno` as it was.
pub fn keeping_errno<T>(call: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = call();
    set_errno(before);
    result
}

/// The calling thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: has no preconditions.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: errno's location is valid for the calling thread's life.
    unsafe { *at }
}

/// Sets `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: has no preconditions.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: errno's location is valid for the calling thread's life.
    unsafe { *at = value };
}

/// `errno` of a request for which there is no memory.
pub const ENOMEM: i32 = libc::ENOMEM;

/// The running process's memory.
#[derive(Clone, Copy)]
pub struct System;

static MOVES_LEFT: AtomicU32 = AtomicU32::new(8192);

static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Makes pages count as at least `size` bytes. Call this before the first allocation.
pub fn pretend_page_size(size: usize) {
    PAGE.store(size.max(kernel_page_size()), Ordering::Relaxed);
}

/// The kernel's page size.
pub fn kernel_page_size() -> usize {
    // SAFETY: reads the auxiliary vector; no preconditions.
    let size = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
    if size.is_power_of_two() && size >= 4096 { size } else { 4096 }
}

const RESERVE_FLAGS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

static MACHINE: AtomicUsize = AtomicUsize::new(0);

/// Whether the kernel would refuse a mapping of `size` bytes because the machine has less memory
/// (`vm.overcommit_memory=0`). Reservations avoid this check, so a caller that hands out a block
/// must call this function. For a block larger than the machine's memory, it tries a mapping.
#[inline]
pub fn is_more_than_there_is(size: usize) -> bool {
    size > MACHINE.load(Ordering::Relaxed) && is_refused(size)
}

/// Reads facts from the kernel that are needed later, when the process may be in a sandbox. A
/// second call reads nothing.
///
/// With each touched page of code the kernel loads fifteen others. So this function lies beside the
/// constructor (code_order.ld), and uses `syscall` instead of the C library's scattered wrappers.
pub fn begin() {
    if !knows_stderr() && !is_filtered() {
        note_stderr();
        learn_machine();
        cpus();
    }
}

fn learn_machine() {
    let mut info = MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: `info` is a valid place for the answer.
    let ask = || unsafe { libc::syscall(libc::SYS_sysinfo, info.as_mut_ptr()) };
    if keeping_errno(ask) == 0 {
        // SAFETY: the place was zeroed before, and the kernel has now filled it.
        let info = unsafe { info.assume_init() };
        let pages = info.totalram.saturating_add(info.totalswap) as usize;
        let all = pages.saturating_mul(info.mem_unit as usize);
        MACHINE.store(all, Ordering::Relaxed);
    }
}

#[cold]
fn is_refused(size: usize) -> bool {
    if !is_filtered() {
        learn_machine();
        if size <= MACHINE.load(Ordering::Relaxed) {
            return false;
        }
    }
    keeping_errno(|| {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping that no other thread knows.
        let got = unsafe { calls::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        if got == libc::MAP_FAILED {
            return true;
        }
        // SAFETY: the mapping just made.
        unsafe { unmap(got.cast(), size) };
        false
    })
}

/// Notes that a range holds heapwright's records. (`System.reserve` notes its ranges itself.)
pub fn note_own(at: usize, size: usize) {
    #[cfg(feature = "debug")]
    reservations::note_more(at, size);
    #[cfg(not(feature = "debug"))]
    let _ = (at, size);
}

fn map(at: usize, size: usize, flags: i32) -> *mut u8 {
    keeping_errno(|| {
        let hint = ptr::without_provenance_mut::<libc::c_void>(at);
        // SAFETY: this is a new private mapping. With MAP_FIXED_NOREPLACE or without MAP_FIXED it
        // cannot replace memory in use.
        let got = unsafe { calls::mmap(hint, size, libc::PROT_NONE, RESERVE_FLAGS | flags, -1, 0) };
        if got == libc::MAP_FAILED { ptr::null_mut() } else { got.cast() }
    })
}

/// Unmaps a range. False: nothing changed. At its limit of mappings (`vm.max_map_count`) the kernel
/// refuses to split a mapping. It still unmaps the start, the end or all of a mapping.
///
/// # Safety
///
/// The range is the caller's, and no thread uses it.
unsafe fn unmap(at: *mut u8, size: usize) -> bool {
    // SAFETY: by the contract no thread uses the range.
    size == 0 || keeping_errno(|| unsafe { calls::munmap(at.cast(), size) == 0 })
}

impl Memory for System {
    #[inline]
    fn page_size(&self) -> usize {
        match PAGE.load(Ordering::Relaxed) {
            0 => kernel_page_size(),
            size => size,
        }
    }

    fn reserve(&self, size: usize, align: usize) -> *mut u8 {
        let Some(padded) = size.checked_add(align) else { return ptr::null_mut() };
        let got = map(0, padded, 0);
        if got.is_null() {
            return got;
        }
        let skip = got.align_offset(align);
        // SAFETY: `skip < align`, so `[got + skip, + size)` is inside the mapping.
        let at = unsafe { got.add(skip) };
        // SAFETY: the head of a mapping just made, which no other thread knows.
        unsafe { unmap(got, skip) };
        // SAFETY: one past the part that is kept, still inside the mapping.
        let end = unsafe { at.add(size) };
        // SAFETY: the tail of a mapping just made, which no other thread knows.
        unsafe { unmap(end, padded - skip - size) };
        #[cfg(feature = "debug")]
        reservations::note(at.addr(), size);
        at
    }

    fn reserve_at(&self, at: usize, size: usize) -> *mut u8 {
        let got = map(at, size, libc::MAP_FIXED_NOREPLACE);
        if !got.is_null() && got.addr() != at {
            // A kernel older than 4.17 ignores the flag, and the address is only a hint.
            // SAFETY: a mapping just made, which no other thread has seen.
            unsafe { unmap(got, size) };
            return ptr::null_mut();
        }
        got
    }

    unsafe fn release(&self, at: *mut u8, size: usize) -> bool {
        #[cfg(feature = "debug")]
        reservations::forget(at.addr(), size);
        // SAFETY: the range is part of this reservation, and the caller gives up its memory.
        unsafe { unmap(at, size) }
    }

    unsafe fn commit(&self, at: *mut u8, size: usize) -> bool {
        keeping_errno(|| {
            // SAFETY: by the contract the range is the caller's reservation.
            let got =
                unsafe { calls::mprotect(at.cast(), size, libc::PROT_READ | libc::PROT_WRITE) };
            got == 0
        })
    }

    unsafe fn expose(&self, at: *mut u8, size: usize) -> bool {
        keeping_errno(|| {
            // SAFETY: by the contract the range is the caller's reservation.
            let got = unsafe { calls::mprotect(at.cast(), size, libc::PROT_READ) };
            got == 0
        })
    }

    unsafe fn decommit(&self, at: *mut u8, size: usize) -> bool {
        // Unlike MADV_FREE, this reduces the resident size at once.
        keeping_errno(|| {
            // SAFETY: by the contract no thread uses the contents.
            let got = unsafe { calls::madvise(at.cast(), size, libc::MADV_DONTNEED) };
            got == 0
        })
    }

    unsafe fn retract(&self, at: *mut u8, size: usize) -> bool {
        // SAFETY: by the contract no thread uses the contents.
        let is_gone = unsafe { self.decommit(at, size) };
        if is_gone {
            // SAFETY: by the contract the range is whole pages that no thread uses. (If the kernel
            // refuses this for a part, the range still reads as zero once it is committed.)
            unsafe { shut(at, size) };
        }
        is_gone
    }

    fn address_space_limit(&self) -> Option<usize> {
        if is_filtered() { None } else { limit_of(libc::RLIMIT_AS) }
    }
}

/// Whether [`guard`] makes memory inaccessible.
pub const HAS_GUARDS: bool = true;

/// Bytes in a huge page.
pub const HUGE_PAGE: usize = 2 << 20;
/// Whether the system may have huge pages.
pub const HAS_HUGE_PAGES: bool = true;

/// Backs the [`HUGE_PAGE`] bytes at `at` with a huge page, and prevents later ones. Best effort.
///
/// # Safety
///
/// The range is committed and at a multiple of [`HUGE_PAGE`]. Its first byte is the caller's and
/// reads as zero.
pub unsafe fn put_huge_page(at: *mut u8) {
    if kernel_page_size() != 4096 {
        return;
    }
    keeping_errno(|| {
        // SAFETY: advice about a mapping of ours changes no contents.
        if unsafe { calls::madvise(at.cast(), HUGE_PAGE, libc::MADV_HUGEPAGE) } == 0 {
            // SAFETY: by the contract the byte is the caller's, and zero already.
            unsafe { at.write_volatile(0) };
            // SAFETY: asks for no more huge pages in the range, and changes no byte.
            unsafe { calls::madvise(at.cast(), HUGE_PAGE, libc::MADV_NOHUGEPAGE) };
        }
    });
}

/// Allows or forbids huge pages in a range. Best effort.
///
/// # Safety
///
/// The range is the caller's, committed and page aligned.
pub unsafe fn advise_huge_pages(at: *mut u8, size: usize, want: bool) {
    let advice = if want { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    // SAFETY: advice about a mapping of ours changes no contents.
    keeping_errno(|| unsafe { calls::madvise(at.cast(), size, advice) });
}

/// Gives a range its pages in advance. On kernels before Linux 5.14, reads a byte of each page and
/// writes it back.
///
/// # Safety
///
/// The range is the caller's, committed and page aligned.
pub unsafe fn populate(at: *mut u8, size: usize) {
    // SAFETY: the contents of the pages do not change.
    let done =
        keeping_errno(|| unsafe { calls::madvise(at.cast(), size, libc::MADV_POPULATE_WRITE) });
    if done != 0 {
        for offset in (0..size).step_by(kernel_page_size()) {
            let byte = at.wrapping_add(offset);
            // SAFETY: in the range, which is the caller's.
            let value = unsafe { byte.read_volatile() };
            // SAFETY: a byte of the range, which is the caller's, gets the value it has.
            unsafe { byte.write_volatile(value) };
        }
    }
}

const MADV_GUARD_INSTALL: i32 = 102;
const MADV_GUARD_REMOVE: i32 = 103;

/// The kind of guards. 0: not known. 1: light, which split no mapping (Linux 6.13). 2: heavy. The
/// kind is decided once, because a call that removes light guards does not remove heavy ones.
static LIGHT_GUARDS: AtomicU32 = AtomicU32::new(0);
static HEAVY_GUARDS_LEFT: AtomicU32 = AtomicU32::new(12_000);

/// Whether guards are light. `None`: not known yet. Each test uses a new page, because two threads
/// may test at once. The test also looks whether the contents of the page are gone, because an
/// emulator (qemu 7) ignores the call and reports success.
fn has_light_guards() -> Option<bool> {
    let mut known = LIGHT_GUARDS.load(Ordering::Relaxed);
    if known == 0 {
        let size = kernel_page_size();
        let page = map(0, size, 0);
        if page.is_null() {
            return None;
        }
        let advise = |advice| {
            // SAFETY: a page that was just made, and no other thread knows it.
            keeping_errno(|| match unsafe { calls::madvise(page.cast(), size, advice) } {
                0 => Ok(()),
                _ => Err(errno()),
            })
        };
        // SAFETY: the page was just made.
        let answer = if unsafe { !System.commit(page, size) } {
            None
        } else {
            // SAFETY: the page can be written, and no other thread knows it.
            unsafe { page.write_volatile(1) };
            match advise(MADV_GUARD_INSTALL).and_then(|()| advise(MADV_GUARD_REMOVE)) {
                // SAFETY: the page is readable, because its guard was removed.
                Ok(()) if unsafe { page.read_volatile() } == 0 => Some(1),
                // The kernel does not know the guards, or a filter refuses them.
                Ok(()) | Err(libc::EINVAL | libc::ENOSYS | libc::EPERM) => Some(2),
                Err(_) => None,
            }
        };
        // SAFETY: the page was made above, and no other thread knows it.
        unsafe { unmap(page, size) };
        let answer = answer?;
        known = LIGHT_GUARDS
            .compare_exchange(0, answer, Ordering::Relaxed, Ordering::Relaxed)
            .map_or_else(|first| first, |_| answer);
    }
    Some(known == 1)
}

/// Discards a range's pages; accesses fault. False: it stays accessible, but may read as zero.
///
/// # Safety
///
/// The range is committed, page aligned, and no thread uses its contents.
pub unsafe fn guard(at: *mut u8, size: usize) -> bool {
    let Some(light) = has_light_guards() else { return false };
    if light {
        return keeping_errno(|| {
            // SAFETY: by the contract no thread uses the contents.
            let done = unsafe { calls::madvise(at.cast(), size, MADV_GUARD_INSTALL) == 0 };
            if !done {
                // A part of the range may have guards now.
                // SAFETY: removes guards and changes nothing else.
                unsafe { calls::madvise(at.cast(), size, MADV_GUARD_REMOVE) };
            }
            done
        });
    }
    let left = |n: u32| n.checked_sub(1);
    if HEAVY_GUARDS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
        return false;
    }
    // SAFETY: by the contract no thread uses the contents of the pages.
    let done = unsafe { System.decommit(at, size) }
        // SAFETY: these are whole pages, and no thread uses their contents.
        && keeping_errno(|| unsafe { calls::mprotect(at.cast(), size, libc::PROT_NONE) == 0 });
    if !done {
        HEAVY_GUARDS_LEFT.fetch_add(1, Ordering::Relaxed);
    }
    done
}

/// Removes guards from a range, which then reads as zero. False: the kernel refused.
///
/// # Safety
///
/// The range is page aligned and was committed by the caller.
pub unsafe fn unguard(at: *mut u8, size: usize) -> bool {
    if LIGHT_GUARDS.load(Ordering::Relaxed) == 1 {
        // SAFETY: removes guards and changes nothing else.
        return keeping_errno(|| unsafe {
            calls::madvise(at.cast(), size, MADV_GUARD_REMOVE) == 0
        });
    }
    // SAFETY: by the contract the caller committed the pages.
    let done = unsafe { System.commit(at, size) };
    if done {
        let more = |n: u32| (n < 12_000).then_some(n + 1);
        let _ = HEAVY_GUARDS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
    done
}

/// Whether the process has a limit of writable memory (`RLIMIT_DATA`). In a sandbox: whether it had
/// one at the last call.
pub fn has_data_limit() -> bool {
    static LAST: AtomicBool = AtomicBool::new(false);
    if !is_filtered() {
        LAST.store(limit_of(libc::RLIMIT_DATA).is_some(), Ordering::Relaxed);
    }
    LAST.load(Ordering::Relaxed)
}

/// The soft limit of a resource, if it has one.
fn limit_of(resource: libc::__rlimit_resource_t) -> Option<usize> {
    keeping_errno(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is a valid place for the answer.
        let got = unsafe { libc::getrlimit(resource, &raw mut limit) };
        (got == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
    })
}

/// Whether guards split no mapping.
pub fn guards_are_light() -> bool {
    has_light_guards() == Some(true)
}

/// Makes pages inaccessible until they are committed again. Their contents stay. False: the range
/// is unchanged, or a part of it is inaccessible.
///
/// # Safety
///
/// The range is committed, page aligned, and no thread uses it.
pub unsafe fn shut(at: *mut u8, size: usize) -> bool {
    // SAFETY: by the contract these are whole pages that no thread uses.
    keeping_errno(|| unsafe { calls::mprotect(at.cast(), size, libc::PROT_NONE) == 0 })
}

/// Makes a range read-only. Since Linux 6.10 (`mseal`) this cannot be undone.
///
/// # Safety
///
/// The range is whole pages of the caller's, and no thread writes to it any more.
pub unsafe fn seal(at: *mut u8, size: usize) {
    const SYS_MSEAL: libc::c_long = 462;
    keeping_errno(|| {
        // SAFETY: by the contract no thread writes to the range any more.
        let is_read_only = unsafe { calls::mprotect(at.cast(), size, libc::PROT_READ) } == 0;
        if is_read_only && !is_filtered() {
            // SAFETY: only forbids changes to the mapping, which stays as it is.
            unsafe { libc::syscall(SYS_MSEAL, at, size, 0) };
        }
    });
}

/// Fills `bytes` with random numbers from the kernel. Without them (in a sandbox), calculates
/// numbers from the random bytes that the process got at its start, the time and an address.
pub fn random(bytes: &mut [u8]) {
    let got = keeping_errno(|| {
        if is_filtered() {
            return -1;
        }
        // SAFETY: the place has room for the bytes.
        unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) }
    });
    if usize::try_from(got).is_ok_and(|got| got == bytes.len()) {
        return;
    }
    // SAFETY: reads the auxiliary vector; no preconditions.
    let given = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    let mut seed = [0u64; 2];
    if given != 0 {
        let given = ptr::with_exposed_provenance::<u64>(given);
        // SAFETY: the kernel put 16 random bytes there for the process's whole life.
        seed[0] = unsafe { given.read_unaligned() };
        // SAFETY: the second half of the random bytes.
        seed[1] = unsafe { given.wrapping_add(1).read_unaligned() };
    }
    let mut state = seed[0] ^ now_ns() ^ bytes.as_ptr().addr() as u64;
    for byte in bytes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(seed[1] | 1);
        *byte = (state >> 56) as u8;
    }
}

/// Keeps a range out of core dumps. Best effort.
///
/// # Safety
///
/// The range is the caller's reservation.
pub unsafe fn keep_out_of_dumps(at: *mut u8, size: usize) {
    keeping_errno(|| {
        // SAFETY: by the contract the range is the caller's; the advice changes no contents.
        unsafe { calls::madvise(at.cast(), size, libc::MADV_DONTDUMP) }
    });
}

/// Moves pages of `[from, from + size)` to `to` without copying bytes. Returns the number of bytes
/// that moved, from the start on. Their source stays committed and reads as zero. Bytes that did
/// not move are unchanged in the source, and unknown in the destination. Fewer than `size` bytes
/// move if the kernel refuses, if a mapping is too small for a move, or if no moves are left.
/// `None`: the source is unchanged. The caller must not use the destination again: it may be
/// unmapped, or another part of the program may have mapped memory there.
///
/// Each call of the kernel moves one mapping, all of it or nothing. For several mappings, Linux
/// 6.17 and later may move some before it refuses, and does not tell which.
///
/// The kernel may unmap the destination before it refuses a move. Then this function maps the
/// destination again. If it cannot, another thread may have mapped memory there. Then it gives up
/// the destination, and the process makes no more moves. The number of moves is limited, because
/// each move leaves mappings that never merge.
///
/// # Safety
///
/// Both ranges are committed, page aligned, the caller's, and do not overlap. No thread uses the
/// contents at `to`.
pub unsafe fn move_pages(from: *mut u8, to: *mut u8, size: usize) -> Option<usize> {
    keeping_errno(|| {
        let mut moved = 0;
        while moved < size {
            let (source, target) = (from.wrapping_add(moved), to.wrapping_add(moved));
            if MOVES_LEFT.load(Ordering::Relaxed) == 0 {
                break;
            }
            let piece = mapped_as_one(source, size - moved);
            let fewer = |left: u32| left.checked_sub(1);
            if piece < LEAST_MOVE
                || MOVES_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_err()
            {
                break;
            }
            // SAFETY: these are parts of the caller's ranges, and the source is in one mapping.
            if unsafe { move_mapping(source, target, piece) } {
                moved += piece;
                continue;
            }
            if !map_if_gone(target, piece) {
                MOVES_LEFT.store(0, Ordering::Relaxed);
                // SAFETY: both ranges are mapped and have `moved` bytes: these pages moved.
                unsafe { ptr::copy_nonoverlapping(to, from, moved) };
                // SAFETY: this part of the destination moved, and no thread uses it.
                unsafe { calls::madvise(to.cast(), moved, libc::MADV_DONTNEED) };
                return None;
            }
            break;
        }
        Some(moved)
    })
}

/// The fewest bytes to move. For fewer bytes, a copy costs less.
const LEAST_MOVE: usize = 256 << 10;

fn mapped_as_one(from: *mut u8, size: usize) -> usize {
    // The main thread's stack lies above all mappings that the kernel places, and no mapping can
    // grow past the stack. So a request to grow that far always fails. The error is EFAULT if the
    // range is not one mapping. SAFETY: reads a value that the kernel gave the process.
    let beyond = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    let page = kernel_page_size();
    let Some(too_long) = beyond.checked_sub(from.addr()).filter(|&beyond| beyond > size) else {
        return 0;
    };
    let too_long = too_long.next_multiple_of(page) + page;
    let is_one = |size: usize| {
        // SAFETY: without flags the mapping could only grow in place, and the stack forbids that.
        let got = unsafe { calls::mremap(from.cast(), size, too_long, 0, ptr::null_mut()) };
        got == libc::MAP_FAILED && errno() != libc::EFAULT
    };
    if is_one(size) {
        return size;
    }
    let (mut one, mut several) = (0, size / page);
    while several - one > 1 {
        let middle = usize::midpoint(one, several);
        if is_one(middle * page) { one = middle } else { several = middle }
    }
    one * page
}

/// Moves one mapping. False: nothing moved, and the destination may be unmapped.
///
/// # Safety
///
/// As [`move_pages`].
unsafe fn move_mapping(from: *mut u8, to: *mut u8, size: usize) -> bool {
    const MREMAP_DONTUNMAP: i32 = 4;
    let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | MREMAP_DONTUNMAP;
    let target: *mut libc::c_void = to.cast();
    // SAFETY: by the contract both ranges are the caller's to change.
    unsafe { calls::mremap(from.cast(), size, size, how, target) == target }
}

/// Maps a range again if it is unmapped. False: a part is mapped, or there is no memory.
fn map_if_gone(at: *mut u8, size: usize) -> bool {
    let got = System.reserve_at(at.addr(), size);
    if got.is_null() {
        return false;
    }
    // SAFETY: reserved just now.
    let done = unsafe { System.commit(got, size) };
    if !done {
        // SAFETY: reserved just now, and no other thread knows it.
        unsafe { unmap(got, size) };
    }
    done
}

/// Writes one byte for each kernel page of `[at, at + size)` to `resident`. The low bit tells
/// whether the page is in memory. False: a sandbox forbids the call, a part of the range is not
/// mapped, or `at` is not a multiple of the page size.
pub fn resident_pages(at: usize, size: usize, resident: &mut [u8]) -> bool {
    assert!(resident.len() * kernel_page_size() >= size);
    let from = ptr::without_provenance_mut(at);
    !is_filtered()
        && keeping_errno(|| {
            // SAFETY: the vector has a byte for each page. The kernel does not access the range.
            unsafe { libc::mincore(from, size, resident.as_mut_ptr()) == 0 }
        })
}

/// Sleeps until another thread wakes this one, if `word` is still `expected`. May return early.
pub fn futex_wait(word: &AtomicU32, expected: u32) {
    keeping_errno(|| {
        // SAFETY: the kernel only compares the word and sleeps.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                ptr::null::<libc::timespec>(),
            )
        }
    });
}

/// As [`futex_wait`], but sleeps for at most `ns` nanoseconds.
pub fn futex_wait_for(word: &AtomicU32, expected: u32, ns: u64) {
    let how = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let most = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    keeping_errno(|| {
        // SAFETY: the kernel only compares the word, reads the time and sleeps.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), how, expected, &raw const most) }
    });
}

/// The number of CPUs that the process may use, at least 1. In a sandbox, the last known number.
pub fn cpus() -> usize {
    static KNOWN: AtomicUsize = AtomicUsize::new(1);
    if !is_filtered() {
        KNOWN.store(ask_cpus(), Ordering::Relaxed);
    }
    KNOWN.load(Ordering::Relaxed)
}

fn ask_cpus() -> usize {
    let mut set = [0_u64; libc::CPU_SETSIZE as usize / u64::BITS as usize];
    let (call, size) = (libc::SYS_sched_getaffinity, size_of_val(&set));
    // SAFETY: `set` is a valid place of this size for the answer.
    let got = keeping_errno(|| unsafe { libc::syscall(call, 0, size, set.as_mut_ptr()) });
    if got < 0 {
        // The machine has more CPUs than the set has bits.
        return libc::CPU_SETSIZE as usize;
    }
    // `count_ones` would touch a page of constants.
    let (mut count, mut at) = (0_usize, 0);
    while let Some(word) = set.get_mut(at) {
        match *word {
            0 => at += 1,
            bits => (*word, count) = (bits & (bits - 1), count + 1),
        }
    }
    count.max(1)
}

/// Wakes one thread that sleeps on `word`.
pub fn futex_wake_one(word: &AtomicU32) {
    keeping_errno(|| {
        // SAFETY: the kernel only uses the word's address.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            )
        }
    });
}

/// Wakes all threads that sleep on `word`.
pub fn futex_wake_all(word: &AtomicU32) {
    let how = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel only uses the word's address.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), how, i32::MAX) });
}

/// Lets other threads run.
pub fn yield_now() {
    if is_filtered() {
        return core::hint::spin_loop();
    }
    // SAFETY: no preconditions.
    keeping_errno(|| unsafe { libc::sched_yield() });
}

const BARRIER: libc::c_int = 1 << 3;
const REGISTER_BARRIER: libc::c_int = 1 << 4;

/// Registers this process for [`barrier_in_all_threads`]. False: the kernel refuses the call.
pub fn register_barrier() -> bool {
    // SAFETY: no preconditions.
    let register = || unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_BARRIER, 0, 0) } == 0;
    !is_filtered() && keeping_errno(register)
}

/// Runs a full fence in each running thread of this process, also in the caller (but in the only
/// thread, none). A suspended thread ran its fence when it was suspended. False: the call failed.
pub fn barrier_in_all_threads() -> bool {
    if is_single_threaded() || is_filtered() {
        return is_single_threaded();
    }
    // SAFETY: no preconditions.
    let run = || unsafe { libc::syscall(libc::SYS_membarrier, BARRIER, 0, 0) } == 0;
    // A forked child may have to register again.
    keeping_errno(run) || (register_barrier() && keeping_errno(run))
}

fn clock(id: libc::clockid_t) -> u64 {
    // In the strict mode an access to the processor's clock faults. The coarse clock is in memory.
    let id = if sandbox() == Sandbox::Strict { libc::CLOCK_MONOTONIC_COARSE } else { id };
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer. Usual kernels make no system call, and these
    // clocks do not fail, so `errno` stays.
    unsafe { libc::clock_gettime(id, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Milliseconds on a monotonic clock, with a resolution of some milliseconds.
#[inline]
pub fn coarse_ms() -> u32 {
    (clock(libc::CLOCK_MONOTONIC_COARSE) / 1_000_000) as u32
}

/// Nanoseconds on a monotonic clock.
#[inline]
pub fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread in nanoseconds. This makes a system call.
pub fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process in nanoseconds. This makes a system call.
pub fn process_cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}
