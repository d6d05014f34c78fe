//! The sums of a leak check, for Rust programs.

/// A number of blocks and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Amount {
    /// The number of blocks.
    pub blocks: u64,
    /// The bytes requested for them.
    pub bytes: u64,
}

/// The result of a leak check of the process's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LeakCheck {
    /// Blocks to which no pointer leads.
    pub definite: Amount,
    /// Blocks that only definitely lost blocks lead to.
    pub indirect: Amount,
    /// Blocks that only doubtful pointers lead to.
    pub possible: Amount,
    /// Blocks that the program can still reach.
    pub reachable: Amount,
}
