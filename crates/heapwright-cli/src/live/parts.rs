//! Where a process's memory is: parts that add up to its resident size.
//!
//! ```text
//!   what it reckons       live, rounding, partial slabs, caches, remote, free, pools, metadata     (without asking the kernel)
//!   what the kernel says  resident in the window, in the tables, in all
//! ```
//!
//! The process reckons with what it has handed out: of that a program may not have touched all, above all of large blocks,
//! and where there are huge pages more may be in memory than was ever handed out. The kernel knows how much is in the window in
//! all. What is too much is taken from large blocks first; what is missing is in partial slabs.

use super::pagemap::Resident;
use heapwright_record::Stats;
use heapwright_record::status::Facts;

/// The parts, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) live: u64,
    pub(crate) rounding: u64,
    pub(crate) partial: u64,
    pub(crate) caches: u64,
    pub(crate) remote: u64,
    pub(crate) waiting: u64,
    pub(crate) metadata: u64,
    pub(crate) pools: u64,
    pub(crate) not_ours: u64,
    /// No part of what is resident: in swap space.
    pub(crate) swapped: u64,
}

/// Bytes of the table and of the records that a unit needs, as the library reckons.
const TABLES_A_UNIT: u64 = 4 + 128;
const UNIT: u64 = 64 << 10;

impl Parts {
    /// The parts of a process that has `rss` bytes in memory, and of them `resident` in its heap, if the kernel says so.
    pub(super) fn of(stats: &Stats, facts: &Facts, rss: u64, resident: Option<Resident>) -> Self {
        let tables = (facts.window_used / UNIT).saturating_mul(TABLES_A_UNIT);
        let reckoned = Resident {
            tables: tables.min(stats.rss_metadata),
            window: (stats.rss_parts() - stats.rss_not_ours).saturating_sub(tables),
            swapped: 0,
        };
        let resident = resident.unwrap_or(reckoned);
        let mut parts = Self {
            live: stats.rss_live,
            rounding: stats.rss_rounding,
            partial: stats.rss_partial,
            caches: stats.rss_caches,
            remote: stats.rss_remote,
            waiting: stats.rss_lazy,
            metadata: stats.rss_metadata.saturating_sub(tables),
            pools: stats.rss_pools,
            not_ours: 0,
            swapped: resident.swapped,
        };
        // In the time between, memory may have gone, or be counted twice.
        let window = resident.window.min(rss);
        let mut excess = parts.sum().saturating_sub(window);
        parts.partial += window.saturating_sub(parts.sum());
        let mut large = stats.large_bytes.min(parts.live);
        parts.live -= large;
        for part in [
            &mut large,
            &mut parts.waiting,
            &mut parts.partial,
            &mut parts.caches,
            &mut parts.remote,
            &mut parts.pools,
            &mut parts.rounding,
            &mut parts.metadata,
            &mut parts.live,
        ] {
            let less = excess.min(*part);
            *part -= less;
            excess -= less;
        }
        parts.live += large;
        parts.metadata += resident.tables.min(rss - window);
        parts.not_ours = rss.saturating_sub(parts.sum());
        parts
    }

    /// What they add up to: the resident size.
    pub(crate) fn sum(&self) -> u64 {
        self.all().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Each with its name.
    pub(crate) fn all(&self) -> [(&'static str, u64); 9] {
        [
            ("live", self.live),
            ("rounding", self.rounding),
            ("partial", self.partial),
            ("caches", self.caches),
            ("remote", self.remote),
            ("waiting", self.waiting),
            ("metadata", self.metadata),
            ("pools", self.pools),
            ("not_ours", self.not_ours),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_not_touched_is_not_live() {
        let stats = Stats {
            rss_live: 1000,
            large_bytes: 900,
            rss_partial: 50,
            rss_metadata: TABLES_A_UNIT,
            ..Stats::zero()
        };
        let facts = Facts { window_used: UNIT, ..Facts::default() };
        let resident = |window| Some(Resident { window, tables: 7, swapped: 0 });
        let parts = Parts::of(&stats, &facts, 500, resident(250));
        assert_eq!((parts.live, parts.partial, parts.metadata), (200, 50, 7));
        assert_eq!((parts.not_ours, parts.sum()), (243, 500));
        let parts = Parts::of(&stats, &facts, 5000, resident(2000));
        assert_eq!((parts.live, parts.partial), (1000, 1000), "huge pages");
        let parts = Parts::of(&stats, &facts, 2000, None);
        assert_eq!((parts.live, parts.metadata, parts.sum()), (1000, TABLES_A_UNIT, 2000));
    }

    proptest! {
        #[test]
        fn they_add_up(words in prop::array::uniform10(0..1_u64 << 40), rss in 0..1_u64 << 42,
                       resident in prop::option::of((0..1_u64 << 42, 0..1_u64 << 30))) {
            let [live, rounding, partial, caches, remote, lazy, metadata, pools, large, used] = words;
            let stats = Stats {
                rss_live: live, rss_rounding: rounding, rss_partial: partial, rss_caches: caches,
                rss_remote: remote, rss_lazy: lazy, rss_metadata: metadata, rss_pools: pools,
                large_bytes: large, ..Stats::zero()
            };
            let facts = Facts { window_used: used, ..Facts::default() };
            let resident = resident.map(|(window, tables)| Resident { window, tables, swapped: 0 });
            prop_assert_eq!(Parts::of(&stats, &facts, rss, resident).sum(), rss);
        }
    }
}
