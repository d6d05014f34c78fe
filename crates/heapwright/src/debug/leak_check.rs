//! What a leak check finds, for Rust programs that ask for one: sums.

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
