//! One operation of a program, or of the trace itself.

/// One operation of a thread. In the file:
///
/// ```text
///  1  Thread        n: name                 (n: LEB128; +-n: zigzag, then LEB128)
///  2  Time          n: ms
///  3  Malloc        +-n: block | n: size
///  4  Calloc        +-n: block | n: size
///  5  Aligned       +-n: block | n: size | n: log2 of the alignment
///  6  AlignedZero   +-n: block | n: size | n: log2 of the alignment
///  7  Free          +-n: block
///  8  ReallocBegin  +-n: block
///  9  ReallocEnd    +-n: block | n: size
/// 10  ReallocFailed
/// 11  Resize        +-n: block | n: size
/// 12  ThreadEnd
/// 13  Fork
/// ```
///
/// A block's or thread's name is any number that no other live block or thread has. The library
/// writes addresses (divided by 16), and the command writes numbers. A block's name is written as
/// the difference to the preceding name in the chunk.
///
/// ```
/// use heapwright_record::trace::{Coder, Operation};
///
/// let mut place = [0; Coder::MOST];
/// let malloc = Operation::Malloc { block: 7, size: 300 };
/// let length = Coder::new().put(malloc, &mut place);
/// assert_eq!(place[..length], [3, 14, 0xac, 0x02]);
/// assert_eq!(Coder::new().take(&place[..length]), Some((malloc, &[][..])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The next operations are those of the thread with this name.
    Thread(u64),
    /// This many milliseconds passed.
    Time(u64),
    /// `malloc`, `operator new` and similar.
    Malloc {
        /// The block's name.
        block: u64,
        /// Requested bytes.
        size: u64,
    },
    /// `calloc`.
    Calloc {
        /// The block's name.
        block: u64,
        /// Requested bytes in all.
        size: u64,
    },
    /// `aligned_alloc` and similar, for an alignment of more than 16 bytes.
    Aligned {
        /// The block's name.
        block: u64,
        /// Requested bytes.
        size: u64,
        /// The alignment's logarithm, at most 63.
        log2: u8,
        /// Whether the memory had to be zero.
        zero: bool,
    },
    /// `free`, in any form.
    Free {
        /// The block's name.
        block: u64,
    },
    /// The old block of a `realloc` no longer belongs to the program.
    ReallocBegin {
        /// The block's name.
        block: u64,
    },
    /// The thread's `realloc` returned the new block.
    ReallocEnd {
        /// The block's name, which may be the old one's.
        block: u64,
        /// Requested bytes.
        size: u64,
    },
    /// The thread's `realloc` failed: the old block is the program's again.
    ReallocFailed,
    /// A `realloc` after which the block has the same name.
    Resize {
        /// The block's name.
        block: u64,
        /// Requested bytes.
        size: u64,
    },
    /// The thread ends.
    ThreadEnd,
    /// The process was forked. The child has a trace of its own from here on.
    Fork,
}

impl Operation {
    /// Returns whether a replay repeats the operation: the program allocates, resizes or frees. Of
    /// the two halves of a `realloc` only the first counts.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        matches!(
            self,
            Self::Malloc { .. }
                | Self::Calloc { .. }
                | Self::Aligned { .. }
                | Self::Free { .. }
                | Self::ReallocBegin { .. }
                | Self::Resize { .. }
        )
    }
}
