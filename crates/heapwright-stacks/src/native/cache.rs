//! The rule cache: one table for the process, from an address in code to its rule.
//!
//! ```text
//!   entry (16 bytes)   address ^ rule | rule        by a hash of the address
//!   tables             512 entries, 4,096, 32,768: the next one once half of a table is written
//! ```
//!
//! Entries are spread over a table. A large table would cost a small program all its pages.
//!
//! Two threads may write an entry at once, and a reader may see one word of each. The reader
//! accepts a rule only if both words together give its address. So a torn pair is a miss (Hyatt's
//! trick for chess programs' tables). No thread waits.
//!
//! # Unmapped code
//!
//! [`forget_code`] raises the generation, then clears the table. A thread that learns a rule reads
//! the generation before it reads unwind tables. After the write, the thread removes the entry if
//! the generation has changed. So either this thread sees the change, or the clearing thread sees
//! the entry. Each entry of a memo (`memo`) has the generation of its walk.

use core::slice;

use super::super::region::Region;
use super::super::rule::Rule;
use heapwright_substrate::os::{Memory, System};
use heapwright_substrate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Tables, and the entries of each as a power of two.
const TABLES: usize = 3;
const ORDERS: [u32; TABLES] = [9, 12, 15];

#[repr(C, align(16))]
struct Entry {
    mixed: AtomicU64,
    rule: AtomicU64,
}

const _: () = assert!(size_of::<Entry>() == 16);

static TABLE: [Region; TABLES] = [const { Region::new() }; TABLES];
/// The table in use; it only grows.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// The number of written rules. (Threads may lose a count.)
static WRITTEN: AtomicUsize = AtomicUsize::new(0);
/// The generation, counted from 1.
static GENERATION: AtomicU32 = AtomicU32::new(1);

#[derive(Clone, Copy)]
pub(super) struct Cache {
    entries: &'static [Entry],
    shift: u32,
}

/// Returns the generation, which changes whenever rules are forgotten. Never 0.
#[inline(always)]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Acquire)
}

#[inline(always)]
pub(super) fn open() -> Option<Cache> {
    open_table(CURRENT.load(Ordering::Relaxed))
}

#[inline(always)]
fn open_table(number: usize) -> Option<Cache> {
    let (region, order) = (TABLE.get(number)?, ORDERS[number]);
    let at: *const Entry = region.get(size_of::<Entry>() << order).cast();
    if at.is_null() {
        return None;
    }
    // SAFETY: the memory holds that many entries, is aligned to a page, was zeroed at first, and is
    // never given back. All threads use it as atomics.
    let entries = unsafe { slice::from_raw_parts(at, 1 << order) };
    Some(Cache { entries, shift: u64::BITS - order })
}

impl Cache {
    #[inline(always)]
    fn entry(self, address: usize) -> &'static Entry {
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // SAFETY: the shifted hash has as many bits as an index.
        unsafe { self.entries.get_unchecked((hash >> self.shift) as usize) }
    }

    /// Returns the rule of an address, or `Rule(0)`.
    #[inline(always)]
    pub(super) fn get(self, address: usize) -> Rule {
        let entry = self.entry(address);
        let rule = entry.rule.load(Ordering::Relaxed);
        let known = entry.mixed.load(Ordering::Relaxed) ^ rule == address as u64;
        Rule(if known { rule } else { 0 })
    }

    /// Returns the rule of an address in a smaller table, or `Rule(0)`.
    pub(super) fn get_from_smaller(self, address: usize) -> Rule {
        let smaller = (0..TABLES).take_while(|&number| 1 << ORDERS[number] < self.entries.len());
        let mut found = smaller.filter_map(open_table).map(|table| table.get(address));
        found.find(|&rule| rule != Rule(0)).unwrap_or(Rule(0))
    }

    /// Stores a rule that was learnt in a generation.
    pub(super) fn put(self, address: usize, rule: Rule, learnt: u32) {
        self.write(address, rule, learnt);
        let written = WRITTEN.load(Ordering::Relaxed) + 1;
        WRITTEN.store(written, Ordering::Relaxed);
        if written * 2 > self.entries.len() {
            let larger = ORDERS.iter().position(|&order| 1 << order > self.entries.len());
            CURRENT.fetch_max(larger.unwrap_or(TABLES - 1), Ordering::Relaxed);
        }
    }

    fn write(self, address: usize, rule: Rule, learnt: u32) {
        let entry = self.entry(address);
        entry.mixed.store(address as u64 ^ rule.0, Ordering::Relaxed);
        entry.rule.store(rule.0, Ordering::Relaxed);
        // The fence precedes the read of the generation, and pairs with the fence of `forget_code`.
        fence(Ordering::SeqCst);
        if GENERATION.load(Ordering::Relaxed) != learnt {
            entry.rule.store(0, Ordering::Relaxed);
            entry.mixed.store(0, Ordering::Relaxed);
        }
    }
}

pub(in super::super) fn forget_code() {
    // 0 is no generation. Code is not unloaded four billion times.
    GENERATION.fetch_add(1, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    for (number, region) in TABLE.iter().enumerate() {
        let (at, bytes) = (region.peek(), size_of::<Entry>() << ORDERS[number]);
        if at.is_null() {
            continue;
        }
        // SAFETY: these are the table's own pages. Other threads may read them: an entry of which a
        // half or all is zeros is a miss.
        let is_clear = unsafe { System.decommit(at, bytes.next_multiple_of(System.page_size())) };
        if !is_clear && let Some(cache) = open_table(number) {
            for entry in cache.entries {
                entry.rule.store(0, Ordering::Relaxed);
                entry.mixed.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_smaller_table_has_is_found() {
        let (small, large) = (open_table(0).unwrap(), open_table(1).unwrap());
        let (address, rule) = (0x7654_3210, Rule(0x1_0000_0804));
        let mut found = false;
        for _ in 0..100 {
            small.put(address, rule, generation());
            found |= large.get_from_smaller(address) == rule;
            assert_eq!(small.get_from_smaller(address), Rule(0));
            assert_eq!(large.get_from_smaller(address + 1), Rule(0));
        }
        // (Another test may forget all rules at any time.)
        assert!(found);
        let rules = 1 << ORDERS[1];
        (0..rules).for_each(|number| open().unwrap().put(number * 16 + 1, rule, generation()));
        assert_eq!(open().unwrap().entries.len(), 1 << ORDERS[TABLES - 1]);
    }

    #[test]
    fn an_entry_is_believed_for_its_address_only() {
        let cache = open().unwrap();
        let (a, rule) = (0x1234_5670, Rule(0x1_0000_0804));
        // Another test may forget all rules at any time.
        let mut seen = false;
        for _ in 0..100 {
            cache.put(a, rule, generation());
            let got = cache.get(a);
            assert!(got == rule || got == Rule(0));
            seen |= got == rule;
        }
        assert!(seen);
        assert_eq!(cache.get(a + 1), Rule(0));
        // A torn pair: another entry's rule in the second word.
        cache.entry(a).rule.store(rule.0 ^ 8, Ordering::Relaxed);
        assert_eq!(cache.get(a), Rule(0));
        // This rule was learnt before rules were forgotten.
        cache.put(a, rule, generation().wrapping_sub(1));
        assert_eq!(cache.get(a), Rule(0));
    }
}
