//! Counts of a piece of code's allocations, which can be joined in sequence.
//!
//! ```text
//!   bytes       requested bytes, and those that reallocations added
//!   kept        live bytes at the end less those at the start           + + - + - -
//!   peak        the highest value in between                      ^
//! ```
//!
//! Two counts are joined as if one piece of code had followed the other. Called by `tallies` (a
//! thread's calls) and by `testing` (the calls of a global allocator).

/// The allocations of a piece of code on its thread. Sizes are in bytes, as requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allocations {
    /// Blocks allocated.
    pub allocations: u64,
    /// Blocks resized.
    pub reallocations: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Bytes requested by allocations, and added by resizes.
    pub bytes: u64,
    /// The most bytes live at once beyond those live at the start.
    pub peak_bytes: u64,
    /// Live bytes at the end minus those at the start.
    pub kept_bytes: i64,
}

impl Allocations {
    pub(crate) fn then(self, next: &Self) -> Self {
        let peak = self.kept_bytes.saturating_add_unsigned(next.peak_bytes);
        Self {
            allocations: self.allocations + next.allocations,
            reallocations: self.reallocations + next.reallocations,
            frees: self.frees + next.frees,
            bytes: self.bytes + next.bytes,
            peak_bytes: self.peak_bytes.max(u64::try_from(peak).unwrap_or(0)),
            kept_bytes: self.kept_bytes + next.kept_bytes,
        }
    }

    pub(crate) fn of_allocation(size: usize) -> Self {
        let bytes = size as u64;
        Self {
            allocations: 1,
            bytes,
            peak_bytes: bytes,
            kept_bytes: bytes.cast_signed(),
            ..Self::default()
        }
    }

    pub(crate) fn of_free(size: usize) -> Self {
        let kept_bytes = -(size as u64).cast_signed();
        Self { frees: 1, kept_bytes, ..Self::default() }
    }

    pub(crate) fn of_reallocation(before: usize, after: usize) -> Self {
        let added = after.saturating_sub(before) as u64;
        Self {
            reallocations: 1,
            bytes: added,
            peak_bytes: added,
            kept_bytes: (after as u64).cast_signed() - (before as u64).cast_signed(),
            ..Self::default()
        }
    }
}
