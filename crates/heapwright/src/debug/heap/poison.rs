//! Poisoned bytes: the program forbids their use, by AddressSanitizer's interface.
//!
//! A poisoned range ends with the block in which it begins. Memory outside of the heap cannot be
//! poisoned, because no call would tell when it is reused. A free or a resize removes a block's
//! poison. Called by `debug`'s entry points, and by `deallocate` and `resize` for blocks that end.

use crate::sync;

use super::super::poisoned;
use super::super::span::{Form, Place, Poison, Span};
use super::Heap;
use super::bounds;

impl Heap {
    /// Poisons bytes from `address` on, up to the end of their live block, or unpoisons them. Does
    /// nothing in a signal handler that interrupted the heap in its thread.
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
        // Each round handles one unit, so that the lock is not held long.
        for mut piece in poisoned::pieces(address, bytes.min(bounds::left(span, address))) {
            let mut store = self.store.lock();
            // The size is computed again. Under the lock, no span ends.
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

#[cold]
pub(super) fn clear_poison(place: Place, size: usize) {
    poisoned::pieces(place.block().addr(), size).for_each(poisoned::clear);
    if place.bucket.span.form() == Form::Large {
        place.bucket.span.set_poison(Poison::Gone);
    }
}
