//! Pages and environment of a Unix without a back end of its own (macOS, FreeBSD, Linux on other
//! processors): `mmap`, `mprotect`, `munmap`, `getenv`. (std's functions for the environment
//! allocate, so a debug heap that is the global allocator would wait for itself.)

use core::ffi::CStr;
use core::ptr;

/// Reserving costs nothing but the kernel's description of the mapping.
pub(super) const MAX_WINDOW: usize = 64 << 30;

pub(super) fn page_size() -> usize {
    // SAFETY: no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    if size.is_power_of_two() && size >= 4096 { size } else { 4096 }
}

fn map(at: *mut u8, size: usize, access: i32, flags: i32) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | flags;
    // SAFETY: without MAP_FIXED a new mapping replaces none; with it, callers own the range.
    let got = unsafe { libc::mmap(at.cast(), size, access, flags, -1, 0) };
    if got == libc::MAP_FAILED { ptr::null_mut() } else { got.cast() }
}

pub(super) fn reserve(size: usize, align: usize) -> *mut u8 {
    let Some(padded) = size.checked_add(align) else { return ptr::null_mut() };
    let got = map(ptr::null_mut(), padded, libc::PROT_NONE, 0);
    if got.is_null() {
        return got;
    }
    let skip = got.addr().next_multiple_of(align) - got.addr();
    let at = got.wrapping_add(skip);
    for (at, size) in [(got, skip), (at.wrapping_add(size), padded - skip - size)] {
        // SAFETY: these are the parts beside the kept one, which no other thread knows.
        unsafe { release(at, size) };
    }
    at
}

/// # Safety
///
/// The range is of a reservation, and no thread uses it.
pub(super) unsafe fn release(at: *mut u8, size: usize) -> bool {
    // SAFETY: by the contract no thread uses the range.
    size == 0 || unsafe { libc::munmap(at.cast(), size) } == 0
}

/// # Safety
///
/// The range is of a reservation.
pub(super) unsafe fn commit(at: *mut u8, size: usize) -> bool {
    // SAFETY: by the contract the range is the caller's reservation.
    unsafe { libc::mprotect(at.cast(), size, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Makes a new mapping, because the effect of `madvise` on contents differs between systems.
///
/// # Safety
///
/// The range is committed, and no thread uses its contents.
pub(super) unsafe fn decommit(at: *mut u8, size: usize) -> bool {
    let again = || !map(at, size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_FIXED).is_null();
    if size != 0 && !again() && !again() {
        // The old mapping may be gone.
        super::lost_memory();
    }
    true
}

pub(super) fn environment(name: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut ended = [0; 64];
    ended[..63].get_mut(..name.len())?.copy_from_slice(name);
    // SAFETY: the name ends with a zero.
    let value = unsafe { libc::getenv(ended.as_ptr().cast()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a string of the environment, which no thread changes while the heap starts.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes();
    let fits = value.len().min(out.len());
    out[..fits].copy_from_slice(&value[..fits]);
    Some(value.len())
}
