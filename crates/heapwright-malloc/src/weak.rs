//! Symbols that need not exist, and the functions that ours interpose.

use core::ffi::CStr;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{c_char, c_void};

/// The address of a symbol, which is bound when the library is loaded (or linked, in a static
/// program). Null: the process has no symbol of that name.
macro_rules! weak {
    ($name:literal) => {
        $crate::weak::bound!(concat!(".weak ", $name), $name)
    };
}

/// The address in a symbol's entry of the global offset table, maybe of another library's function.
/// The first argument is an assembler directive for the symbol, or empty.
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

/// The next function of a name, after ours: the C library's, or a function of a library between. It
/// is looked up once, and kept in `found`. Null: there is none, or the program is static.
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
