//! Gathers entries in one pass. The memory needed depends on the number of different things, not on
//! how often a record repeats them.
//!
//! ```text
//! record --> image --> image ...      an image: one program in one process, from a
//!              |                      Process entry to the next, or to the file's end
//!              +-- modules, stacks, findings by number: hold within the image only
//! all images --> errors by cause, leaks by stack and fate, checks and samples by process
//! ```
//!
//! A *cause* is a kind and the stacks of a finding's moments, as places in files. So a cause is the
//! same in every process that runs the same files. If no stack of the block is known, the block's
//! size and the offset in it count, too. Leaks are those of an image's last complete check that
//! followed pointers; a count (`Occasion::Time`) finds none. At twice `MOST_CHECKS` checks, every
//! second count is dropped, and at twice `MOST_SAMPLES` samples, every second sample.

use super::input::{self, Reading};
use super::interner::{Interner, Source};
use super::model::{self, Amount, StackId, Started, StartedHow};
use super::modules::{Files, Modules, Spot};
use super::point::Point;
use super::suppressions::glob;
use crate::output::printable;
use heapwright_record::debug::{
    CHILD, Check, Class, End, Ending, Entry, Finding, FindingKind, Frames, LEFT_OUT, Leak, Module,
    NO_LEAK_CHECK, NOT_CHECKED, NOT_LOADED, NOT_STARTED, Occasion, Origin, Reach, Role, Step, Text,
    UNLOADABLE,
};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The numbers of checks and samples of one process that are left after thinning.
const MOST_CHECKS: usize = 1024;
const MOST_SAMPLES: usize = 1 << 16;

/// The most children of one process to look for, and the most programs that it started.
const MOST_STARTED: usize = 1 << 16;

/// The most notes, over all processes.
const MOST_NOTES: usize = 100;

#[derive(Default)]
pub(super) struct Gathered {
    pub(super) until: Point,
    /// Programs to leave out: names of files, with wildcards.
    pub(super) skip: Vec<String>,
    pub(super) records: Vec<PathBuf>,
    pub(super) files: Files,
    pub(super) stacks: Interner,
    /// The modules that were loaded when stacks were written.
    pub(super) epochs: Vec<Rc<Modules>>,
    pub(super) processes: Vec<Process>,
    pub(super) errors: Vec<Error>,
    causes: HashMap<Cause, u32>,
    pub(super) leaks: Vec<Lost>,
    fates: HashMap<(Reach, u32, Origin), u32>,
    pub(super) notes: Vec<String>,
    pub(super) foreign: Vec<String>,
    /// Findings that a process made and did not write.
    pub(super) unwritten: u64,
    pub(super) damaged: usize,
}

/// A program in a process. The stacks in its checks are still numbers of the interner.
#[derive(Default)]
pub(super) struct Process {
    pub(super) model: model::Process,
    pub(super) threads: BTreeMap<u32, String>,
}

/// The identity of a cause.
#[derive(PartialEq, Eq, Hash)]
struct Cause {
    kind: FindingKind,
    stacks: [u32; 3],
    otherwise: Option<(u64, i64)>,
}

/// A mistake. Its stacks are numbers of the interner, in the order of [`Finding::moments`].
pub(super) struct Error {
    pub(super) finding: Finding,
    pub(super) stacks: [u32; 3],
    pub(super) process: u32,
    pub(super) times: u64,
    pub(super) processes: u32,
    latest: u32,
}

pub(super) struct Lost {
    pub(super) leak: Leak,
    pub(super) stack: u32,
    pub(super) process: u32,
    pub(super) check: usize,
    pub(super) processes: u32,
    pub(super) root: Spot,
    pub(super) steps: Vec<Hop>,
}

pub(super) struct Hop {
    pub(super) size: u64,
    pub(super) offset: u64,
    pub(super) stack: u32,
}

/// Returns the index of a role's stack among an error's stacks.
pub(super) fn place(role: Role) -> usize {
    match role {
        Role::Here => 0,
        Role::Freed => 1,
        Role::Allocated => 2,
    }
}

