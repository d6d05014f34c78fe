//! The report of a check's result, in the record and on standard error.
//!
//! ```text
//!   Check | Class ... | Usage ... | Leak Step Step ... | Leak ... | Sample ... | Checked
//! ```
//!
//! Lost blocks are reported in full. The largest groups of reachable blocks are reported, each with
//! a path from a root to one of its blocks. Smaller groups are counted.
//!
//! The check at exit is *brief* if no check came before it, with `reachable=none` and `growth=off`.
//! It leaves out the live blocks by stack, by size and by time. Without losses, the report consists
//! of two sums and a few blocks. Called by `leaks` and `request`, often in a copy of the process.

use heapwright_record::debug::{self as record, Entry, Occasion, Origin, Reach, Root};

use crate::options;
use crate::options::leaks::Reported;
use crate::os::{self, Answer};
use crate::recorder::Recorder;
use crate::size_class::CLASSES;
use crate::sync::atomic::Ordering;

use super::super::heap::Heap;
use super::super::leak_check::{Amount, LeakCheck};
use super::super::report::{Lost, Output};
use super::super::slot::State;
use super::super::span::{Form, Span, Stage};
use super::groups::{Group, Groups, Sorted};
use super::index::{Block, Index};
use super::mark::Marks;
use super::roots::Roots;
use super::timeline::Timeline;
use super::{Assignment, sum_of};

/// The most groups of reachable blocks that are reported in full (`reachable=top`).
const REACHABLE_REPORTED: usize = 100;
const USAGE_TOLD: usize = 256;
const SHOWN: usize = 8;
const PRINTED: usize = 20;
/// The most steps of a path that are reported, from the root on, and (`LONGEST`) followed.
const STEPS: usize = 24;
const LONGEST: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Fullness {
    slot: u64,
    buckets: u64,
    memory: u64,
    live: u64,
    bytes: u64,
    freed: u64,
    unused: u64,
}

const EMPTY: Fullness =
    Fullness { slot: 0, buckets: 0, memory: 0, live: 0, bytes: 0, freed: 0, unused: 0 };

/// The sums of groups too small to be reported in full.
#[derive(Clone, Copy, Default)]
struct Omitted {
    groups: u64,
    blocks: u64,
    bytes: u64,
}

pub(super) struct LeakReport<'a, 'v> {
    heap: &'static Heap,
    work: &'a Assignment,
    output: &'a mut Output<'v>,
    timeline: &'a Timeline,
    now: (u64, u32),
    stopped: u64,
    usage: Groups,
}

impl<'a, 'v> LeakReport<'a, 'v> {
    /// Starts the output. Returns `None` without memory.
    pub(super) fn new(
        heap: &'static Heap,
        work: &'a Assignment,
        output: &'a mut Output<'v>,
        timeline: &'a Timeline,
        stopped: u64,
    ) -> Option<Self> {
        let now = (heap.reporter.now(), heap.sequence_now());
        let usage = Groups::new()?;
        Some(Self { heap, work, output, timeline, now, stopped, usage })
    }

    fn put(&mut self, entry: impl Into<Entry<'static>>) {
        let entry = entry.into();
        self.record(|recorder| recorder.put(&entry));
    }

    fn record(&mut self, write: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = self.output.recorder().filter(|recorder| recorder.is_wanted()) {
            write(recorder);
        }
    }

    fn report_check(&mut self) {
        let silent = self.work.answers.iter().filter(|answer| answer.is_silent());
        let answers = self.work.answers.iter().filter(|answer| answer.thread() != 0);
        let (threads, silent) = (1 + answers.count() as u32, silent.count() as u32);
        let thread = self.work.thread;
        let threads_of = &self.heap.threads;
        self.record(|recorder| threads_of.record(thread, recorder));
        self.put(record::Check {
            number: self.work.number,
            occasion: self.work.occasion,
            ns: self.now.0,
            sequence: u64::from(self.now.1),
            stopped_ns: self.stopped,
            threads,
            silent,
            thread,
        });
    }

