//! Groups: the blocks of one stack with one result, added up.
//!
//! ```text
//!   table   | key, blocks, bytes, ... | ...     open addressing, half full at most
//!   key     reach 8 | origin 8 | stack 32, and a bit that is set in every key
//! ```
//!
//! Called by `leaks`.

use super::zeroed::{Plain, ZeroedArray};

#[derive(Clone, Copy)]
pub(super) struct Group {
    key: u64,
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    pub(super) indirect_blocks: u64,
    pub(super) indirect_bytes: u64,
    /// The sequence numbers of the oldest and the youngest block.
    pub(super) oldest: u32,
    pub(super) youngest: u32,
    /// The largest block, and its size.
    pub(super) example: usize,
    pub(super) size: usize,
}

// SAFETY: all fields are numbers.
unsafe impl Plain for Group {}

const IS: u64 = 1 << 63;

impl Group {
    pub(super) fn reach(&self) -> u8 {
        (self.key >> 40) as u8
    }

    pub(super) fn origin(&self) -> u8 {
        (self.key >> 32) as u8
    }

    pub(super) fn stack(&self) -> u32 {
        self.key as u32
    }

    pub(super) fn add(&mut self, block: usize, size: usize, sequence: u32) {
        // (Numbers of operations wrap.)
        let is_before = |of: u32| (sequence.wrapping_sub(of) as i32) < 0;
        if self.blocks == 0 || is_before(self.oldest) {
            self.oldest = sequence;
        }
        if self.blocks == 0 || !is_before(self.youngest) {
            self.youngest = sequence;
        }
        if self.blocks == 0 || size > self.size {
            (self.example, self.size) = (block, size);
        }
        self.blocks += 1;
        self.bytes += size as u64;
    }
}

pub(super) struct Groups {
    table: ZeroedArray<Group>,
    count: usize,
}

impl Groups {
    pub(super) fn new() -> Option<Self> {
        // The table is small at first, because each page costs two faults.
        Some(Self { table: ZeroedArray::new(1 << 7)?, count: 0 })
    }

    pub(super) fn of(&mut self, reach: u8, origin: u8, stack: u32) -> Option<&mut Group> {
        if self.count * 2 >= self.table.len() {
            self.grow()?;
        }
        let key = IS | u64::from(reach) << 40 | u64::from(origin) << 32 | u64::from(stack);
        let place = place(&self.table, key);
        let group = &mut self.table[place];
        if group.key == 0 {
            group.key = key;
            self.count += 1;
        }
        Some(group)
    }

    fn grow(&mut self) -> Option<()> {
        let mut larger = ZeroedArray::<Group>::new(self.table.len() * 2)?;
        for group in self.table.iter().filter(|group| group.key != 0) {
            let place = place(&larger, group.key);
            larger[place] = *group;
        }
        self.table = larger;
        Some(())
    }

    /// Returns the groups, the largest first.
    pub(super) fn sorted(mut self) -> Sorted {
        let mut kept = 0;
        for index in 0..self.table.len() {
            if self.table[index].key != 0 {
                self.table.swap(kept, index);
                kept += 1;
            }
        }
        self.table[..kept].sort_unstable_by_key(|group| {
            (core::cmp::Reverse(group.bytes + group.indirect_bytes), group.key)
        });
        Sorted { table: self.table, count: kept }
    }
}

pub(super) struct Sorted {
    table: ZeroedArray<Group>,
    count: usize,
}

impl Sorted {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.table[..self.count].iter()
    }
}

fn place(table: &[Group], key: u64) -> usize {
    let mask = table.len() - 1;
    let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
    while table[at].key != 0 && table[at].key != key {
        at = (at + 1) & mask;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    #[test]
    fn groups_are_what_was_added() {
        let mut groups = Groups::new().unwrap();
        let mut model = BTreeMap::<(u8, u32), (u64, u64)>::new();
        for number in 0..20_000u32 {
            let (reach, stack, size) = ((number % 4) as u8, number % 3001, number as usize % 100);
            groups.of(reach, 1, stack).unwrap().add(number as usize, size, number);
            let sum = model.entry((reach, stack)).or_default();
            *sum = (sum.0 + 1, sum.1 + size as u64);
        }
        let sorted = groups.sorted();
        let bytes: Vec<_> = sorted.iter().map(|group| group.bytes).collect();
        assert!(bytes.is_sorted_by(|a, b| a >= b));
        let found = sorted.iter().map(|g| ((g.reach(), g.stack()), (g.blocks, g.bytes)));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), model);
        let group = sorted.iter().find(|g| (g.reach(), g.stack()) == (1, 1)).unwrap();
        assert_eq!((group.oldest, group.origin()), (1, 1));
    }
}
