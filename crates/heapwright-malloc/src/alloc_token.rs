//! Clang's allocation tokens: `-fsanitize=alloc-token` adds to each allocating call a token of the
//! allocated type.
//!
//! ```text
//!   malloc(n)           ->  __alloc_token_malloc(n, token)    the type's token comes last
//!                           __alloc_token_2_malloc(n)         -fsanitize-alloc-token-fast-abi
//!   mode=hardened:full  ->  a block of the token's group; groups share no slab
//!   any other mode      ->  malloc(n)
//! ```
//!
//! There are four groups, so names contain the tokens 0 to 3 (`-falloc-token-max=4`, or fewer). The
//! hardened heap maps each token to a group. A block stays in its group when `realloc` moves it.
//!
//! **C++.** An operator that gets no block jumps to its plain form, which may throw: no Rust frame
//! is then on the stack. If the program or a library replaces operators, all calls go to the plain
//! forms, because the program's own `delete` may free the blocks.
//!
//! Only programs call these functions. The constructor calls [`begin`].

use crate::errno;
use crate::malloc_family::{
    align_into, align_oddly, align_to_next, page_size, resize, whole_pages, zeroed,
};
use core::arch::naked_asm;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use heapwright::heap::{self, ALIGNED, MALLOC, NEW, NEW_ARRAY};
use libc::{c_int, c_void, size_t};

/// Whether blocks of different tokens lie apart.
static APART: AtomicBool = AtomicBool::new(false);
/// Whether blocks of C++'s operators lie apart, too.
static OPERATORS_APART: AtomicBool = AtomicBool::new(false);

/// Applies the options. The constructor calls this in hardened mode.
pub(crate) fn begin(has_own_operators: bool) {
    let apart = heap::keeps_tokens_apart();
    APART.store(apart, Ordering::Relaxed);
    OPERATORS_APART.store(apart && !has_own_operators, Ordering::Relaxed);
}

/// Returns a block of the token's group. After `None` the caller allocates without a token.
#[inline]
fn of_token<const FROM: u8>(
    size: usize,
    align: usize,
    zero: bool,
    token: usize,
) -> Option<*mut c_void> {
    if !APART.load(Ordering::Relaxed) {
        return None;
    }
    let block = heap::allocate_of_token::<FROM>(size, align, zero, token);
    (!block.is_null()).then_some(block.cast())
}

#[unsafe(no_mangle)]
extern "C" fn __alloc_token_malloc(size: size_t, token: size_t) -> *mut c_void {
    of_token::<MALLOC>(size, 1, false, token).unwrap_or_else(|| heap::malloc(size).cast())
}

#[unsafe(no_mangle)]
extern "C" fn __alloc_token_calloc(count: size_t, size: size_t, token: size_t) -> *mut c_void {
    let total = count.checked_mul(size);
    total
        .and_then(|total| of_token::<MALLOC>(total, 1, true, token))
        .unwrap_or_else(|| zeroed(count, size))
}

/// # Safety
///
/// As `realloc`. The same holds for the next function.
#[unsafe(no_mangle)]
unsafe extern "C" fn __alloc_token_realloc(
    block: *mut c_void,
    size: size_t,
    token: size_t,
) -> *mut c_void {
    let is_of_token = block.is_null()
        || APART.load(Ordering::Relaxed) && heap::comes_into_a_group(block.cast(), size);
    if is_of_token && let Some(new) = of_token::<MALLOC>(size, 1, false, token) {
        if !block.is_null() {
            // SAFETY: the block is live, as the caller promises.
            let old = unsafe { heap::usable_size(block.cast_const().cast()) };
            // SAFETY: both blocks have that many bytes, and only this call knows the new one. (In
            // this mode a block's usable size is its requested size.)
            unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old.min(size)) };
            // SAFETY: the caller gives the old block away.
            unsafe { heap::free(block.cast()) };
        }
        return new;
    }
    // SAFETY: as the caller promises.
    unsafe { resize(block, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __alloc_token_reallocarray(
    block: *mut c_void,
    count: size_t,
    size: size_t,
    token: size_t,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the caller promises.
        Some(total) => unsafe { __alloc_token_realloc(block, total, token) },
        None => errno::fail(libc::ENOMEM),
    }
}

#[unsafe(no_mangle)]
extern "C" fn __alloc_token_aligned_alloc(
    alignment: size_t,
    size: size_t,
    token: size_t,
) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return align_oddly(alignment, size);
    }
    of_token::<ALIGNED>(size, alignment, false, token)
        .unwrap_or_else(|| heap::malloc_aligned(size, alignment).cast())
}

