//! Samples: the blocks of a heap profile, and what they say of all blocks.
//!
//! ```text
//!   live      address                -> site, size, thread, when, and how many blocks it stands for
//!   sites     stack, kind of memory  -> live, allocated, temporary, live at the peak and at two earlier moments
//!   threads   thread                 -> live, allocated
//!   points    time                   -> live bytes, bytes in memory
//! ```
//!
//! A sample of `n` bytes stands for `1/p` blocks, where `p` is the probability that a block of its size is one
//! (`poisson`). Sums of `1/p` estimate counts, and sums of `n/p` bytes; the variance of such a sum
//! is estimated by the sum of `(1-p)/p^2`, times `n^2` for bytes (Horvitz and Thompson).
//!
//! The *peak* is what each stack had when live bytes were highest. It is copied when live bytes fall from a height
//! that exceeds the last copied one by 2 %, so the number of copies grows with the logarithm of the heap's size, and the peak
//! is up to 2 % too low.
//!
//! *Growth* is counted from an earlier moment: what each stack has is copied 67 ms after the beginning, and whenever it is twice as
//! long since. Of the copies the last two are kept, and the older one counts, so growth is that of the last half of the time, at
//! least, and of three quarters of it at most. Nothing changes between two samples, so a copy is made before the first change
//! behind its moment, and is exact.
//!
//! The records are kept here, not in the blocks. One lock protects all of this; a thread takes it when a sample is
//! made, resized or freed. A signal handler that interrupted the lock's holder does not come here: the caller sees
//! to that. Of runs of units see `runs`.
//!
//! Tracers of the whole machine can follow samples too: see `probes`.
//!
//! With the option `profile`, the profile is saved at most once a second while the program runs, so that a process
//! that is killed leaves one.
//!
//! Called by `heap`, which knows when a block is to be a sample, by the substrate's `runs`, and by the public functions of `profile`.

mod points;
pub(crate) mod probes;
mod runs;
mod table;

pub(crate) use runs::sample_runs;

use heapwright_record::debug::{
    Check, Checked, Entry, Memory, Occasion, Profile, Sampled, SampledMore, SampledPoint,
    SampledThread, Usage,
};

use crate::address_map::MAP;
use crate::files::Prefix;
use crate::fork::{self, Part};
use crate::memory_limit;
use crate::os;
use crate::poisson;
use crate::recorder::Recorder;
use crate::stacks::{self, Scratch, Stack};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{self, Lock};
use points::Points;
use table::{Keyed, Table};

/// Frames of each stack.
const DEPTH: usize = 32;
/// A block that lives no longer is temporary, in nanoseconds.
const TEMPORARY_NS: u64 = 1_000_000;
/// Live bytes that exceed the last peak by one of so many parts of it are a new one.
const PEAK_STEP: f64 = 50.0;
/// So long after the beginning what each stack has is copied first, in nanoseconds.
const FIRST_COPY_NS: u64 = 1 << 26;

/// The least time between two saves of the profile, in nanoseconds; and one of how many parts of the time they may take.
const SAVE_NS: u64 = 1_000_000_000;
const SAVE_SHARE: u64 = 100;

/// Blocks and bytes, estimated.
#[derive(Clone, Copy)]
struct Estimate {
    samples: u64,
    blocks: f64,
    bytes: f64,
    /// Of the bytes.
    variance: f64,
}

impl Estimate {
    const ZERO: Self = Self { samples: 0, blocks: 0.0, bytes: 0.0, variance: 0.0 };

    fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.blocks += sample.weight;
        self.bytes += sample.bytes();
        self.variance += sample.variance();
    }

    fn take_away(&mut self, sample: &Sample) {
        self.samples -= 1;
        if self.samples == 0 {
            // Not what rounding has left.
            *self = Self::ZERO;
            return;
        }
        self.blocks -= sample.weight;
        self.bytes -= sample.bytes();
        self.variance -= sample.variance();
    }

    /// A sample has changed. (Of a profile that was begun since it was made, it is not known as allocated.)
    fn replace(&mut self, before: &Sample, now: &Sample) {
        if self.samples != 0 {
            self.take_away(before);
            self.add(now);
        }
    }

    /// One standard deviation of the bytes.
    fn error(&self) -> u64 {
        deviation(self.variance)
    }

    fn copy(&self) -> Copied {
        Copied { bytes: self.bytes, blocks: self.blocks as f32, variance: self.variance as f32 }
    }
}