    /// Counts the live blocks by stack, without following pointers.
    pub(super) fn count(mut self) -> Option<()> {
        self.report_check();
        let (mut blocks, mut bytes) = (0, 0);
        let heap = self.heap;
        let usage = &mut self.usage;
        let mut complete = true;
        heap.each_live(|place, word, sequence| {
            let size = place.size(word);
            (blocks, bytes) = (blocks + 1, bytes + size as u64);
            let stack = place.record().made_at.load(Ordering::Relaxed);
            match usage.of(0, 0, stack) {
                Some(group) => group.add(place.block().addr(), size, sequence),
                None => complete = false,
            }
        });
        complete.then_some(())?;
        self.report_usage();
        self.report_checked(blocks, bytes, 0, Omitted::default());
        Some(())
    }

    fn is_brief(&self) -> bool {
        let options = options::leaks();
        let is_only = self.work.occasion == Occasion::Exit && self.work.number == 1;
        is_only && options.reachable == Reported::None && !options.growth
    }

    pub(super) fn write(
        mut self,
        index: &Index,
        live: Amount,
        roots: &Roots,
        marks: &mut Marks<'_>,
    ) -> Option<LeakCheck> {
        self.report_check();
        let is_brief = self.is_brief();
        let mut found = LeakCheck::default();
        let mut groups = if is_brief && marks.has_all() && self.work.since.is_none() {
            found.reachable = live;
            Groups::new()?
        } else {
            self.add_up(index, marks, &mut found, is_brief)?
        };
        let mut omitted = Omitted::default();
        if is_brief {
            (omitted.blocks, omitted.bytes) = (found.reachable.blocks, found.reachable.bytes);
            self.add_some(index, marks, live.blocks, &mut groups)?;
        } else {
            self.report_fullness();
            self.report_usage();
        }
        let groups = groups.sorted();
        let mut reported = 0;
        for group in groups.iter() {
            let reach = Reach::from_u8(group.reach());
            if reach == Reach::Reachable && is_brief {
                omitted.blocks -= group.blocks;
                omitted.bytes -= group.bytes;
            } else if reach == Reach::Reachable {
                let most = match options::leaks().reachable {
                    Reported::None => 0,
                    Reported::Top => REACHABLE_REPORTED,
                    Reported::All => usize::MAX,
                };
                if reported >= most {
                    omitted.groups += 1;
                    omitted.blocks += group.blocks;
                    omitted.bytes += group.bytes;
                    continue;
                }
                reported += 1;
            }
            self.report_group(reach, group, index, roots, marks);
        }
        if !is_brief {
            self.report_timeline();
        }
        let blocks = [found.definite, found.indirect, found.possible, found.reachable];
        let sum = |of: fn(&Amount) -> u64| blocks.iter().map(of).sum();
        self.report_checked(sum(|a| a.blocks), sum(|a| a.bytes), marks.read, omitted);
        self.print(&groups, &found);
        Some(found)
    }