#[unsafe(no_mangle)]
extern "C" fn __alloc_token_memalign(
    alignment: size_t,
    size: size_t,
    token: size_t,
) -> *mut c_void {
    let rounded = alignment.checked_next_power_of_two();
    rounded
        .and_then(|alignment| of_token::<ALIGNED>(size, alignment, false, token))
        .unwrap_or_else(|| align_to_next(alignment, size))
}

/// # Safety
///
/// `result` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn __alloc_token_posix_memalign(
    result: *mut *mut c_void,
    alignment: size_t,
    size: size_t,
    token: size_t,
) -> c_int {
    let is_right = alignment.is_power_of_two() && alignment >= size_of::<*mut c_void>();
    if is_right && let Some(block) = of_token::<ALIGNED>(size, alignment, false, token) {
        // SAFETY: as the caller promises.
        unsafe { *result = block };
        return 0;
    }
    // SAFETY: as the caller promises.
    unsafe { align_into(result, alignment, size) }
}

#[unsafe(no_mangle)]
extern "C" fn __alloc_token_valloc(size: size_t, token: size_t) -> *mut c_void {
    let page = page_size();
    of_token::<ALIGNED>(size, page, false, token)
        .unwrap_or_else(|| heap::malloc_aligned(size, page).cast())
}

#[unsafe(no_mangle)]
extern "C" fn __alloc_token_pvalloc(size: size_t, token: size_t) -> *mut c_void {
    let page = page_size();
    let rounded = size.checked_next_multiple_of(page);
    rounded
        .and_then(|size| of_token::<ALIGNED>(size, page, false, token))
        .unwrap_or_else(|| whole_pages(size))
}

/// `new(n)` with a token. After null the operator continues with its plain form.
extern "C" fn new<const FROM: u8>(size: size_t, token: size_t) -> *mut c_void {
    heap::allocate_of_token::<FROM>(size, 1, false, token).cast()
}

extern "C" fn new_nothrow<const FROM: u8>(
    size: size_t,
    _nothrow: size_t,
    token: size_t,
) -> *mut c_void {
    new::<FROM>(size, token)
}

extern "C" fn new_aligned<const FROM: u8>(
    size: size_t,
    alignment: size_t,
    token: size_t,
) -> *mut c_void {
    heap::allocate_of_token::<FROM>(size, alignment, false, token).cast()
}

extern "C" fn new_aligned_nothrow<const FROM: u8>(
    size: size_t,
    alignment: size_t,
    _nothrow: size_t,
    token: size_t,
) -> *mut c_void {
    new_aligned::<FROM>(size, alignment, token)
}

