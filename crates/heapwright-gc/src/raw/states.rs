//! Thread states: the heap's state of each mutator, and a runtime's own states beside it.
//!
//! ```text
//!   a runtime says             the heap has
//!
//!   runs managed code          AtWork     until its next safepoint a collector waits for it
//!   is in native code, blocks  Away       between leave and enter: touches no object, nobody waits
//!   is at a safepoint          Stopped    the world is stopped, and the thread helps to mark
//!   comes back                 Away       while the world is stopped, enter waits, try_enter fails
//!   may not be interrupted     AtWork     defer: its allocations do not collect; it still stops
//!   is a fiber, not running    nothing    its stack and values are roots of the runtime's
//! ```
//!
//! A runtime with more states keeps them in its own struct of the thread, which the mutator's word
//! leads to ([`Mutator::data`]). While a mutator is away, it may be handed to another thread.

use core::ffi::c_void;

pub use super::super::abi::GcThreadState as ThreadState;
use super::super::world::Handshake;
use super::{Heap, Mutator};

fn of(handshake: &Handshake) -> ThreadState {
    // In this order: a change between the two loads may give `Away`, but never a stale `AtWork`.
    if handshake.is_in() {
        ThreadState::AtWork
    } else if handshake.is_parked() {
        ThreadState::Stopped
    } else {
        ThreadState::Away
    }
}

impl Mutator {
    /// Returns the state of the mutator's thread. Only the thread itself calls this.
    ///
    /// ```
    /// use heapwright::gc::raw::{Heap, Options, Runtime, ThreadState};
    /// let heap = Heap::new(Options::new(), Runtime::new()).expect("memory");
    /// let mutator = heap.attach().expect("memory");
    /// // SAFETY: the heap has no objects.
    /// unsafe { mutator.away(|| assert_eq!(heap.attached(|_, state| assert_eq!(state, ThreadState::Away)), 1)) };
    /// assert_eq!(mutator.state(), ThreadState::AtWork);
    /// // SAFETY: the heap has no objects.
    /// unsafe { mutator.detach() };
    /// ```
    #[must_use]
    pub fn state(&self) -> ThreadState {
        of(&self.inner().handshake)
    }
}

impl Heap {
    /// Calls `visit` for each mutator of the heap, with its C handle ([`Mutator::into_ptr`]) and
    /// its state. Returns how many mutators were visited. Any thread may call this, also in the
    /// callbacks `roots` and `event`. `visit` runs under no lock and may call any function of the
    /// heap. The visited mutator does not detach before `visit` returns, so `visit` must not wait
    /// for its end. A mutator that joins meanwhile is not visited. States are as they were a moment
    /// ago, except while the world is stopped.
    pub fn attached(&self, mut visit: impl FnMut(*mut c_void, ThreadState)) -> usize {
        let mut count = 0;
        self.inner().world.visit(|handshake| {
            count += 1;
            visit(handshake.owner().cast(), of(handshake));
        });
        count
    }
}
