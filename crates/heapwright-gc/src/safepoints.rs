//! Safepoints: where a mutator enters, stops or leaves, and how its collector stops the others.
//!
//! ```text
//!   enter --> at work --at_safepoint: the world is stopped--> rest, and help to mark --> at work
//!                     --stop_world--> the collector --go_on-->
//! ```
//!
//! If a thread waits for one heap, its mutators in all other heaps leave (see `world`). Called by
//! `cycle`, `allocation`, `attach`, `walk` and `raw`.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use heapwright_substrate::os::{self, Exit};
use heapwright_substrate::sync;
use heapwright_substrate::text::Line;

use super::heap::{self, Heap};
use super::mutator::Mutator;
use super::world::{self, Handshake, Stop, World};

const LONG: u64 = 1_000_000_000;

/// The thread attached the mutator (not by `attach_unwatched`), or entered with it.
const CAME: usize = 1;
/// The thread attached the mutator, so the thread's end detaches it.
pub(super) const ATTACHED: usize = 2;
/// The thread has ended without leaving.
pub(super) const ENDED: usize = 4;

impl Heap {
    #[inline]
    pub(super) fn at_safepoint(&self, me: &Mutator) {
        if me.poll.load(Relaxed) != 0 {
            self.rest(me);
        }
    }

    /// As `at_safepoint`, for a thread that may call rarely. Also gives back pages that waited.
    pub(super) fn at_rare_safepoint(&self, me: &Mutator) {
        self.at_safepoint(me);
        self.tend();
    }

    /// As [`Heap::at_safepoint`], for a caller that has seen that the world is to stop. In the
    /// program's own fork handlers, does nothing, because the world is stopped for this thread.
    #[cold]
    pub(super) fn rest(&self, me: &Mutator) {
        if sync::holds_all() {
            return;
        }
        me.stack.note();
        me.leave_elsewhere();
        self.world.rest(&me.handshake, || self.trace.help(&me.tracer, |_| {}));
        me.come_back();
    }

    /// Stops the world. Returns false if another thread had stopped it: then the caller has rested.
    pub(super) fn stop_world(&self, me: &Mutator) -> bool {
        if sync::holds_all() && self.world.is_stopped_by(os::thread_token()) {
            return true;
        }
        let mut until = 0;
        let leave = || {
            me.leave_elsewhere();
            let now = os::now_ns();
            if until == 0 {
                until = now + LONG;
            } else if now > until {
                until = u64::MAX;
                self.name_forgotten();
            }
            true
        };
        let stops = self.world.stop_until(Some(&me.handshake), leave) == Stop::Done;
        if !stops {
            self.rest(me);
        }
        stops
    }

    /// Writes a line if a collection waits for a thread that has ended.
    #[cold]
    fn name_forgotten(&self) {
        let mut any = false;
        self.each_mutator(|mutator| any |= mutator.is_forgotten());
        if any {
            Line::new()
                .text("a thread has ended at work in collected heap ")
                .number(self.space.id() as usize)
                .text(": it did not leave it (hw_gc_leave, hw_gc_detach), so all collections wait")
                .write();
        }
    }

    /// Lets the world go on, unless it is stopped for a fork of this thread.
    pub(super) fn go_on(&self, me: &Mutator) {
        if !self.world.is_stopped_by(os::thread_token()) {
            self.world.go_on();
            me.come_back();
        }
    }
}

impl Mutator {
    /// Enters. Waits while the world is stopped, except in the program's own fork handlers.
    pub(super) fn enter(&self) {
        if !self.try_enter() {
            self.heap().world.come_later(&self.handshake);
            self.left_others.set(1);
            self.leave_elsewhere();
            self.come_back();
        }
    }

    pub(super) fn try_enter(&self) -> bool {
        if sync::holds_all() {
            World::come_in(&self.handshake);
            return true;
        }
        self.heap().world.try_enter(&self.handshake)
    }

    /// The mutator of the calling thread in a heap. If the thread has entered with several mutators
    /// in turn (see `hw_gc_enter`), returns the one that it has not left.
    pub(super) fn of_this_thread(heap: &Heap) -> Option<&'static Self> {
        let me = os::thread_token();
        let mut found: Option<&'static Self> = None;
        heap.each_mutator(|mutator: &'static Self| {
            if mutator.thread.get() == me && found.is_none_or(|found| !found.handshake.is_present())
            {
                found = Some(mutator);
            }
        });
        found
    }

    /// Calls `with` for this mutator, and for its thread's mutators in other heaps.
    fn each_seat<'a>(&'a self, with: &mut dyn FnMut(&'a World, &'a Handshake)) {
        for heap in heap::all() {
            let seat = if ptr::eq(heap, self.heap()) {
                Some(self)
            } else if heap.is_open() {
                Self::of_this_thread(heap).filter(|other| other.how.get() & CAME != 0)
            } else {
                None
            };
            if let Some(seat) = seat {
                if seat.handshake.is_in() {
                    seat.stack.note();
                }
                with(&heap.world, &seat.handshake);
            }
        }
    }

    /// Makes the thread's mutators in other heaps leave, because the thread is about to wait for
    /// this mutator's heap. So no collector waits for them.
    pub(super) fn leave_elsewhere(&self) {
        let left = world::leave_all(&|with| self.each_seat(with), Some(&self.handshake));
        self.left_others.set(self.left_others.get() | usize::from(left));
    }

    /// Brings the thread's mutators in other heaps back, because the thread has stopped waiting.
    pub(super) fn come_back(&self) {
        if self.left_others.take() != 0 {
            world::come_back(&|with| self.each_seat(with));
        }
    }

    /// Gives the mutator to the calling thread, which is about to enter.
    pub(super) fn note_coming(&self) {
        self.note_thread();
        if self.how.get() & (CAME | ENDED) != CAME {
            self.watch(CAME);
        }
    }

    pub(super) fn note_attached(&self) {
        self.watch(CAME | ATTACHED);
    }

    /// Makes [`thread_ends`] run at the thread's end.
    fn watch(&self, how: usize) {
        self.how.set(how);
        os::watch_this_thread(Exit::Mutators, ptr::without_provenance_mut(1));
    }

    /// Returns whether the mutator's thread ended without leaving, and no other has entered since.
    pub(super) fn is_forgotten(&self) -> bool {
        self.handshake.is_in() && self.how.get() & ENDED != 0
    }
}
