//! Forms of `new` and `delete` that forward to another form, and how a debug heap tells them apart.
//!
//! **Forwarding.** A program may replace some forms and rely on the others to call its own. For
//! example, the compiler calls `delete(p, n)` although the program has replaced `delete(p)` alone.
//! So each forwarding form is one jump to the program's operator, or to ours if there is none. The
//! jump reads its target from the global offset table, or from a table of our own, [`FORWARD`]. The
//! dynamic linker fills in both.
//!
//! **Telling apart.** A debug heap must know `new[]` from `new`, and the sizes and alignments of
//! `delete`. A forwarding form loses all this. So debug mode and hardened mode replace words of
//! [`FORWARD`] by functions that do the work at once and report everything ([`distinguish_forms`]).
//! They replace a word only if its operator, and each operator to which that one forwards, is ours.
//! Otherwise the program's operator runs, and its own calls are reported.
//!
//! ```text
//!                       fast mode              debug mode
//!   delete[](p, n)  ->  delete[](p)        ->  free_sized_from::<NEW_ARRAY>(p, n)
//!   delete[](p)     ->  delete(p)          ->  free_from::<NEW_ARRAY>(p)
//!   new[](n)        ->  new(n)             ->  new_array_slow(n, 1)
//!   nothrow forms   ->  the form behind them, which reports (nothrow forms know no more)
//! ```
//!
//! Fast mode pays nothing: the jump reads a word of [`FORWARD`] instead of a word of the global
//! offset table. Both tables become read-only (`.data.rel.ro`).

use super::failure::new_array_slow;
use super::{_ZdlPv, _ZdlPvSt11align_val_t, _Znwm, _ZnwmSt11align_val_t};
use crate::malloc_family::page_size;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, Ordering};
use heapwright::heap::{self, NEW, NEW_ARRAY};
use libc::{c_void, size_t};

/// Jumps to the target of the sized form. The size is the second argument.
#[unsafe(naked)]
pub(super) extern "C" fn delete_sized(block: *mut c_void, size: size_t) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "jmp qword ptr [rip + {table} + {at}]",
        table = sym FORWARD,
        at = const DELETE_SIZED * 8,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "adrp x16, {table} + {at}",
        "ldr x16, [x16, :lo12:{table} + {at}]",
        "br x16",
        table = sym FORWARD,
        at = const DELETE_SIZED * 8,
    );
}

/// The targets of the forwarding forms that lose information. The dynamic linker makes the section
/// read-only when it has filled it in; debug and hardened mode make it writable for good.
#[repr(C, align(64))]
struct Forward([AtomicPtr<c_void>; FORWARDING]);

const FORWARDING: usize = 8;
const NEW_ARRAY_PLAIN: usize = 0;
const NEW_ARRAY_ALIGNED: usize = 1;
const DELETE_SIZED: usize = 2;
const DELETE_SIZED_ALIGNED: usize = 3;
const DELETE_ARRAY: usize = 4;
const DELETE_ARRAY_SIZED: usize = 5;
const DELETE_ARRAY_ALIGNED: usize = 6;
const DELETE_ARRAY_SIZED_ALIGNED: usize = 7;

/// The linker or the dynamic linker fills the table in, with the program's own operators if there
/// are any. The assembly of the forms reads it.
#[unsafe(link_section = ".data.rel.ro.heapwright_forward")]
static FORWARD: Forward = Forward([
    AtomicPtr::new(_Znwm as *mut c_void),
    AtomicPtr::new(_ZnwmSt11align_val_t as *mut c_void),
    AtomicPtr::new(_ZdlPv as *mut c_void),
    AtomicPtr::new(_ZdlPvSt11align_val_t as *mut c_void),
    AtomicPtr::new(_ZdlPv as *mut c_void),
    AtomicPtr::new(_ZdaPv as *mut c_void),
    AtomicPtr::new(_ZdlPvSt11align_val_t as *mut c_void),
    AtomicPtr::new(_ZdaPvSt11align_val_t as *mut c_void),
]);

/// For each form: the function that does its work at once and reports the form, and the index of
/// the form's target, if the table has it.
fn reporting(form: usize) -> (*mut c_void, Option<usize>) {
    match form {
        NEW_ARRAY_PLAIN => (new_array as *mut c_void, None),
        NEW_ARRAY_ALIGNED => (new_array_slow as *mut c_void, None),
        DELETE_SIZED => (give_sized as *mut c_void, None),
        DELETE_SIZED_ALIGNED => (give_sized_aligned::<NEW> as *mut c_void, None),
        DELETE_ARRAY => (give_array as *mut c_void, None),
        DELETE_ARRAY_SIZED => (give_array_sized as *mut c_void, Some(DELETE_ARRAY)),
        DELETE_ARRAY_ALIGNED => (give_array_aligned as *mut c_void, None),
        _ => (give_sized_aligned::<NEW_ARRAY> as *mut c_void, Some(DELETE_ARRAY_ALIGNED)),
    }
}