/// One standard deviation.
fn deviation(variance: f64) -> u64 {
    u64::try_from((variance.max(0.0) as u128).isqrt()).unwrap_or(u64::MAX)
}

/// What an estimate was at an earlier moment, in 16 bytes: each stack has three.
#[derive(Clone, Copy)]
struct Copied {
    bytes: f64,
    blocks: f32,
    /// Of the bytes.
    variance: f32,
}

impl Copied {
    const ZERO: Self = Self { bytes: 0.0, blocks: 0.0, variance: 0.0 };
}

/// A sample that is live.
#[derive(Clone, Copy)]
struct Sample {
    address: u64,
    /// The key of its site.
    site: u64,
    thread: u32,
    /// Bytes that were asked for.
    size: u64,
    /// Bytes that were counted of it: its size, as far as it decides the chance, at its largest.
    counted: u64,
    /// How many blocks it stands for.
    weight: f64,
    born_ns: u64,
}

impl Sample {
    fn bytes(&self) -> f64 {
        self.size as f64 * self.weight
    }

    fn variance(&self) -> f64 {
        // (1-p)/p^2 is w(w-1).
        let size = self.size as f64;
        size * size * self.weight * (self.weight - 1.0)
    }
}

// SAFETY: numbers; the key of zeros is 0.
unsafe impl Keyed for Sample {
    fn key(&self) -> u64 {
        self.address
    }
}

/// Where the kind of memory is in a site's key.
const MEMORY_BIT: u32 = 40;

/// What is known of a stack and a kind of memory.
#[derive(Clone, Copy)]
struct Site {
    /// 1 + the stack's number, and from bit [`MEMORY_BIT`] on the kind of memory.
    key: u64,
    live: Estimate,
    allocated: Estimate,
    temporary: Estimate,
    /// What was live at the peak, and at the two moments of [`Earlier`], the older first.
    peak: Copied,
    earlier: [Copied; 2],
    /// The variance of what is live and was made behind the older one: only while a profile is written.
    new_variance: f64,
    /// When the oldest and the youngest live sample were born: only while a profile is written.
    oldest_ns: u64,
    youngest_ns: u64,
}

impl Site {
    fn key_of(stack: Stack, memory: Memory) -> u64 {
        (u64::from(stack.0) + 1) | (memory as u64) << MEMORY_BIT
    }

    fn stack(&self) -> u32 {
        ((self.key & ((1 << MEMORY_BIT) - 1)) - 1) as u32
    }

    fn memory(&self) -> Memory {
        Memory::from_u8((self.key >> MEMORY_BIT) as u8)
    }
}

// SAFETY: numbers; the key of zeros is 0.
unsafe impl Keyed for Site {
    fn key(&self) -> u64 {
        self.key
    }
}

/// What is known of a thread.
#[derive(Clone, Copy)]
struct Thread {
    /// The kernel's number.
    id: u64,
    name: [u8; 16],
    live: Estimate,
    allocated: Estimate,
}

// SAFETY: numbers; the key of zeros is 0.
unsafe impl Keyed for Thread {
    fn key(&self) -> u64 {
        self.id
    }
}

/// When what each stack has was copied, and will be next, in nanoseconds since the beginning.
#[derive(Clone, Copy)]
struct Earlier {
    /// The older one first.
    copied_ns: [u64; 2],
    next_ns: u64,
}

impl Earlier {
    const BEGINNING: Self = Self { copied_ns: [0; 2], next_ns: FIRST_COPY_NS };
}

struct Samples {
    period: usize,
    began_ns: u64,
    began_unix: u64,
    live: Table<Sample>,
    sites: Table<Site>,
    threads: Table<Thread>,
    /// Bytes, estimated: live, and when most were.
    live_bytes: f64,
    peak_bytes: f64,
    peak_ns: u64,
    /// Whether more is live than ever when the peak was copied.
    rises: bool,
    points: Points,
    earlier: Earlier,
    /// Samples for which there was no memory.
    lost: u64,
    /// Which runs are samples; 0: not yet drawn. And the process that has drawn it.
    random: u64,
    drawn_in: u32,
    scratch: Scratch,
    /// The files that it is saved in, without the number of the process.
    prefix: Prefix,
    /// When it is saved next, if it is.
    save_ns: u64,
    recorder: Recorder,
}

/// How long the lock is waited for when the process ends, in milliseconds.
const PATIENCE_MS: u64 = 1000;

