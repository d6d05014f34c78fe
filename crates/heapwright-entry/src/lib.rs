//! The C library's writers that `libheapwright-hardened.so` exports, and their targets.
//! **This crate is an implementation detail of heapwright; nothing here is stable.**
//!
//! ```text
//!   a program's call of memcpy
//!      memcpy           this crate: two instructions on x86-64, six on aarch64
//!        |  slot.entry
//!        v
//!      checked          heapwright-malloc/src/bounds: one look at the address map
//!        |  slot.real
//!        v
//!      memcpy           the C library's, in the body that it chose for this processor
//!
//!   a copy that heapwright itself makes (a struct, say: the compiler calls memcpy)
//!   __wrap_memcpy       this crate; the linker leads such calls there (--wrap)
//!        |  slots.own
//!        v
//!      memcpy           the C library's
//! ```
//!
//! - **A crate of its own.** The linker redirects (`--wrap`) only symbols that are *undefined* in
//!   an object. Link-time optimisation makes one object of heapwright, without this crate
//!   (`no_builtins`). Otherwise a check that copies would call itself.
//! - **Early calls.** Until the library has found the real functions, each entry leads to `early`,
//!   which starts the search. Meanwhile heapwright makes its own copies byte by byte.
//! - **The slots** fill pages of their own, read-only once the library is loaded.
//!
//! **Invariants.** Only a variadic function's entry changes a register that holds an argument. (The
//! linker may change `r11`, `x16` and `x17`.) A slot's functions have the C library's signatures,
//! with a list for `...`. When an entry is no longer `early`, its `real` is set, if there is one.
#![no_std]
#![no_builtins]

use core::arch::naked_asm;
use core::ffi::c_void;
use core::sync::atomic::AtomicPtr;

#[doc(hidden)]
pub use core;

/// The targets of a function.
#[repr(C)]
pub struct Slot {
    /// The target of the program's call.
    pub entry: AtomicPtr<c_void>,
    /// The C library's function. Null if it was not looked up yet, or if there is none.
    pub real: AtomicPtr<c_void>,
}

impl Slot {
    /// Creates a slot whose function is looked up at the first call.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is made in constants alone")]
    pub const fn new() -> Self {
        Self {
            entry: AtomicPtr::new(early as *mut c_void),
            real: AtomicPtr::new(core::ptr::null_mut()),
        }
    }
}

/// The targets of heapwright's own copies.
#[repr(C)]
pub struct Own {
    /// `memcpy` and `memmove`: one function serves both.
    pub memmove: AtomicPtr<c_void>,
    /// `memset`.
    pub memset: AtomicPtr<c_void>,
}

/// Defines the exported names: `Slots`, the static `SLOTS`, `COUNT`, and an entry for each name.
/// `SLOTS` has the word or words of `own` first, and then a slot for each name.
#[macro_export]
macro_rules! slots {
    (own: $Own:ident $own:tt; plain: $($name:ident)*; variadic: $($variadic:ident $fixed:tt)*;) => {
        /// All slots.
        #[repr(C)]
        #[cfg_attr(target_arch = "x86_64", repr(align(4096)))]
        #[cfg_attr(not(target_arch = "x86_64"), repr(align(65536)))]
        #[allow(non_snake_case, reason = "the names are the C library's")]
        pub struct Slots {
            /// The targets of heapwright's own calls.
            pub own: $Own,
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub $name: $crate::Slot,
            )*
            $(
                #[doc = concat!("`", stringify!($variadic), "`: the slot's functions take a list of arguments.")]
                pub $variadic: $crate::Slot,
            )*
        }

        /// All slots.
        pub static SLOTS: Slots = Slots {
            own: $Own $own,
            $($name: $crate::Slot::new(),)*
            $($variadic: $crate::Slot::new(),)*
        };

        /// The number of names.
        pub const COUNT: usize = [$(stringify!($name),)* $(stringify!($variadic),)*].len();

        $( $crate::plain_entry!($name); )*
        $( $crate::variadic_entry!($variadic, $fixed); )*
    };
}

