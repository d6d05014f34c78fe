//! Entries with numbers, found by their objects: finalizers, guardians, guarded objects.
//!
//! ```text
//!   items    | free | entry | entry | free | ...         by number; free ones are used again
//!   heads    | number | 0 | number | ...                 by a hash of the object's address
//!                 |
//!   entry    object, next, previous <---> object, next, previous        entries with the same hash
//!   young    a bit for each entry that minor collections visit
//! ```
//!
//! Adding, finding and removing an entry takes constant time, even if its object has many. A minor
//! collection visits only *young* entries: new ones, those with an object that was not old at the
//! last visit, and guardians with objects to retrieve. A collection visits a few entries at a time.
//! Between these visits, entries may come and go. Part of `finalizers` and `guardians`.

use heapwright_substrate::chunk::Side;

use super::array::Array;

/// Places of the first table.
const FIRST: usize = 1024;

/// The object and links of an entry. A free entry has no object. Its `next` is the next free entry.
#[derive(Clone, Copy)]
pub(super) struct Node {
    object: *mut u8,
    next: u32,
    previous: u32,
}

impl Node {
    pub(super) const fn of(object: *mut u8) -> Self {
        Self { object, next: 0, previous: 0 }
    }

    pub(super) fn object(self) -> *mut u8 {
        self.object
    }
}

pub(super) trait Linked: Copy {
    fn node(&mut self) -> &mut Node;

    /// Replaces each object of the entry, except the node's object, by the result of `with`.
    fn change(&mut self, _with: &dyn Fn(*mut u8) -> *mut u8) {}
}

pub(super) struct ByObject<T> {
    items: Array<T>,
    young: Array<u64>,
    heads: Side,
    mask: usize,
    free: u32,
    count: usize,
    #[cfg(test)]
    pub(super) visited: usize,
}

impl<T: Linked> ByObject<T> {
    pub(super) const NONE: Self = Self {
        items: Array::new(),
        young: Array::new(),
        heads: Side::NONE,
        mask: 0,
        free: 0,
        count: 0,
        #[cfg(test)]
        visited: 0,
    };

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn get(&mut self, number: u32) -> Option<&mut T> {
        let item = self.items.get_mut((number as usize).checked_sub(1)?)?;
        (!item.node().object.is_null()).then_some(item)
    }

    fn node(&mut self, number: u32) -> Option<&mut Node> {
        Some(self.get(number)?.node())
    }

