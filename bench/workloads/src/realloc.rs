//! Vectors that grow.
//!
//! Eight vectors grow at the same time, so that each is in the others' way. Four double when they
//! are full, up to 32 MiB, as in most languages. Four grow by a constant step, like buffers and
//! lines, and so need far more `realloc`s. Short vectors have a turn much more often than long
//! ones. A vector at its end shrinks by an eighth, is summed up and starts again. The workload
//! shows whether blocks grow in place, or by moving their pages instead of copying them.
//!
//! Life cycle: from 16 bytes to tens of MiB; all sizes between them die a moment later.

use crate::checksum::fold;
use crate::memory::Array;
use crate::random::Random;
use crate::{KIB, MIB, Workload, scaled, sized};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "realloc",
    stands_for: "Vectors, strings and buffers that grow, by doubling or by constant steps, \
                 several at once: growing in place, and moving pages instead of copying bytes.",
    threads: 1,
    live_bytes: 64_340_000,
    operations: 121_600,
    run,
};

const WORD: usize = size_of::<u64>();

enum Growth {
    Doubles,
    /// The vector grows by this many words.
    Steps(usize),
}

/// A vector that grows to `end` words. It has `turns` of [`ALL_TURNS`].
struct Vector {
    words: Array<u64>,
    growth: Growth,
    end: usize,
    turns: usize,
}

const ALL_TURNS: usize = 1024;

fn run(scale: u32) -> u64 {
    let mut random = Random::new(0x4e);
    let mut vectors = vectors(scale);
    let mut sum = 0;
    for _ in 0..scaled(scale, 120_000, 3_000) {
        let vector = whose_turn(&mut vectors, random.below(ALL_TURNS));
        let old = vector.words.len();
        if old >= vector.end {
            vector.words.resize(old - old / 8);
            sum = vector.words.iter().step_by(64).copied().fold(sum, fold);
            vector.words = Array::new(2);
            continue;
        }
        let new = match vector.growth {
            Growth::Doubles => old * 2,
            Growth::Steps(step) => old + step,
        };
        vector.words.resize(new);
        for (place, word) in vector.words[old..].iter_mut().enumerate().step_by(32) {
            *word = (old + place) as u64 ^ random.next();
        }
        sum = fold(sum, vector.words[old - 1]);
    }
    vectors.iter().fold(sum, |sum, vector| fold(sum, vector.words.len() as u64))
}

fn whose_turn(vectors: &mut [Vector], mut turn: usize) -> &mut Vector {
    let at = vectors.iter().position(|vector| {
        let found = turn < vector.turns;
        turn = turn.saturating_sub(vector.turns);
        found
    });
    &mut vectors[at.expect("the vectors' turns are all there are")]
}

/// Makes the vectors. Long and short ones grow by about the same number of bytes in total.
fn vectors(scale: u32) -> Vec<Vector> {
    let divisor = WORD * sized(scale, 1, 64);
    let vector =
        |turns, growth, bytes| Vector { words: Array::new(2), growth, end: bytes / divisor, turns };
    vec![
        vector(50, Growth::Doubles, 64 * KIB),
        vector(12, Growth::Doubles, MIB),
        vector(5, Growth::Doubles, 4 * MIB),
        vector(1, Growth::Doubles, 32 * MIB),
        vector(600, Growth::Steps(2), 8 * KIB),
        vector(268, Growth::Steps(512 / WORD), 256 * KIB),
        vector(75, Growth::Steps(8 * KIB / WORD), 8 * MIB),
        vector(13, Growth::Steps(64 * KIB / WORD), 24 * MIB),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_is_somebodys() {
        let turns: usize = vectors(1).iter().map(|vector| vector.turns).sum();
        assert_eq!(turns, ALL_TURNS);
        let mut vectors = vectors(1);
        assert_eq!(whose_turn(&mut vectors, 0).turns, 50);
        assert_eq!(whose_turn(&mut vectors, 50).turns, 12);
        assert_eq!(whose_turn(&mut vectors, ALL_TURNS - 1).turns, 13);
    }
}
