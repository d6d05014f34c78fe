//! Makes a [`Report`] of records.
//!
//! ```text
//! records --input--> entries --gather--> data by cause, stack and process
//!                                              |  growth: stacks that grow for good
//!                                              v
//!              report <--naming, source-- reported findings <--suppressions-- hidden ones
//!
//! model         the report: plain data, for all formatters
//! input         a record's file, in pieces
//! modules       the file of code at an address
//! interner      every distinct stack once
//! gather        entries become causes, stacks and processes
//! growth        arithmetic: stacks that grow for good
//! innermost     the calls with which memcheck's stacks begin
//! suppressions  which findings are hidden
//! naming        stacks get frames, and frames names; source: lines around them
//! unseen        processes that ended without a final leak check
//! point         a check, or a time
//! calls         a stack as calls, for people; held: memory, stack by stack
//! diff          two points in time, or two runs, compared
//! explained     the reasons for a process's memory, from a heap profile
//! sites         the sites of findings, for later runs; progress: of reading and naming
//! ```
//!
//! A record may be as large as the disk. One pass leaves about 100 bytes for each distinct stack,
//! and one small struct for each distinct finding. Only reported stacks get frames and names. The
//! report has at most [`Options::limit`] different errors, and 100,000 groups of leaked blocks: the
//! worst reach first, then the most bytes. It counts the others.

pub(crate) mod calls;
pub(crate) mod diff;
pub(crate) mod explained;
mod gather;
mod growth;
pub(crate) mod held;
pub(crate) mod innermost;
mod input;
mod interner;
pub(crate) mod model;
mod modules;
mod naming;
pub(crate) mod point;
mod progress;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod sites;
mod source;
pub(crate) mod suppressions;
mod unseen;

use anyhow::{anyhow, bail};
use gather::{Error, Gathered, Lost, place};
use heapwright_record::debug::{Call, Entry, FindingKind, Origin, Reach, Role, Root};
use heapwright_record::{Fault, Problem};
use innermost::Innermost;
use input::reading;
use model::{
    Amount, Fate, Growth, Happened, Leak, Path as Chain, Report, Sample, StackId, Stacks, Step,
    Wanted,
};
use naming::Naming;
use point::Point;
use progress::Progress;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
pub(crate) use suppressions::glob;
use suppressions::{Kind, Line, Stack, Suppressions};

const MOST_LEAKS: usize = 100_000;

pub(crate) const MOST_ERRORS: usize = 1000;

#[derive(Default)]
pub(crate) struct Options {
    /// Programs whose processes are left out: names of files, with wildcards.
    pub(crate) skip: Vec<String>,
    pub(crate) suppress: Vec<PathBuf>,
    /// The most different errors to report; `None`: all.
    pub(crate) limit: Option<usize>,
    /// Whether every leak is reported in detail, and the blocks live at each check by stack.
    /// Otherwise only leaks in [`Wanted::details`] have details, and those blocks are left out.
    pub(crate) everything: bool,
    pub(crate) wanted: Wanted,
    pub(crate) quiet: bool,
    /// Whether the folders are those of a run that has just ended. If so, the report skips another
    /// user's records, unless a process of the run switched to that user.
    pub(crate) is_of_run: bool,
    /// The point in time up to which checks count.
    pub(crate) at: Point,
}

pub(crate) struct Made {
    pub(crate) report: Report,
    pub(crate) damaged: usize,
}

/// Reads the files of suppressions before a program runs, so that mistakes in them show at once.
pub(crate) fn check(options: &Options) -> anyhow::Result<()> {
    suppressions(options).map(|_| ())
}

fn suppressions(options: &Options) -> anyhow::Result<Suppressions> {
    let mut suppressions = Suppressions::default();
    for file in &options.suppress {
        suppressions.add_file(file)?;
    }
    Ok(suppressions)
}

pub(crate) fn make(arguments: &[PathBuf], options: &Options) -> anyhow::Result<Made> {
    let suppressions = suppressions(options)?;
    let gathered = gather(arguments, options)?;
    let has_check = gathered.processes.iter().any(|process| !process.model.checks.is_empty());
    if options.at != Point::End && !has_check {
        let names = arguments.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        bail!("{}: there is no leak check at or before that point", names.join(", "));
    }
    let damaged = gathered.damaged;
    Ok(Made { report: build(&gathered, options, suppressions), damaged })
}

