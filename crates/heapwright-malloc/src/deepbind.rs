//! `dlopen` without `RTLD_DEEPBIND`, and `dlclose`, which tells the debug heap and the profile.
//!
//! A library opened with that flag finds the C library's symbols before ours, so its `free` is
//! glibc's. But `strdup` and the host find our `malloc`, so their blocks are ours. glibc ends the
//! program at the first such block ("free(): invalid pointer"), without a call of our `free`. So we
//! remove the flag, and the library finds the same symbols as every other library.
//!
//! The price: with the flag, a library used its *own* copy of a symbol. Now it uses the program's.
//!
//! The real `dlopen` learns its caller from the return address, for `$ORIGIN`, the run path and the
//! namespace. So our `dlopen` is a few instructions that end in a jump to the real one. `dlclose`
//! needs no caller.
//!
//! After a `dlclose` other code may take the library's place, and kept traces would name the wrong
//! functions. So we tell the debug heap and the profile afterwards. (The code stays if the library
//! was open twice.) Until then traces can name the destructors that run.

use crate::weak::{look_for_next, next};
use core::arch::naked_asm;
use core::mem::transmute;
use core::sync::atomic::AtomicPtr;
use heapwright::{heap, profile};
use libc::{c_char, c_int, c_void};

/// The flag's value in glibc. (musl has no such flag, and ignores it.)
const RTLD_DEEPBIND: c_int = 8;

static REAL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the next `dlopen`. Null means that the program is static, or that libdl is not loaded.
#[cold]
pub(crate) extern "C" fn real_dlopen() -> *mut c_void {
    look_for_next(&REAL, c"dlopen")
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let real = next(&REAL, c"dlclose");
    if real.is_null() {
        return -1;
    }
    // SAFETY: `dlclose` has this type in POSIX.
    let real =
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(real) };
    if heap::debugging() {
        heap::remember_code();
    }
    // SAFETY: the caller keeps the C library's contract.
    let result = unsafe { real(library) };
    if heap::debugging() {
        heap::forget_code();
    }
    profile::forget_code();
    result
}

/// Opens a library. Null also if there is no next `dlopen`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jz 3f",
        "2:",
        "and esi, {mask}",
        "jmp rax",
        "3:",
        "push rdi",
        ".cfi_def_cfa_offset 16",
        "push rsi",
        ".cfi_def_cfa_offset 24",
        "push rax",
        ".cfi_def_cfa_offset 32",
        "call {find}",
        "pop rsi",
        ".cfi_def_cfa_offset 24",
        "pop rsi",
        ".cfi_def_cfa_offset 16",
        "pop rdi",
        ".cfi_def_cfa_offset 8",
        "test rax, rax",
        "jnz 2b",
        "ret",
        ".cfi_endproc",
        real = sym REAL,
        mask = const !RTLD_DEEPBIND,
        find = sym real_dlopen,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 3f",
        "2:",
        "and w1, w1, #{mask}",
        "br x16",
        "3:",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset w29, -32",
        ".cfi_offset w30, -24",
        "stp x0, x1, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_restore w29",
        ".cfi_restore w30",
        ".cfi_def_cfa_offset 0",
        "cbnz x16, 2b",
        "mov x0, #0",
        "ret",
        ".cfi_endproc",
        real = sym REAL,
        mask = const !RTLD_DEEPBIND,
        find = sym real_dlopen,
    );
}