    fn add_up(
        &mut self,
        index: &Index,
        marks: &mut Marks<'_>,
        found: &mut LeakCheck,
        is_brief: bool,
    ) -> Option<Groups> {
        let mut groups = Groups::new()?;
        if self.work.answers.iter().any(Answer::is_silent) {
            for block in index.each() {
                let lost = matches!(marks.reach(&block), Reach::Definite | Reach::Indirect);
                if lost && self.is_of_silent(&block) {
                    marks.doubt(&block);
                }
            }
        }
        for block in index.each() {
            let made = block.place.record();
            let sequence = made.made.load(Ordering::Relaxed);
            let stack = made.made_at.load(Ordering::Relaxed);
            if !is_brief {
                self.usage.of(0, 0, stack)?.add(block.start, block.size, sequence);
            }
            if self.work.since.is_some_and(|since| (sequence.wrapping_sub(since) as i32) <= 0) {
                continue;
            }
            let reach = marks.reach(&block);
            let amount = sum_of(found, reach);
            amount.blocks += 1;
            amount.bytes += block.size as u64;
            if is_brief && reach == Reach::Reachable {
                continue;
            }
            let group = groups.of(reach as u8, block.word.origin(), stack)?;
            group.add(block.start, block.size, sequence);
            if reach == Reach::Indirect
                && let Some(first) = index.of_number(marks.lost_with(block.number))
            {
                let stack = first.place.record().made_at.load(Ordering::Relaxed);
                let reach = marks.reach(&first) as u8;
                let group = groups.of(reach, first.word.origin(), stack)?;
                group.indirect_blocks += 1;
                group.indirect_bytes += block.size as u64;
            }
        }
        Some(groups)
    }

    /// Returns whether a thread that did not publish its registers made the block.
    fn is_of_silent(&self, block: &Block) -> bool {
        let made_by = u32::from(block.word.made_by());
        let Some((system, _)) = self.heap.threads.identity(made_by) else { return false };
        let mut silent = self.work.answers.iter().filter(|answer| answer.is_silent());
        silent.any(|answer| answer.thread() == system)
    }

    fn report_group(
        &mut self,
        reach: Reach,
        group: &Group,
        index: &Index,
        roots: &Roots,
        marks: &Marks<'_>,
    ) {
        let (oldest, _) = self.timeline.when(group.oldest, self.now);
        let (_, youngest) = self.timeline.when(group.youngest, self.now);
        let example = index.find(group.example);
        let thread = example.map_or(0, |block| u32::from(block.word.made_by()));
        let mut leak = record::Leak {
            check: self.work.number,
            reach,
            origin: Origin::from_u8(group.origin()),
            stack: group.stack(),
            thread,
            blocks: group.blocks,
            bytes: group.bytes,
            indirect_blocks: group.indirect_blocks,
            indirect_bytes: group.indirect_bytes,
            block: group.example as u64,
            size: group.size as u64,
            oldest_ns: oldest,
            youngest_ns: youngest,
            root: Root::Unknown,
            root_address: 0,
            root_thread: 0,
        };
        let mut steps = [record::Step::default(); STEPS];
        let mut count = 0;
        if matches!(reach, Reach::Reachable | Reach::Possible)
            && let Some(example) = example
        {
            let mut via = marks.via(&example);
            for _ in 0..LONGEST {
                let Some(block) = index.find(via) else { break };
                steps.copy_within(0..STEPS - 1, 1);
                steps[0] = record::Step {
                    block: block.start as u64,
                    size: block.size as u64,
                    offset: (via - block.start) as u64,
                    stack: block.place.record().made_at.load(Ordering::Relaxed),
                };
                count = (count + 1).min(STEPS);
                via = marks.via(&block);
            }
            if via != 0 {
                let (root, system) = roots.describe(via);
                leak.root = root;
                leak.root_address = via as u64;
                leak.root_thread = self.heap.threads.number_of_system(system);
            }
        }
        let (threads, root) = (&self.heap.threads, leak.root_thread);
        self.record(|recorder| {
            threads.record(thread, recorder);
            threads.record(root, recorder);
            recorder.put_stack(leak.stack);
            if leak.root == Root::Globals {
                recorder.put_module(leak.root_address as usize);
            }
            for step in &steps[..count] {
                recorder.put_stack(step.stack);
            }
            recorder.put(&leak.into());
            for step in &steps[..count] {
                recorder.put(&(*step).into());
            }
        });
    }

