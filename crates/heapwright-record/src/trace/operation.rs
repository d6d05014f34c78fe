//! One operation of a program, or of the trace itself.

/// What a thread did.
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
    /// What follows is the thread's of this name.
    Thread(u64),
    /// So many milliseconds went by.
    Time(u64),
    /// `malloc`, `operator new` and their like.
    Malloc {
        /// Its name.
        block: u64,
        /// Bytes asked for.
        size: u64,
    },
    /// `calloc`.
    Calloc {
        /// Its name.
        block: u64,
        /// Bytes asked for, in all.
        size: u64,
    },
    /// `aligned_alloc` and its like, for more than 16 bytes' alignment.
    Aligned {
        /// Its name.
        block: u64,
        /// Bytes asked for.
        size: u64,
        /// The alignment's logarithm, at most 63.
        log2: u8,
        /// Whether the memory had to be zero.
        zero: bool,
    },
    /// `free`, in any form.
    Free {
        /// Its name.
        block: u64,
    },
    /// The old block of a `realloc` was given away.
    ReallocBegin {
        /// Its name.
        block: u64,
    },
    /// The new block of the thread's `realloc` was got.
    ReallocEnd {
        /// Its name, which may be the old one's.
        block: u64,
        /// Bytes asked for.
        size: u64,
    },
    /// The thread's `realloc` failed: the old block is the program's again.
    ReallocFailed,
    /// A `realloc` after which the block is called as before.
    Resize {
        /// Its name.
        block: u64,
        /// Bytes asked for.
        size: u64,
    },
    /// The thread ends.
    ThreadEnd,
    /// The process was forked.
    Fork,
}

impl Operation {
    /// Whether it is a call that the program made for memory: one that a replay makes
    /// again. (Of a `realloc`, its first half.)
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
