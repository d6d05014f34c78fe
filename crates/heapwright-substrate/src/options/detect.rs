//! The kinds of mistakes to look for: switches of the debug heap and the hardened heap.

use super::Wrong;

/// The kinds of mistakes to look for. Each can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detect {
    /// Blocks that are freed twice are found.
    pub double_free: bool,
    /// Freed blocks are filled, and later verified.
    pub fill: bool,
    /// Bytes around blocks are verified.
    pub canary: bool,
    /// A wrong access to a guarded block faults at once (see [`Guard`](super::debug::Guard)).
    pub guard: bool,
    /// Frees by a function of another family (`malloc`, `new`, `new[]`, Rust) are found.
    pub mismatch: bool,
    /// The sizes and alignments that a program gives with a free are compared with the block's.
    pub size: bool,
    /// Writes and reads outside a block by interposed functions of the C library are found.
    pub bounds: bool,
    /// The limit of such a write is found if it is behind the block's end, even if less is written.
    pub limit: bool,
}

impl Detect {
    /// All kinds.
    pub const ALL: Self = Self {
        double_free: true,
        fill: true,
        canary: true,
        guard: true,
        mismatch: true,
        size: true,
        bounds: true,
        limit: true,
    };
}

impl Default for Detect {
    fn default() -> Self {
        Self::ALL
    }
}

/// Sets one switch: `-fill` or `+fill`.
pub(super) fn set(detect: &mut Detect, value: &[u8]) -> Result<(), Wrong> {
    const WRONG: Wrong = Wrong::Value(
        "must be - or + and one of double-free, fill, canary, guard, mismatch, size, bounds, limit: detect=-fill",
    );
    let Some((sign, what)) = value.split_first() else { return Err(WRONG) };
    let on = match sign {
        b'+' => true,
        b'-' => false,
        _ => return Err(WRONG),
    };
    let switch = match what {
        b"double-free" => &mut detect.double_free,
        b"fill" => &mut detect.fill,
        b"canary" => &mut detect.canary,
        b"guard" => &mut detect.guard,
        b"mismatch" => &mut detect.mismatch,
        b"size" => &mut detect.size,
        b"bounds" => &mut detect.bounds,
        b"limit" => &mut detect.limit,
        _ => return Err(WRONG),
    };
    *switch = on;
    Ok(())
}