/// An entry that passes all arguments on unchanged.
#[macro_export]
macro_rules! plain_entry {
    ($name:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            $crate::core::arch::naked_asm!(
                ".cfi_startproc",
                "lea r11, [rip + {slots} + {at}]",
                "jmp [r11]",
                ".cfi_endproc",
                slots = sym SLOTS,
                at = const $crate::core::mem::offset_of!(Slots, $name),
            );
            #[cfg(target_arch = "aarch64")]
            $crate::core::arch::naked_asm!(
                ".cfi_startproc",
                "adrp x16, {slots}",
                "add x16, x16, :lo12:{slots}",
                "add x16, x16, {pages}, lsl #12",
                "add x16, x16, {at}",
                "ldr x17, [x16]",
                "br x17",
                ".cfi_endproc",
                slots = sym SLOTS,
                pages = const $crate::core::mem::offset_of!(Slots, $name) >> 12,
                at = const $crate::core::mem::offset_of!(Slots, $name) & 0xfff,
            );
        }
    };
}

/// An entry of a function with `$fixed` arguments before its `...`. The entry passes these
/// arguments, and then the list of the other arguments.
#[macro_export]
macro_rules! variadic_entry {
    ($name:ident, $fixed:tt) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            // The frame: saved registers | va_list { gp_offset, fp_offset, overflow_arg_area,
            // reg_save_area }
            #[cfg(target_arch = "x86_64")]
            $crate::core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 216",
                ".cfi_def_cfa_offset 224",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 48], xmm0",
                "movaps [rsp + 64], xmm1",
                "movaps [rsp + 80], xmm2",
                "movaps [rsp + 96], xmm3",
                "movaps [rsp + 112], xmm4",
                "movaps [rsp + 128], xmm5",
                "movaps [rsp + 144], xmm6",
                "movaps [rsp + 160], xmm7",
                "2:",
                "mov dword ptr [rsp + 176], {used}",
                "mov dword ptr [rsp + 180], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 184], rax",
                "mov [rsp + 192], rsp",
                concat!("lea ", $crate::argument!($fixed), ", [rsp + 176]"),
                "lea r11, [rip + {slots} + {at}]",
                "call [r11]",
                "add rsp, 216",
                ".cfi_def_cfa_offset 8",
                "ret",
                ".cfi_endproc",
                used = const $fixed * 8,
                slots = sym SLOTS,
                at = const $crate::core::mem::offset_of!(Slots, $name),
            );
            // The frame: x29, x30 | x0 to x7 | q0 to q7 | va_list { stack, gr_top, vr_top, gr_offs,
            // vr_offs }
            #[cfg(target_arch = "aarch64")]
            $crate::core::arch::naked_asm!(
                ".cfi_startproc",
                "sub sp, sp, #240",
                ".cfi_def_cfa_offset 240",
                "stp x29, x30, [sp]",
                ".cfi_offset w29, -240",
                ".cfi_offset w30, -232",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "stp q0, q1, [sp, #80]",
                "stp q2, q3, [sp, #112]",
                "stp q4, q5, [sp, #144]",
                "stp q6, q7, [sp, #176]",
                "add x16, sp, #240",
                "str x16, [sp, #208]",
                "add x16, sp, #80",
                "str x16, [sp, #216]",
                "add x16, sp, #208",
                "str x16, [sp, #224]",
                "mov w16, #-{rest}",
                "str w16, [sp, #232]",
                "mov w16, #-128",
                "str w16, [sp, #236]",
                concat!("add ", $crate::argument!($fixed), ", sp, #208"),
                "adrp x16, {slots}",
                "add x16, x16, :lo12:{slots}",
                "add x16, x16, {pages}, lsl #12",
                "add x16, x16, {at}",
                "ldr x17, [x16]",
                "blr x17",
                "ldp x29, x30, [sp]",
                ".cfi_restore w29",
                ".cfi_restore w30",
                "add sp, sp, #240",
                ".cfi_def_cfa_offset 0",
                "ret",
                ".cfi_endproc",
                rest = const (8 - $fixed) * 8,
                slots = sym SLOTS,
                pages = const $crate::core::mem::offset_of!(Slots, $name) >> 12,
                at = const $crate::core::mem::offset_of!(Slots, $name) & 0xfff,
            );
        }
    };
}

