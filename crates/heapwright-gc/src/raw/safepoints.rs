//! Safepoints: where a thread stops for a collection, and how it goes away to block.
//!
//! ```text
//!   in the heap   poll? --> safepoint: stands still until the world goes on
//!   away          leave ---- may block, touches no object ---- enter: waits while the world stands still
//! ```
//!
//! A caller that cannot pass a function leaves by [`save_and_leave`], which notes the registers
//! itself.

use core::ffi::c_void;

use heapwright_substrate::sync::atomic::Ordering;

use super::Mutator;

impl Mutator {
    /// Whether [`Mutator::safepoint`] has something to do.
    #[inline]
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.inner().poll.load(Ordering::Relaxed) != 0
    }

    /// Waits while the world stands still, and helps to mark meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn safepoint(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().at_safepoint(self.inner());
    }

    /// Calls `blocks`, which may block: others need not wait for this thread meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super); `blocks` touches no object and calls nothing here.
    pub unsafe fn away<R>(&self, blocks: impl FnOnce() -> R) -> R {
        self.inner().stack.note();
        self.heap().world.leave(&self.inner().handshake);
        let result = blocks();
        self.inner().enter();
        result
    }

    /// The first half of [`Mutator::away`], for callers that cannot pass a function. What the
    /// caller keeps in registers is not seen, if its stack is scanned: `hw_gc_leave` sees it.
    ///
    /// # Safety
    ///
    /// As [`Mutator::away`]. The frame that calls this is there until [`Mutator::enter`].
    #[inline(always)]
    pub unsafe fn leave(&self) {
        self.inner().stack.note();
        self.heap().world.leave(&self.inner().handshake);
    }

    /// As [`Mutator::enter`], unless the world stands still: then it does not wait. Whether it is
    /// back.
    ///
    /// # Safety
    ///
    /// Follows [`Mutator::leave`], or one of these that said false.
    #[must_use]
    pub unsafe fn try_enter(&self) -> bool {
        self.inner().note_coming();
        self.inner().try_enter()
    }

    /// It is back, in this thread or another one, which has no other mutator of the heap. In
    /// another one the stack is not scanned until [`Mutator::scan_stack`] says where it ends.
    ///
    /// # Safety
    ///
    /// Follows [`Mutator::leave`], and what the thread did that left.
    pub unsafe fn enter(&self) {
        self.inner().note_coming();
        self.inner().enter();
    }
}

/// [`Mutator::leave`] for a mutator's head, of a caller whose registers are to be seen.
///
/// # Safety
///
/// As [`Mutator::leave`]; `mutator` is from [`Mutator::into_ptr`].
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[unsafe(naked)]
pub unsafe extern "C" fn save_and_leave(mutator: *mut c_void) {
    core::arch::naked_asm!(
        "mov [rdi + {registers}], rbx",
        "mov [rdi + {registers} + 8], rbp",
        "mov [rdi + {registers} + 16], r12",
        "mov [rdi + {registers} + 24], r13",
        "mov [rdi + {registers} + 32], r14",
        "mov [rdi + {registers} + 40], r15",
        "mov [rdi + {top}], rsp",
        "jmp {leave}",
        registers = const core::mem::offset_of!(super::super::mutator::Mutator, stack.registers),
        top = const core::mem::offset_of!(super::super::mutator::Mutator, stack.top),
        leave = sym leave_saved,
    )
}

/// [`Mutator::leave`] for a mutator's head, of a caller whose registers are to be seen.
///
/// # Safety
///
/// As [`Mutator::leave`]; `mutator` is from [`Mutator::into_ptr`].
#[cfg(all(target_os = "linux", target_arch = "aarch64", not(miri)))]
#[unsafe(naked)]
pub unsafe extern "C" fn save_and_leave(mutator: *mut c_void) {
    core::arch::naked_asm!(
        "mov x1, {registers}",
        "add x1, x0, x1",
        "stp x19, x20, [x1]",
        "stp x21, x22, [x1, 16]",
        "stp x23, x24, [x1, 32]",
        "stp x25, x26, [x1, 48]",
        "stp x27, x28, [x1, 64]",
        "stp x29, x30, [x1, 80]",
        "mov x2, sp",
        "mov x1, {top}",
        "add x1, x0, x1",
        "str x2, [x1]",
        "b {leave}",
        registers = const core::mem::offset_of!(super::super::mutator::Mutator, stack.registers),
        top = const core::mem::offset_of!(super::super::mutator::Mutator, stack.top),
        leave = sym leave_saved,
    )
}

/// [`Mutator::leave`] for a mutator's head. Registers are not seen here.
///
/// # Safety
///
/// As [`Mutator::leave`]; `mutator` is from [`Mutator::into_ptr`].
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
)))]
pub unsafe extern "C" fn save_and_leave(mutator: *mut c_void) {
    // SAFETY: a mutator of `into_ptr`'s, whose registers were just saved, as the caller promises.
    unsafe { leave_saved(mutator) };
}

/// # Safety
///
/// As [`save_and_leave`].
unsafe extern "C" fn leave_saved(mutator: *mut c_void) {
    // SAFETY: by the contract.
    let mutator = unsafe { Mutator::from_ptr(mutator) };
    // SAFETY: by the contract.
    let mutator = mutator.inner();
    // Not `leave`: what the caller saved is what is to be scanned.
    mutator.heap().world.leave(&mutator.handshake);
}
