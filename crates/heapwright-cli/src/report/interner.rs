//! Keeps every distinct stack once, by the places of its frames in files.
//!
//! A stack costs about 100 bytes: a hash of its places, a number, and its place in a record, where
//! `naming` reads the few reported stacks. Hashes of 128 bits practically never collide.

use super::modules::Modules;
use heapwright_record::debug::Frames;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are hashes already.
pub(super) type ByHash<V> = HashMap<u128, V, BuildHasherDefault<Itself>>;

/// All distinct stacks. Number 0 is the empty stack.
pub(super) struct Interner {
    numbers: ByHash<u32>,
    pub(super) list: Vec<Source>,
}

/// The place in a record where a stack can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) record: u32,
    /// The number of the modules under which the stack was written.
    pub(super) epoch: u32,
    pub(super) at: u64,
}

impl Default for Interner {
    fn default() -> Self {
        Self { numbers: ByHash::default(), list: vec![Source::default()] }
    }
}

impl Interner {
    pub(super) fn number(&mut self, frames: &Frames<'_>, modules: &Modules, from: Source) -> u32 {
        if frames.is_empty() && !frames.cut() {
            return 0;
        }
        let mut mix = Mix::new(u64::from(frames.cut()));
        for address in frames.iter() {
            let spot = modules.spot(address, address.wrapping_sub(1));
            mix.add(u64::from(spot.file));
            mix.add(spot.offset);
        }
        match self.numbers.entry(mix.end()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                self.list.push(from);
                *place.insert(self.list.len() as u32 - 1)
            }
        }
    }
}

/// Hashes words in two lanes. Each lane multiplies by a number of its own, and folds the product.
struct Mix([u64; 2]);

impl Mix {
    fn new(seed: u64) -> Self {
        Self([0x9e37_79b9_7f4a_7c15 ^ seed, 0xd6e8_feb8_6659_fd93])
    }

    fn add(&mut self, word: u64) {
        for (lane, factor) in
            self.0.iter_mut().zip([0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db_u64])
        {
            let product = u128::from(*lane ^ word) * u128::from(factor);
            *lane = (product as u64) ^ (product >> 64) as u64 ^ lane.rotate_left(23);
        }
    }

    fn end(mut self) -> u128 {
        self.add(0x8000_0000_0000_0001);
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

/// A hasher of numbers that are hashes already: it takes the lower half of the number.
#[derive(Default)]
pub(super) struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwright_record::debug::Module;

    #[test]
    fn equal_places_are_one_stack_wherever_they_are_loaded() {
        let loaded = |start| {
            let mut modules = Modules::default();
            let end = start + 0x1000;
            modules.add(&Module { id: 1, start, end, bias: start, ..Module::default() }, 3);
            modules
        };
        let mut interner = Interner::default();
        let mut number = |base: u64, frames: &[u64]| {
            let frames: Vec<u64> = frames.iter().map(|offset| base + offset).collect();
            interner.number(&Frames::new(&frames), &loaded(base), Source::default())
        };
        let first = number(0x10_0000, &[0x10, 0x20]);
        assert_eq!(number(0x70_0000, &[0x10, 0x20]), first);
        assert_ne!(number(0x10_0000, &[0x20, 0x10]), first);
        assert_ne!(number(0x10_0000, &[0x10]), first);
        assert_eq!(number(0x10_0000, &[]), 0);
        // Outside modules, an address stands for itself.
        let outside = number(0x10_0000, &[0x9000]);
        assert_ne!(number(0x20_0000, &[0x9000]), outside);
    }

    #[test]
    fn many_stacks_do_not_meet() {
        let mut interner = Interner::default();
        for first in 0..100_u64 {
            for second in 0..100_u64 {
                let frames = [first, second];
                interner.number(&Frames::new(&frames), &Modules::default(), Source::default());
            }
        }
        assert_eq!(interner.list.len(), 1 + 100 * 100);
    }
}