/// The register of an argument, by its number from 0.
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! argument {
    (1) => {
        "rsi"
    };
    (2) => {
        "rdx"
    };
    (3) => {
        "rcx"
    };
    (4) => {
        "r8"
    };
    (5) => {
        "r9"
    };
}

/// The register of an argument, by its number from 0.
#[cfg(target_arch = "aarch64")]
#[macro_export]
macro_rules! argument {
    (1) => {
        "x1"
    };
    (2) => {
        "x2"
    };
    (3) => {
        "x3"
    };
    (4) => {
        "x4"
    };
    (5) => {
        "x5"
    };
}

// The compiler compares this list with the table of each function's writes (bounds/table.rs).
slots! {
    own: Own {
        memmove: AtomicPtr::new(plain_memmove as *mut c_void),
        memset: AtomicPtr::new(plain_memset as *mut c_void),
    };
    plain:
        memcpy memmove mempcpy __mempcpy memset memccpy bcopy bzero __bzero explicit_bzero
        strcpy stpcpy __stpcpy strcat strncpy stpncpy __stpncpy strncat strlcpy strlcat
        wmemcpy wmemmove wmempcpy wmemset
        wcscpy wcpcpy wcscat wcsncpy wcpncpy wcsncat
        vsprintf vsnprintf vswprintf
        read pread pread64 recv recvfrom
        fread fread_unlocked fgets fgets_unlocked fgetws gets
        readlink readlinkat getcwd
        __memcpy_chk __memmove_chk __mempcpy_chk __memset_chk __explicit_bzero_chk
        __strcpy_chk __stpcpy_chk __strcat_chk __strncpy_chk __stpncpy_chk __strncat_chk
        __strlcpy_chk __strlcat_chk
        __wmemcpy_chk __wmemmove_chk __wmempcpy_chk __wmemset_chk
        __wcscpy_chk __wcpcpy_chk __wcscat_chk __wcsncpy_chk __wcpncpy_chk __wcsncat_chk
        __vsprintf_chk __vsnprintf_chk __vswprintf_chk
        __read_chk __pread_chk __pread64_chk __recv_chk __recvfrom_chk
        __fread_chk __fread_unlocked_chk __fgets_chk __fgets_unlocked_chk __fgetws_chk __gets_chk
        __readlink_chk __readlinkat_chk __getcwd_chk;
    variadic:
        sprintf 2 snprintf 3 swprintf 3
        __sprintf_chk 4 __snprintf_chk 5 __swprintf_chk 5;
}

