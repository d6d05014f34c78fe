//! The rule cache: one table for the process, from an address in code to its rule.
//!
//! ```text
//!   entry (16 bytes)   address ^ rule | rule        32,768 of them, by a hash of the address
//! ```
//!
//! Two threads may write an entry at once, and a reader may see one word of each.
//! It believes a rule only if both words together give the address it looks for
//! (the trick of chess programs' tables, by Hyatt), so a torn pair is a miss. A
//! miss costs a microsecond; no thread waits.
//!
//! # What is forgotten
//!
//! When code is unmapped its rules must go. [`forget_code`] raises the generation, then
//! clears the table. A thread that learns a rule reads the generation before it looks at
//! tables, and takes its entry out again if the generation has changed by the time
//! the entry is in: either it sees the change, or the clearing sees the entry.
//! Memos (`memo`) carry the generation they were made in.

use super::super::region::Region;
use super::super::rule::Rule;
use heapwright_substrate::os::{Memory, System};
use heapwright_substrate::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const ENTRIES: usize = 1 << 15;
const BYTES: usize = ENTRIES * size_of::<Entry>();

#[repr(C, align(16))]
struct Entry {
    mixed: AtomicU64,
    rule: AtomicU64,
}

const _: () = assert!(size_of::<Entry>() == 16);

static TABLE: Region = Region::new();
/// Counts up from 1.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The table, for the length of a walk.
#[derive(Clone, Copy)]
pub(super) struct Cache(&'static [Entry; ENTRIES]);

/// Changes whenever rules are forgotten. Never 0.
#[inline(always)]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Acquire)
}

/// The table; `None` where there is no memory for it.
#[inline(always)]
pub(super) fn open() -> Option<Cache> {
    let at = TABLE.get(BYTES);
    // SAFETY: null, or memory of this size and alignment that is never given back
    // and that everybody uses as atomics.
    unsafe { at.cast::<[Entry; ENTRIES]>().as_ref() }.map(Cache)
}

impl Cache {
    #[inline(always)]
    fn entry(self, address: usize) -> &'static Entry {
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(hash >> (64 - ENTRIES.ilog2())) as usize]
    }

    /// The rule of an address, or `Rule(0)`.
    #[inline(always)]
    pub(super) fn get(self, address: usize) -> Rule {
        let entry = self.entry(address);
        let rule = entry.rule.load(Ordering::Relaxed);
        let known = entry.mixed.load(Ordering::Relaxed) ^ rule == address as u64;
        Rule(if known { rule } else { 0 })
    }

    /// Remembers a rule that was learnt in a generation.
    pub(super) fn put(self, address: usize, rule: Rule, learnt: u32) {
        let entry = self.entry(address);
        entry.mixed.store(address as u64 ^ rule.0, Ordering::Relaxed);
        entry.rule.store(rule.0, Ordering::Relaxed);
        // Before the generation is read: pairs with the fence of `forget_code`.
        fence(Ordering::SeqCst);
        if GENERATION.load(Ordering::Relaxed) != learnt {
            entry.rule.store(0, Ordering::Relaxed);
            entry.mixed.store(0, Ordering::Relaxed);
        }
    }
}

/// Forgets all rules.
pub(in super::super) fn forget_code() {
    // 0 is no generation. Code is not unloaded four billion times.
    GENERATION.fetch_add(1, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    let at = TABLE.peek();
    if at.is_null() {
        return;
    }
    // SAFETY: the table's own pages. Others may look at them meanwhile: an entry of
    // zeros, or half of one, is a miss.
    if !unsafe { System.decommit(at, BYTES.next_multiple_of(System.page_size())) }
        && let Some(cache) = open()
    {
        for entry in cache.0 {
            entry.rule.store(0, Ordering::Relaxed);
            entry.mixed.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Learnt before something was forgotten.
        cache.put(a, rule, generation().wrapping_sub(1));
        assert_eq!(cache.get(a), Rule(0));
    }
}