fn is_ours(operator: *mut c_void) -> bool {
    let (start, stop): (*mut c_void, *mut c_void);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the assembly computes two addresses, and accesses no memory.
    unsafe {
        core::arch::asm!(
            ".hidden __start_heapwright_operators",
            ".hidden __stop_heapwright_operators",
            "lea {}, [rip + __start_heapwright_operators]",
            "lea {}, [rip + __stop_heapwright_operators]",
            out(reg) start,
            out(reg) stop,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the assembly computes two addresses, and accesses no memory.
    unsafe {
        core::arch::asm!(
            ".hidden __start_heapwright_operators",
            ".hidden __stop_heapwright_operators",
            "adrp {0}, __start_heapwright_operators",
            "add {0}, {0}, :lo12:__start_heapwright_operators",
            "adrp {1}, __stop_heapwright_operators",
            "add {1}, {1}, :lo12:__stop_heapwright_operators",
            out(reg) start,
            out(reg) stop,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    (start.addr()..stop.addr()).contains(&operator.addr())
}

/// Whether a form leads to an operator of ours, with no operator of the program on the way, or
/// already to its reporting function.
fn leads_to_us(form: usize) -> bool {
    let (report, next) = reporting(form);
    let word = FORWARD.0[form].load(Ordering::Relaxed);
    word == report || is_ours(word) && next.is_none_or(leads_to_us)
}

/// If the program has an `operator delete(void*)` of its own, makes the sized form forward every
/// block to it. The constructor calls this.
pub(crate) fn notice_replacements() {
    if !leads_to_us(DELETE_SIZED) {
        // SAFETY: constructors run one at a time, before `main` and before `dlopen` returns. A
        // thread that another library's constructor has started reads the old tag or the new one.
        unsafe { heap::forward_sized_frees() };
    }
}

/// [`distinguish_forms`], for the heap's start.
extern "C" fn tell_forms_apart() {
    distinguish_forms();
}

/// Makes each forwarding form report itself to the heap, unless the program has replaced its
/// target. Returns whether the program has replaced no operator.
///
/// In debug mode and hardened mode the heap calls this before its first block: other libraries'
/// constructors run before ours. Our constructor calls it again, because a program may allocate
/// before the dynamic linker has filled in the table.
#[cold]
pub(crate) fn distinguish_forms() -> bool {
    // Decide before the first store: the words are still the linker's.
    let mut ours = [false; FORWARDING];
    for (form, ours) in ours.iter_mut().enumerate() {
        *ours = leads_to_us(form);
    }
    let all = ours.iter().all(|&ours| ours);
    let page = page_size();
    let start = FORWARD.0.as_ptr().addr() & !(page - 1);
    // The table is aligned to its size, so it is in one page.
    const { assert!(size_of::<Forward>() == align_of::<Forward>()) };
    let whole = FORWARD.0.as_ptr().with_addr(start).cast_mut().cast();
    // SAFETY: a page of this library becomes writable; its contents stay.
    if unsafe { libc::mprotect(whole, page, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        // Then new[] is reported as new, and delete[] as delete: the two agree.
        return all;
    }
    for (form, word) in FORWARD.0.iter().enumerate() {
        if ours[form] {
            word.store(reporting(form).0, Ordering::Relaxed);
        }
    }
    all
}

/// The jump to [`new_array_slow`], with an alignment of 1.
#[cfg(target_arch = "x86_64")]
macro_rules! to_slow {
    () => {
        "mov esi, 1\njmp {slow}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! to_slow {
    () => {
        "mov x1, #1\nb {slow}"
    };
}

/// `new[](n)`, reporting. The assembly also emits a word by which the heap's start finds
/// [`tell_forms_apart`].
#[unsafe(naked)]
#[allow(named_asm_labels, reason = "the heap's start finds the word by its name")]
extern "C" fn new_array() {
    naked_asm!(
        ".pushsection .data.rel.ro.__heapwright_0_1_forms, \"aw\", @progbits",
        ".balign 8",
        ".weak __heapwright_0_1_tell_forms_apart",
        ".hidden __heapwright_0_1_tell_forms_apart",
        "__heapwright_0_1_tell_forms_apart:",
        ".quad {tell}",
        ".popsection",
        to_slow!(),
        tell = sym tell_forms_apart,
        slow = sym new_array_slow,
    );
}

/// `delete(p, n)`, reporting.
///
/// # Safety
///
/// As the operator. The same holds for the functions that follow.
unsafe extern "C" fn give_sized(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_from::<NEW>(block.cast(), size) };
}

unsafe extern "C" fn give_array(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_from::<NEW_ARRAY>(block.cast()) };
}

unsafe extern "C" fn give_array_sized(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_from::<NEW_ARRAY>(block.cast(), size) };
}

unsafe extern "C" fn give_array_aligned(block: *mut c_void, alignment: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_aligned_from::<NEW_ARRAY>(block.cast(), alignment) };
}

/// `delete(p, n, align)` and `delete[](p, n, align)`, reporting, with the last arguments exchanged.
unsafe extern "C" fn give_sized_aligned<const FROM: u8>(
    block: *mut c_void,
    alignment: size_t,
    size: size_t,
) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_aligned_from::<FROM>(block.cast(), size, alignment) };
}

