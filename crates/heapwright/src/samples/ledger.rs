//! The ledger adds up the samples as they come, change and go.
//!
//! The *peak* holds each stack's bytes when the live bytes were highest. These bytes are copied
//! when the live bytes fall from a height that is more than 2 % above the last copied height. So
//! the copies are few, and the peak is up to 2 % too low.
//!
//! *Growth* counts from an earlier moment. Each stack's bytes are copied 67 ms after the start, and
//! whenever the time since the start has doubled. Growth counts from the older one of the last two
//! copies, so it covers the last half to three quarters of the time. A copy may be made late, but
//! before the next change. Called by the other files of `samples`, under its lock.

use heapwright_record::debug::Memory;

use super::estimate::{Copied, Estimate, Sample};
use super::points::Points;
use super::probes;
use super::site::{MEMORY_BIT, Site, Thread};
use super::written::SAVE_NS;
use crate::files::Prefix;
use crate::paged_table::Table;
use crate::recorder::Recorder;
use crate::stacks::Scratch;
use crate::{memory_limit, os, poisson};

const TEMPORARY_NS: u64 = 1_000_000;
/// Live bytes are a new peak if they exceed the last peak by one part in this many (2 %).
const PEAK_STEP: f64 = 50.0;
/// Nanoseconds from the start to the first copy of each stack's bytes.
const FIRST_COPY_NS: u64 = 1 << 26;

#[derive(Clone, Copy)]
pub(super) struct Earlier {
    /// The older copy first.
    pub(super) copied_ns: [u64; 2],
}

impl Earlier {
    const BEGINNING: Self = Self { copied_ns: [0; 2] };

    fn next_ns(&self) -> u64 {
        self.copied_ns[1].saturating_mul(2).max(FIRST_COPY_NS)
    }
}

pub(super) struct Samples {
    pub(super) period: usize,
    pub(super) began_ns: u64,
    pub(super) began_unix: u64,
    pub(super) live: Table<Sample>,
    pub(super) sites: Table<Site>,
    pub(super) threads: Table<Thread>,
    /// Estimated bytes: live now, and at the peak.
    pub(super) live_bytes: f64,
    pub(super) peak_bytes: f64,
    pub(super) peak_ns: u64,
    /// Whether the live bytes were at a new peak since the last copy ([`PEAK_STEP`]).
    pub(super) rises: bool,
    pub(super) points: Points,
    pub(super) earlier: Earlier,
    pub(super) lost: u64,
    /// The number that selects sampled runs, or 0 before the draw, and the process that drew it.
    pub(super) random: u64,
    pub(super) drawn_in: u32,
    pub(super) scratch: Scratch,
    /// The files of the profile, without the process's id.
    pub(super) prefix: Prefix,
    /// The process with a profile near the memory limit, and the random part of the file's name.
    pub(super) limit_file: (u32, u64),
    pub(super) save_ns: u64,
    pub(super) recorder: Recorder,
}

impl Samples {
    /// Returns zeros, which take no room in the library's file.
    pub(super) const fn new() -> Self {
        Self {
            period: 0,
            began_ns: 0,
            began_unix: 0,
            live: Table::new(),
            sites: Table::new(),
            threads: Table::new(),
            live_bytes: 0.0,
            peak_bytes: 0.0,
            peak_ns: 0,
            rises: false,
            points: Points::new(),
            earlier: Earlier::BEGINNING,
            lost: 0,
            random: 0,
            drawn_in: 0,
            scratch: Scratch::new(),
            prefix: Prefix::none(),
            limit_file: (0, 0),
            save_ns: 0,
            recorder: Recorder::new(),
        }
    }

    pub(super) fn begin(&mut self, period: usize) {
        self.period = period;
        self.began_ns = os::now_ns();
        self.save_ns = self.began_ns + SAVE_NS;
        self.began_unix = os::unix_ns();
        (self.peak_bytes, self.peak_ns, self.rises, self.lost) = (0.0, 0, true, 0);
        self.points.begin(self.live_bytes, self.resident());
        self.earlier = Earlier::BEGINNING;
        for site in self.sites.iter_mut() {
            (site.allocated, site.temporary) = (Estimate::ZERO, Estimate::ZERO);
            site.peak = Copied::ZERO;
            site.earlier = [site.live.copy(); 2];
        }
        for thread in self.threads.iter_mut() {
            thread.allocated = Estimate::ZERO;
        }
    }

    pub(super) fn add(&mut self, address: usize, size: usize, counted: usize, site: u64) {
        let born_ns = self.before_change();
        let sample = Sample {
            address: address as u64,
            site,
            thread: os::thread_id(),
            size: size as u64,
            counted: counted as u64,
            weight: 1.0 / poisson::chance(counted, self.period),
            born_ns,
        };
        // The free of an old sample here was missed: in a signal handler, or in a first-class heap.
        self.remove(address);
        if self.live.get_or_put(sample).is_none() {
            self.lost += 1;
            return;
        }
        probes::alloc(address, sample.size, sample.bytes() as u64);
        if let Some(site) = self.site(site) {
            site.live.add(&sample);
            site.allocated.add(&sample);
        }
        let thread = Thread {
            id: u64::from(sample.thread),
            name: [0; 16],
            live: Estimate::ZERO,
            allocated: Estimate::ZERO,
        };
        if let Some(thread) = self.threads.get_or_put(thread) {
            if thread.allocated.samples == 0 {
                thread.name = os::process_name();
            }
            thread.live.add(&sample);
            thread.allocated.add(&sample);
        }
        self.live_bytes += sample.bytes();
        self.rises |= self.live_bytes > self.peak_bytes * (1.0 + 1.0 / PEAK_STEP);
        // A thread that samples other memory may hold a lock of a pool or a collected heap.
        if sample.site >> MEMORY_BIT == Memory::Block as u64 {
            self.save_sometimes(sample.born_ns);
        }
    }

