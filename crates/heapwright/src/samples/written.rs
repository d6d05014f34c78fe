//! The written profile: a complete record of every stack and thread with samples.
//!
//! With the option `profile`, the profile is saved now and then, so a killed process leaves one.
//! Called by the other files of `samples`, under its lock.

use heapwright_record::debug::{
    Check, Checked, Entry, Memory, Occasion, Profile, Sampled, SampledMore, SampledPoint,
    SampledThread, Usage,
};

use super::estimate::{Estimate, Sample, deviation};
use super::ledger::Samples;
use super::runs;
use super::site::MEMORY_BIT;
use crate::address_map::MAP;
use crate::digits::Digits;
use crate::files::{self, Path};
use crate::sync::atomic::Ordering;
use crate::{memory_limit, os};

/// The least nanoseconds between two saves. Saves take at most 1/`SAVE_SHARE` of the time.
pub(super) const SAVE_NS: u64 = 1_000_000_000;
const SAVE_SHARE: u64 = 100;

impl Samples {
    /// Saves the profile if a save is due, in case the process is killed.
    pub(super) fn save_sometimes(&mut self, now: u64) {
        if now >= self.save_ns && self.prefix.is_given() {
            self.save();
            let took = os::now_ns().saturating_sub(now);
            self.save_ns = now + (took * SAVE_SHARE).max(SAVE_NS);
        }
    }

    pub(super) fn save(&mut self) -> bool {
        let path = self.prefix.of(os::process_id());
        os::save_file(&path, |file| self.write_in(file))
    }

    /// Names the file for the profile near the memory limit, once, if the user has named none.
    pub(super) fn name_for_limit(&mut self) {
        let process = os::process_id();
        if self.limit_file.0 != process {
            let mut random = [0; 8];
            os::random(&mut random);
            self.limit_file = (process, u64::from_ne_bytes(random));
        }
        let number = Digits::hexadecimal(self.limit_file.1);
        let path = Path::none().with(b"/tmp/heapwright-profile-").with(number.as_bytes());
        self.prefix.set(files::shown(path.as_bytes()));
    }

    pub(super) fn write_in(&mut self, file: i32) -> bool {
        self.recorder.set_beginning(self.began_unix);
        self.recorder.begin_in(file);
        if !self.recorder.begins() {
            return false;
        }
        self.put_profile();
        self.recorder.is_wanted()
    }