    /// Adds a few reachable blocks, because their stacks show which components the program has.
    fn add_some(
        &self,
        index: &Index,
        marks: &Marks<'_>,
        blocks: u64,
        groups: &mut Groups,
    ) -> Option<()> {
        if self.work.since.is_some() {
            return Some(());
        }
        let step = (blocks as usize / SHOWN).max(1);
        let some = index.each().step_by(step).take(SHOWN);
        for block in some.filter(|block| marks.reach(block) == Reach::Reachable) {
            let made = block.place.record();
            let stack = made.made_at.load(Ordering::Relaxed);
            let group = groups.of(Reach::Reachable as u8, block.word.origin(), stack)?;
            group.add(block.start, block.size, made.made.load(Ordering::Relaxed));
        }
        Some(())
    }

    fn report_usage(&mut self) {
        let Some(empty) = Groups::new() else { return };
        let usage = core::mem::replace(&mut self.usage, empty).sorted();
        let check = self.work.number;
        for group in usage.iter().take(USAGE_TOLD) {
            let (stack, blocks, bytes) = (group.stack(), group.blocks, group.bytes);
            self.record(|recorder| recorder.put_stack(stack));
            self.put(record::Usage { check, stack, blocks, bytes });
        }
    }

    fn report_fullness(&mut self) {
        let mut classes = [EMPTY; CLASSES];
        let mut alone = EMPTY;
        for bucket in self.heap.spans().flat_map(Span::all_buckets) {
            if bucket.record().stage() != Stage::Open {
                continue;
            }
            let span = bucket.span;
            let is_small = span.form() == Form::Small;
            let place = match is_small {
                true => classes.get_mut(span.class()).unwrap_or(&mut alone),
                false => &mut alone,
            };
            if is_small {
                place.slot = span.slot_bytes() as u64;
            }
            place.buckets += 1;
            place.memory += span.bucket_bytes() as u64;
            for slot in bucket.slots() {
                let word = slot.record().word();
                match word.state() {
                    State::Live => {
                        place.live += 1;
                        place.bytes += slot.size(word) as u64;
                    }
                    State::Unused => place.unused += 1,
                    State::Freed | State::Freeing => place.freed += 1,
                }
            }
        }
        let check = self.work.number;
        for of in classes.iter().chain([&alone]).filter(|of| of.buckets > 0) {
            let Fullness { slot, buckets, memory, live, bytes, freed, unused } = *of;
            self.put(record::Class { check, slot, buckets, memory, live, bytes, freed, unused });
        }
    }

    fn report_timeline(&mut self) {
        let timeline = self.timeline;
        for sample in timeline.samples() {
            self.put(*sample);
        }
        self.put(record::Sample {
            ns: self.now.0,
            sequence: u64::from(self.now.1),
            blocks: self.heap.made().wrapping_sub(self.heap.freed()),
            bytes: self.heap.live_bytes(),
        });
    }

    fn report_checked(&mut self, blocks: u64, bytes: u64, read: u64, omitted: Omitted) {
        self.put(record::Checked {
            check: self.work.number,
            took_ns: os::now_ns() - self.work.began,
            blocks,
            bytes,
            omitted_groups: omitted.groups,
            omitted_blocks: omitted.blocks,
            omitted_bytes: omitted.bytes,
            read_bytes: read,
        });
        self.record(Recorder::flush);
    }

    fn print(&mut self, groups: &Sorted, found: &LeakCheck) {
        if !self.heap.reporter.is_loud() {
            return;
        }
        let definite = || groups.iter().filter(|group| group.reach() == Reach::Definite as u8);
        for group in definite().take(PRINTED) {
            self.output.lost(&Lost {
                blocks: group.blocks,
                bytes: group.bytes,
                indirect_blocks: group.indirect_blocks,
                indirect_bytes: group.indirect_bytes,
                stack: group.stack(),
            });
        }
        let more = definite().count().saturating_sub(PRINTED) as u64;
        let amounts = [found.definite, found.indirect, found.possible, found.reachable];
        self.output.summary(&amounts.map(|amount| (amount.blocks, amount.bytes)), more);
    }
}
