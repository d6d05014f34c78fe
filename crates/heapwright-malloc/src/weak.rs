//! Looks up symbols that may be missing, and the functions that ours replace.

use core::ffi::CStr;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{c_char, c_void};

/// Gives the address of a symbol, or null if the process has no symbol of that name. The dynamic
/// linker (in a static program, the linker) finds the address when it binds our library.
macro_rules! weak {
    ($name:literal) => {
        $crate::weak::bound!(concat!(".weak ", $name), $name)
    };
}

/// Reads the address of a symbol from the global offset table. The symbol may be in another
/// library. The first argument is an assembler directive for the symbol, or empty.
macro_rules! bound {
    ($directive:expr, $name:literal) => {{
        let address: *mut ::libc::c_void;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the assembly reads one entry of the global offset table.
        unsafe {
            ::core::arch::asm!(
                $directive,
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the assembly reads one entry of the global offset table.
        unsafe {
            ::core::arch::asm!(
                $directive,
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

pub(crate) use {bound, weak};

/// Returns the function that a program would call without ours: the C library's, or another
/// library's. Keeps it in `found`. Returns null if there is none, or if the program is static.
#[inline]
pub(crate) fn next(found: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = found.load(Ordering::Relaxed);
    if known.is_null() { look_for_next(found, name) } else { known }
}

#[cold]
#[inline(never)]
pub(crate) fn look_for_next(found: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let dlsym = weak!("dlsym");
    if dlsym.is_null() {
        return dlsym;
    }
    // SAFETY: `dlsym` has this type in POSIX.
    let dlsym = unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>(
            dlsym,
        )
    };
    // SAFETY: `dlsym` takes this handle and any string.
    let real = unsafe { dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    found.store(real, Ordering::Relaxed);
    real
}