pub(crate) fn set_fates(report: &mut Report, fate: impl Fn(u32) -> Fate) {
    for process in &mut report.processes {
        process.fate = fate(process.pid);
    }
    report.unseen = unseen::lines(report, &fate);
}

/// Returns the program files that a process executed, in order, from its record.
pub(crate) fn programs(record: &Path) -> Vec<PathBuf> {
    let mut programs = Vec::new();
    let mut take = |entry: Entry<'_>, _| {
        if let Entry::Process(process) = entry {
            programs.push(PathBuf::from(std::ffi::OsStr::from_bytes(process.exe.bytes)));
        }
    };
    // The report of the record names reading errors.
    let _ = input::open(record).and_then(|(file, _)| input::read(file, &|_| {}, &mut take));
    programs
}

/// Returns the keys of the sites whose blocks had undefined bytes (option `fill`), in order.
pub(crate) fn sites_of_undefined(folder: &Path) -> anyhow::Result<Vec<u64>> {
    let mut sites = Vec::new();
    each_entry(folder, &mut |entry| {
        if let Entry::Site(site) = entry
            && site.last == FindingKind::Uninitialised
        {
            sites.push(site.key);
        }
    })?;
    sites.sort_unstable();
    sites.dedup();
    Ok(sites)
}

/// Returns the number of bytes under test (option `fill`) that have a finding.
pub(crate) fn uninitialised(folder: &Path) -> anyhow::Result<usize> {
    let mut which = BTreeSet::new();
    each_entry(folder, &mut |entry| {
        if let Entry::Finding(finding) = entry
            && finding.kind == FindingKind::Uninitialised
        {
            which.insert(finding.value);
        }
    })?;
    Ok(which.len())
}

fn each_entry(folder: &Path, take: &mut dyn FnMut(&Entry<'_>)) -> anyhow::Result<()> {
    for record in of_run(folder)? {
        input::read(input::open(&record)?.0, &|_| {}, &mut |entry, _| take(&entry))?;
    }
    Ok(())
}

pub(crate) fn of_run(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut records = input::records(folder)?;
    records
        .retain(|path| input::open(path).is_ok_and(|(_, owner)| input::is_of_run(folder, owner)));
    Ok(records)
}

/// Returns whether a folder contains a record.
pub(crate) fn any_in(folder: &Path) -> bool {
    input::records(folder).is_ok()
}

fn gather(arguments: &[PathBuf], options: &Options) -> anyhow::Result<Gathered> {
    let mut records: Vec<PathBuf> = Vec::new();
    for argument in arguments {
        records.extend(input::records(argument)?);
    }
    // A folder and a record in it may both be named.
    let mut known = HashSet::new();
    records.retain(|path| path.canonicalize().map_or(true, |path| known.insert(path)));
    let size = |path: &PathBuf| std::fs::metadata(path).map(|file| file.len()).unwrap_or_default();
    let progress = Progress::reading(records.iter().map(size).sum(), options.quiet);
    let mut gathered = Gathered::until(options.at);
    gathered.skip = options.skip.clone();
    // Unreadable files in a folder are skipped; a named file must be readable.
    let named = |path: &Path| arguments.iter().any(|argument| argument == path);
    for path in &records {
        let added = input::open(path).and_then(|(file, owner)| {
            let is_foreign = |folder: &PathBuf| !input::is_of_run(folder, owner);
            if options.is_of_run && arguments.iter().all(is_foreign) {
                let path = path.display();
                gathered.foreign.push(format!(
                    "{path} is no record of this run: no process of the run switched to its owner, \
                     user {owner}"
                ));
                return Ok(());
            }
            gathered.add(path, file, owner, &|bytes| progress.more(bytes))
        });
        if let Err(error) = added {
            if named(path) {
                let error = match error.downcast_ref().map(Problem::fault) {
                    Some(Fault::Other) => anyhow!("{error}; {}", input::WHAT_IS_ONE),
                    _ => error,
                };
                return Err(error.context(reading(path)));
            }
            gathered.damaged += 1;
            gathered.note(format!("{}: {error:#}", reading(path)));
        }
    }
    Ok(gathered)
}

/// Selects the reported findings, and names their frames.
fn build(gathered: &Gathered, options: &Options, suppressions: Suppressions) -> Report {
    let order = in_order(gathered);
    let mut places = vec![0; order.len()];
    for (place, &process) in order.iter().enumerate() {
        places[process] = place;
    }
    let progress = Progress::naming(
        (gathered.errors.len() + gathered.leaks.len().min(MOST_LEAKS)) as u64,
        options.quiet,
    );
    let mut builder = ReportBuilder {
        gathered,
        naming: Naming::new(gathered, &progress),
        suppressions,
        everything: options.everything,
        places,
        report: Report {
            notes: gathered.notes.clone(),
            foreign: gathered.foreign.clone(),
            unwritten: gathered.unwritten,
            wanted: options.wanted.clone(),
            ..Report::default()
        },
    };
    let mut errors: Vec<&Error> = gathered.errors.iter().collect();
    errors.sort_by_key(|error| builder.places[error.process as usize]);
    let mut leaks: Vec<&Lost> = gathered.leaks.iter().collect();
    leaks.sort_by_key(|lost| {
        let leak = &lost.leak;
        (severity(leak.reach), std::cmp::Reverse(leak.bytes.saturating_add(leak.indirect_bytes)))
    });
    let limit = options.limit.unwrap_or(usize::MAX);
    for (at, error) in errors.iter().enumerate() {
        if builder.report.errors.len() >= limit {
            let rest = &errors[at..];
            builder.report.unreported.errors = rest.len() as u64;
            builder.report.unreported.times =
                rest.iter().fold(0, |sum, error| sum.saturating_add(error.times));
            break;
        }
        builder.error(error);
        progress.more(1);
    }
    for lost in leaks.iter().take(MOST_LEAKS) {
        builder.leak(lost);
        progress.more(1);
    }
    builder.rest_of_leaks(leaks.get(MOST_LEAKS..).unwrap_or_default());
    builder.processes(&order);
    let ReportBuilder { naming, suppressions, mut report, .. } = builder;
    report.stacks = naming.stacks;
    report.cut = naming.cut;
    report.sources = naming.sources.snippets;
    report.used = suppressions.used;
    unseen::forget_known(&mut report.processes, &gathered.records);
    report.unseen = unseen::lines(&report, &|_| Fate::Unknown);
    report
}

fn in_order(gathered: &Gathered) -> Vec<usize> {
    let mut order: Vec<usize> = (0..gathered.processes.len()).collect();
    order.sort_by_key(|&process| gathered.processes[process].model.began);
    order
}

fn severity(reach: Reach) -> u8 {
    match reach {
        Reach::Definite => 0,
        Reach::Indirect => 1,
        Reach::Possible => 2,
        Reach::Reachable => 3,
        _ => 4,
    }
}

struct ReportBuilder<'g> {
    gathered: &'g Gathered,
    naming: Naming<'g>,
    suppressions: Suppressions,
    everything: bool,
    places: Vec<usize>,
    report: Report,
}