static HAS_JOINED: AtomicBool = AtomicBool::new(false);
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
static SAMPLES: Lock<Samples> = Lock::new(Samples {
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
    save_ns: 0,
    recorder: Recorder::new(),
});

/// Begins a profile: forgets what was allocated so far, but for what is live. `period` is the mean distance of samples
/// that are made from now on, in bytes.
pub(crate) fn begin(period: usize) {
    join();
    HAS_BEGUN.store(true, Ordering::Relaxed);
    SAMPLES.lock().begin(period);
}

/// Joins in forks, before the lock is used for the first time: a fork must not find it held. The caller holds no lock.
pub(crate) fn join() {
    if !HAS_JOINED.load(Ordering::Acquire) {
        fork::join(Part::Samples, &HANDLERS);
        HAS_JOINED.store(true, Ordering::Release);
    }
}

/// Whether [`join`] was called.
pub(crate) fn has_joined() -> bool {
    HAS_JOINED.load(Ordering::Acquire)
}

/// Whether a profile was ever begun.
pub(crate) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// The profile is saved in the file `prefix.<pid>` now and then, and when the process ends.
pub(crate) fn save_in(prefix: &[u8]) {
    join();
    SAMPLES.lock().prefix.set(prefix);
}

/// Adds a block of `size` bytes as a sample, which was chosen with the probability of one of `counted` bytes.
#[inline(always)]
pub(crate) fn made(block: *mut u8, size: usize, counted: usize) {
    let mut samples = SAMPLES.lock();
    let stack = stacks::here(&mut samples.scratch, DEPTH);
    samples.add(block.addr(), size, counted, Site::key_of(stack, Memory::Block));
}

/// Removes a block that is freed, if it is a sample.
pub(crate) fn freed(block: *mut u8) {
    SAMPLES.lock().remove(block.addr());
}

/// Changes the size of a sample that stays where it is.
pub(crate) fn resized(block: *mut u8, size: usize) {
    let mut samples = SAMPLES.lock();
    if let Some(sample) = samples.take(block.addr()) {
        samples.put_back(sample, block.addr(), size as u64);
    }
}

/// A sample whose block is about to change its place.
#[derive(Clone, Copy)]
pub(crate) struct Moving(Sample);

/// Takes a sample out, if there is one at that address.
pub(crate) fn take(block: *mut u8) -> Option<Moving> {
    SAMPLES.lock().take(block.addr()).map(Moving)
}

/// Puts it back, at an address, with a size if it has another one.
pub(crate) fn put_back(moving: Moving, block: *mut u8, size: Option<usize>) {
    let size = size.map_or(moving.0.size, |size| size as u64);
    SAMPLES.lock().put_back(moving.0, block.addr(), size);
}

/// Removes all samples at addresses for which `is_gone` holds: their heap is destroyed.
pub(crate) fn forget(is_gone: impl Fn(usize) -> bool) {
    let mut samples = SAMPLES.lock();
    let mut from = 0;
    while let Some((at, address)) = samples.live.key_from(from, |key| is_gone(key as usize)) {
        samples.remove(address as usize);
        from = at;
    }
}

/// Saves the profile as it is now in the file of [`save_in`]. False: it could not be written.
pub(crate) fn save() -> bool {
    if sync::holds_all() {
        return SAMPLES.lock().save();
    }
    // A signal handler may end the process that has interrupted the lock's holder.
    SAMPLES.lock_soon(PATIENCE_MS).is_some_and(|mut samples| samples.save())
}

/// Saves the profile as it is now because the memory limit is near: in the file of [`save_in`], or in
/// `/tmp/heapwright-profile.<pid>`. False: it could not be written, or the lock is held for long.
pub(crate) fn save_at_limit() -> bool {
    let Some(mut samples) = SAMPLES.lock_soon(PATIENCE_MS) else { return false };
    if !samples.prefix.is_given() {
        samples.prefix.set(b"/tmp/heapwright-profile");
        let saved = samples.save();
        samples.prefix = Prefix::none();
        return saved;
    }
    samples.save()
}

/// Writes the profile as it is now to the open file `file`, as a record that is complete in itself. False: it could not
/// be written.
pub(crate) fn write_in(file: i32) -> bool {
    join();
    SAMPLES.lock().write_in(file)
}

