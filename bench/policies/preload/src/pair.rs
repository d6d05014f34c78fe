//! `malloc` and `free` as the compiler makes them of the library's: it is their way to a
//! shared cache that is measured. The rest of the family is the shipped library's own
//! file, which has these two in assembly on x86-64 and so leaves them out there.

#![cfg(target_arch = "x86_64")]

use heapwright::heap;
use libc::{c_void, size_t};

/// Gives a block of at least `size` bytes.
#[unsafe(no_mangle)]
extern "C" fn malloc(size: size_t) -> *mut c_void {
    heap::malloc(size).cast()
}

/// Gives a block back.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}