impl Gathered {
    pub(super) fn until(until: Point) -> Self {
        Self { until, ..Self::default() }
    }

    pub(super) fn add(
        &mut self,
        path: &Path,
        file: File,
        owner: u32,
        progress: &dyn Fn(u64),
    ) -> anyhow::Result<()> {
        let record = self.records.len() as u32;
        self.records.push(path.to_owned());
        let mut image = Image::new(record, owner);
        let read = input::read(file, progress, &mut |entry, at| image.take(self, &entry, at));
        image.end(self);
        let Reading { problem, skipped } = read?;
        let name = path.display();
        if let Some(problem) = problem {
            self.damaged += 1;
            self.note(format!("{name}: the record is damaged: {problem}"));
        }
        if skipped != 0 {
            self.note(format!("{name}: {skipped} entries of a newer version left out"));
        }
        Ok(())
    }

    pub(super) fn note(&mut self, text: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

#[derive(Default)]
struct Image {
    record: u32,
    owner: u32,
    is_skipped: bool,
    process: Option<u32>,
    modules: Rc<Modules>,
    /// The index of `modules` in `epochs`, once a stack was written under them.
    epoch: Option<u32>,
    /// The interner's numbers of the record's stacks.
    stacks: HashMap<u32, u32>,
    findings: Vec<u32>,
    /// How often each finding was found, by its number in the record.
    times: BTreeMap<u32, u64>,
    under_way: Option<UnderWay>,
    last: Option<UnderWay>,
}

struct UnderWay {
    check: model::Check,
    leaks: Vec<Lost>,
    classes: Vec<Class>,
}

impl Image {
    fn new(record: u32, owner: u32) -> Self {
        Self { record, owner, ..Self::default() }
    }

    /// Returns the image's process. Begins it if needed: the first entry may be lost.
    fn process<'g>(&mut self, all: &'g mut Gathered) -> &'g mut Process {
        let index = *self.process.get_or_insert_with(|| {
            all.processes.push(Process::default());
            all.processes.len() as u32 - 1
        });
        &mut all.processes[index as usize]
    }

    fn index(&mut self, all: &mut Gathered) -> u32 {
        self.process(all);
        self.process.unwrap_or_default()
    }

    /// Sets the end of this program: its process executes another program.
    fn became_another(&self, all: &mut Gathered, pid: u32) {
        let Some(index) = self.process else { return };
        let model = &mut all.processes[index as usize].model;
        if model.pid == pid && model.end.is_none() {
            model.end = Some(End { ending: Ending::Exec, ..End::default() });
        }
    }