impl ReportBuilder<'_> {
    fn thread(&self, process: u32, number: u32) -> String {
        let threads = &self.gathered.processes[process as usize].threads;
        threads.get(&number).cloned().unwrap_or_default()
    }

    fn error(&mut self, error: &Error) {
        let finding = error.finding;
        let mark = self.naming.mark();
        let moments: Vec<Happened> = finding
            .moments()
            .map(|(role, moment)| {
                let exact = role == Role::Here && finding.call == Call::Access;
                let stack = self.naming.stack(error.stacks[place(role)], exact);
                let thread = self.thread(error.process, moment.thread);
                Happened { role, moment, thread, stack }
            })
            .collect();
        for happened in &moments {
            self.naming.name(happened.stack);
        }
        let is_seen = !finding.is_found_later()
            && moments.first().is_some_and(|happened| {
                happened.role == Role::Here && happened.stack != StackId::NONE
            });
        let stacks = moments.iter().map(|happened| {
            let innermost = Innermost::of(&finding, happened.role);
            (happened.stack, innermost, !is_seen || happened.role == Role::Here)
        });
        if let Some(rule) = self.hidden(Kind::Error(finding.kind), stacks) {
            let (used, hidden) = (&mut self.suppressions.used[rule], &mut self.report.suppressed);
            used.times = used.times.saturating_add(error.times);
            hidden.errors += 1;
            hidden.times = hidden.times.saturating_add(error.times);
            self.naming.forget(mark);
            return;
        }
        for happened in &moments {
            self.naming.source(happened.stack);
        }
        self.report.errors.push(model::Error {
            finding,
            process: self.places[error.process as usize],
            moments,
            times: error.times,
            processes: error.processes as usize,
            effect: String::new(),
        });
    }

    fn leak(&mut self, lost: &Lost) {
        let leak = &lost.leak;
        let is_detailed = self.everything || self.report.wanted.details.contains(&leak.reach);
        let mark = self.naming.mark();
        let stack = self.naming.stack(lost.stack, false);
        if is_detailed || !self.suppressions.is_empty() {
            self.naming.name(stack);
        }
        let amount = Amount { blocks: leak.blocks, bytes: leak.bytes };
        let whole = (stack, Innermost::Allocated(leak.origin), true);
        if let Some(rule) = self.hidden(Kind::Leak(leak.reach), [whole]) {
            let used = &mut self.suppressions.used[rule];
            used.times += 1;
            used.amount += amount;
            self.report.suppressed.leaks += 1;
            self.report.suppressed.lost += amount;
            self.naming.forget(mark);
            return;
        }
        if is_detailed {
            self.naming.source(stack);
        }
        let path = (leak.root != Root::Unknown).then(|| self.path(lost, is_detailed));
        let process = &self.gathered.processes[lost.process as usize].model;
        let ns = process.checks.get(lost.check).map(|check| check.ns).unwrap_or_default();
        let (oldest, youngest) = (leak.oldest_ns, leak.youngest_ns);
        let leak = Leak {
            stack,
            oldest_age_ns: ns.saturating_sub(oldest),
            youngest_age_ns: ns.saturating_sub(youngest),
            processes: lost.processes as usize,
            path,
            ..self.group(lost)
        };
        self.report.leaks.push(leak);
    }

    /// Leaves out the parts that are costly to find.
    fn group(&self, lost: &Lost) -> Leak {
        let leak = &lost.leak;
        Leak {
            reach: leak.reach,
            origin: leak.origin,
            stack: StackId::NONE,
            lost: Amount { blocks: leak.blocks, bytes: leak.bytes },
            indirect: Amount { blocks: leak.indirect_blocks, bytes: leak.indirect_bytes },
            size: leak.size,
            block: leak.block,
            oldest_ns: leak.oldest_ns,
            youngest_ns: leak.youngest_ns,
            oldest_age_ns: 0,
            youngest_age_ns: 0,
            check: lost.check,
            process: self.places[lost.process as usize],
            processes: 1,
            path: None,
        }
    }

    fn path(&mut self, lost: &Lost, is_detailed: bool) -> Chain {
        let leak = &lost.leak;
        let steps = lost.steps.iter().map(|hop| {
            let stack = self.naming.stack(hop.stack, false);
            if is_detailed {
                self.naming.name(stack);
            }
            Step { size: hop.size, offset: hop.offset, stack }
        });
        let steps = steps.collect();
        let in_data = leak.root == Root::Globals;
        let file = self.gathered.files.list.get(lost.root.file as usize).filter(|_| in_data);
        let thread = leak.root_thread;
        Chain {
            root: leak.root,
            address: leak.root_address,
            // Finding the name requires reading the debug information.
            name: if in_data && is_detailed { self.naming.variable(lost.root) } else { None },
            module: file.map(|known| crate::output::printable((&*known.file.path).into())),
            thread: (thread != 0).then(|| (thread, self.thread(lost.process, thread))),
            steps,
        }
    }

    /// Adds the leaks beyond the limit, as one group for each reach.
    fn rest_of_leaks(&mut self, rest: &[&Lost]) {
        self.report.unreported.leaks = rest.len() as u64;
        let mut groups: HashMap<Reach, Leak> = HashMap::new();
        for lost in rest {
            let one = self.group(lost);
            let (lost, indirect) = (one.lost, one.indirect);
            let nothing = Amount::default();
            let origin = heapwright_record::debug::Origin::Unknown;
            let group = groups.entry(one.reach).or_insert(Leak {
                origin,
                lost: nothing,
                indirect: nothing,
                ..one
            });
            group.lost += lost;
            group.indirect += indirect;
        }
        let mut groups: Vec<Leak> = groups.into_values().collect();
        groups.sort_by_key(|leak| severity(leak.reach));
        self.report.leaks.extend(groups);
        self.report.leaks.sort_by_key(|leak| severity(leak.reach));
    }

    fn processes(&mut self, order: &[usize]) {
        for (place, &number) in order.iter().enumerate() {
            let mut process = self.gathered.processes[number].model.clone();
            process.samples.sort_by_key(|sample| sample.ns);
            // Each check writes the timeline again.
            process.samples.dedup_by_key(|sample| sample.ns);
            for (number, points) in series(&process) {
                if let Some(trend) = growth::verdict(&points) {
                    self.growth(number, place, points, trend);
                }
            }
            for check in &mut process.checks {
                if !self.everything {
                    check.usage.clear();
                }
                let counted = check.usage.iter_mut().map(|(stack, _)| stack);
                let sampled = check.profile.iter_mut().flat_map(|profile| &mut profile.sites);
                for stack in counted.chain(sampled.map(|site| &mut site.stack)) {
                    *stack = self.naming.stack(stack.0, false);
                    self.naming.name(*stack);
                }
            }
            self.report.processes.push(process);
        }
        self.report.growths.sort_by(|one, other| other.slope.total_cmp(&one.slope));
    }

    fn growth(&mut self, number: u32, process: usize, points: Vec<Sample>, trend: growth::Trend) {
        let mark = self.naming.mark();
        let stack = self.naming.stack(number, false);
        self.naming.name(stack);
        let whole = (stack, Innermost::Allocated(Origin::Unknown), true);
        if let Some(rule) = self.hidden(Kind::Growth, [whole]) {
            self.suppressions.used[rule].times += 1;
            self.report.suppressed.growths += 1;
            self.naming.forget(mark);
            return;
        }
        self.naming.source(stack);
        let growth::Trend { slope, tau } = trend;
        self.report.growths.push(Growth { stack, process, points, slope, tau });
    }

    /// Returns the suppression that hides a finding with these stacks, and adds the finding to the
    /// suppression's causes. Each stack comes with its innermost calls, and with `true` if the
    /// finding was seen on it.
    fn hidden(
        &mut self,
        kind: Kind,
        stacks: impl IntoIterator<Item = (StackId, Innermost, bool)>,
    ) -> Option<usize> {
        if self.suppressions.is_empty() {
            return None;
        }
        let stack = |(stack, innermost, is_where)| {
            let lines = lines(&self.naming.stacks, stack);
            Stack { lines, innermost, is_where }
        };
        let stacks: Vec<Stack<'_>> = stacks.into_iter().map(stack).collect();
        let rule = self.suppressions.hides(kind, &stacks)?;
        let place = stacks.iter().map(|stack| suppressions::innermost_calls(&stack.lines).0);
        let cause = format!(
            "{kind:?} {}",
            place.into_iter().find(|place| !place.is_empty()).unwrap_or_default()
        );
        self.suppressions.used[rule].causes.insert(cause);
        Some(rule)
    }
}

