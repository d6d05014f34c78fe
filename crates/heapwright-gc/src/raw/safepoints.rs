//! Safepoints. A thread stops there for a collection, or leaves the heap before it blocks.
//!
//! ```text
//!   in the heap   poll? --> safepoint: stops until the world goes on
//!   away          leave --- may block, touches no object --- enter: waits for a stopped world
//! ```
//!
//! A caller that cannot pass a function leaves by [`save_and_leave`], which saves the registers.

use core::ffi::c_void;

use heapwright_substrate::sync::atomic::Ordering;

use super::Mutator;

impl Mutator {
    /// Returns whether a collector waits for [`Mutator::safepoint`].
    #[inline]
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.inner().poll.load(Ordering::Relaxed) != 0
    }

    /// Waits while the world is stopped, and helps to mark meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn safepoint(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().at_rare_safepoint(self.inner());
    }

    /// Calls `blocks`, which may block. Collectors do not wait for this thread meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super); `blocks` touches no object and calls nothing of the heap.
    pub unsafe fn away<R>(&self, blocks: impl FnOnce() -> R) -> R {
        self.inner().stack.note();
        self.heap().world.leave(&self.inner().handshake);
        let result = blocks();
        self.inner().enter();
        self.heap().tend();
        result
    }

    /// The first half of [`Mutator::away`], for callers that cannot pass a function. A scan of the
    /// stack begins in the calling frame. (That of [`save_and_leave`] begins in its caller.)
    ///
    /// # Safety
    ///
    /// As [`Mutator::away`]. The calling frame lives until [`Mutator::enter`].
    #[inline(always)]
    pub unsafe fn leave(&self) {
        self.inner().stack.note();
        self.heap().world.leave(&self.inner().handshake);
    }

    /// As [`Mutator::enter`], but does not wait while the world is stopped. Returns whether the
    /// mutator has entered.
    ///
    /// # Safety
    ///
    /// Follows [`Mutator::leave`], or a `try_enter` that returned false.
    #[must_use]
    pub unsafe fn try_enter(&self) -> bool {
        self.inner().note_coming();
        self.inner().try_enter()
    }

    /// Enters again, in this thread or in another thread that has no other mutator of the heap. The
    /// stack of another thread is not scanned until [`Mutator::scan_stack`] sets its end.
    ///
    /// # Safety
    ///
    /// Follows [`Mutator::leave`], and happens after all that the leaving thread did.
    pub unsafe fn enter(&self) {
        self.inner().note_coming();
        self.inner().enter();
        self.heap().tend();
    }
}

/// As [`Mutator::leave`], for a C handle. Saves the caller's registers for the scan.
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

/// As [`Mutator::leave`], for a C handle. Saves the caller's registers for the scan.
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

/// As [`Mutator::leave`], for a C handle. Saves no registers on this machine.
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
    // SAFETY: the mutator is of `into_ptr`, as the caller promises.
    unsafe { leave_saved(mutator) };
}

/// # Safety
///
/// As [`save_and_leave`].
unsafe extern "C" fn leave_saved(mutator: *mut c_void) {
    // SAFETY: by the contract.
    let mutator = unsafe { Mutator::from_ptr(mutator) };
    let mutator = mutator.inner();
    // Not `leave`: the scan must begin at the registers that the caller saved.
    mutator.heap().world.leave(&mutator.handshake);
}