    fn take(&mut self, all: &mut Gathered, entry: &Entry<'_>, at: u64) {
        if self.is_skipped && !matches!(entry, Entry::Process(_) | Entry::End(_)) {
            return;
        }
        match entry {
            Entry::Process(process) => {
                self.end(all);
                self.became_another(all, process.pid);
                *self = Self::new(self.record, self.owner);
                let exe = printable(process.exe);
                let file = exe.rsplit('/').next().unwrap_or_default();
                self.is_skipped = all.skip.iter().any(|pattern| glob(pattern, file));
                self.process(all).model = model::Process {
                    pid: process.pid,
                    parent: process.parent,
                    began: process.time,
                    exe,
                    command: words(process.command),
                    options: printable(process.options),
                    version: printable(process.version),
                    is_skipped: self.is_skipped,
                    ..model::Process::default()
                };
            }
            Entry::Module(module) => self.load(all, module),
            Entry::Thread(thread) => {
                let name = printable(thread.name);
                self.process(all).threads.insert(thread.number, name);
            }
            Entry::Stack(stack) => {
                let number = self.intern(all, &stack.frames, at);
                self.stacks.insert(stack.id, number);
            }
            Entry::Finding(finding) => self.found(all, finding),
            Entry::Times(times) => {
                self.times.insert(times.finding, times.times);
            }
            Entry::Check(check) => self.begin(all, check),
            Entry::Leak(leak) => self.lost(all, leak),
            Entry::Step(step) => self.step(step),
            Entry::Usage(usage) => {
                let stack = self.stack(usage.stack);
                if let Some(under_way) = self.current(usage.check) {
                    let amount = Amount { blocks: usage.blocks, bytes: usage.bytes };
                    under_way.check.usage.push((StackId(stack), amount));
                }
            }
            Entry::Profile(profile) => {
                if let Some(under_way) = self.current(profile.check) {
                    under_way.check.profile = Some(model::Profile::of(profile));
                }
            }
            Entry::Sampled(sampled) => {
                let stack = StackId(self.stack(sampled.stack));
                if let Some(profile) = self.profile(sampled.check) {
                    profile.sites.push(model::Sampled::of(stack, sampled));
                }
            }
            Entry::SampledMore(more) => {
                let stack = StackId(self.stack(more.stack));
                if let Some(profile) = self.profile(more.check) {
                    // The entry follows the entry of its site.
                    let site = profile.sites.last_mut().filter(|site| site.stack == stack);
                    if let Some(site) = site {
                        site.more = Some(model::SampledMore::of(more));
                    }
                }
            }
            Entry::SampledPoint(point) => {
                if let Some(profile) = self.profile(point.check)
                    && profile.points.len() < MOST_SAMPLES
                {
                    profile.points.push(model::ProfilePoint::of(point));
                }
            }
            Entry::SampledThread(thread) => {
                let name = self.process(all).threads.get(&thread.thread).cloned();
                if let Some(profile) = self.profile(thread.check) {
                    profile
                        .threads
                        .push(model::SampledThread::of(name.unwrap_or_default(), thread));
                }
            }
            Entry::Class(class) => {
                if let Some(under_way) = self.current(class.check) {
                    under_way.classes.push(*class);
                }
            }
            Entry::Checked(checked) => {
                if let Some(under_way) = self.current(checked.check) {
                    under_way.check.took_ns = Some(checked.took_ns);
                    under_way.check.live = Amount { blocks: checked.blocks, bytes: checked.bytes };
                    under_way.check.omitted =
                        Amount { blocks: checked.omitted_blocks, bytes: checked.omitted_bytes };
                    self.complete(all);
                }
            }
            Entry::Sample(sample) => {
                let samples = &mut self.process(all).model.samples;
                samples.push(model::Sample {
                    ns: sample.ns,
                    blocks: sample.blocks,
                    bytes: sample.bytes,
                });
                if samples.len() > 2 * MOST_SAMPLES {
                    every_second(samples, |_| true);
                }
            }
            Entry::Note(note) => {
                let model = &mut self.process(all).model;
                let note = printable(note.bytes);
                if let Some(why) = note.strip_prefix(NO_LEAK_CHECK) {
                    model.no_leak_check = Some(why.to_owned());
                } else if let Some(pid) = note.strip_prefix(NOT_STARTED) {
                    let is_it = |started: &Started| pid.parse() == Ok(started.pid);
                    if let Some(last) = model.started.iter().rposition(is_it) {
                        model.started.remove(last);
                    }
                } else if let Some(started) = started(&note) {
                    if model.started.len() < MOST_STARTED {
                        model.started.push(started);
                    }
                } else if let Some(pid) = note.strip_prefix(CHILD) {
                    if model.copies.len() < MOST_STARTED {
                        model.copies.extend(pid.parse::<u32>());
                    }
                } else {
                    let text = format!("process {}: {note}", model.pid);
                    all.note(text);
                }
            }
            Entry::End(end) => {
                self.process(all).model.end = Some(*end);
            }
            _ => {}
        }
    }

    fn load(&mut self, all: &mut Gathered, module: &Module<'_>) {
        let began = self.process(all).model.began;
        let file = all.files.number(module, began, self.owner);
        Rc::make_mut(&mut self.modules).add(module, file);
        self.epoch = None;
    }

