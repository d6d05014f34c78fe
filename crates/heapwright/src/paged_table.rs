//! Hash tables by key, in pages of their own.
//!
//! ```text
//!   pages   | slot | slot | ... |      a power of two, at most three quarters of them in use
//!             key 0: vacant            a search begins at the key's hash, and goes slot by slot
//! ```
//!
//! The kernel provides the memory, because a table grows while the heap allocates. A full table is
//! copied into one of twice the size. A removal moves the following slots up, so there are no
//! tombstones. Called by `samples`, under its lock, and by `tallies`.

use core::{ptr, slice};

use crate::os::{Memory, SYSTEM};

const FIRST: usize = if cfg!(miri) { 16 } else { 256 };

/// The elements of a table.
///
/// # Safety
///
/// All-zero bytes are a valid value with key 0, and the type needs no drop.
pub(crate) unsafe trait Keyed: Copy {
    /// Returns the key, which is 0 in a vacant slot.
    fn key(&self) -> u64;
}

pub(crate) struct Table<T> {
    at: *mut T,
    capacity: usize,
    count: usize,
}

// SAFETY: a table owns its pages.
unsafe impl<T: Send> Send for Table<T> {}

impl<T: Keyed> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { at: ptr::null_mut(), capacity: 0, count: 0 }
    }

    fn slots(&self) -> &[T] {
        if self.capacity == 0 {
            return &[];
        }
        // SAFETY: this many slots, zeroed at first, belong to the table.
        unsafe { slice::from_raw_parts(self.at, self.capacity) }
    }

    fn slots_mut(&mut self) -> &mut [T] {
        if self.capacity == 0 {
            return &mut [];
        }
        // SAFETY: this many slots, zeroed at first, belong to the table alone.
        unsafe { slice::from_raw_parts_mut(self.at, self.capacity) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots().iter().filter(|slot| slot.key() != 0)
    }

    /// The keys must not change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots_mut().iter_mut().filter(|slot| slot.key() != 0)
    }

    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize & (self.capacity - 1)
    }

    /// Returns the slot of a key, or the vacant slot for it. The table must have slots.
    fn find(&self, key: u64) -> usize {
        let slots = self.slots();
        let mut at = self.home(key);
        while slots[at].key() != key && slots[at].key() != 0 {
            at = (at + 1) & (self.capacity - 1);
        }
        at
    }

    /// The key must not be 0.
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        if self.capacity == 0 {
            return None;
        }
        let at = self.find(key);
        self.slots_mut().get_mut(at).filter(|slot| slot.key() == key)
    }

    /// Returns the element with the key of `new`, or adds `new`. Returns `None` without memory.
    pub(crate) fn get_or_put(&mut self, new: T) -> Option<&mut T> {
        if (self.count + 1) * 4 > self.capacity * 3 && !self.grow() {
            return None;
        }
        let at = self.find(new.key());
        if self.slots()[at].key() == 0 {
            self.slots_mut()[at] = new;
            self.count += 1;
        }
        self.slots_mut().get_mut(at)
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        if self.capacity == 0 {
            return None;
        }
        let mask = self.capacity - 1;
        let mut hole = self.find(key);
        let removed = self.slots()[hole];
        if removed.key() != key {
            return None;
        }
        self.count -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.slots()[at];
            if next.key() == 0 {
                break;
            }
            // The element may move up if its home does not lie behind the hole.
            let home = self.home(next.key());
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots_mut()[hole] = next;
                hole = at;
            }
        }
        // SAFETY: all zeros are a vacant slot.
        self.slots_mut()[hole] = unsafe { core::mem::zeroed() };
        Some(removed)
    }

    /// Returns the first key that `is_wanted` from slot `from` on, and its slot, where a search may
    /// continue after the key's removal.
    pub(crate) fn key_from(
        &self,
        from: usize,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Option<(usize, u64)> {
        let keys = self.slots().iter().map(Keyed::key).enumerate().skip(from);
        keys.filter(|&(_, key)| key != 0).find(|&(_, key)| is_wanted(key))
    }

    /// Doubles the table. Returns false without memory, and the table is unchanged.
    fn grow(&mut self) -> bool {
        let mut larger =
            Self { at: ptr::null_mut(), capacity: (2 * self.capacity).max(FIRST), count: 0 };
        let bytes = pages(larger.capacity * size_of::<T>());
        let at = SYSTEM.reserve(bytes, SYSTEM.page_size());
        if at.is_null() {
            return false;
        }
        // SAFETY: just reserved, in whole pages.
        if !unsafe { SYSTEM.commit(at, bytes) } {
            // SAFETY: just reserved, and no code uses it.
            unsafe { SYSTEM.release(at, bytes) };
            return false;
        }
        larger.at = at.cast();
        for slot in self.iter() {
            let to = larger.find(slot.key());
            larger.slots_mut()[to] = *slot;
            larger.count += 1;
        }
        self.clear();
        *self = larger;
        true
    }

    pub(crate) fn clear(&mut self) {
        if self.capacity != 0 {
            let bytes = pages(self.capacity * size_of::<T>());
            // SAFETY: `grow` reserved this many bytes; no reference exists.
            unsafe { SYSTEM.release(self.at.cast(), bytes) };
        }
        *self = Self::new();
    }
}

fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(SYSTEM.page_size())
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Copy)]
    struct Pair(u64, u64);

    // SAFETY: all fields are numbers; the key of zeros is 0.
    unsafe impl Keyed for Pair {
        fn key(&self) -> u64 {
            self.0
        }
    }

    proptest! {
        #![proptest_config(crate::cases::cases(200))]

        /// Few keys, so that homes collide.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..3u8, 1u64..600), 0..1500)) {
            let (mut table, mut map) = (Table::<Pair>::new(), BTreeMap::new());
            for (number, (what, key)) in steps.into_iter().enumerate() {
                match what {
                    0 => {
                        let value = table.get_or_put(Pair(key, number as u64)).unwrap().1;
                        prop_assert_eq!(value, *map.entry(key).or_insert(number as u64));
                    }
                    1 => prop_assert_eq!(table.remove(key).map(|pair| pair.1), map.remove(&key)),
                    _ => prop_assert_eq!(table.get_mut(key).map(|pair| pair.1), map.get(&key).copied()),
                }
            }
            let mut all: std::vec::Vec<_> = table.iter().map(|pair| (pair.0, pair.1)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, map.into_iter().collect::<std::vec::Vec<_>>());
            table.clear();
            prop_assert_eq!(table.iter().count(), 0);
        }
    }
}
