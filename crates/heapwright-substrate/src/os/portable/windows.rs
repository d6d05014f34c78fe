//! Pages and environment of Windows: `VirtualAlloc` and its neighbours, `GetEnvironmentVariableA`.
//! (std's functions for the environment allocate, so a debug heap that is the global allocator
//! would wait for itself.)
//!
//! Only a whole reservation can go back. Committed memory counts against the system's limit.

use core::ffi::c_void;
use core::ptr;

/// Reserving costs nothing but the system's description of the reservation.
pub(super) const MAX_WINDOW: usize = 64 << 30;

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_DECOMMIT: u32 = 0x4000;
const MEM_RELEASE: u32 = 0x8000;
const PAGE_NOACCESS: u32 = 1;
const PAGE_READWRITE: u32 = 4;

#[repr(C)]
struct Region {
    base: *mut c_void,
    allocation_base: *mut c_void,
    allocation_protect: u32,
    partition: u16,
    size: usize,
    state: u32,
    protect: u32,
    kind: u32,
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn VirtualAlloc(at: *mut c_void, size: usize, how: u32, access: u32) -> *mut c_void;
    fn VirtualFree(at: *mut c_void, size: usize, how: u32) -> i32;
    fn GetEnvironmentVariableA(name: *const u8, value: *mut u8, size: u32) -> u32;
    fn VirtualQuery(at: *const c_void, region: *mut Region, size: usize) -> usize;
}

pub(super) fn page_size() -> usize {
    4096
}

/// Windows reserves at multiples of 64 KiB. For a larger `align`, a padded trial finds a place.
pub(super) fn reserve(size: usize, align: usize) -> *mut u8 {
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        // SAFETY: at no address, so it replaces nothing.
        let got = unsafe { VirtualAlloc(ptr::null_mut(), size, MEM_RESERVE, PAGE_NOACCESS) };
        if got.is_null() || got.addr().is_multiple_of(align) {
            return got.cast();
        }
        // SAFETY: this is the whole reservation just made, which no other thread knows.
        unsafe { VirtualFree(got, 0, MEM_RELEASE) };
        let Some(padded) = size.checked_add(align) else { break };
        // SAFETY: a new reservation at no given address, so it replaces nothing.
        let wide = unsafe { VirtualAlloc(ptr::null_mut(), padded, MEM_RESERVE, PAGE_NOACCESS) };
        if wide.is_null() {
            break;
        }
        let at = ptr::without_provenance_mut(wide.addr().next_multiple_of(align));
        // SAFETY: this is the whole reservation just made, which no other thread knows.
        unsafe { VirtualFree(wide, 0, MEM_RELEASE) };
        // SAFETY: this is a new reservation. If another thread has taken the place, it is refused.
        let got = unsafe { VirtualAlloc(at, size, MEM_RESERVE, PAGE_NOACCESS) };
        if !got.is_null() {
            return got.cast();
        }
    }
    ptr::null_mut()
}

fn reservation_of(at: *const u8) -> *mut c_void {
    let mut region = Region {
        base: ptr::null_mut(),
        allocation_base: ptr::null_mut(),
        allocation_protect: 0,
        partition: 0,
        size: 0,
        state: 0,
        protect: 0,
        kind: 0,
    };
    // SAFETY: a valid place of this size for the answer; any address is allowed.
    let got = unsafe { VirtualQuery(at.cast(), &raw mut region, size_of::<Region>()) };
    if got == 0 { ptr::null_mut() } else { region.allocation_base }
}

/// # Safety
///
/// The range is of a reservation, and no thread uses it.
pub(super) unsafe fn release(at: *mut u8, size: usize) -> bool {
    let is_whole = reservation_of(at).addr() == at.addr()
        && reservation_of(at.wrapping_add(size - 1)).addr() == at.addr()
        && reservation_of(at.wrapping_add(size)).addr() != at.addr();
    // SAFETY: this is a whole reservation, and by the contract no thread uses it.
    is_whole && unsafe { VirtualFree(at.cast(), 0, MEM_RELEASE) } != 0
}

/// # Safety
///
/// The range is of a reservation.
pub(super) unsafe fn commit(at: *mut u8, size: usize) -> bool {
    // SAFETY: by the contract the range is the caller's reservation; committed parts stay.
    size == 0 || !unsafe { VirtualAlloc(at.cast(), size, MEM_COMMIT, PAGE_READWRITE) }.is_null()
}

/// Decommits and commits piece by piece, so that at most one piece is decommitted at a time. If the
/// system has no memory for this piece, the process ends.
///
/// # Safety
///
/// The range is committed, and no thread uses its contents.
pub(super) unsafe fn decommit(at: *mut u8, size: usize) -> bool {
    const PIECE: usize = 1 << 20;
    for from in (0..size).step_by(PIECE) {
        let (piece, length) = (at.wrapping_add(from), PIECE.min(size - from));
        // SAFETY: by the contract no thread uses the contents.
        if unsafe { VirtualFree(piece.cast(), length, MEM_DECOMMIT) } == 0 {
            // SAFETY: the piece is still committed, and no thread uses it.
            unsafe { piece.write_bytes(0, length) };
            continue;
        }
        // SAFETY: the piece is of a reservation still.
        if !unsafe { commit(piece, length) } {
            super::lost_memory();
        }
    }
    true
}

pub(super) fn environment(name: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut ended = [0; 64];
    ended[..63].get_mut(..name.len())?.copy_from_slice(name);
    let mut value = [0; 4096];
    // SAFETY: the name ends with a zero, and the value has a place of this size.
    let length =
        unsafe { GetEnvironmentVariableA(ended.as_ptr(), value.as_mut_ptr(), 4096) } as usize;
    if length == 0 {
        // The variable is not set, or is empty, which counts as not set.
        return None;
    }
    let whole = if length > value.len() { length - 1 } else { length };
    let fits = if length < value.len() { length.min(out.len()) } else { 0 };
    out[..fits].copy_from_slice(&value[..fits]);
    Some(whole)
}
