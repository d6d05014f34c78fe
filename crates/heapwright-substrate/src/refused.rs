//! A value for which there was no memory goes back to the caller.
//!
//! Called by `pool` and `arena`.

use core::fmt;

/// Values of up to this size are passed in registers. Larger values would be copied to the stack.
pub const IN_REGISTERS: usize = 16;

/// A value for which a pool or an arena had no memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<T>(pub T);

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refused(..)")
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory, or the limit is reached")
    }
}

impl<T> core::error::Error for Refused<T> {}