/// Writes the profile as it is now to a new file at `path`, which ends with a zero, for this user alone. False: it could not
/// be written, or a fork might not know of the lock yet.
pub(crate) fn write_to(path: &[u8]) -> bool {
    HAS_JOINED.load(Ordering::Acquire) && os::replace_private_file(path, write_in)
}

static HANDLERS: fork::Handlers = fork::Handlers { before: before_fork, unlock, in_child };

fn before_fork() {
    SAMPLES.acquire();
}

/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: taken there, by this thread or the one that it is a copy of.
    unsafe { SAMPLES.release() };
}

/// The recorder sees by the process's number that it is in another one.
fn in_child(_alone: bool) {}

impl Samples {
    fn begin(&mut self, period: usize) {
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

    fn add(&mut self, address: usize, size: usize, counted: usize, site: u64) {
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
        // One whose free was not seen, in a signal handler of a thread that used a first-class heap.
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
        // Not with the lock of a pool or of a collected heap held.
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

    fn remove(&mut self, address: usize) {
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

    /// A sample is no longer live.
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

    /// Takes a sample out, which [`Samples::put_back`] follows: of its site and its thread it stays.
    fn take(&mut self, address: usize) -> Option<Sample> {
        let sample = self.live.remove(address as u64)?;
        let now = self.before_change();
        self.keep_peak(now);
        Some(sample)
    }

    fn put_back(&mut self, before: Sample, address: usize, size: u64) {
        // What it has grown by was counted, too, and so the chance that it is a sample is that of its size.
        let counted = before.counted.max(size);
        let weight = match counted == before.counted {
            true => before.weight,
            false => 1.0 / poisson::chance(counted as usize, self.period),
        };
        let sample = Sample { address: address as u64, size, counted, weight, ..before };
        // One whose free was not seen.
        self.remove(address);
        if self.live.get_or_put(sample).is_none() {
            // There was room when it was taken out, which another one has taken.
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

    /// Live bytes are about to fall, or are looked at: if they are at a new peak, copies what each site has.
    fn keep_peak(&mut self, now: u64) {
        if !self.rises || self.live_bytes <= self.peak_bytes {
            return;
        }
        (self.rises, self.peak_bytes, self.peak_ns) = (false, self.live_bytes, now);
        for site in self.sites.iter_mut() {
            site.peak = site.live.copy();
        }
    }

    /// What is live is about to change, or is looked at: keeps what it was at the moments that have passed. Returns what time it is.
    fn before_change(&mut self) -> u64 {
        let now = os::now_ns();
        let ns = self.since(now);
        if self.points.is_due(ns) {
            self.points.add(ns, self.live_bytes, self.resident());
        }
        while ns >= self.earlier.next_ns {
            self.copy_earlier();
        }
        now
    }

    /// Bytes of the process that are in memory. Not known (0) where no file is saved: the kernel says so in a file, and the program
    /// may be in a sandbox that allows none.
    fn resident(&self) -> u64 {
        let may_ask = self.prefix.is_given() && !memory_limit::is_in_sandbox();
        if may_ask { os::resident_bytes().0 } else { 0 }
    }

    #[cold]
    fn copy_earlier(&mut self) {
        let Earlier { copied_ns: [_, last_ns], next_ns } = self.earlier;
        self.earlier =
            Earlier { copied_ns: [last_ns, next_ns], next_ns: next_ns.saturating_mul(2) };
        for site in self.sites.iter_mut() {
            site.earlier = [site.earlier[1], site.live.copy()];
        }
    }

    /// Nanoseconds since the beginning.
    fn since(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.began_ns)
    }

    /// Saves it, so that it is there if the process is killed, if it is time: once a second at most, and so seldom that it
    /// takes a hundredth of the time.
    fn save_sometimes(&mut self, now: u64) {
        if now >= self.save_ns && self.prefix.is_given() {
            self.save();
            let took = os::now_ns().saturating_sub(now);
            self.save_ns = now + (took * SAVE_SHARE).max(SAVE_NS);
        }
    }

    fn save(&mut self) -> bool {
        let path = self.prefix.of(os::process_id());
        os::save_file(&path, |file| self.write_in(file))
    }

    fn write_in(&mut self, file: i32) -> bool {
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
            // What is new, and what has gone since: samples that are live both times say nothing of the difference.
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

    /// The points, and one of this moment.
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

    /// Removes runs that were given back while the lock was held for very long: their records say that they are no samples.
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

    /// Finds the oldest and the youngest live sample of each site, and the variance of those that are new.
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