    fn site(&mut self, key: u64) -> Option<&mut Site> {
        self.sites.get_or_put(Site {
            key,
            live: Estimate::ZERO,
            allocated: Estimate::ZERO,
            temporary: Estimate::ZERO,
            peak: Copied::ZERO,
            earlier: [Copied::ZERO; 2],
            new_variance: 0.0,
            oldest_ns: 0,
            youngest_ns: 0,
        })
    }

    pub(super) fn remove(&mut self, address: usize) {
        let Some(sample) = self.live.remove(address as u64) else { return };
        probes::free(address);
        let now = self.before_change();
        self.keep_peak(now);
        let is_temporary = now.saturating_sub(sample.born_ns) < TEMPORARY_NS;
        if let Some(site) = self.site(sample.site).filter(|_| is_temporary) {
            site.temporary.add(&sample);
        }
        self.gone(&sample);
    }

    fn gone(&mut self, sample: &Sample) {
        if let Some(site) = self.site(sample.site).filter(|site| site.live.samples != 0) {
            site.live.take_away(sample);
        }
        let thread = self.threads.get_mut(u64::from(sample.thread));
        if let Some(thread) = thread.filter(|thread| thread.live.samples != 0) {
            thread.live.take_away(sample);
        }
        self.live_bytes = (self.live_bytes - sample.bytes()).max(0.0);
    }

    /// Removes the sample until [`Samples::put_back`]. Its site and its thread still count it.
    pub(super) fn take(&mut self, address: usize) -> Option<Sample> {
        let sample = self.live.remove(address as u64)?;
        let now = self.before_change();
        self.keep_peak(now);
        Some(sample)
    }

    pub(super) fn put_back(&mut self, before: Sample, address: usize, size: u64) {
        // The growth was counted, too, so the largest size decides the sample's probability.
        let counted = before.counted.max(size);
        let weight = match counted == before.counted {
            true => before.weight,
            false => 1.0 / poisson::chance(counted as usize, self.period),
        };
        let sample = Sample { address: address as u64, size, counted, weight, ..before };
        // The free of an older sample at this address was missed.
        self.remove(address);
        if self.live.get_or_put(sample).is_none() {
            // Another sample took the place in the table meanwhile.
            self.lost += 1;
            probes::free(before.address as usize);
            self.gone(&before);
            return;
        }
        if before.address != sample.address || before.size != sample.size {
            probes::free(before.address as usize);
            probes::alloc(address, size, sample.bytes() as u64);
        }
        self.live_bytes = (self.live_bytes - before.bytes()).max(0.0) + sample.bytes();
        let has_grown = size > before.size;
        if let Some(site) = self.site(sample.site) {
            site.live.replace(&before, &sample);
            if has_grown {
                site.allocated.replace(&before, &sample);
            }
        }
        if let Some(thread) = self.threads.get_mut(u64::from(sample.thread)) {
            thread.live.replace(&before, &sample);
            if has_grown {
                thread.allocated.replace(&before, &sample);
            }
        }
        self.rises |= self.live_bytes > self.peak_bytes * (1.0 + 1.0 / PEAK_STEP);
    }

    /// Copies each site's bytes if live bytes are at a new peak, before they fall or are read.
    pub(super) fn keep_peak(&mut self, now: u64) {
        if !self.rises || self.live_bytes <= self.peak_bytes {
            return;
        }
        (self.rises, self.peak_bytes, self.peak_ns) = (false, self.live_bytes, now);
        for site in self.sites.iter_mut() {
            site.peak = site.live.copy();
        }
    }

    /// Makes the copies of past moments before the live bytes change or are read. Returns the time.
    pub(super) fn before_change(&mut self) -> u64 {
        let now = os::now_ns();
        let ns = self.since(now);
        if self.points.is_due(ns) {
            self.points.add(ns, self.live_bytes, self.resident());
        }
        while ns >= self.earlier.next_ns() {
            self.copy_earlier();
        }
        now
    }

    /// Returns the resident bytes, or 0 if no file is saved or a sandbox forbids the look.
    fn resident(&self) -> u64 {
        let may_ask = self.prefix.is_given() && !memory_limit::is_in_sandbox();
        if may_ask { os::resident_bytes().0 } else { 0 }
    }

    #[cold]
    fn copy_earlier(&mut self) {
        self.earlier = Earlier { copied_ns: [self.earlier.copied_ns[1], self.earlier.next_ns()] };
        for site in self.sites.iter_mut() {
            site.earlier = [site.earlier[1], site.live.copy()];
        }
    }

    pub(super) fn since(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.began_ns)
    }
}
