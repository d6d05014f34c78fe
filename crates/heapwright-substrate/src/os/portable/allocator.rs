//! Pages of Rust's own allocator, for Miri, which watches every byte, and for systems that are
//! neither Unix nor Windows. A reservation is allocated as a whole at once.

extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

/// This is small, because a whole window is allocated, and Miri keeps a shadow of every byte.
pub(super) const MAX_WINDOW: usize = if cfg!(miri) { 8 << 20 } else { 256 << 20 };

pub(super) fn page_size() -> usize {
    4096
}

pub(super) fn reserve(size: usize, align: usize) -> *mut u8 {
    match Layout::from_size_align(size, align) {
        // SAFETY: reservations are never empty.
        Ok(layout) => unsafe { std::alloc::System.alloc_zeroed(layout) },
        Err(_) => ptr::null_mut(),
    }
}

/// Does nothing: the memory is lost. The window's first reservations succeed, so none is released.
pub(super) unsafe fn release(_at: *mut u8, _size: usize) -> bool {
    true
}

pub(super) unsafe fn commit(_at: *mut u8, _size: usize) -> bool {
    true
}

/// # Safety
///
/// The range is of a reservation, and no thread uses its contents.
pub(super) unsafe fn decommit(at: *mut u8, size: usize) -> bool {
    // SAFETY: by the contract the range is the caller's and unused.
    unsafe { at.write_bytes(0, size) };
    true
}

pub(super) fn environment(name: &[u8], out: &mut [u8]) -> Option<usize> {
    let value = std::env::var(core::str::from_utf8(name).ok()?).ok()?;
    let fits = value.len().min(out.len());
    out[..fits].copy_from_slice(&value.as_bytes()[..fits]);
    Some(value.len())
}
