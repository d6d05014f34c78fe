//! Stubs of leak checks for other systems than Linux, and for Miri. See `leaks`.

use heapwright_record::debug::Occasion;

use super::heap::Heap;
use super::leak_check::LeakCheck;

pub(super) fn check(_heap: &'static Heap, _occasion: Occasion) -> Option<LeakCheck> {
    None
}

pub(super) fn begin(_heap: &'static Heap, _occasion: Occasion) -> bool {
    true
}

pub(super) fn check_at_exit(_heap: &'static Heap) {}

pub(super) fn prepare() {}

pub(super) fn in_child() {}

pub(super) fn tick(_heap: &'static Heap) {}

pub(super) fn note_live(_ns: u64, _sequence: u32, _blocks: impl FnOnce() -> u64, _bytes: u64) {}
