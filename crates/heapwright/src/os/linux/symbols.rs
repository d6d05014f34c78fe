//! Symbols of other libraries, which need not exist.
//!
//! They are bound *weakly*, by the linker: looking them up by name at run time
//! would take the loader's lock inside `free`, and a strong reference would
//! pull the C library's own `malloc` into static programs that bring ours.

#[cfg(not(feature = "interpose"))]
use core::{ffi::CStr, ptr};

/// The address of a symbol; null where the process has none of that name.
macro_rules! weak {
    ($name:literal) => {{
        let address: *mut u8;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads one entry of the global offset table.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: reads one entry of the global offset table.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// Whether the C library knows that the process has one thread.
pub(crate) fn is_single_threaded() -> bool {
    let flag = weak!("__libc_single_threaded");
    // SAFETY: null, or a byte of the C library that lives as long as it.
    !flag.is_null() && unsafe { flag.read_volatile() } != 0
}

/// The C library's own `free`, if there is one.
pub(crate) fn libc_free() -> Option<unsafe extern "C" fn(*mut u8)> {
    let found = weak!("__libc_free");
    // SAFETY: glibc's function of this name has this type; null is `None`.
    unsafe { core::mem::transmute(found) }
}

/// The C library's own `realloc`, if there is one.
pub(crate) fn libc_realloc() -> Option<unsafe extern "C" fn(*mut u8, usize) -> *mut u8> {
    let found = weak!("__libc_realloc");
    // SAFETY: glibc's function of this name has this type; null is `None`.
    unsafe { core::mem::transmute(found) }
}

/// A symbol of the process, found by name in the order the linker would; null
/// where there is none. Takes the loader's lock.
#[cfg(not(feature = "interpose"))]
pub(crate) fn symbol(name: &CStr) -> *mut u8 {
    let found = weak!("dlsym");
    // SAFETY: the C library's function of this name has this type; null is `None`.
    let dlsym: Option<unsafe extern "C" fn(*mut u8, *const core::ffi::c_char) -> *mut u8> =
        unsafe { core::mem::transmute(found) };
    let Some(dlsym) = dlsym else { return ptr::null_mut() };
    // SAFETY: the name is a C string; null is the default scope.
    super::keeping_errno(|| unsafe { dlsym(ptr::null_mut(), name.as_ptr()) })
}
