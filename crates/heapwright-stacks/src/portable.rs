//! Call stacks on systems without a walk, and under Miri: there are none.

use core::ffi::c_void;

use super::depot::DEPOT;
use super::{Counts, Module, Stack};

/// An empty scratch. Valid when zeroed.
pub struct Scratch {
    counts: Counts,
}

impl Scratch {
    /// Creates an unused scratch, equal to zeroed memory.
    pub const fn new() -> Self {
        Self { counts: Counts::ZERO }
    }

    /// Returns the counts of this scratch, and the process's stacks in the depot.
    pub fn counts(&self) -> Counts {
        Counts { stacks: DEPOT.count() as u64, bytes: DEPOT.used_bytes() as u64, ..self.counts }
    }
}

/// No registers.
pub(super) struct Registers;

/// Returns no registers.
pub(super) fn registers() -> Registers {
    Registers
}

/// Returns no stack.
pub(super) fn capture(scratch: &mut Scratch, _depth: usize, _start: &Registers) -> Stack {
    scratch.counts.captures += 1;
    Stack::NONE
}

/// Returns no stack.
///
/// # Safety
///
/// None is needed.
pub(super) unsafe fn of_context(
    scratch: &mut Scratch,
    _depth: usize,
    _context: *const c_void,
) -> Stack {
    scratch.counts.captures += 1;
    Stack::NONE
}

/// There are no stacks here.
pub(super) fn prepare() {}

/// There are no stacks here.
pub(super) fn spare_foreign_stacks() {}

/// Does nothing: there is no code to forget.
pub(super) fn forget_code() {}

pub(super) const SHARED_BYTES: usize = 1 << 20;

pub(super) fn share(_path: &core::ffi::CStr) {}

/// Finds nothing: modules are unknown here.
pub(super) fn module_range(_pc: usize) -> Option<core::ops::Range<usize>> {
    None
}

/// Finds nothing, as [`module_range`].
pub(super) fn module_of(_pc: usize) -> Option<Module> {
    None
}

/// Finds nothing: symbols are unknown here.
pub(super) fn symbol_of(_pc: usize, _found: impl FnOnce(&[u8], usize)) -> bool {
    false
}

/// Finds nothing: not known here.
pub(super) fn own_module() -> Option<core::ops::Range<usize>> {
    None
}