/// An operator with a token. If tokens lie apart, it calls the function that makes its blocks.
/// Without a block it jumps to the plain form.
macro_rules! operators {
    ($( $name:ident => $attempt:ident::<$from:ident>, $plain:literal; )*) => {
        $(
            #[doc = concat!("`", $plain, "`.")]
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    ".cfi_startproc",
                    "cmp byte ptr [rip + {apart}], 0",
                    "je 2f",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    ".cfi_adjust_cfa_offset 24",
                    "call {attempt}",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    ".cfi_adjust_cfa_offset -24",
                    "test rax, rax",
                    "je 2f",
                    "ret",
                    "2:",
                    concat!("jmp qword ptr [rip + ", $plain, "@GOTPCREL]"),
                    ".cfi_endproc",
                    apart = sym OPERATORS_APART,
                    attempt = sym $attempt::<$from>,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    ".cfi_startproc",
                    "adrp x16, {apart}",
                    "ldrb w16, [x16, :lo12:{apart}]",
                    "cbz w16, 2f",
                    "stp x29, x30, [sp, #-48]!",
                    ".cfi_adjust_cfa_offset 48",
                    ".cfi_offset w29, -48",
                    ".cfi_offset w30, -40",
                    "mov x29, sp",
                    "stp x0, x1, [sp, #16]",
                    "str x2, [sp, #32]",
                    "bl {attempt}",
                    "mov x16, x0",
                    "ldp x0, x1, [sp, #16]",
                    "ldr x2, [sp, #32]",
                    "ldp x29, x30, [sp], #48",
                    ".cfi_restore w29",
                    ".cfi_restore w30",
                    ".cfi_adjust_cfa_offset -48",
                    "cbz x16, 2f",
                    "mov x0, x16",
                    "ret",
                    "2:",
                    concat!("adrp x16, :got:", $plain),
                    concat!("ldr x16, [x16, :got_lo12:", $plain, "]"),
                    "br x16",
                    ".cfi_endproc",
                    apart = sym OPERATORS_APART,
                    attempt = sym $attempt::<$from>,
                );
            }
        )*
    };
}

operators! {
    __alloc_token__Znwm => new::<NEW>, "_Znwm";
    __alloc_token__Znam => new::<NEW_ARRAY>, "_Znam";
    __alloc_token__ZnwmRKSt9nothrow_t => new_nothrow::<NEW>, "_ZnwmRKSt9nothrow_t";
    __alloc_token__ZnamRKSt9nothrow_t => new_nothrow::<NEW_ARRAY>, "_ZnamRKSt9nothrow_t";
    __alloc_token__ZnwmSt11align_val_t => new_aligned::<NEW>, "_ZnwmSt11align_val_t";
    __alloc_token__ZnamSt11align_val_t => new_aligned::<NEW_ARRAY>, "_ZnamSt11align_val_t";
    __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t => new_aligned_nothrow::<NEW>, "_ZnwmSt11align_val_tRKSt9nothrow_t";
    __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t => new_aligned_nothrow::<NEW_ARRAY>, "_ZnamSt11align_val_tRKSt9nothrow_t";
}

/// Functions with a token in their names. Each puts its token into the register of the last
/// argument and jumps to the function that takes the token as that argument.
macro_rules! named {
    ($( $target:ident, $x86:literal, $arm:literal: $zero:ident $one:ident $two:ident $three:ident; )*) => {
        $(
            named!($target, $x86, $arm, 0, $zero);
            named!($target, $x86, $arm, 1, $one);
            named!($target, $x86, $arm, 2, $two);
            named!($target, $x86, $arm, 3, $three);
        )*
    };
    ($target:ident, $x86:literal, $arm:literal, $token:literal, $name:ident) => {
        #[doc = concat!("[`", stringify!($target), "`] with token ", $token, ".")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                concat!("mov ", $x86, ", ", $token),
                "jmp {target}",
                target = sym $target,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                concat!("mov ", $arm, ", #", $token),
                "b {target}",
                target = sym $target,
            );
        }
    };
}

