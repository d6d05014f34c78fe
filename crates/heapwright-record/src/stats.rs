//! One process's memory, as one struct of 64-bit words.
//!
//! heapwright's statistics of memory come from this struct. The nine `rss_*` parts always add up to
//! [`Stats::rss`]. Each resident byte belongs to exactly one part.

use core::fmt;

/// The number of power-of-two buckets in the histogram of sizes.
pub const SIZE_BUCKETS: usize = 48;

/// Bytes before the words of a stats file.
pub const HEADER_BYTES: usize = 16;

const MAGIC: [u8; 8] = *b"HWSTATS\0";
const VERSION: u32 = 3;

macro_rules! stats {
    ($( $(#[$doc:meta])* $name:ident, )*) => {
        /// A snapshot of one process's memory. All sizes are in bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct Stats {
            $( $(#[$doc])* pub $name: u64, )*
            /// Allocations by requested size: bucket 0 counts sizes 0 and 1, bucket `i` sizes in
            /// `(2^(i-1), 2^i]`; the last, all above. Zero unless [`Stats::detailed`].
            pub sizes: [u64; SIZE_BUCKETS],
        }

        impl Stats {
            const SCALARS: usize = [$(stringify!($name)),*].len();

            /// Creates a snapshot with every word zero.
            #[must_use]
            pub const fn zero() -> Self {
                Self { $( $name: 0, )* sizes: [0; SIZE_BUCKETS] }
            }

            /// Returns the figures with their names, in order: all but those of [`Stats::name`].
            ///
            /// ```
            /// let stats = heapwright_record::Stats::zero();
            /// assert!(stats.fields().any(|(name, _)| name == "rss_live"));
            /// ```
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [ $( (stringify!($name), self.$name), )* ]
                    .into_iter()
                    .filter(|(name, _)| !name.starts_with("name_"))
            }

            pub(crate) fn word(&self, index: usize) -> u64 {
                let scalars = [$( self.$name ),*];
                if index < Self::SCALARS { scalars[index] } else { self.sizes[index - Self::SCALARS] }
            }

            pub(crate) fn set_word(&mut self, index: usize, value: u64) {
                let mut at = 0;
                $( if at == index { self.$name = value; } at += 1; )*
                if index >= at && index - at < SIZE_BUCKETS {
                    self.sizes[index - at] = value;
                }
            }
        }
    };
}

stats! {
    /// The process that was measured.
    pid,
    /// Nanoseconds from the opening of the window, at the first use of heapwright, to the snapshot.
    elapsed_ns,
    /// 1 if every allocation was counted (options `stats=exit`, `stats_file` and `trace`), so that
    /// sizes, rounding and totals are known; 0 if only the heap's own records were read.
    detailed,
    /// Resident bytes of the whole process now.
    rss,
    /// The highest `rss` the kernel saw in this process image.
    peak_rss,
    /// Part of `rss`: bytes that the program requested and holds.
    rss_live,
    /// Part of `rss`: the difference between requested sizes and slots. In debug mode also freed
    /// blocks that the heap remembers.
    rss_rounding,
    /// Part of `rss`: free or never used slots in slabs that hold live blocks.
    rss_partial,
    /// Part of `rss`: free blocks and runs that wait in caches.
    rss_caches,
    /// Part of `rss`: remote frees that the owner has not drained.
    rss_remote,
    /// Part of `rss`: free pages that will be given back after the purge delay.
    rss_lazy,
    /// Part of `rss`: the heap's tables, records and caches.
    rss_metadata,
    /// Part of `rss`: pools, arenas and collected heaps, including their free memory.
    rss_pools,
    /// Part of `rss`: code, stacks, files, other allocators.
    rss_not_ours,
    /// Bytes in blocks the program holds, counted as the slots that carry them.
    live_bytes,
    /// Blocks the program holds.
    live_blocks,
    /// Part of `live_bytes`: blocks of more than 32 KiB.
    large_bytes,
    /// Part of `live_blocks`: blocks of more than 32 KiB.
    large_blocks,
    /// Highest `live_bytes`, if `detailed`.
    peak_live_bytes,
    /// Blocks allocated since the start, if `detailed`.
    allocations,
    /// Blocks freed since the start, if `detailed`.
    frees,
    /// Bytes requested since the start, if `detailed`.
    requested_bytes,
    /// Frees of blocks that belong to another allocator, passed on to it.
    foreign_frees,
    /// Address space the heap may use.
    window_bytes,
    /// Part of `window_bytes` made writable so far.
    committed_bytes,
    /// Bytes given back to the kernel since the start.
    purged_bytes,
    /// Thread caches in use.
    caches_live,
    /// Thread caches whose thread has ended, and which still have slabs.
    caches_orphaned,
    /// Thread caches ever made.
    caches_made,
    /// First-class heaps in use.
    heaps_live,
    /// Pages that back memory, in bytes (4096, 16384 or 65536).
    page_size,
    /// Shared or per-CPU caches; 0 if each thread has its own.
    caches_shared,
    /// Part of `caches_shared`: the caches that were ever used.
    caches_touched,
    /// Free bytes in shared caches, in CPUs' arrays and in central lists.
    caches_bytes,
    /// Free bytes in the fullest shared cache.
    caches_largest,
    /// Failed tries to enter a shared cache, because another thread held it.
    cache_failed_tries,
    /// Times a thread had to wait for a shared cache.
    cache_waits,
    /// Completed restartable sequences, if `detailed`.
    rseq_commits,
    /// Restartable sequences that were interrupted, and had no effect.
    rseq_aborts,
    /// Operations that a CPU's lock served because a sequence was interrupted.
    rseq_fallbacks,
    /// The first eight bytes of the process's name; see [`Stats::name`].
    name_low,
    /// The next eight bytes of the process's name, zero at the end.
    name_high,
}

impl Default for Stats {
    fn default() -> Self {
        Self::zero()
    }
}

/// The reason why some bytes are not a stats file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are shorter than their header, or than the header says.
    Truncated,
    /// The bytes do not begin with the magic of a stats file.
    NotStats,
    /// An incompatible version wrote the bytes.
    Version(u32),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the stats file is cut short"),
            Self::NotStats => f.write_str("not a heapwright stats file"),
            Self::Version(v) => {
                write!(f, "stats file of version {v}; this command reads version {VERSION}")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

impl Stats {
    /// Words in the encoding.
    pub const WORDS: usize = Self::SCALARS + SIZE_BUCKETS;
    /// Bytes in the encoding, header included.
    pub const ENCODED_BYTES: usize = HEADER_BYTES + 8 * Self::WORDS;

    /// Returns the bucket of [`Stats::sizes`] that counts an allocation of `size` bytes.
    ///
    /// ```
    /// use heapwright_record::Stats;
    /// assert_eq!(Stats::size_bucket(0), 0);
    /// assert_eq!(Stats::size_bucket(16), 4);
    /// assert_eq!(Stats::size_bucket(17), 5);
    /// ```
    #[must_use]
    pub const fn size_bucket(size: usize) -> usize {
        let bucket = (usize::BITS - size.saturating_sub(1).leading_zeros()) as usize;
        if size <= 1 {
            0
        } else if bucket < SIZE_BUCKETS {
            bucket
        } else {
            SIZE_BUCKETS - 1
        }
    }

    /// Returns the process's name as the kernel knows it: up to 15 bytes, then zeros.
    ///
    /// ```
    /// use heapwright_record::Stats;
    /// let mut stats = Stats::zero();
    /// stats.set_name(*b"python3\0\0\0\0\0\0\0\0\0");
    /// assert!(stats.name().starts_with(b"python3\0"));
    /// ```
    #[must_use]
    pub const fn name(&self) -> [u8; 16] {
        (self.name_low as u128 | (self.name_high as u128) << 64).to_le_bytes()
    }

    /// Sets the process's name.
    pub const fn set_name(&mut self, name: [u8; 16]) {
        let name = u128::from_le_bytes(name);
        self.name_low = name as u64;
        self.name_high = (name >> 64) as u64;
    }

    /// Returns the sum of the nine parts of the resident memory.
    #[must_use]
    pub const fn rss_parts(&self) -> u64 {
        self.rss_live
            + self.rss_rounding
            + self.rss_partial
            + self.rss_caches
            + self.rss_remote
            + self.rss_lazy
            + self.rss_metadata
            + self.rss_pools
            + self.rss_not_ours
    }

    /// Returns the bytes of a stats file.
    ///
    /// ```
    /// use heapwright_record::Stats;
    /// let stats = Stats { rss: 4096, ..Stats::zero() };
    /// assert_eq!(Stats::decode(&stats.encode()), Ok(stats));
    /// ```
    #[must_use]
    pub fn encode(&self) -> [u8; Self::ENCODED_BYTES] {
        let mut out = [0; Self::ENCODED_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&(8 * Self::WORDS as u32).to_le_bytes());
        for index in 0..Self::WORDS {
            let at = HEADER_BYTES + 8 * index;
            out[at..at + 8].copy_from_slice(&self.word(index).to_le_bytes());
        }
        out
    }

    /// Reads the bytes of a stats file.
    ///
    /// # Errors
    ///
    /// Names the fault of the bytes. No bytes make this function panic.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = bytes.get(..HEADER_BYTES).ok_or(DecodeError::Truncated)?;
        if header[..8] != MAGIC {
            return Err(DecodeError::NotStats);
        }
        let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let length = u32::from_le_bytes([header[12], header[13], header[14], header[15]]) as usize;
        let words = bytes[HEADER_BYTES..].get(..length).ok_or(DecodeError::Truncated)?;
        let mut stats = Self::zero();
        for (index, word) in words.chunks_exact(8).take(Self::WORDS).enumerate() {
            let mut value = [0; 8];
            value.copy_from_slice(word);
            stats.set_word(index, u64::from_le_bytes(value));
        }
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_survives_the_round_trip() {
        let mut stats = Stats::zero();
        for index in 0..Stats::WORDS {
            stats.set_word(index, 1000 + index as u64);
        }
        assert_eq!(Stats::decode(&stats.encode()), Ok(stats));
        assert_eq!(stats.pid, 1000);
        assert_eq!(stats.sizes[SIZE_BUCKETS - 1], 1000 + Stats::WORDS as u64 - 1);
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = Stats::zero().encode();
        for cut in 0..bytes.len() {
            assert_eq!(Stats::decode(&bytes[..cut]), Err(DecodeError::Truncated), "{cut}");
        }
    }

    #[test]
    fn foreign_bytes_and_versions_are_refused() {
        let mut bytes = Stats::zero().encode();
        bytes[8] = 9;
        assert_eq!(Stats::decode(&bytes), Err(DecodeError::Version(9)));
        bytes[0] = b'X';
        assert_eq!(Stats::decode(&bytes), Err(DecodeError::NotStats));
    }

    #[test]
    fn longer_and_shorter_writers_are_read() {
        let stats = Stats { rss: 7, ..Stats::zero() };
        let full = stats.encode();
        let mut shorter = full[..HEADER_BYTES + 8 * 6].to_vec();
        shorter[12..16].copy_from_slice(&48u32.to_le_bytes());
        assert_eq!(Stats::decode(&shorter).unwrap().rss, 7);
        let mut longer = full.to_vec();
        longer.extend_from_slice(&[1; 8]);
        longer[12..16].copy_from_slice(&(8 * (Stats::WORDS as u32 + 1)).to_le_bytes());
        assert_eq!(Stats::decode(&longer), Ok(stats));
    }

    extern crate std;
    use std::vec::Vec;
    #[test]
    fn buckets_are_monotonic_and_bounded() {
        let sizes: Vec<usize> = (0..64).map(|b| 1usize << b).collect();
        for pair in sizes.windows(2) {
            assert!(Stats::size_bucket(pair[0]) <= Stats::size_bucket(pair[1]));
        }
        assert_eq!(Stats::size_bucket(usize::MAX), SIZE_BUCKETS - 1);
    }
}
