//! Checked builds: each slot is looked up, filled when it comes back, and looked
//! over before it goes out again.
//!
//! ```text
//!   out -> free:  of this pool? a slot's start? out?      else one line, and the end
//!                 filled with 0xDF
//!   free -> out:  still 0xDF?                             else written to after its end
//! ```
//!
//! Which slots are out is a second set of bits beside that of the returned ones.
//! A slot that was never handed out is not looked over. Pages that a trim gave to the
//! kernel read as zero, so after the first trim a zero passes as well.

use core::slice;

use super::store::Store;
use crate::misuse;

/// What free slots are filled with.
const POISON: u8 = 0xDF;

/// A slot goes out. `fresh`: for the first time; `links`: its first word may be a
/// link.
pub(super) fn handed_out(store: &mut Store, slot: *mut u8, fresh: bool, links: bool) {
    store.note_out(slot, true);
    if fresh {
        return;
    }
    let from = if links { size_of::<usize>() } else { 0 };
    // SAFETY: the slot was filled when it came back, and is in nobody's hands.
    let bytes = unsafe { slice::from_raw_parts(slot, store.shape().size()) };
    let zero_passes = store.given_back_pages;
    let good = |&byte: &u8| byte == POISON || (zero_passes && byte == 0);
    if let Some(at) = bytes.iter().skip(from).position(|byte| !good(byte)) {
        misuse::written_when_free(store.id(), slot.addr(), from + at);
    }
}

/// A slot comes back.
pub(super) fn taken_back(store: &mut Store, slot: *mut u8) {
    store.note_out(slot, false);
    // SAFETY: the slot is the pool's, and nobody uses it any more.
    unsafe { slot.write_bytes(POISON, store.shape().size()) };
}
