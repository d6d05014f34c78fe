//! The sequences, where there are none.

use super::Gate;
use crate::remote::Block;

pub(super) const EXIST: bool = false;

/// Never called: there is no gate.
pub(super) fn take_at(_gate: &Gate, _offset: usize) -> *mut Block {
    core::ptr::null_mut()
}

/// Never called: there is no gate.
///
/// # Safety
///
/// None.
pub(super) unsafe fn put_at(_gate: &Gate, _offset: usize, _block: *mut Block) -> usize {
    2
}