/// Returns a stack as suppressions see it: inlined functions are frames, too.
pub(crate) fn lines(stacks: &Stacks, stack: StackId) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for frame in stacks.outside(stack) {
        let path = frame.place.as_ref().map(|place| &*place.path).unwrap_or_default();
        let module = std::str::from_utf8(path).unwrap_or_default();
        if frame.functions.is_empty() {
            lines.push(Line { module, ..Line::default() });
        }
        for (at, function) in frame.functions.iter().enumerate() {
            let name = function.name.as_deref().unwrap_or_default();
            lines.push(Line {
                name,
                symbol: function.symbol.as_deref().unwrap_or_default(),
                source: function.source.as_deref().unwrap_or_default(),
                line: function.line,
                module,
                is_private: function.is_private,
                is_inlined: at + 1 < frame.functions.len(),
                ..Line::default()
            });
        }
    }
    suppressions::add_names(&mut lines);
    lines
}

/// Returns the live bytes of each stack of a process over time, by the interner's number.
fn series(process: &model::Process) -> Vec<(u32, Vec<Sample>)> {
    let counts: Vec<_> = process.checks.iter().filter(|check| !check.usage.is_empty()).collect();
    let nothing = |at: usize| Sample { ns: counts[at].ns, blocks: 0, bytes: 0 };
    let mut series: HashMap<u32, Vec<Sample>> = HashMap::new();
    for (at, check) in counts.iter().enumerate() {
        for &(StackId(stack), Amount { blocks, bytes }) in &check.usage {
            if stack != 0 {
                let points = series.entry(stack).or_default();
                points.extend((points.len()..=at).map(nothing));
                points[at].blocks = points[at].blocks.saturating_add(blocks);
                points[at].bytes = points[at].bytes.saturating_add(bytes);
            }
        }
    }
    // A stack missing from the last count is gone, or small.
    let mut series: Vec<_> =
        series.into_iter().filter(|(_, points)| points.len() == counts.len()).collect();
    series.sort_unstable_by_key(|(stack, _)| *stack);
    series
}

#[cfg(test)]
mod tests;
