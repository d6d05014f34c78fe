//! C++'s operators new and delete, in every form.
//!
//! ```text
//!   forms that do the work                       forms that forward, as the standard says
//!   ------------------------------------------   ----------------------------------------
//!   new(n)              _Znwm                     new[](n)              -> new(n)
//!   new(n, align)       _ZnwmSt11align_val_t      new[](n, align)       -> new(n, align)
//!   delete(p)           _ZdlPv                    delete[](p)           -> delete(p)
//!   delete(p, n)        _ZdlPvm (see there)       delete[](p, n)        -> delete[](p)
//!   delete(p, align)    _ZdlPvSt11align_val_t     ... (see `forward`)
//!   new(n, nothrow)     try { new(n) } catch (...) { return nullptr; }, and its kin
//! ```
//!
//! This file holds the forms that do the work. [`forward`] holds the others, [`failure`] handles a
//! lack of memory, and [`nothrow`] has the forms that give null instead of an exception.

mod failure;
mod forward;
mod nothrow;

pub(crate) use forward::{distinguish_forms, forwarding, notice_replacements};

#[cfg(heapwright_tail_calls)]
use failure::new_failed;
use failure::new_slow;
use forward::delete_sized;
use heapwright::heap::{self, NEW};
use libc::{c_void, size_t};

/// `operator new(std::size_t)`.
///
/// All operators are in one section whose ends the linker names. So `forward` recognises our
/// operators, although their names may lead to the program's.
#[cfg(heapwright_tail_calls)]
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
extern "C" fn _Znwm(size: size_t) -> *mut c_void {
    let block = heap::malloc_fast(size);
    if block.is_null() {
        return new_medium(size);
    }
    block.cast()
}

/// `operator new(std::size_t)` if the fast path does not suffice.
#[cfg(heapwright_tail_calls)]
#[inline(never)]
extern "C" fn new_medium(size: size_t) -> *mut c_void {
    match heap::malloc_medium_fast::<NEW>(size) {
        Some(block) if block.is_null() => new_failed(size, 1),
        Some(block) => block.cast(),
        None => new_slow(size, 1),
    }
}

/// `operator new(std::size_t)` if the compiler makes no tail calls: always the slow path.
#[cfg(not(heapwright_tail_calls))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
extern "C" fn _Znwm() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov esi, 1", "jmp {slow}", slow = sym new_slow);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x1, #1", "b {slow}", slow = sym new_slow);
}

/// `operator new(std::size_t, std::align_val_t)`.
#[cfg(heapwright_tail_calls)]
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
extern "C" fn _ZnwmSt11align_val_t(size: size_t, alignment: size_t) -> *mut c_void {
    let block = heap::malloc_aligned_fast(size, alignment);
    if block.is_null() {
        return new_slow(size, alignment);
    }
    block.cast()
}

#[cfg(not(heapwright_tail_calls))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
extern "C" fn _ZnwmSt11align_val_t() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("jmp {slow}", slow = sym new_slow);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("b {slow}", slow = sym new_slow);
}

/// `operator delete(void*)`.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
unsafe extern "C" fn _ZdlPv(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_from::<NEW>(block.cast()) };
}

/// `operator delete(void*, std::align_val_t)`.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
unsafe extern "C" fn _ZdlPvSt11align_val_t(block: *mut c_void, alignment: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_aligned_from::<NEW>(block.cast(), alignment) };
}

/// `operator delete(void*, std::size_t)`: the form that most programs call.
///
/// It forwards like the forms of [`forward`], and does the work at once if [`notice_replacements`]
/// found no operator of the program on the way.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
unsafe extern "C" fn _ZdlPvm(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    if unsafe { !heap::free_sized_fast(block.cast(), size) } {
        delete_sized(block, size);
    }
}
