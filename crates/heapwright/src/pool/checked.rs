//! Checked builds: each slot is looked up and filled when it is freed, and checked before reuse.
//!
//! ```text
//!   out -> free:  of this pool? a slot's start? out?      if not, the process ends with one line
//!                 filled with 0xDF
//!   free -> out:  still 0xDF?                             if not, it was written to when free
//!   at the end:   slots that are out without a key are reported; free slots are checked
//! ```
//!
//! A second set of bits holds the slots that are out. There is no front. Slots that were never
//! handed out are not checked. After the first trim, zero bytes pass the check as well, because
//! released pages read as zero.

use core::slice;

use super::store::{Store, Walk};
use crate::leases::Lease;
use crate::misuse;

const POISON: u8 = 0xDF;

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

/// Frees a slot.
///
/// # Safety
///
/// The slot belongs to the pool, and no code uses it afterwards.
pub(super) unsafe fn free(store: &mut Store, slot: *mut u8) {
    store.note_out(slot, false);
    // SAFETY: the caller promises that the slot is the pool's and not used afterwards.
    unsafe { slot.write_bytes(POISON, store.shape().size()) };
    store.put(&[slot]);
}

/// Ends the process if a free slot was written to.
fn look_over(store: &Store, slot: *mut u8) {
    // SAFETY: the slot was filled when it was freed, and no code has it.
    let bytes = unsafe { slice::from_raw_parts(slot, store.shape().size()) };
    let zero_passes = store.given_back_pages;
    let good = |&byte: &u8| byte == POISON || (zero_passes && byte == 0);
    if let Some(at) = bytes.iter().position(|byte| !good(byte)) {
        misuse::written_when_free(store.name(), slot.addr(), at);
    }
}

/// Frees all slots that are out before a reset, so that later writes to them are found.
pub(super) fn before_reset(store: &mut Store) {
    let mut walk = Walk::default();
    while let Some((segment, slot)) = store.next_out(&mut walk) {
        // SAFETY: the slot is the pool's, and the caller frees all slots.
        unsafe { free(store, store.slot(segment, slot)) };
    }
    look_over_all(store);
}

fn look_over_all(store: &Store) {
    for segment in store.segments().iter().filter(|segment| segment.exists()) {
        for slot in 0..segment.carved {
            if segment.is_returned(slot) {
                look_over(store, segment.slot(store.shape(), slot));
            }
        }
    }
}

/// Reports at a pool's end how many slots are out without a key. (The pool owns keyed objects.)
/// Each free slot must have its bit in the bitmap of returned slots.
pub(super) fn at_end(store: &Store) {
    look_over_all(store);
    let (mut walk, mut count) = (Walk::default(), 0);
    while let Some((segment, slot)) = store.next_out(&mut walk) {
        let keyed = store.lease(segment, slot).is_some_and(Lease::holds);
        count += usize::from(!keyed);
    }
    if count > 0 {
        misuse::live_at_end(store.name(), count, store.shape().size());
    }
}