    fn intern(&mut self, all: &mut Gathered, frames: &Frames<'_>, at: u64) -> u32 {
        let epoch = *self.epoch.get_or_insert_with(|| {
            all.epochs.push(Rc::clone(&self.modules));
            all.epochs.len() as u32 - 1
        });
        all.stacks.number(frames, &self.modules, Source { record: self.record, epoch, at })
    }

    fn stack(&self, number: u32) -> u32 {
        self.stacks.get(&number).copied().unwrap_or_default()
    }

    fn found(&mut self, all: &mut Gathered, finding: &Finding) {
        let process = self.index(all);
        let stacks =
            [finding.here, finding.freed, finding.allocated].map(|moment| self.stack(moment.stack));
        let [_, freed, allocated] = stacks;
        // Without a stack, the block is identified by its size and the offset.
        let otherwise = (freed == 0 && allocated == 0).then_some((finding.size, finding.offset));
        let cause = Cause { kind: finding.kind, stacks, otherwise };
        let errors = &mut all.errors;
        let number = *all.causes.entry(cause).or_insert_with(|| {
            errors.push(Error {
                finding: *finding,
                stacks,
                process,
                times: 0,
                processes: 0,
                latest: u32::MAX,
            });
            errors.len() as u32 - 1
        });
        let error = &mut errors[number as usize];
        error.times = error.times.saturating_add(1);
        if error.latest != process {
            error.latest = process;
            error.processes += 1;
        }
        self.findings.push(number);
    }

    fn begin(&mut self, all: &mut Gathered, check: &Check) {
        self.give_up(all);
        self.process(all);
        if !all.until.includes(check.number, check.ns) {
            return;
        }
        self.under_way = Some(UnderWay {
            check: model::Check {
                number: check.number,
                occasion: check.occasion,
                ns: check.ns,
                stopped_ns: check.stopped_ns,
                threads: check.threads,
                silent: check.silent,
                ..model::Check::default()
            },
            leaks: Vec::new(),
            classes: Vec::new(),
        });
    }

    fn current(&mut self, number: u32) -> Option<&mut UnderWay> {
        self.under_way.as_mut().filter(|under_way| under_way.check.number == number)
    }

    fn profile(&mut self, number: u32) -> Option<&mut model::Profile> {
        self.current(number)?.check.profile.as_mut()
    }

    fn lost(&mut self, all: &mut Gathered, leak: &Leak) {
        let stack = self.stack(leak.stack);
        let root = self.modules.spot(leak.root_address, leak.root_address);
        let process = self.index(all);
        if let Some(under_way) = self.current(leak.check) {
            let (check, steps) = (0, Vec::new());
            let lost = Lost { leak: *leak, stack, process, check, processes: 1, root, steps };
            under_way.leaks.push(lost);
        }
    }

    fn step(&mut self, step: &Step) {
        let stack = self.stack(step.stack);
        let last = self.under_way.as_mut().and_then(|under_way| under_way.leaks.last_mut());
        if let Some(lost) = last {
            lost.steps.push(Hop { size: step.size, offset: step.offset, stack });
        }
    }

