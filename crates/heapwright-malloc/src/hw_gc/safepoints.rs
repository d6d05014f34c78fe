//! Safepoints, where a thread stops for a collection, and the scan of its stack.
//!
//! ```text
//!   inside --hw_gc_leave--> outside: collections go on without it --hw_gc_enter--> inside
//! ```
//!
//! `hw_gc_leave` is a jump: no frame of ours is on the stack that may be scanned meanwhile.

use core::ffi::c_void;

use super::{heap_of, of};
use crate::hw_gc_types::{GcHeap, GcMutator, GcMutatorVisitor};
use heapwright::gc::raw::{self, ThreadState};

/// From now on collections scan the calling thread's registers and its stack below base: every word
/// that is an address within an object keeps that object. A base of NULL ends the scans.
///
/// A thread that changes to another stack (makecontext, sigaltstack) calls this after each change,
/// also after the change back. The runtime's roots report other stacks with objects (hw_gc_scan).
/// A collection on a stack that was not named ends the program with one line.
///
/// # Safety
///
/// mutator is this thread's; base is in this thread's stack, above every frame that holds objects,
/// until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_scan_stack(mutator: *mut GcMutator, base: *const c_void) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.scan_stack(base.cast()) };
}

/// Stops if a collection requests it. hw_gc_poll calls it in this case.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_safepoint(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.safepoint() };
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {}"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {}"
    };
}

/// The thread calls this before it blocks: collections go on without the thread. Until hw_gc_enter
/// the thread must touch no object and call nothing here. The frame that called this must not
/// return before hw_gc_enter.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_leave(mutator: *mut GcMutator) {
    core::arch::naked_asm!(jump!(), sym raw::save_and_leave)
}

/// The thread returns, or another thread takes over its mutator. Waits while the world is stopped.
///
/// # Safety
///
/// The call follows hw_gc_leave; the thread has no other mutator of the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_enter(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.enter() };
}

/// As hw_gc_enter, but does not wait. This is for a thread that has other work meanwhile.
///
/// Returns whether the thread is back. It is not back if the world is stopped.
///
/// # Safety
///
/// As hw_gc_enter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_try_enter(mutator: *mut GcMutator) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.try_enter() }
}

/// Visits all mutators of a heap, each with the hw_gc_thread_state that it had a moment ago. A
/// runtime that keeps a word in each mutator (hw_gc_data) thus needs no list of its threads. The
/// callbacks roots and event may call this, too. visit runs under no lock, and may call any
/// function of the heap. The visited mutator does not detach before visit returns, so visit must
/// not wait for that. A mutator that attaches meanwhile is not visited.
///
/// Returns the number of mutators.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_attached(
    heap: *mut GcHeap,
    visit: GcMutatorVisitor,
    context: *mut c_void,
) -> usize {
    // SAFETY: as the caller promises.
    let heap = unsafe { heap_of(heap) };
    heap.attached(|mutator: *mut c_void, state: ThreadState| {
        if let Some(visit) = visit {
            // SAFETY: as the caller promises.
            unsafe { visit(mutator.cast(), state as u32, context) };
        }
    })
}
