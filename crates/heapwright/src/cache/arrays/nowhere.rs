//! The sequences, where there are none.

use super::Gate;
use crate::remote::Block;

pub(super) const EXIST: bool = false;

/// Never called: there is no gate.
pub(crate) fn malloc(_size: usize, _gate: &Gate, _offset: usize) -> *mut u8 {
    core::ptr::null_mut()
}

/// Never called: there is no gate.
pub(crate) fn malloc_linear(_size: usize, _gate: &Gate, _offset: usize) -> *mut u8 {
    core::ptr::null_mut()
}

/// Never called: there is no gate.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn free(_block: *mut u8, _gate: &Gate, _rest: usize) {}

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