    fn complete(&mut self, all: &mut Gathered) {
        let Some(mut under_way) = self.under_way.take() else { return };
        let model = &mut self.process(all).model;
        let mut check = under_way.check;
        check.usage.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.bytes));
        if !under_way.classes.is_empty() {
            model.classes = std::mem::take(&mut under_way.classes);
        }
        let follows = check.occasion.follows();
        under_way.check = model::Check { number: check.number, ..model::Check::default() };
        model.checks.push(check);
        if model.checks.len() > 2 * MOST_CHECKS {
            every_second(&mut model.checks, |check| check.occasion == Occasion::Time);
        }
        if follows {
            self.last = Some(under_way);
        }
    }

    /// Keeps a check that will not be finished, without its leaks, and notes that.
    fn give_up(&mut self, all: &mut Gathered) {
        if let Some(under_way) = self.under_way.take() {
            let model = &mut self.process(all).model;
            model.checks.push(under_way.check);
            let text = format!("process {}: a leak check did not finish", model.pid);
            all.note(text);
        }
    }

    fn end(&mut self, all: &mut Gathered) {
        self.give_up(all);
        let mut written = self.findings.len() as u64;
        for (finding, times) in std::mem::take(&mut self.times) {
            if let Some(&error) = self.findings.get(finding as usize) {
                let more = times.saturating_sub(1);
                let error = &mut all.errors[error as usize];
                error.times = error.times.saturating_add(more);
                written = written.saturating_add(more);
            }
        }
        let Some(process) = self.process else { return };
        let model = &all.processes[process as usize].model;
        if let Some(end) = model.end.filter(|_| !self.is_skipped) {
            all.unwritten += u64::from(end.findings).saturating_sub(written);
        }
        let Some(last) = self.last.take() else { return };
        let number = last.check.number;
        let check =
            model.checks.iter().position(|check| check.number == number).unwrap_or_default();
        for lost in last.leaks {
            all.merge(Lost { check, ..lost });
        }
    }
}

impl Gathered {
    /// Adds a group to the group with the same stack and fate.
    fn merge(&mut self, lost: Lost) {
        let key = (lost.leak.reach, lost.stack, lost.leak.origin);
        let leaks = &mut self.leaks;
        let Some(&known) = self.fates.get(&key) else {
            self.fates.insert(key, leaks.len() as u32);
            leaks.push(lost);
            return;
        };
        let known = &mut leaks[known as usize];
        if known.process != lost.process {
            known.processes += 1;
        }
        let (sum, more) = (&mut known.leak, lost.leak);
        sum.blocks = sum.blocks.saturating_add(more.blocks);
        sum.bytes = sum.bytes.saturating_add(more.bytes);
        sum.indirect_blocks = sum.indirect_blocks.saturating_add(more.indirect_blocks);
        sum.indirect_bytes = sum.indirect_bytes.saturating_add(more.indirect_bytes);
    }
}

/// Drops every second element that `may_go`, but never the last one.
fn every_second<T>(list: &mut Vec<T>, may_go: impl Fn(&T) -> bool) {
    let last = list.len().saturating_sub(1);
    let (mut at, mut odd) = (0, false);
    list.retain(|item| {
        let mut stays = true;
        if may_go(item) {
            odd = !odd;
            stays = odd || at == last;
        }
        at += 1;
        stays
    });
}

/// Reads a note about a program that a process started.
fn started(note: &str) -> Option<Started> {
    let of = |rest: &str, how| {
        let (pid, name) = rest.split_once(' ').unwrap_or((rest, ""));
        Started { pid: pid.parse().unwrap_or(0), name: name.to_owned(), how }
    };
    if let Some(rest) = note.strip_prefix(NOT_CHECKED) {
        return Some(of(rest, StartedHow::Without));
    }
    if let Some(rest) = note.strip_prefix(LEFT_OUT) {
        return Some(of(rest, StartedHow::LeftOut));
    }
    if let Some(rest) = note.strip_prefix(NOT_LOADED) {
        let mut started = of(rest, StartedHow::AsChild);
        let (why, name) = started.name.split_once(' ')?;
        let why = UNLOADABLE.iter().find(|known| **known == why)?;
        (started.how, started.name) = (StartedHow::Unloadable(why), name.to_owned());
        return Some(started);
    }
    let rest = note.strip_prefix(CHILD).filter(|rest| rest.contains(' '))?;
    Some(of(rest, StartedHow::AsChild))
}

fn words(command: Text<'_>) -> Vec<String> {
    let words = command.bytes.strip_suffix(b"\0").unwrap_or(command.bytes);
    if words.is_empty() {
        return Vec::new();
    }
    words.split(|&byte| byte == 0).map(|word| printable(word.into())).collect()
}