    fn put_profile(&mut self) {
        let (check, now) = (1, self.before_change());
        self.keep_peak(now);
        self.forget_runs();
        self.look_through();
        let mut live = Estimate::ZERO;
        let threads = self.threads.iter().count() as u32;
        self.put(&Check {
            number: check,
            occasion: Occasion::Profile,
            ns: self.since(now),
            sequence: 0,
            stopped_ns: 0,
            threads,
            silent: 0,
            thread: 0,
        });
        self.put(&Profile {
            check,
            period: self.period as u64,
            since_ns: 0,
            peak_bytes: self.peak_bytes as u64,
            peak_ns: self.since(self.peak_ns),
            lost: self.lost + runs::missed(),
        });
        self.put_points(check, now);
        let (recorder, began) = (&mut self.recorder, self.began_ns);
        let earlier_ns = self.earlier.copied_ns[0];
        for site in self.sites.iter() {
            let (stack, memory) = (site.stack(), site.memory());
            let earlier = site.earlier[0];
            let was_live = site.peak.bytes != 0.0 || earlier.bytes != 0.0;
            if site.live.samples + site.allocated.samples == 0 && !was_live {
                continue;
            }
            live.blocks += site.live.blocks;
            live.bytes += site.live.bytes;
            recorder.put_stack(stack);
            recorder.put(&Entry::from(Sampled {
                check,
                stack,
                live_samples: site.live.samples,
                live_blocks: site.live.blocks as u64,
                live_bytes: site.live.bytes as u64,
                live_error: site.live.error(),
                allocated_samples: site.allocated.samples,
                allocated_blocks: site.allocated.blocks as u64,
                allocated_bytes: site.allocated.bytes as u64,
                allocated_error: site.allocated.error(),
                temporary_blocks: site.temporary.blocks as u64,
                temporary_bytes: site.temporary.bytes as u64,
                peak_blocks: site.peak.blocks as u64,
                peak_bytes: site.peak.bytes as u64,
                oldest_ns: site.oldest_ns.saturating_sub(began),
                youngest_ns: site.youngest_ns.saturating_sub(began),
                memory,
            }));
            // Samples that are live at both times do not affect the difference.
            let old_variance = (site.live.variance - site.new_variance).max(0.0);
            let gone_variance = (f64::from(earlier.variance) - old_variance).max(0.0);
            recorder.put(&Entry::from(SampledMore {
                check,
                stack,
                temporary_error: site.temporary.error(),
                peak_error: deviation(site.peak.variance.into()),
                earlier_ns,
                earlier_blocks: earlier.blocks as u64,
                earlier_bytes: earlier.bytes as u64,
                growth_error: deviation(site.new_variance + gone_variance),
            }));
            if site.live.samples != 0 {
                let (blocks, bytes) = (site.live.blocks as u64, site.live.bytes as u64);
                recorder.put(&Entry::from(Usage { check, stack, blocks, bytes }));
            }
        }
        for thread in self.threads.iter() {
            let number = thread.id as u32;
            recorder.put_thread(number, number, &thread.name);
            recorder.put(&Entry::from(SampledThread {
                check,
                thread: number,
                live_blocks: thread.live.blocks as u64,
                live_bytes: thread.live.bytes as u64,
                allocated_blocks: thread.allocated.blocks as u64,
                allocated_bytes: thread.allocated.bytes as u64,
            }));
        }
        self.put(&Checked {
            check,
            took_ns: os::now_ns().saturating_sub(now),
            blocks: live.blocks as u64,
            bytes: live.bytes as u64,
            omitted_groups: 0,
            omitted_blocks: 0,
            omitted_bytes: 0,
            read_bytes: 0,
        });
        self.recorder.flush();
    }

    fn put_points(&mut self, check: u32, now: u64) {
        let recorder = &mut self.recorder;
        for point in self.points.iter() {
            recorder.put(&Entry::from(SampledPoint {
                check,
                ns: point.ns,
                live_bytes: point.live as u64,
                resident_bytes: point.resident,
            }));
        }
        self.put(&SampledPoint {
            check,
            ns: self.since(now),
            live_bytes: self.live_bytes as u64,
            resident_bytes: if memory_limit::is_in_sandbox() { 0 } else { os::resident_bytes().0 },
        });
    }

    fn put<T: Copy>(&mut self, entry: &T)
    where
        Entry<'static>: From<T>,
    {
        self.recorder.put(&Entry::from(*entry));
    }

    /// Removes the runs that, by their units' records, were released while the lock was not free.
    fn forget_runs(&mut self) {
        let is_gone = |sample: &&Sample| {
            let is_block = sample.site >> MEMORY_BIT == Memory::Block as u64;
            let unit = MAP.unit_of(sample.address as usize);
            !is_block && MAP.record(unit).sampled.load(Ordering::Relaxed) == 0
        };
        loop {
            let gone = self.live.iter().find(is_gone).map(|sample| sample.address);
            let Some(gone) = gone else { return };
            self.remove(gone as usize);
        }
    }

    fn look_through(&mut self) {
        for site in self.sites.iter_mut() {
            (site.oldest_ns, site.youngest_ns, site.new_variance) = (u64::MAX, 0, 0.0);
        }
        let earlier_ns = self.began_ns + self.earlier.copied_ns[0];
        for sample in self.live.iter() {
            if let Some(site) = self.sites.get_mut(sample.site) {
                site.oldest_ns = site.oldest_ns.min(sample.born_ns);
                site.youngest_ns = site.youngest_ns.max(sample.born_ns);
                if sample.born_ns >= earlier_ns {
                    site.new_variance += sample.variance();
                }
            }
        }
        for site in self.sites.iter_mut().filter(|site| site.oldest_ns == u64::MAX) {
            site.oldest_ns = 0;
        }
    }
}
