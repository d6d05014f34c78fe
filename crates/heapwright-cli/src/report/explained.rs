//! The reasons for a process's memory, from a heap profile.
//!
//! ```text
//! a profile -> live blocks   all stacks that have some
//!              kept          all are from the first half of the run: they are never replaced
//!              mixed         most bytes are freed within a millisecond; a block of that half stays
//!              grown         more is live than earlier, by more than two standard deviations
//!              temporary     blocks freed within a millisecond
//! ```
//!
//! A profile has no addresses, so it cannot name slabs with few survivors. Resident memory is known
//! only for the whole process.

use super::model::{Amount, Check, Figure, Process, Profile, Report, Sampled};
use std::cmp::Reverse;

/// The least share of its bytes that a `mixed` stack frees immediately.
const MOSTLY: f64 = 0.5;

pub(crate) struct Explained<'r> {
    pub(crate) process: &'r Process,
    pub(crate) check: &'r Check,
    pub(crate) profile: &'r Profile,
    pub(crate) live: Amount,
    pub(crate) allocated: Amount,
    pub(crate) temporary: Amount,
    pub(crate) resident: Option<u64>,
    /// The number of other processes in the report with a profile.
    pub(crate) others: usize,
}

impl<'r> Explained<'r> {
    /// Explains the process with the highest peak of live bytes; `None` without heap profiles.
    pub(crate) fn largest(report: &'r Report) -> Option<Self> {
        let profiles = report.processes.iter().filter_map(|process| {
            let (check, profile) = process.last_profile()?;
            Some((process, check, profile))
        });
        let others = profiles.clone().count().saturating_sub(1);
        let (process, check, profile) =
            profiles.max_by_key(|(_, _, profile)| profile.peak_bytes)?;
        Some(Self {
            process,
            check,
            profile,
            live: profile.total(|site| site.live),
            allocated: profile.total(|site| site.allocated),
            temporary: profile.total(|site| site.temporary),
            resident: profile.resident(),
            others,
        })
    }

    /// Returns stacks, those with the most bytes of a figure first.
    fn sites(&self, figure: Figure, holds: impl Fn(&Sampled) -> bool) -> Vec<&'r Sampled> {
        let sites = self.profile.sites.iter();
        let mut sites: Vec<_> =
            sites.filter(|site| figure.of(site).bytes != 0 && holds(site)).collect();
        sites.sort_by_key(|site| Reverse(figure.of(site).bytes));
        sites
    }

    pub(crate) fn holders(&self) -> Vec<&'r Sampled> {
        self.sites(Figure::Live, |_| true)
    }

    /// Returns stacks whose live blocks were all allocated in the first half of the run.
    pub(crate) fn kept(&self) -> Vec<&'r Sampled> {
        self.sites(Figure::Live, |site| site.youngest_ns < self.check.ns / 2)
    }

    /// Returns stacks that free most bytes at once, but have a live block of the run's first half.
    pub(crate) fn mixed(&self) -> Vec<&'r Sampled> {
        self.sites(Figure::Live, |site| {
            let is_short_lived =
                site.temporary.bytes as f64 >= MOSTLY * site.allocated.bytes as f64;
            is_short_lived && site.temporary.bytes != 0 && site.oldest_ns < self.check.ns / 2
        })
    }

    /// Returns stacks that have grown more than chance explains.
    pub(crate) fn grown(&self) -> Vec<&'r Sampled> {
        self.sites(Figure::Growth, |site| {
            let error = site.more.map_or(u64::MAX, |more| more.growth_error);
            Figure::Growth.of(site).bytes > error.saturating_mul(2)
        })
    }

    pub(crate) fn temporary(&self) -> Vec<&'r Sampled> {
        self.sites(Figure::Temporary, |_| true)
    }

    /// Returns the bytes that are resident but not live.
    pub(crate) fn not_live(&self) -> Option<u64> {
        Some(self.resident?.saturating_sub(self.live.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{SampledMore, StackId};

    const SECOND: u64 = 1_000_000_000;

    fn site(number: u32, live: u64, ages: (u64, u64), shares: (u64, u64)) -> Sampled {
        let amount = |bytes| Amount { blocks: bytes, bytes };
        Sampled {
            stack: StackId(number),
            samples: live,
            live: amount(live),
            live_error: 1,
            allocated: amount(shares.0),
            allocated_error: 1,
            temporary: amount(shares.1),
            peak: amount(live),
            oldest_ns: 10 * SECOND - ages.1 * SECOND,
            youngest_ns: 10 * SECOND - ages.0 * SECOND,
            memory: heapwright_record::debug::Memory::Block,
            more: Some(SampledMore {
                temporary_error: 1,
                peak_error: 1,
                earlier_ns: 3 * SECOND,
                earlier: amount(100),
                growth_error: 40,
            }),
        }
    }

    #[test]
    fn stacks_are_told_apart_by_what_becomes_of_their_blocks() {
        let sites = vec![
            // Early and kept; replaced all the time; short-lived with a survivor; short-lived;
            // grown, perhaps.
            site(1, 100, (8, 9), (100, 0)),
            site(2, 400, (0, 9), (900, 10)),
            site(3, 50, (0, 8), (1000, 900)),
            site(4, 0, (0, 0), (5000, 5000)),
            site(5, 170, (0, 4), (170, 0)),
        ];
        let profile = Profile { sites, peak_bytes: 5, ..Profile::default() };
        let check = Check { ns: 10 * SECOND, profile: Some(profile.clone()), ..Check::default() };
        let process = |pid, peak_bytes| {
            let profile = Some(Profile { peak_bytes, ..profile.clone() });
            Process { pid, checks: vec![Check { profile, ..check.clone() }], ..Process::default() }
        };
        let report = Report { processes: vec![process(1, 5), process(2, 9)], ..Report::default() };
        let explained = Explained::largest(&report).expect("there is a profile");
        let numbers =
            |sites: Vec<&Sampled>| -> Vec<u32> { sites.iter().map(|site| site.stack.0).collect() };
        assert_eq!((explained.process.pid, explained.others), (2, 1));
        assert_eq!(numbers(explained.holders()), [2, 5, 1, 3]);
        assert_eq!(numbers(explained.kept()), [1]);
        assert_eq!(numbers(explained.mixed()), [3]);
        assert_eq!(numbers(explained.grown()), [2], "70 more is less than two errors");
        assert_eq!(numbers(explained.temporary()), [4, 3, 2]);
        assert_eq!((explained.live.bytes, explained.resident), (720, None));
        assert!(Explained::largest(&Report::default()).is_none());
    }
}
