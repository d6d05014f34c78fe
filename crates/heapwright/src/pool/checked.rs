//! Checked builds: each slot is looked up, filled when it comes back, and looked
//! over before it goes out again.
//!
//! ```text
//!   out -> free:  of this pool? a slot's start? out?      else one line, and the end
//!                 filled with 0xDF
//!   free -> out:  still 0xDF?                             else written to after its end
//!   at the end:   what is out and no key holds is said; what is free is looked over
//! ```
//!
//! Which slots are out is a second set of bits beside that of the returned ones.
//! There is no front: what comes back goes into the sets at once. A slot that was
//! never handed out is not looked over. Pages that a trim gave to the kernel read as
//! zero, so after the first trim a zero passes as well.

use core::slice;

use super::store::{Store, Walk};
use crate::misuse;

/// What free slots are filled with.
const POISON: u8 = 0xDF;

/// A slot, or null.
pub(super) fn alloc(store: &mut Store) -> *mut u8 {
    let returned = store.take_one();
    if let Some(slot) = returned {
        look_over(store, slot);
    }
    let slot = returned.unwrap_or_else(|| store.fresh_or_grow());
    if !slot.is_null() {
        store.note_out(slot, true);
    }
    slot
}

/// Takes a slot back.
///
/// # Safety
///
/// The slot is the pool's, and nobody uses it any more.
pub(super) unsafe fn free(store: &mut Store, slot: *mut u8) {
    store.note_out(slot, false);
    // SAFETY: the slot is the pool's, and nobody uses it any more, as the caller promises.
    unsafe { slot.write_bytes(POISON, store.shape().size()) };
    store.put(&[slot]);
}

/// Ends the process where a free slot was written to.
fn look_over(store: &Store, slot: *mut u8) {
    // SAFETY: the slot was filled when it came back, and is in nobody's hands.
    let bytes = unsafe { slice::from_raw_parts(slot, store.shape().size()) };
    let zero_passes = store.given_back_pages;
    let good = |&byte: &u8| byte == POISON || (zero_passes && byte == 0);
    if let Some(at) = bytes.iter().position(|byte| !good(byte)) {
        misuse::written_when_free(store.name(), slot.addr(), at);
    }
}

/// Before all slots are taken back, those that are out as if they were given back:
/// nothing is to write to them either.
pub(super) fn before_reset(store: &mut Store) {
    let mut walk = Walk::default();
    while let Some((segment, slot)) = store.next_out(&mut walk) {
        // SAFETY: a slot of the pool's, and the caller is about to take all of them back.
        unsafe { free(store, store.slot(segment, slot)) };
    }
    look_over_all(store);
}

/// Looks over all free slots.
fn look_over_all(store: &Store) {
    for segment in store.segments().iter().filter(|segment| segment.exists()) {
        for slot in 0..segment.carved {
            if segment.is_returned(slot) {
                look_over(store, segment.slot(store.shape(), slot));
            }
        }
    }
}

/// A pool ends: says how many slots are out that no key holds. Keyed objects are the
/// pool's own. All that is free is in the sets.
pub(super) fn at_end(store: &Store) {
    look_over_all(store);
    let (mut walk, mut count) = (Walk::default(), 0);
    while let Some((segment, slot)) = store.next_out(&mut walk) {
        let place = store.keyed(store.index_of(segment, slot));
        // SAFETY: the generation of a slot of this pool.
        let keyed = place.is_some_and(|(_, place)| unsafe { place.read() } & 1 != 0);
        count += usize::from(!keyed);
    }
    if count > 0 {
        misuse::live_at_end(store.name(), count, store.shape().size());
    }
}
