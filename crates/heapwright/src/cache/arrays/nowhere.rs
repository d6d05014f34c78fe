//! Replacements for targets without restartable sequences.

use super::CpuEntry;
use crate::remote::Block;

pub(super) const EXIST: bool = false;

/// Never called: there is no per-CPU entry.
pub(super) fn take_at(_cpu_entry: &CpuEntry, _offset: usize) -> *mut Block {
    core::ptr::null_mut()
}

/// Never called: there is no per-CPU entry.
///
/// # Safety
///
/// None.
pub(super) unsafe fn put_at(_cpu_entry: &CpuEntry, _offset: usize, _block: *mut Block) -> usize {
    2
}