    fn head(&self, object: *mut u8) -> *mut u32 {
        let hash = (object.addr() >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.heads.at().cast::<u32>().wrapping_add(hash & self.mask)
    }

    fn link(&mut self, number: u32) {
        let Some(&mut Node { object, .. }) = self.node(number) else { return };
        let head = self.head(object);
        // SAFETY: the place is in the table.
        let next = unsafe { head.read() };
        // SAFETY: the place is in the table, which is the caller's alone.
        unsafe { head.write(number) };
        if let Some(behind) = self.node(next) {
            behind.previous = number;
        }
        if let Some(node) = self.node(number) {
            (node.next, node.previous) = (next, 0);
        }
    }

    /// Makes a table that fits one more entry. Without memory, keeps the old table, which may be
    /// full. Returns whether there is a table.
    fn fit(&mut self) -> bool {
        if self.mask != 0 && self.count <= self.mask {
            return true;
        }
        let places = ((self.mask + 1) * 2).max(FIRST);
        if let Some(heads) = Side::take(places * size_of::<u32>()) {
            self.heads.give();
            (self.heads, self.mask) = (heads, places - 1);
            self.link_all();
        }
        self.mask != 0
    }

    fn link_all(&mut self) {
        for number in 1..=self.items.len() as u32 {
            self.link(number);
        }
    }

    /// Adds an entry, whose object is not null, and returns its number. `None` without memory.
    pub(super) fn add(&mut self, item: T) -> Option<u32> {
        if !self.fit() {
            return None;
        }
        let mut number = self.free;
        if let Some(free) = self.items.get_mut((number as usize).wrapping_sub(1)) {
            self.free = free.node().next;
            *free = item;
        } else {
            let words = self.items.len() / 64 + 1;
            if words > self.young.len() && !self.young.push(0) || !self.items.push(item) {
                return None;
            }
            number = self.items.len() as u32;
        }
        self.count += 1;
        self.set_young(number, true);
        self.link(number);
        Some(number)
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let item = *self.get(number)?;
        let Node { object, next, previous } = *self.node(number)?;
        if let Some(behind) = self.node(next) {
            behind.previous = previous;
        }
        if let Some(before) = self.node(previous) {
            before.next = next;
        } else {
            // SAFETY: the place is in the table, which is the caller's alone.
            unsafe { self.head(object).write(next) };
        }
        let free = self.free;
        if let Some(node) = self.node(number) {
            *node = Node { object: core::ptr::null_mut(), next: free, previous: 0 };
        }
        self.free = number;
        self.count -= 1;
        self.set_young(number, false);
        Some(item)
    }

    /// Returns the number of the first entry of an object, or 0 if the object has none.
    pub(super) fn first(&mut self, object: *mut u8) -> u32 {
        if self.mask == 0 {
            return 0;
        }
        // SAFETY: the place is in the table.
        let number = unsafe { self.head(object).read() };
        self.of_object(object, number)
    }

    /// Returns the number of the next entry of the same object, or 0 if there is none.
    pub(super) fn behind(&mut self, number: u32) -> u32 {
        match self.node(number) {
            Some(&mut Node { object, next, .. }) => self.of_object(object, next),
            None => 0,
        }
    }

    fn of_object(&mut self, object: *mut u8, mut number: u32) -> u32 {
        while let Some(&mut Node { object: other, next, .. }) = self.node(number)
            && other != object
        {
            number = next;
        }
        number
    }

    fn set_young(&mut self, number: u32, young: bool) {
        let place = number as usize - 1;
        if let Some(word) = self.young.get_mut(place / 64) {
            *word = *word & !(1 << (place % 64)) | u64::from(young) << (place % 64);
        }
    }

    pub(super) fn make_young(&mut self, number: u32) {
        self.set_young(number, true);
    }

    pub(super) fn make_old(&mut self, number: u32) {
        self.set_young(number, false);
    }

    /// Returns the number of the first entry behind `number` that a collection visits. A minor
    /// collection visits only young entries, and passes over 64 old entries in constant time.
    pub(super) fn next(&mut self, number: u32, minor: bool) -> Option<u32> {
        let mut place = number as usize;
        while place < self.items.len() {
            if minor {
                let word = self.young[place / 64] >> (place % 64);
                if word == 0 {
                    place = (place / 64 + 1) * 64;
                    continue;
                }
                place += word.trailing_zeros() as usize;
            }
            let number = place as u32 + 1;
            if self.get(number).is_some() {
                #[cfg(test)]
                {
                    self.visited += 1;
                }
                return Some(number);
            }
            place += 1;
        }
        None
    }

    pub(super) fn each(&mut self, mut with: impl FnMut(&mut T)) {
        let mut number = 0;
        while let Some(next) = self.next(number, false) {
            number = next;
            if let Some(item) = self.get(number) {
                with(item);
            }
        }
    }

    pub(super) fn each_object(&mut self, with: &dyn Fn(*mut u8) -> *mut u8) {
        let mut moved = false;
        self.each(|item| {
            let to = with(item.node().object);
            moved |= core::mem::replace(&mut item.node().object, to) != to;
            item.change(with);
        });
        if moved && self.mask != 0 {
            // SAFETY: all places of the table, which is the caller's alone.
            unsafe { self.heads.at().write_bytes(0, (self.mask + 1) * size_of::<u32>()) };
            self.link_all();
        }
    }

    pub(super) fn end(&mut self) {
        self.items.end();
        self.young.end();
        self.heads.give();
        *self = Self::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::collections::{BTreeMap, HashSet};
    use std::vec::Vec;

    #[derive(Clone, Copy)]
    struct Item(Node, usize);

    impl Linked for Item {
        fn node(&mut self) -> &mut Node {
            &mut self.0
        }
    }

    fn object(n: usize) -> *mut u8 {
        core::ptr::without_provenance_mut(64 + 16 * n)
    }

    #[test]
    fn entries_are_found_by_object_and_number_whatever_comes_and_goes() {
        assert!(heapwright_substrate::substrate::open(heapwright_substrate::options::get));
        let mut all: ByObject<Item> = ByObject::NONE;
        let mut model: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        let mut random = 1usize;
        let mut next = move |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for step in 0..if cfg!(miri) { 300 } else { 30_000 } {
            if next(3) > 0 {
                let of = next(if step % 2 == 0 { 10 } else { 3000 });
                let number = all.add(Item(Node::of(object(of)), step)).unwrap();
                assert!(model.insert(number, (of, step)).is_none());
            } else if let Some((&number, _)) = model.range(next(step + 1) as u32..).next() {
                let (of, at) = model.remove(&number).unwrap();
                let item = all.remove(number).unwrap();
                assert_eq!((item.0.object(), item.1), (object(of), at));
            }
            assert_eq!(all.count(), model.len());
        }
        for of in 0..10 {
            let mut found = HashSet::new();
            let mut number = all.first(object(of));
            while number != 0 {
                assert!(found.insert(number));
                number = all.behind(number);
            }
            let want = model.iter().filter(|(_, entry)| entry.0 == of).map(|(&number, _)| number);
            assert_eq!(found, want.collect());
        }
        all.each_object(&|at| at.map_addr(|at| at + (1 << 20)));
        assert_eq!(all.first(object(3)), 0);
        assert_ne!(all.first(object(3).map_addr(|at| at + (1 << 20))), 0);
        all.end();
    }

    #[test]
    fn minor_collections_visit_the_young_ones_alone() {
        assert!(heapwright_substrate::substrate::open(heapwright_substrate::options::get));
        let mut all: ByObject<Item> = ByObject::NONE;
        for n in 0..1000 {
            assert_eq!(all.add(Item(Node::of(object(n)), n)), Some(n as u32 + 1));
        }
        (1..=1000).filter(|n| n % 137 != 0).for_each(|number| all.make_old(number));
        let visit = |all: &mut ByObject<Item>, minor| {
            let mut at = 0;
            core::iter::from_fn(|| {
                at = all.next(at, minor)?;
                Some(at)
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(visit(&mut all, true), [137, 274, 411, 548, 685, 822, 959]);
        assert_eq!(visit(&mut all, false).len(), 1000);
        assert!(all.remove(274).is_some() && all.remove(274).is_none());
        assert_eq!(visit(&mut all, true), [137, 411, 548, 685, 822, 959]);
        assert_eq!(all.add(Item(Node::of(object(5)), 5)), Some(274));
        assert_eq!(visit(&mut all, true).len(), 7);
        all.end();
    }
}
