//! Poisoned bytes: those of live blocks that the program says nobody may use, by AddressSanitizer's
//! interface.
//!
//! A range counts as far as the block goes that it begins in: what is outside of live blocks nobody
//! may use anyway, and what is outside of the heap cannot be poisoned, for nobody would say when
//! that memory becomes something else. A block that is freed, or given another size, has no poison
//! any more.
//!
//! Called by `debug`'s doors, and by `deallocate` and `resize` for blocks that go.

use crate::sync;

use super::super::poisoned;
use super::super::span::{Form, Place, Poison, Span};
use super::Heap;
use super::bounds;

impl Heap {
    /// Poisons bytes from `address` on, as far as the live block goes that it lies in; or no
    /// longer.
    ///
    /// Does nothing in a signal handler that has interrupted its thread in the heap.
    #[cold]
    pub(in crate::debug) fn poison(
        &'static self,
        span: &'static Span,
        address: usize,
        bytes: usize,
        poisons: bool,
    ) {
        if sync::is_interrupted() || !poisons && !span.has_poison() {
            return;
        }
        // A unit at a time, for the lock is not to be held long.
        for mut piece in poisoned::pieces(address, bytes.min(bounds::left(span, address))) {
            let mut store = self.store.lock();
            // Looked at again under the lock, under which no span ends.
            piece.bytes = piece.bytes.min(bounds::left(span, piece.address()));
            if piece.bytes == 0 {
                return;
            }
            if poisons {
                poisoned::set(&mut store.side, span, piece);
            } else {
                poisoned::clear(piece);
            }
        }
    }
}

/// The block of a slot, of so many bytes, is about to go: nothing of it is poisoned any more.
#[cold]
pub(super) fn clear_poison(place: Place, size: usize) {
    poisoned::pieces(place.block().addr(), size).for_each(poisoned::clear);
    if place.bucket.span.form() == Form::Large {
        place.bucket.span.set_poison(Poison::Gone);
    }
}
