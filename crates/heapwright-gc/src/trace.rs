//! The trace: the state that all marking threads of one heap share, and its roots and notes.
//!
//! ```text
//!   tracer --> trace   marking       gang, chunks, local marks, counts
//!                      generations   sticky marks, remembered set
//!                      roots         handles, finalizers, guardians, objects without barriers
//!                      notes         weak slots, ephemerons, dirty slots, references to candidates
//! ```
//!
//! Each part has a file of its own, and knows no tracer. The trace uses the space whose objects it
//! marks, and knows no mutator: `mark` gets its surroundings from the caller. Called by `tracer`
//! and all above it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;

use heapwright_substrate::sync::Lock;

use super::bag::Bag;
use super::cell::{Num, Ptr};
use super::due::Due;
use super::finalizers::Finalizers;
use super::generations::Generations;
use super::guardians::Guardians;
use super::handles::Handles;
use super::locks::With;
use super::marking::Marking;
use super::references::References;
use super::runtime::{Runtime, WeakPass};
use super::space::Space;
use super::stages::Settling;
use super::unprotected::Unprotected;
use super::weak::Weak;
use super::weak_passes::WeakPasses;

pub(super) struct Trace {
    runtime: UnsafeCell<MaybeUninit<Runtime>>,
    space: Ptr<Space>,
    pub(super) marking: Marking,
    pub(super) generations: Generations,
    pub(super) handles: Handles,
    pub(super) weak: Weak,
    pub(super) finalizers: Lock<Finalizers>,
    pub(super) guardians: Guardians,
    pub(super) due: Due,
    pub(super) weak_passes: WeakPasses<WeakPass>,
    pub(super) settling: Settling,
    pub(super) unprotected: Unprotected,
    pub(super) dirty_slots: Bag,
    /// Slots that lead to candidates. `noting`: whether such slots are noted.
    pub(super) references: References,
    noting: Num,
}

// SAFETY: the runtime is written before any other thread knows the trace, and after all have
// forgotten it; all else is atomics and locks.
unsafe impl Sync for Trace {}

impl Trace {
    /// Begins to use the trace, for a heap with objects in `space`. Returns false without memory.
    ///
    /// # Safety
    ///
    /// Nobody else knows the trace yet.
    pub(super) unsafe fn begin(&self, space: &'static Space, runtime: Runtime) -> bool {
        // SAFETY: by the contract.
        unsafe { (*self.runtime.get()).write(runtime) };
        self.space.set(ptr::from_ref(space).cast_mut());
        *self.finalizers.lock() = Finalizers::new();
        self.marking.begin()
    }

    #[inline]
    pub(super) fn space(&self) -> &'static Space {
        // SAFETY: `begin` set the pointer before any use, and spaces are never freed.
        unsafe { &*self.space.get() }
    }

    #[inline]
    pub(super) fn runtime(&self) -> &Runtime {
        // SAFETY: `begin` wrote the runtime before any other thread knew the trace.
        let runtime = unsafe { &*self.runtime.get() };
        // SAFETY: `begin` wrote the runtime before any other thread knew the trace.
        unsafe { runtime.assume_init_ref() }
    }

    /// Returns whether tracers note slots that lead to pages whose objects are to be moved.
    #[inline]
    pub(super) fn is_noting(&self) -> bool {
        self.noting.get() != 0
    }

    pub(super) fn note_references(&self, noting: bool) {
        self.noting.set(usize::from(noting));
    }

    pub(super) fn end(&self) {
        self.handles.end();
        self.weak.end();
        self.references.end();
        self.noting.set(0);
        self.dirty_slots.end();
        self.finalizers.lock().end();
        self.guardians.end();
        self.settling.clear();
        self.due.end();
        self.weak_passes.end();
        self.unprotected.end();
        self.marking.end();
        self.generations.end();
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        self.references.each_lock(with);
        self.dirty_slots.each_lock(with);
        with(&self.finalizers);
        self.guardians.each_lock(with);
        self.due.each_lock(with);
        self.weak_passes.each_lock(with);
        self.unprotected.each_lock(with);
    }

    pub(super) fn each_later_lock(&self, with: With<'_>) {
        self.weak.each_lock(with);
        self.marking.each_lock(with);
        self.generations.remembered.each_lock(with);
        self.handles.each_lock(with);
    }
}