/// A form that forwards, and has nothing more to report: one jump through the global offset table,
/// which has the program's own operator, if there is one.
macro_rules! forwarding {
    ($( $(#[$doc:meta])* $from:ident => $to:literal; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[unsafe(link_section = "heapwright_operators")]
            extern "C" fn $from() {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!(concat!("jmp qword ptr [rip + ", $to, "@GOTPCREL]"));
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!(
                    concat!("adrp x16, :got:", $to),
                    concat!("ldr x16, [x16, :got_lo12:", $to, "]"),
                    "br x16",
                );
            }
        )*
    };
}

pub(crate) use forwarding;

forwarding! {
    /// `operator delete(void*, const std::nothrow_t&)`.
    _ZdlPvRKSt9nothrow_t => "_ZdlPv";
    /// `operator delete[](void*, const std::nothrow_t&)`.
    _ZdaPvRKSt9nothrow_t => "_ZdaPv";
    /// `operator delete(void*, std::align_val_t, const std::nothrow_t&)`.
    _ZdlPvSt11align_val_tRKSt9nothrow_t => "_ZdlPvSt11align_val_t";
    /// `operator delete[](void*, std::align_val_t, const std::nothrow_t&)`.
    _ZdaPvSt11align_val_tRKSt9nothrow_t => "_ZdaPvSt11align_val_t";
}

/// A form that forwards, and that its target cannot tell from a direct call: one jump through
/// its place in [`FORWARD`]. The instructions in brackets precede the jump, for x86-64 and aarch64.
macro_rules! forwarding_apart {
    ($( $(#[$doc:meta])* $from:ident => $place:ident [$($x86:literal),*] [$($arm:literal),*]; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[unsafe(link_section = "heapwright_operators")]
            extern "C" fn $from() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    $($x86,)*
                    "jmp qword ptr [rip + {table} + {at}]",
                    table = sym FORWARD,
                    at = const $place * 8,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    $($arm,)*
                    "adrp x16, {table} + {at}",
                    "ldr x16, [x16, :lo12:{table} + {at}]",
                    "br x16",
                    table = sym FORWARD,
                    at = const $place * 8,
                );
            }
        )*
    };
}

// If the alignment is the third argument, it must become the second. The size becomes the third,
// and only a reporting function reads it.
forwarding_apart! {
    /// `operator new[](std::size_t)`.
    _Znam => NEW_ARRAY_PLAIN [] [];
    /// `operator new[](std::size_t, std::align_val_t)`.
    _ZnamSt11align_val_t => NEW_ARRAY_ALIGNED [] [];
    /// `operator delete[](void*)`.
    _ZdaPv => DELETE_ARRAY [] [];
    /// `operator delete[](void*, std::size_t)`.
    _ZdaPvm => DELETE_ARRAY_SIZED [] [];
    /// `operator delete[](void*, std::align_val_t)`.
    _ZdaPvSt11align_val_t => DELETE_ARRAY_ALIGNED [] [];
    /// `operator delete(void*, std::size_t, std::align_val_t)`.
    _ZdlPvmSt11align_val_t => DELETE_SIZED_ALIGNED
        ["xchg rsi, rdx"] ["mov x16, x1", "mov x1, x2", "mov x2, x16"];
    /// `operator delete[](void*, std::size_t, std::align_val_t)`.
    _ZdaPvmSt11align_val_t => DELETE_ARRAY_SIZED_ALIGNED
        ["xchg rsi, rdx"] ["mov x16, x1", "mov x1, x2", "mov x2, x16"];
}