named! {
    __alloc_token_malloc, "esi", "x1":
        __alloc_token_0_malloc
        __alloc_token_1_malloc
        __alloc_token_2_malloc
        __alloc_token_3_malloc;
    __alloc_token_calloc, "edx", "x2":
        __alloc_token_0_calloc
        __alloc_token_1_calloc
        __alloc_token_2_calloc
        __alloc_token_3_calloc;
    __alloc_token_realloc, "edx", "x2":
        __alloc_token_0_realloc
        __alloc_token_1_realloc
        __alloc_token_2_realloc
        __alloc_token_3_realloc;
    __alloc_token_reallocarray, "ecx", "x3":
        __alloc_token_0_reallocarray
        __alloc_token_1_reallocarray
        __alloc_token_2_reallocarray
        __alloc_token_3_reallocarray;
    __alloc_token_aligned_alloc, "edx", "x2":
        __alloc_token_0_aligned_alloc
        __alloc_token_1_aligned_alloc
        __alloc_token_2_aligned_alloc
        __alloc_token_3_aligned_alloc;
    __alloc_token_memalign, "edx", "x2":
        __alloc_token_0_memalign
        __alloc_token_1_memalign
        __alloc_token_2_memalign
        __alloc_token_3_memalign;
    __alloc_token_posix_memalign, "ecx", "x3":
        __alloc_token_0_posix_memalign
        __alloc_token_1_posix_memalign
        __alloc_token_2_posix_memalign
        __alloc_token_3_posix_memalign;
    __alloc_token_valloc, "esi", "x1":
        __alloc_token_0_valloc
        __alloc_token_1_valloc
        __alloc_token_2_valloc
        __alloc_token_3_valloc;
    __alloc_token_pvalloc, "esi", "x1":
        __alloc_token_0_pvalloc
        __alloc_token_1_pvalloc
        __alloc_token_2_pvalloc
        __alloc_token_3_pvalloc;
    __alloc_token__Znwm, "esi", "x1":
        __alloc_token_0__Znwm
        __alloc_token_1__Znwm
        __alloc_token_2__Znwm
        __alloc_token_3__Znwm;
    __alloc_token__Znam, "esi", "x1":
        __alloc_token_0__Znam
        __alloc_token_1__Znam
        __alloc_token_2__Znam
        __alloc_token_3__Znam;
    __alloc_token__ZnwmRKSt9nothrow_t, "edx", "x2":
        __alloc_token_0__ZnwmRKSt9nothrow_t
        __alloc_token_1__ZnwmRKSt9nothrow_t
        __alloc_token_2__ZnwmRKSt9nothrow_t
        __alloc_token_3__ZnwmRKSt9nothrow_t;
    __alloc_token__ZnamRKSt9nothrow_t, "edx", "x2":
        __alloc_token_0__ZnamRKSt9nothrow_t
        __alloc_token_1__ZnamRKSt9nothrow_t
        __alloc_token_2__ZnamRKSt9nothrow_t
        __alloc_token_3__ZnamRKSt9nothrow_t;
    __alloc_token__ZnwmSt11align_val_t, "edx", "x2":
        __alloc_token_0__ZnwmSt11align_val_t
        __alloc_token_1__ZnwmSt11align_val_t
        __alloc_token_2__ZnwmSt11align_val_t
        __alloc_token_3__ZnwmSt11align_val_t;
    __alloc_token__ZnamSt11align_val_t, "edx", "x2":
        __alloc_token_0__ZnamSt11align_val_t
        __alloc_token_1__ZnamSt11align_val_t
        __alloc_token_2__ZnamSt11align_val_t
        __alloc_token_3__ZnamSt11align_val_t;
    __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t, "ecx", "x3":
        __alloc_token_0__ZnwmSt11align_val_tRKSt9nothrow_t
        __alloc_token_1__ZnwmSt11align_val_tRKSt9nothrow_t
        __alloc_token_2__ZnwmSt11align_val_tRKSt9nothrow_t
        __alloc_token_3__ZnwmSt11align_val_tRKSt9nothrow_t;
    __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t, "ecx", "x3":
        __alloc_token_0__ZnamSt11align_val_tRKSt9nothrow_t
        __alloc_token_1__ZnamSt11align_val_tRKSt9nothrow_t
        __alloc_token_2__ZnamSt11align_val_tRKSt9nothrow_t
        __alloc_token_3__ZnamSt11align_val_tRKSt9nothrow_t;
}
