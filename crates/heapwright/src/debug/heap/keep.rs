//! Kept blocks: blocks that the program declares as no leaks, by LeakSanitizer's interface.
//!
//! A bit in a slot's word marks such a block. A leak check counts it, and all that it leads to, as
//! reachable. The bit goes when the block is freed.
//!
//! Called by `debug`'s entry points, and by `place` and `resize` while a thread keeps all its
//! blocks.

use super::super::slot::State;
use super::super::span::{Found, Span};
use super::Heap;
use super::enter::EnteredState;

/// Keeps, or stops keeping, the live block at `address`. False: there is none.
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
        // The block may be freed meanwhile; then it is not kept.
        if record.exchange(word, word.kept(kept)).is_ok() {
            return true;
        }
    }
}

impl EnteredState {
    /// Keeps a block that the thread made, if it keeps all; null is none.
    #[inline]
    pub(super) fn keep_if_asked(&mut self, block: *mut u8) {
        if self.mine().keeps > 0 {
            keep(block.addr(), true);
        }
    }
}

impl Heap {
    /// The calling thread's blocks are kept from now on, or are not any more; as often as it says
    /// so.
    #[cold]
    pub(in crate::debug) fn keep_new(&'static self, kept: bool) {
        let Some(mut entered) = self.enter() else { return };
        let keeps = &mut entered.mine().keeps;
        *keeps = if kept { keeps.saturating_add(1) } else { keeps.saturating_sub(1) };
    }
}
