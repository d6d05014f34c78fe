//! Leak checks where there are none: not on Linux, or under Miri. See `leaks`.

use heapwright_record::debug::Occasion;

use super::heap::Heap;

/// Blocks and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Amount {
    /// Blocks.
    pub blocks: u64,
    /// Their bytes, as they were asked for.
    pub bytes: u64,
}

/// What a leak check found of the process's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LeakCheck {
    /// Nothing leads to them.
    pub definite: Amount,
    /// Only definitely lost blocks lead to them.
    pub indirect: Amount,
    /// Only what may be no pointer to them leads to them.
    pub possible: Amount,
    /// The program still has a way to them.
    pub reachable: Amount,
}

pub(super) fn check(_heap: &'static Heap, _occasion: Occasion) -> Option<LeakCheck> {
    None
}

pub(super) fn check_at_exit(_heap: &'static Heap) {}

pub(super) fn prepare() {}

pub(super) fn in_child() {}

pub(super) fn tick(_heap: &'static Heap) {}

pub(super) fn note_live(_ns: u64, _sequence: u32, _blocks: impl FnOnce() -> u64, _bytes: u64) {}
