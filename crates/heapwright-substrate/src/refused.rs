//! A value for which there was no room, returned to the caller.
//!
//! Called by `pool` and `arena`.

use core::fmt;

/// Values of up to this size are passed in registers. A larger one would be copied to the stack.
pub const IN_REGISTERS: usize = 16;

/// A value that a pool or an arena had no room for, given back.
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
