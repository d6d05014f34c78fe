//! The parts of a process's memory. They add up to its resident size plus `gone`.
//!
//! ```text
//! process reports       live, rounding, partial slabs, caches, remote, free, pools, metadata
//! kernel reports        resident in the window, in the tables, in all
//! ```
//!
//! The process counts the memory that it handed out. The program may not have touched all of it,
//! above all in large blocks; with huge pages more may be resident than was handed out. The kernel
//! knows the resident size of the window. If the counts are too high, large blocks are reduced
//! first. If they are too low, the difference is added to partial slabs.
//!
//! If the report is old, the process may have changed since. Then only untouched large blocks are
//! left out. The remaining difference is `unattributed` or `gone`.

use super::pagemap::Resident;
use heapwright_record::Stats;
use heapwright_record::status::Facts;
use std::time::Duration;

/// A report older than this counts as old. Watched processes report ten times a second.
pub(crate) const FRESH: Duration = Duration::from_millis(500);

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
    /// Resident bytes that an old report does not contain.
    pub(crate) unattributed: u64,
    /// Bytes of an old report that are no longer resident.
    pub(crate) gone: u64,
    /// Bytes in swap space, which are not resident.
    pub(crate) swapped: u64,
}

/// The bytes of the table and of records that the library needs for a unit.
const TABLES_A_UNIT: u64 = 4 + 128;
const UNIT: u64 = 64 << 10;

impl Parts {
    /// `age` is the report's. The process has `rss` resident bytes, `files` of them in files and
    /// shared memory, and `resident` in its heap, if known.
    pub(super) fn of(
        stats: &Stats,
        facts: &Facts,
        rss: u64,
        files: u64,
        resident: Option<Resident>,
        age: Duration,
    ) -> Self {
        let (is_fresh, is_known) = (age <= FRESH, resident.is_some());
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
            unattributed: 0,
            gone: 0,
            swapped: resident.swapped,
        };
        // Since the report, memory may have gone, or may be counted twice.
        let anonymous = rss.saturating_sub(files);
        let window = resident.window.min(anonymous);
        let mut excess = parts.sum().saturating_sub(window);
        let missing = window.saturating_sub(parts.sum());
        *if is_fresh { &mut parts.partial } else { &mut parts.unattributed } += missing;
        let mut large = stats.large_bytes.min(parts.live);
        parts.live -= large;
        let less = excess.min(large);
        (large, excess) = (large - less, excess - less);
        if !is_fresh {
            (parts.gone, excess) = (excess, 0);
        }
        for part in [
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
        // The kernel counts tables that were only read as in memory, but not as resident.
        parts.metadata += resident.tables.min(anonymous - window);
        let rest = (rss + parts.gone).saturating_sub(parts.sum());
        *if is_fresh || is_known { &mut parts.not_ours } else { &mut parts.unattributed } += rest;
        parts
    }

    /// Returns the sum of the parts: the resident size plus `gone`.
    pub(crate) fn sum(&self) -> u64 {
        self.all().iter().map(|(_, bytes)| bytes).sum()
    }

    pub(crate) fn all(&self) -> [(&'static str, u64); 10] {
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
            ("unattributed", self.unattributed),
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
        let now = Duration::ZERO;
        let parts = Parts::of(&stats, &facts, 500, 100, resident(250), now);
        assert_eq!((parts.live, parts.partial, parts.metadata), (200, 50, 7));
        assert_eq!((parts.not_ours, parts.sum()), (243, 500));
        let parts = Parts::of(&stats, &facts, 5000, 0, resident(2000), now);
        assert_eq!((parts.live, parts.partial), (1000, 1000), "huge pages");
        let parts = Parts::of(&stats, &facts, 2000, 0, None, now);
        assert_eq!((parts.live, parts.metadata, parts.sum()), (1000, TABLES_A_UNIT, 2000));
        let parts = Parts::of(&stats, &facts, 1000, 400, None, now);
        assert_eq!((parts.live, parts.not_ours), (550, 400), "files are not the heap's");
    }

    #[test]
    fn an_old_report_is_not_made_to_fit() {
        let stats = Stats { rss_live: 1000, large_bytes: 300, rss_partial: 50, ..Stats::zero() };
        let old = Duration::from_secs(3);
        let of = |rss, window: Option<u64>| {
            let resident = window.map(|window| Resident { window, tables: 7, swapped: 0 });
            let parts = Parts::of(&stats, &Facts::default(), rss, 0, resident, old);
            assert_eq!(parts.sum(), rss + parts.gone);
            (parts.live, parts.partial, parts.not_ours, parts.unattributed, parts.gone)
        };
        assert_eq!(of(9000, Some(8000)), (1000, 50, 993, 6950, 0));
        assert_eq!(of(2000, Some(850)), (800, 50, 1143, 0, 0));
        assert_eq!(of(2000, Some(100)), (700, 50, 1893, 0, 650));
        assert_eq!(of(9000, None), (1000, 50, 0, 7950, 0));
    }

    proptest! {
        #[test]
        fn they_add_up(words in prop::array::uniform10(0..1_u64 << 40), rss in 0..1_u64 << 42,
                       resident in prop::option::of((0..1_u64 << 42, 0..1_u64 << 30)),
                       age in 0..1000_u64) {
            let [live, rounding, partial, caches, remote, lazy, metadata, pools, large, used] = words;
            let stats = Stats {
                rss_live: live, rss_rounding: rounding, rss_partial: partial, rss_caches: caches,
                rss_remote: remote, rss_lazy: lazy, rss_metadata: metadata, rss_pools: pools,
                large_bytes: large, ..Stats::zero()
            };
            let facts = Facts { window_used: used, ..Facts::default() };
            let resident = resident.map(|(window, tables)| Resident { window, tables, swapped: 0 });
            let parts = Parts::of(&stats, &facts, rss, rss / 4, resident, Duration::from_millis(age));
            prop_assert_eq!(parts.sum(), rss + parts.gone);
        }
    }
}
