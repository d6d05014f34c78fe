//! Minimises Boolean functions: covers of cubes, split and merged.
//!
//! The field's "espresso" minimises the logic of programmable arrays. A function is a cover, a list
//! of cubes. A cube is a bit set with two bits for each variable (may it be 0, may it be 1).
//! Shannon's expansion splits the cover on its busiest variable, minimises both halves, merges
//! equal cubes, sorts, and drops covered cubes. Lists grow by `realloc`; sets are small blocks of
//! one size for each function. Lifetimes are stack-like, but not strictly.
//!
//! Life cycle: some hundreds of blocks of 16 to 64 bytes, and lists to a few KiB. Blocks deeper in
//! the recursion die sooner.

use crate::checksum::fold;
use crate::memory::Array;
use crate::random::Random;
use crate::{Workload, scaled};
use std::cmp::Reverse;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "espresso",
    stands_for: "Optimisers and solvers that split, merge, sort and drop many small sets: blocks \
                 of mixed small sizes with stack-like lifetimes, and short lists that grow by \
                 realloc.",
    threads: 1,
    live_bytes: 60_000,
    operations: 8_500_000,
    run,
};

/// Every other bit: the bits of "may be 0".
const LOW: u64 = 0x5555_5555_5555_5555;

const VARIABLES_IN_WORD: usize = 32;

/// The words of a cube in each function.
const WORDS: [usize; 6] = [2, 3, 4, 5, 6, 8];

type Cube = Array<u64>;
type Cover = Vec<Cube>;

fn run(scale: u32) -> u64 {
    let mut random = Random::new(0xe59);
    let mut sum = 0;
    for function in 0..scaled(scale, 180, 3) {
        let words = WORDS[function % WORDS.len()];
        let cubes = random.between(60, 90);
        let cover = minimise(random_cover(&mut random, words, cubes), 0);
        for cube in &cover {
            sum = cube.iter().copied().fold(sum, fold);
        }
    }
    sum
}

/// Makes a function that uses a few of its variables in each cube.
fn random_cover(random: &mut Random, words: usize, cubes: usize) -> Cover {
    let mut cover = Cover::new();
    for _ in 0..cubes {
        let mut cube = Cube::zeroed(words);
        cube.fill(u64::MAX);
        for _ in 0..random.between(4, 7) {
            let variable = random.below(12) * words * VARIABLES_IN_WORD / 12;
            restrict(&mut cube, variable, random.one_in(2));
        }
        cover.push(cube);
    }
    cover
}

/// Returns a cover of the same function, most often with fewer cubes.
fn minimise(cover: Cover, depth: usize) -> Cover {
    let Some(variable) = busiest_variable(&cover) else { return without_covered(cover) };
    if cover.len() < 3 || depth > 10 {
        return without_covered(cover);
    }
    let zero = minimise(cofactor(&cover, variable, false), depth + 1);
    let one = minimise(cofactor(&cover, variable, true), depth + 1);
    drop(cover);
    without_covered(merge(zero, one, variable))
}

fn busiest_variable(cover: &Cover) -> Option<usize> {
    let words = cover.first()?.len();
    let mut counts = Array::<u32>::zeroed(words * VARIABLES_IN_WORD);
    for cube in cover {
        for (word, &bits) in cube.iter().enumerate() {
            // A variable that does not matter has both bits set.
            let mut asked = !(bits & bits >> 1) & LOW;
            while asked != 0 {
                let variable = asked.trailing_zeros() as usize / 2;
                counts[word * VARIABLES_IN_WORD + variable] += 1;
                asked &= asked - 1;
            }
        }
    }
    let (variable, &count) = counts.iter().enumerate().max_by_key(|&(_, &count)| count)?;
    (count > 0).then_some(variable)
}

fn cofactor(cover: &Cover, variable: usize, value: bool) -> Cover {
    let mut half = Cover::new();
    for cube in cover {
        let (word, shift) = place(variable);
        if cube[word] >> shift & bit_of(value) != 0 {
            let mut free = Cube::copy(cube);
            free[word] |= 3 << shift;
            half.push(free);
        }
    }
    half
}

/// Joins both halves. Cubes in both do not depend on the variable.
fn merge(mut zero: Cover, mut one: Cover, variable: usize) -> Cover {
    sort(&mut zero);
    sort(&mut one);
    let mut merged = Cover::new();
    let mut others = one.into_iter().peekable();
    for mut cube in zero {
        while let Some(mut other) = others.next_if(|other| order(other) < order(&cube)) {
            restrict(&mut other, variable, true);
            merged.push(other);
        }
        if others.next_if(|other| **other == *cube).is_none() {
            restrict(&mut cube, variable, false);
        }
        merged.push(cube);
    }
    for mut other in others {
        restrict(&mut other, variable, true);
        merged.push(other);
    }
    merged
}

/// Removes the cubes that lie in another cube.
fn without_covered(mut cover: Cover) -> Cover {
    sort(&mut cover);
    let mut kept = Cover::new();
    for cube in cover {
        let covered = |larger: &Cube| larger.iter().zip(&*cube).all(|(l, c)| c & !l == 0);
        if !kept.iter().any(covered) {
            kept.push(cube);
        }
    }
    kept
}

fn sort(cover: &mut Cover) {
    cover.sort_by(|a, b| order(a).cmp(&order(b)));
}

fn order(cube: &Cube) -> (Reverse<u32>, &[u64]) {
    (Reverse(cube.iter().map(|word| word.count_ones()).sum()), cube)
}

fn restrict(cube: &mut Cube, variable: usize, value: bool) {
    let (word, shift) = place(variable);
    cube[word] &= !(bit_of(!value) << shift);
}

/// Returns the word of a variable, and the place of its two bits in it.
fn place(variable: usize) -> (usize, usize) {
    (variable / VARIABLES_IN_WORD, variable % VARIABLES_IN_WORD * 2)
}

fn bit_of(value: bool) -> u64 {
    if value { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_true(cover: &Cover, point: &Cube) -> bool {
        cover.iter().any(|cube| cube.iter().zip(&**point).all(|(c, p)| p & !c == 0))
    }

    #[test]
    fn minimising_keeps_the_function_and_drops_cubes() {
        let mut random = Random::new(3);
        let cover = random_cover(&mut random, 2, 80);
        let copy = cover.iter().map(|cube| Cube::copy(cube)).collect();
        let less = minimise(copy, 0);
        let (mut trues, mut falses) = (0, 0);
        for _ in 0..5_000 {
            let mut point = Cube::new(2);
            point.fill(u64::MAX);
            for variable in 0..2 * VARIABLES_IN_WORD {
                restrict(&mut point, variable, random.one_in(2));
            }
            let value = is_true(&cover, &point);
            assert_eq!(value, is_true(&less, &point));
            *(if value { &mut trues } else { &mut falses }) += 1;
        }
        assert!(trues > 100 && falses > 100, "{trues} {falses}");
    }
}
