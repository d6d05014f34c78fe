//! Lists of units, linked through their records.
//!
//! ```text
//!   head --> unit 7 <--> unit 3 <--> unit 12 --> 0      unit 0 is in no list, so 0 ends a list
//! ```
//!
//! A record has two pairs of links, so a unit can be in two lists. The owner of a list excludes
//! other threads. Called by `cache` (slabs, large blocks), `hardened` (slabs), `chunk` (free runs)
//! and `arena` (chunks).

use core::marker::PhantomData;

use crate::address_map::AddressMap;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::unit_record::{Links, Record};

/// The pair of a record's [`Links`] that a list uses.
pub trait Through {
    /// The links.
    fn links(record: &Record) -> &Links;
}

/// Lists through [`Record::by_size`].
pub struct BySize;
/// Lists through [`Record::by_owner`].
pub struct ByOwner;

impl Through for BySize {
    fn links(record: &Record) -> &Links {
        &record.by_size
    }
}

impl Through for ByOwner {
    fn links(record: &Record) -> &Links {
        &record.by_owner
    }
}

/// A doubly linked list of units. Zero is an empty list.
pub struct UnitList<T> {
    head: AtomicU32,
    through: PhantomData<T>,
}

impl<T: Through> UnitList<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self { head: AtomicU32::new(0), through: PhantomData }
    }

    /// Empties the list. The units' links stay unchanged.
    pub fn forget(&self) {
        self.head.store(0, Ordering::Relaxed);
    }

    /// The first unit.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        let head = self.head.load(Ordering::Relaxed);
        (head != 0).then_some(head as usize)
    }

    /// The unit after `unit`.
    pub fn after(&self, map: &AddressMap, unit: usize) -> Option<usize> {
        let next = T::links(map.record(unit)).next.load(Ordering::Relaxed);
        (next != 0).then_some(next as usize)
    }

    /// Puts `unit` at the start of the list. It must be in no list through these links.
    #[inline]
    pub fn push(&self, map: &AddressMap, unit: usize) {
        let links = T::links(map.record(unit));
        let head = self.head.load(Ordering::Relaxed);
        links.next.store(head, Ordering::Relaxed);
        links.prev.store(0, Ordering::Relaxed);
        if head != 0 {
            T::links(map.record(head as usize)).prev.store(unit as u32, Ordering::Relaxed);
        }
        self.head.store(unit as u32, Ordering::Relaxed);
    }

    /// Takes `unit` out of the list. It must be in this list.
    pub fn remove(&self, map: &AddressMap, unit: usize) {
        let links = T::links(map.record(unit));
        let next = links.next.load(Ordering::Relaxed);
        let prev = links.prev.load(Ordering::Relaxed);
        if prev == 0 {
            debug_assert!(self.first() == Some(unit));
            self.head.store(next, Ordering::Relaxed);
        } else {
            T::links(map.record(prev as usize)).next.store(next, Ordering::Relaxed);
        }
        if next != 0 {
            T::links(map.record(next as usize)).prev.store(prev, Ordering::Relaxed);
        }
    }

    /// As [`Self::push`], but puts `unit` after `before`, if that is given.
    pub fn insert_after(&self, map: &AddressMap, before: Option<usize>, unit: usize) {
        let Some(before) = before else { return self.push(map, unit) };
        let links = T::links(map.record(unit));
        let before_links = T::links(map.record(before));
        let next = before_links.next.load(Ordering::Relaxed);
        links.next.store(next, Ordering::Relaxed);
        links.prev.store(before as u32, Ordering::Relaxed);
        before_links.next.store(unit as u32, Ordering::Relaxed);
        if next != 0 {
            T::links(map.record(next as usize)).prev.store(unit as u32, Ordering::Relaxed);
        }
    }

    /// The unit before `unit`.
    pub fn before(&self, map: &AddressMap, unit: usize) -> Option<usize> {
        let prev = T::links(map.record(unit)).prev.load(Ordering::Relaxed);
        (prev != 0).then_some(prev as usize)
    }
}

#[cfg(test)]
mod tests;
