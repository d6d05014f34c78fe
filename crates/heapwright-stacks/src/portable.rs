//! Call stacks on systems without a walk, and under Miri: there are none.

use core::ffi::c_void;

use super::depot::DEPOT;
use super::{Counts, Module, Stack};

/// An empty scratch. Zeroed memory is a valid value.
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

pub(super) struct Registers;

pub(super) fn registers() -> Registers {
    Registers
}

pub(super) fn capture(scratch: &mut Scratch, _depth: usize, _start: &Registers) -> Stack {
    scratch.counts.captures += 1;
    Stack::NONE
}

pub(super) fn above(
    _scratch: &mut Scratch,
    _start: &Registers,
    _is: impl FnMut(usize) -> bool,
) -> Option<usize> {
    None
}

/// # Safety
///
/// This function has no preconditions.
pub(super) unsafe fn of_context(
    scratch: &mut Scratch,
    _depth: usize,
    _context: *const c_void,
) -> Stack {
    scratch.counts.captures += 1;
    Stack::NONE
}

pub(super) fn prepare() {}

pub(super) fn spare_foreign_stacks() {}

pub(super) fn forget_code() {}

pub(super) const SHARED_BYTES: usize = 1 << 20;

pub(super) fn share(_path: &core::ffi::CStr) {}

pub(super) fn module_range(_pc: usize) -> Option<core::ops::Range<usize>> {
    None
}

pub(super) fn module_of(_pc: usize) -> Option<Module> {
    None
}

pub(super) fn symbol_of(_pc: usize, _found: impl FnOnce(&[u8], usize)) -> bool {
    false
}

pub(super) fn own_module() -> Option<core::ops::Range<usize>> {
    None
}
