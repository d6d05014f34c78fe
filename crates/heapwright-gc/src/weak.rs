//! References that do not keep objects: weak references and ephemerons.
//!
//! ```text
//!   weak slot     a reference in an object that `trace` reports as weak
//!   weak handle   a cell outside of objects (see `weak_cells`)
//!   ephemeron     two references in an object, a key and a value: the key is weak, and the value
//!                 is kept for as long as the key lives
//!
//!   marking   roots, and all they lead to
//!       1     values whose keys are marked, and all they lead to, and again
//!       2     weak slots and handles to unmarked objects: null
//!       3     finalizers of unmarked objects become due, and these objects are marked; if there
//!             are any: from 1 again
//! ```
//!
//! A finalizer finds its object whole, with the ephemerons that have the object as their key. A
//! weak reference never leads to an object whose finalizer is due. This rule also holds for weak
//! slots in objects that finalizers keep. So once finalizers are due, every reported weak slot is
//! noted. In step 2 the finalizers' objects count as dead, although they are marked. If marking
//! goes in steps, finalizers may become due long before marking ends. They run only after its end
//! (see `finalizers`).
//!
//! **Ephemerons** are visited when nothing else is left to mark. From then on each newly marked
//! object is looked up in a table of their keys (see `ephemerons`).
//!
//! **Generations.** An object with a weak reference to a young object is traced like any other.
//! Minor collections look only at some of the weak handles (see `weak_cells`). Filled by `tracer`;
//! processed by `settling`.

use heapwright_substrate::sync::Lock;

use super::bag::Bag;
use super::cell::Num;
use super::ephemerons::Waiting;
use super::locks::With;
use super::weak_cells::WeakCells;

pub(super) struct Weak {
    pub(super) cells: WeakCells,
    /// Weak slots, and ephemerons, that were reported in this cycle.
    slots: Bag,
    ephemerons: Bag,
    pub(super) waiting: Lock<Waiting>,
    /// Whether newly marked objects are looked up among the waiting ephemerons.
    watching: Num,
    /// Whether finalizers became due in the marking under way.
    resurrects: Num,
    pub(super) cleared: Num,
}

impl Weak {
    pub(super) fn slots(&self) -> &Bag {
        &self.slots
    }

    /// The bag of noted ephemerons, as `ephemerons::Noted`.
    pub(super) fn ephemerons(&self) -> &Bag {
        &self.ephemerons
    }

    pub(super) fn is_watching(&self) -> bool {
        self.watching.get() != 0
    }

    pub(super) fn resurrects(&self) -> bool {
        self.resurrects.get() != 0
    }

    pub(super) fn set_resurrects(&self, resurrects: bool) {
        self.resurrects.set(usize::from(resurrects));
    }

    /// Sets whether each newly marked object is looked up from now on.
    pub(super) fn watch(&self, watching: bool) {
        self.watching.set(usize::from(watching));
    }

    pub(super) fn stop_watching(&self) {
        self.watch(false);
    }

    pub(super) fn end(&self) {
        self.cells.end();
        self.slots.end();
        self.ephemerons.end();
        self.waiting.lock().end();
        self.watching.set(0);
        self.resurrects.set(0);
        self.cleared.set(0);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        self.cells.each_lock(with);
        self.slots.each_lock(with);
        self.ephemerons.each_lock(with);
        with(&self.waiting);
    }
}
