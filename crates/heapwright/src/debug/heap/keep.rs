//! Kept blocks: blocks that the program declares as no leaks, by LeakSanitizer's interface.
//!
//! A bit in a slot's word marks such a block. A leak check counts it, and everything it leads to,
//! as reachable. A resize in place and the slot's next block clear the bit. Called by `debug`'s
//! entry points, and by `place` and `resize` while a thread keeps its blocks.

use super::super::slot::State;
use super::super::span::{Found, Span};
use super::Heap;
use super::enter::EnteredState;

/// Keeps, or stops keeping, the live block in whose slot `address` lies. Returns false without such
/// a block.
#[cold]
pub(in crate::debug) fn keep(address: usize, kept: bool) -> bool {
    let Some(span) = Span::of(address) else { return false };
    let Found::Slot(place) = span.locate(address) else { return false };
    let record = place.record();
    loop {
        let word = record.word();
        if word.state() != State::Live {
            return false;
        }
        // If another thread changed the word meanwhile, it is read again.
        if record.exchange(word, word.kept(kept)).is_ok() {
            return true;
        }
    }
}

impl EnteredState {
    /// Keeps a new block (not null) if its thread keeps all of its blocks.
    #[inline]
    pub(super) fn keep_if_asked(&mut self, block: *mut u8) {
        if self.mine().keeps > 0 {
            keep(block.addr(), true);
        }
    }
}

impl Heap {
    /// Starts or stops keeping the calling thread's further blocks. Calls nest.
    #[cold]
    pub(in crate::debug) fn keep_new(&'static self, kept: bool) {
        let Some(mut entered) = self.enter() else { return };
        let keeps = &mut entered.mine().keeps;
        *keeps = if kept { keeps.saturating_add(1) } else { keeps.saturating_sub(1) };
    }
}
