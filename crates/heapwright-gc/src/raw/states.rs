//! Threads' states: what the heap knows of each mutator, and a runtime's own states beside that.
//!
//! ```text
//!   a runtime says             the heap has
//!
//!   runs managed code          AtWork     until its next safepoint everybody waits for it
//!   is in native code, blocks  Away       between leave and enter: touches no object, nobody waits
//!   stands at a safepoint      Stopped    the world stands still, and the thread helps to mark
//!   comes back                 Away       enter waits while the world stands still; try_enter does not
//!   may not be interrupted     AtWork     defer: what it allocates collects nothing; it still stops for others
//!   is a fiber, not running    nothing    its stack and values are roots of the runtime's
//! ```
//!
//! A runtime with more states keeps them in its own struct of the thread, to which the mutator's
//! word leads ([`Mutator::data`]), and enters or leaves where one of its states changes between the
//! rows above. A mutator may be handed to another thread while it is away: from `enter` on it is
//! that thread's.

use core::ffi::c_void;

pub use super::super::abi::GcThreadState as ThreadState;
use super::super::world::Handshake;
use super::{Heap, Mutator};

/// The state that a handshake has.
fn of(handshake: &Handshake) -> ThreadState {
    // In this order: one that stops in between is `Away` for a moment at most, and never at work.
    if handshake.is_in() {
        ThreadState::AtWork
    } else if handshake.is_parked() {
        ThreadState::Stopped
    } else {
        ThreadState::Away
    }
}

impl Mutator {
    /// What its thread is at. By the thread itself: at work, or away.
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
    /// Calls `visit` for each mutator of the heap, as [`Mutator::into_ptr`] gives it, and with its
    /// state. Returns their number. Any thread may call this, also in `roots` and for an event: a
    /// runtime needs no list of its threads beside the mutators' words. `visit` runs under no lock
    /// and may call any function of the heap. The mutator that it visits does not detach before
    /// `visit` returns, so `visit` must not wait for that. A mutator that joins meanwhile is not
    /// visited. States are as they were a moment ago, except while the world stands still.
    pub fn attached(&self, mut visit: impl FnMut(*mut c_void, ThreadState)) -> usize {
        let mut count = 0;
        self.inner().world.visit(|handshake| {
            count += 1;
            visit(handshake.owner().cast(), of(handshake));
        });
        count
    }
}