/// The first target of each entry: starts the search for the real functions, and continues at the
/// slot's new target. `r11` (`x16`) holds the slot's address, the others the program's arguments.
#[unsafe(naked)]
unsafe extern "C" fn early() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".hidden heapwright_bounds_start",
        ".cfi_startproc",
        "push rdi",
        ".cfi_def_cfa_offset 16",
        "push rsi",
        ".cfi_def_cfa_offset 24",
        "push rdx",
        ".cfi_def_cfa_offset 32",
        "push rcx",
        ".cfi_def_cfa_offset 40",
        "push r8",
        ".cfi_def_cfa_offset 48",
        "push r9",
        ".cfi_def_cfa_offset 56",
        "push r11",
        ".cfi_def_cfa_offset 64",
        "call heapwright_bounds_start",
        "pop r11",
        ".cfi_def_cfa_offset 56",
        "pop r9",
        ".cfi_def_cfa_offset 48",
        "pop r8",
        ".cfi_def_cfa_offset 40",
        "pop rcx",
        ".cfi_def_cfa_offset 32",
        "pop rdx",
        ".cfi_def_cfa_offset 24",
        "pop rsi",
        ".cfi_def_cfa_offset 16",
        "pop rdi",
        ".cfi_def_cfa_offset 8",
        "jmp [r11]",
        ".cfi_endproc",
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".hidden heapwright_bounds_start",
        ".cfi_startproc",
        "stp x29, x30, [sp, #-96]!",
        ".cfi_def_cfa_offset 96",
        ".cfi_offset w29, -96",
        ".cfi_offset w30, -88",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x16, [sp, #80]",
        "bl heapwright_bounds_start",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x16, [sp, #80]",
        "ldp x29, x30, [sp], #96",
        ".cfi_restore w29",
        ".cfi_restore w30",
        ".cfi_def_cfa_offset 0",
        "ldr x17, [x16]",
        "br x17",
        ".cfi_endproc",
    );
}

/// Serves as `memmove` until the C library's is known.
#[unsafe(naked)]
unsafe extern "C" fn plain_memmove() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "mov rax, rdi",
        "mov rcx, rdi",
        "sub rcx, rsi",
        "cmp rcx, rdx",
        "mov rcx, rdx",
        "jb 2f",
        "rep movsb",
        "ret",
        // A forward copy would overwrite the end of the source, so this copies from the end.
        "2:",
        "lea rdi, [rdi + rdx - 1]",
        "lea rsi, [rsi + rdx - 1]",
        "std",
        "rep movsb",
        "cld",
        "ret",
        ".cfi_endproc",
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "sub x3, x0, x1",
        "cmp x3, x2",
        "b.lo 4f",
        "mov x3, #0",
        "2:",
        "cmp x3, x2",
        "b.eq 3f",
        "ldrb w4, [x1, x3]",
        "strb w4, [x0, x3]",
        "add x3, x3, #1",
        "b 2b",
        "3:",
        "ret",
        // A forward copy would overwrite the end of the source, so this copies from the end.
        "4:",
        "cbz x2, 3b",
        "sub x2, x2, #1",
        "ldrb w4, [x1, x2]",
        "strb w4, [x0, x2]",
        "b 4b",
        ".cfi_endproc",
    );
}

/// Serves as `memset` until the C library's is known.
#[unsafe(naked)]
unsafe extern "C" fn plain_memset() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "mov r8, rdi",
        "mov eax, esi",
        "mov rcx, rdx",
        "rep stosb",
        "mov rax, r8",
        "ret",
        ".cfi_endproc",
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "2:",
        "cbz x2, 3f",
        "sub x2, x2, #1",
        "strb w1, [x0, x2]",
        "b 2b",
        "3:",
        "ret",
        ".cfi_endproc",
    );
}

/// Defines the functions that the linker leads heapwright's own calls to.
#[macro_export]
macro_rules! own {
    ($($name:literal $field:ident)*) => { $(
        #[cfg(target_arch = "x86_64")]
        $crate::core::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "jmp [rip + {slots} + {at}]",
            concat!(".size ", $name, ", . - ", $name),
            slots = sym SLOTS,
            at = const $crate::core::mem::offset_of!(Slots, own) + $crate::core::mem::offset_of!(Own, $field),
        );
        #[cfg(target_arch = "aarch64")]
        $crate::core::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", %function"),
            concat!($name, ":"),
            "adrp x16, {slots} + {at}",
            "ldr x17, [x16, :lo12:{slots} + {at}]",
            "br x17",
            concat!(".size ", $name, ", . - ", $name),
            slots = sym SLOTS,
            at = const $crate::core::mem::offset_of!(Slots, own) + $crate::core::mem::offset_of!(Own, $field),
        );
    )* };
}

own! {
    "__wrap_memcpy" memmove
    "__wrap_memmove" memmove
    "__wrap_memset" memset
}
