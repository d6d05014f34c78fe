//! The spill: memory that the processes of a run share, for entries that no file takes.
//!
//! A process that changes its user, enters a `chroot`, or fills the disk cannot write to its record
//! any more. Its entries go into this memory, and the command adds them to the record at the end.
//!
//! ```text
//!   file    | rules of unwind tables, 1 MiB | spill, 16 MiB                          |
//!   spill   | blocks in use 8 | not used    | block | block | block | ...
//!   block   | process 4 | bytes 2 | kind 2  | at most 1016 bytes of entries          |  1 KiB
//! ```
//!
//! A writer takes adjacent blocks by one addition, copies the bytes, and then stores each block's
//! first word. A process that is killed leaves blocks without a process, which a reader skips.
//! Nothing in the spill is trusted: every process of the run can write to it.

/// The place of the spill in the file.
pub const OFFSET: usize = 1 << 20;
/// Bytes of the spill.
pub const BYTES: usize = 16 << 20;
/// Bytes of a block.
pub const BLOCK: usize = 1 << 10;
/// Bytes of entries in a block, at most.
pub const ROOM: usize = BLOCK - size_of::<u64>();
/// Blocks of the spill, without the first one.
pub const BLOCKS: u64 = (BYTES / BLOCK - 1) as u64;

/// The meaning of a block's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The entries follow those that the process's file holds.
    Next = 1,
    /// The entries repeat those that the process's file holds, in case the file is gone.
    Again = 2,
}

/// Returns the first word of a block.
///
/// ```
/// use heapwright_record::spill::{Kind, word};
/// assert_eq!(word(7, 16, Kind::Next), 7 | 16 << 32 | 1 << 48);
/// ```
#[must_use]
pub const fn word(process: u32, bytes: usize, kind: Kind) -> u64 {
    process as u64 | (bytes as u64) << 32 | (kind as u64) << 48
}

/// Returns the used blocks of a spill in order: the process, the kind, and the bytes.
///
/// ```
/// use heapwright_record::spill::{BLOCK, Kind, blocks, word};
///
/// let mut spill = vec![0; 4 * BLOCK];
/// spill[..8].copy_from_slice(&3u64.to_ne_bytes());
/// spill[2 * BLOCK..2 * BLOCK + 8].copy_from_slice(&word(7, 3, Kind::Next).to_ne_bytes());
/// spill[2 * BLOCK + 8..2 * BLOCK + 11].copy_from_slice(b"abc");
/// assert!(blocks(&spill).eq([(7, Kind::Next, &b"abc"[..])]));
/// ```
pub fn blocks(spill: &[u8]) -> impl Iterator<Item = (u32, Kind, &[u8])> {
    let (all, _) = spill.as_chunks::<BLOCK>();
    let used = all.first().map_or(0, word_of);
    let used = usize::try_from(used).unwrap_or(usize::MAX);
    all.iter().skip(1).take(used).filter_map(|block| {
        let word = word_of(block);
        let kind = match word >> 48 {
            1 => Kind::Next,
            2 => Kind::Again,
            _ => return None,
        };
        let bytes = block.get(size_of::<u64>()..)?.get(..(word >> 32 & 0xffff) as usize)?;
        Some((word as u32, kind, bytes)).filter(|(process, ..)| *process != 0)
    })
}

fn word_of(block: &[u8; BLOCK]) -> u64 {
    block.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}
