//! Letter boxes: blocks that a thread leaves for another thread to free. Chance decides which of
//! two threads frees a block, so the checksum is a sum.

use crate::joined;
use crate::memory::Block;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) type LetterBox = Mutex<Vec<Block>>;

/// Runs `work` in one thread for each box. The sum includes blocks left in the boxes.
pub(crate) fn exchange<const THREADS: usize>(
    boxes: [LetterBox; THREADS],
    work: impl Fn(usize, &[LetterBox; THREADS]) -> u64 + Sync,
) -> u64 {
    let sum = std::thread::scope(|scope| {
        let (boxes, work) = (&boxes, &work);
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(thread, boxes))).collect();
        threads.into_iter().map(joined).fold(0, u64::wrapping_add)
    });
    boxes.into_iter().fold(sum, |sum, letters| {
        release_all(letters.into_inner().unwrap_or_else(PoisonError::into_inner), sum)
    })
}

pub(crate) fn open(letters: &LetterBox) -> MutexGuard<'_, Vec<Block>> {
    letters.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees all blocks. Returns `sum` plus their stamps.
pub(crate) fn release_all(blocks: Vec<Block>, sum: u64) -> u64 {
    blocks.into_iter().map(Block::release).fold(sum, u64::wrapping_add)
}
