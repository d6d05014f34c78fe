//! The model of a report: the contents of some records in one picture.
//!
//! ```text
//! Report
//!   processes   the writers of the records: command, end, live bytes over time, checks
//!   stacks      every distinct stack once; frames every distinct place once
//!   errors      mistakes, one entry for each cause
//!   leaks       groups of blocks with one allocating stack and one fate
//!   growths     stacks whose live bytes grow for good
//!   used        the suppressions, and what each one hid
//!   unseen      lines for people about processes without a last look
//!   notes       lines for people about unreadable parts
//! ```
//!
//! The report is plain data: [`super`] makes it from records, and the formatters in `output` print
//! it unchanged. Errors, leaks and growths are in the order of the report. Indexes are into the
//! vectors of this struct, and always valid.

use crate::process;
use crate::symbols::Frame;
use heapwright_record::debug::{
    self as record, Class, End, Finding, Memory, Moment, Occasion, Origin, Reach, Role, Root,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

#[derive(Default)]
pub(crate) struct Report {
    /// The processes in the order in which they began; the run started the first.
    pub(crate) processes: Vec<Process>,
    pub(crate) stacks: Stacks,
    pub(crate) errors: Vec<Error>,
    pub(crate) leaks: Vec<Leak>,
    pub(crate) growths: Vec<Growth>,
    pub(crate) used: Vec<Used>,
    pub(crate) notes: Vec<String>,
    /// A line for each process without a last look; the report begins with these lines.
    pub(crate) unseen: Vec<String>,
    /// A line for each file of records whose owner no process of the run ever was.
    pub(crate) foreign: Vec<String>,
    /// Stacks whose outer frames were not kept.
    pub(crate) cut: BTreeSet<StackId>,
    /// Lines of source around a line, by file and the number of that line.
    pub(crate) sources: BTreeMap<(String, u32), Vec<(u32, String)>>,
    pub(crate) unreported: Unreported,
    pub(crate) suppressed: Suppressed,
    /// The number of findings that processes counted, but did not write to their records.
    pub(crate) unwritten: u64,
    pub(crate) wanted: Wanted,
    /// The number of the program's process, if it left no record; else 0.
    pub(crate) program: u32,
}

/// The default number of a heap profile's sites that are listed.
pub(crate) const SITES: usize = 20;

/// The parts of a report that the user wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The leaks whose details are reported; the others are in the sums.
    pub(crate) details: Vec<Reach>,
    pub(crate) suppressions: Ready,
    pub(crate) folder: PathBuf,
    pub(crate) most: usize,
    /// The figure of a heap profile to report, and the number of its sites in text.
    pub(crate) figure: Figure,
    pub(crate) sites: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            details: vec![Reach::Definite],
            suppressions: Ready::Line,
            most: usize::MAX,
            figure: Figure::default(),
            sites: SITES,
            folder: PathBuf::new(),
        }
    }
}

/// Parses kinds of leaks as options and suppressions name them: `definite,possible`, `all`, `none`.
/// Returns an unknown word as the error.
pub(crate) fn leak_kinds(words: &str) -> Result<Vec<Reach>, &str> {
    let mut reaches = Vec::new();
    for word in words.split(',').map(str::trim) {
        match word {
            "definite" => reaches.push(Reach::Definite),
            "indirect" => reaches.push(Reach::Indirect),
            "possible" => reaches.push(Reach::Possible),
            "reachable" => reaches.push(Reach::Reachable),
            "all" => reaches.extend(LEAKS),
            "none" => {}
            _ => return Err(word),
        }
    }
    Ok(reaches)
}

pub(crate) const LEAKS: [Reach; 4] =
    [Reach::Definite, Reach::Indirect, Reach::Possible, Reach::Reachable];

/// The form of the suggested suppressions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ready {
    /// One line, in LeakSanitizer's language
    #[default]
    #[value(name = "lsan", alias = "line")]
    Line,
    /// A block, in valgrind's language
    #[value(name = "valgrind", alias = "yes")]
    Block,
    /// No suppression
    #[value(name = "no")]
    None,
}

/// The findings beyond the limits, which are only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unreported {
    pub(crate) errors: u64,
    pub(crate) times: u64,
    /// The number of groups of blocks that are reported as one group without a stack.
    pub(crate) leaks: u64,
}

/// The findings that suppressions hid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suppressed {
    pub(crate) errors: u64,
    pub(crate) times: u64,
    pub(crate) leaks: u64,
    pub(crate) lost: Amount,
    pub(crate) growths: u64,
}

/// A program in a process. A process that executes another program counts twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The time when it began, in nanoseconds since 1970.
    pub(crate) began: u64,
    pub(crate) exe: String,
    /// The words of the command line, printable.
    pub(crate) command: Vec<String>,
    pub(crate) options: String,
    pub(crate) version: String,
    /// The end that the process recorded itself.
    pub(crate) end: Option<End>,
    pub(crate) fate: Fate,
    /// Whether its findings are left out.
    pub(crate) is_skipped: bool,
    /// The reason why no leak check ran at its end.
    pub(crate) no_leak_check: Option<String>,
    /// The programs that it started without the library or a record, and in children.
    pub(crate) started: Vec<Started>,
    /// Its children that should have a record, and that execute no program.
    pub(crate) copies: Vec<u32>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) checks: Vec<Check>,
    /// The fill of each size class, by the last check that has it.
    pub(crate) classes: Vec<Class>,
}

/// A program that a process started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// 0: not known.
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) how: StartedHow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartedHow {
    /// Without the variables that lead the library into it
    Without,
    /// The library cannot be loaded into it, for this reason.
    Unloadable(&'static str),
    /// As the user wants: without a record
    LeftOut,
    /// With a record, unless it was killed before
    AsChild,
}

/// The end of a process, as this command saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Unknown,
    Running,
    Ended(process::End),
}

/// The blocks live at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sample {
    pub(crate) ns: u64,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

/// One leak check, or one count of live blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    pub(crate) number: u32,
    pub(crate) occasion: Occasion,
    /// The nanoseconds since the process began.
    pub(crate) ns: u64,
    pub(crate) stopped_ns: u64,
    /// The time that the check took; `None`: it did not finish.
    pub(crate) took_ns: Option<u64>,
    pub(crate) threads: u32,
    /// The number of threads that did not report their registers.
    pub(crate) silent: u32,
    pub(crate) live: Amount,
    /// The live blocks of small groups, which are not listed by stack.
    pub(crate) omitted: Amount,
    /// Live blocks by stack, the largest first; small ones may be missing.
    pub(crate) usage: Vec<(StackId, Amount)>,
    /// The other estimates, if the check is a heap profile.
    pub(crate) profile: Option<Profile>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// The mean number of bytes between samples.
    pub(crate) period: u64,
    /// The peak of live bytes, and its time in nanoseconds since sampling began.
    pub(crate) peak_bytes: u64,
    pub(crate) peak_ns: u64,
    pub(crate) lost: u64,
    pub(crate) sites: Vec<Sampled>,
    pub(crate) threads: Vec<SampledThread>,
    /// Live bytes over time, up to the moment of the profile; empty in older records.
    pub(crate) points: Vec<ProfilePoint>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfilePoint {
    /// The nanoseconds since sampling began.
    pub(crate) ns: u64,
    pub(crate) live: u64,
    pub(crate) resident: Option<u64>,
}

/// The estimates for a stack's blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub(crate) stack: StackId,
    /// The number of live samples, the estimated live blocks, and one standard deviation of bytes.
    pub(crate) samples: u64,
    pub(crate) live: Amount,
    pub(crate) live_error: u64,
    /// The estimate and deviation of all blocks allocated since sampling began.
    pub(crate) allocated: Amount,
    pub(crate) allocated_error: u64,
    /// The blocks freed within a millisecond.
    pub(crate) temporary: Amount,
    pub(crate) peak: Amount,
    /// The times of the oldest and the youngest live sample, in nanoseconds since sampling began.
    pub(crate) oldest_ns: u64,
    pub(crate) youngest_ns: u64,
    pub(crate) memory: Memory,
    /// Further estimates; `None` in records of older versions.
    pub(crate) more: Option<SampledMore>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledMore {
    /// One standard deviation of `temporary` and of `peak`, in bytes.
    pub(crate) temporary_error: u64,
    pub(crate) peak_error: u64,
    /// The moment from which growth counts, in ns since sampling began, and the blocks live then.
    pub(crate) earlier_ns: u64,
    pub(crate) earlier: Amount,
    pub(crate) growth_error: u64,
}

/// The estimates for a thread's blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledThread {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) live: Amount,
    pub(crate) allocated: Amount,
}

/// The last heap profile of a process.
#[derive(Clone, Copy)]
pub(crate) struct Profiled<'r> {
    pub(crate) process: &'r Process,
    pub(crate) check: &'r Check,
    pub(crate) profile: &'r Profile,
}

impl Check {
    /// Returns whether the check looked for leaks and finished.
    pub(crate) fn is_whole(&self) -> bool {
        self.occasion.follows() && self.took_ns.is_some()
    }
}

impl Process {
    /// Returns whether the process executed a program without the library.
    pub(crate) fn became_unchecked(&self) -> bool {
        self.started.iter().any(|started| started.pid == self.pid)
    }

    /// Returns the last known moment of the process.
    pub(crate) fn lasted(&self) -> u64 {
        let check = self.checks.last().map_or(0, |check| check.ns);
        check.max(self.samples.last().map_or(0, |sample| sample.ns))
    }

    pub(crate) fn last_profile(&self) -> Option<(&Check, &Profile)> {
        self.checks.iter().rev().find_map(|check| Some((check, check.profile.as_ref()?)))
    }
}

impl Profile {
    /// Returns [`SampledMore::earlier_ns`]; `None` in records of older versions.
    pub(crate) fn earlier_ns(&self) -> Option<u64> {
        self.sites.iter().find_map(|site| site.more.map(|more| more.earlier_ns))
    }

    /// Returns one standard deviation of the sum of a figure's bytes, if known; for growth, of the
    /// difference.
    pub(crate) fn error(&self, figure: Figure) -> Option<u64> {
        let squares: Option<f64> =
            self.sites.iter().map(|site| Some((figure.error(site)? as f64).powi(2))).sum();
        squares.map(|squares| squares.sqrt() as u64)
    }

    /// Returns the net growth of live bytes since the earlier moment, over all stacks.
    pub(crate) fn growth(&self) -> Option<i64> {
        self.sites.iter().map(Sampled::growth).sum()
    }

    pub(crate) fn resident(&self) -> Option<u64> {
        self.points.last()?.resident
    }

    /// Makes a profile of a record's entry; sites, threads and points are added later.
    pub(crate) fn of(profile: &record::Profile) -> Self {
        let record::Profile { period, peak_bytes, peak_ns, lost, .. } = *profile;
        Self { period, peak_bytes, peak_ns, lost, ..Self::default() }
    }

    pub(crate) fn total(&self, of: impl Fn(&Sampled) -> Amount) -> Amount {
        self.sites.iter().map(of).sum()
    }
}

impl Sampled {
    pub(crate) fn of(stack: StackId, sampled: &record::Sampled) -> Self {
        let amount = |blocks, bytes| Amount { blocks, bytes };
        Self {
            stack,
            samples: sampled.live_samples,
            live: amount(sampled.live_blocks, sampled.live_bytes),
            live_error: sampled.live_error,
            allocated: amount(sampled.allocated_blocks, sampled.allocated_bytes),
            allocated_error: sampled.allocated_error,
            temporary: amount(sampled.temporary_blocks, sampled.temporary_bytes),
            peak: amount(sampled.peak_blocks, sampled.peak_bytes),
            oldest_ns: sampled.oldest_ns,
            youngest_ns: sampled.youngest_ns,
            memory: sampled.memory,
            more: None,
        }
    }

    pub(crate) fn noun(&self) -> &'static str {
        match self.memory {
            Memory::Pool => "pool segment",
            Memory::Arena => "arena chunk",
            Memory::Collected => "collected heap page",
            _ => "block",
        }
    }

    pub(crate) fn growth(&self) -> Option<i64> {
        let more = self.more?;
        // Sound records contain no larger number.
        let bytes = |bytes: u64| bytes.min(1 << 56).cast_signed();
        Some(bytes(self.live.bytes) - bytes(more.earlier.bytes))
    }
}

impl SampledMore {
    pub(crate) fn of(more: &record::SampledMore) -> Self {
        Self {
            temporary_error: more.temporary_error,
            peak_error: more.peak_error,
            earlier_ns: more.earlier_ns,
            earlier: Amount { blocks: more.earlier_blocks, bytes: more.earlier_bytes },
            growth_error: more.growth_error,
        }
    }
}

impl ProfilePoint {
    pub(crate) fn of(point: &record::SampledPoint) -> Self {
        let resident = Some(point.resident_bytes).filter(|bytes| *bytes != 0);
        Self { ns: point.ns, live: point.live_bytes, resident }
    }
}

impl SampledThread {
    pub(crate) fn of(name: String, thread: &record::SampledThread) -> Self {
        Self {
            number: thread.thread,
            name,
            live: Amount { blocks: thread.live_blocks, bytes: thread.live_bytes },
            allocated: Amount { blocks: thread.allocated_blocks, bytes: thread.allocated_bytes },
        }
    }
}

/// The figure of a heap profile to report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Figure {
    /// Blocks that were live when the program's live bytes were highest
    #[default]
    Peak,
    /// Blocks that were live at the end
    Live,
    /// All blocks allocated since sampling began
    Allocated,
    /// Blocks that were freed within a millisecond
    Temporary,
    /// Growth of live memory since a moment in the second quarter of the time
    Growth,
}

impl Figure {
    pub(crate) const ALL: [Self; 5] =
        [Self::Live, Self::Growth, Self::Temporary, Self::Peak, Self::Allocated];

    /// Returns the figure's name in machine-readable formats.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::Peak => "peak",
            Self::Live => "live",
            Self::Allocated => "allocated",
            Self::Temporary => "temporary",
        }
    }

    /// Growth is zero if it is unknown, or if fewer bytes are live than before.
    pub(crate) fn of(self, site: &Sampled) -> Amount {
        match self {
            Self::Growth => site.more.map_or(Amount::default(), |more| Amount {
                blocks: site.live.blocks.saturating_sub(more.earlier.blocks),
                bytes: site.live.bytes.saturating_sub(more.earlier.bytes),
            }),
            Self::Live => site.live,
            Self::Allocated => site.allocated,
            Self::Temporary => site.temporary,
            Self::Peak => site.peak,
        }
    }

    pub(crate) fn error(self, site: &Sampled) -> Option<u64> {
        match self {
            Self::Live => Some(site.live_error),
            Self::Allocated => Some(site.allocated_error),
            Self::Temporary => site.more.map(|more| more.temporary_error),
            Self::Peak => site.more.map(|more| more.peak_error),
            Self::Growth => site.more.map(|more| more.growth_error),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Amount {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

impl std::ops::AddAssign for Amount {
    /// A sum that is too large becomes the largest number.
    fn add_assign(&mut self, more: Self) {
        self.blocks = self.blocks.saturating_add(more.blocks);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |mut sum, more| {
            sum += more;
            sum
        })
    }
}

/// A stack of a report: an index into [`Stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct StackId(pub(crate) u32);

impl StackId {
    /// The empty stack: no frames were kept.
    pub(crate) const NONE: Self = Self(0);
}

/// All stacks. Equal stacks of different processes have one id.
pub(crate) struct Stacks {
    pub(crate) frames: Vec<Frame>,
    /// Indexes into `frames`, innermost first; the first stack is the empty one.
    pub(crate) stacks: Vec<Box<[u32]>>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { frames: Vec::new(), stacks: vec![Box::default()] }
    }
}

impl Stacks {
    /// Returns the frames of a stack, innermost first, without calls inside the preloaded library.
    pub(crate) fn frames(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> {
        let frames = self.stacks[stack.0 as usize].iter();
        frames
            .map(|&frame| &self.frames[frame as usize])
            .filter(|frame| !frame.is_inside_heapwright())
    }

    /// Returns the frames from the first one that is not of the preloaded library.
    pub(crate) fn outside(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        self.frames(stack).skip_while(|frame| frame.is_of_heapwright())
    }
}

/// A mistake of the program: all findings of one cause.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    pub(crate) finding: Finding,
    pub(crate) process: usize,
    /// The known moments of the finding, in the order of the report.
    pub(crate) moments: Vec<Happened>,
    pub(crate) times: u64,
    /// The number of processes that made it.
    pub(crate) processes: usize,
    /// The effect of an uninitialised value, printable.
    pub(crate) effect: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) role: Role,
    pub(crate) moment: Moment,
    pub(crate) thread: String,
    pub(crate) stack: StackId,
}

/// The blocks with one allocating stack and one fate, at the last check of each process.
#[derive(Clone, Debug)]
pub(crate) struct Leak {
    pub(crate) reach: Reach,
    pub(crate) origin: Origin,
    pub(crate) stack: StackId,
    pub(crate) lost: Amount,
    /// For definitely lost blocks: the blocks that were lost through them.
    pub(crate) indirect: Amount,
    /// The size and the address of an example, to which the path leads.
    pub(crate) size: u64,
    pub(crate) block: u64,
    /// When the oldest and the youngest block were allocated, in nanoseconds since the process
    /// began, and their ages at the check.
    pub(crate) oldest_ns: u64,
    pub(crate) youngest_ns: u64,
    pub(crate) oldest_age_ns: u64,
    pub(crate) youngest_age_ns: u64,
    /// The check that found it: an index into the process's `checks`.
    pub(crate) check: usize,
    pub(crate) process: usize,
    /// The number of processes with such blocks.
    pub(crate) processes: usize,
    pub(crate) path: Option<Path>,
}

/// A chain of pointers from a root to a block.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) root: Root,
    pub(crate) address: u64,
    /// The name of the root's variable, as in `cache+0x10`.
    pub(crate) name: Option<String>,
    /// The file that contains the root.
    pub(crate) module: Option<String>,
    /// The thread whose stack, registers or thread-local variables are the root.
    pub(crate) thread: Option<(u32, String)>,
    /// The blocks on the path, from the root on.
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) size: u64,
    /// The offset of the pointer to the next block.
    pub(crate) offset: u64,
    pub(crate) stack: StackId,
}

/// A stack whose live bytes grow for good.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    pub(crate) stack: StackId,
    pub(crate) process: usize,
    pub(crate) points: Vec<Sample>,
    /// The median slope, in bytes a second.
    pub(crate) slope: f64,
    /// How surely the bytes grow: Kendall's tau, 0.8 to 1.
    pub(crate) tau: f64,
}

/// A suppression, and what it hid.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    pub(crate) name: String,
    /// The file of the suppression, and its line there.
    pub(crate) file: String,
    pub(crate) line: u32,
    /// The number of findings and groups of blocks that it hid; 0: it is unused.
    pub(crate) times: u64,
    /// The different causes of these findings: the kind, and the calls that a suggestion would
    /// name.
    pub(crate) causes: HashSet<String>,
    pub(crate) amount: Amount,
}

impl Leak {
    pub(crate) fn is_definite(&self) -> bool {
        self.reach == Reach::Definite
    }
}

impl Report {
    /// Returns the process that the run started, if any.
    pub(crate) fn first(&self) -> Option<&Process> {
        self.processes.first()
    }

    /// Returns the number of the program's process; 0: unknown.
    pub(crate) fn pid(&self) -> u32 {
        self.first().map_or(self.program, |process| process.pid)
    }

    pub(crate) fn checks(&self) -> impl DoubleEndedIterator<Item = &Check> + Clone {
        self.processes.iter().flat_map(|process| &process.checks)
    }

    /// Returns the last profile of each process that has one, those that allocated most first.
    pub(crate) fn profiles(&self) -> Vec<Profiled<'_>> {
        let of = |process| {
            let (check, profile) = Process::last_profile(process)?;
            Some(Profiled { process, check, profile })
        };
        let mut all: Vec<_> = self.processes.iter().filter_map(of).collect();
        let allocated = |profile: &Profile| profile.total(|site| site.allocated).bytes;
        all.sort_by_key(|one| std::cmp::Reverse(allocated(one.profile)));
        all
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        self.unseen.iter().chain(&self.notes)
    }

    /// Returns how often mistakes were found, those beyond the limit included.
    pub(crate) fn times(&self) -> u64 {
        let add = |sum: u64, error: &Error| sum.saturating_add(error.times);
        self.errors.iter().fold(self.unreported.times, add)
    }

    /// Returns the numbers of errors and of contexts for a summary. A group of leaked blocks of
    /// `reaches` is an error, as for memcheck.
    pub(crate) fn counted(&self, reaches: &[Reach]) -> (u64, u64) {
        let leaks = self.leaks.iter().filter(|leak| reaches.contains(&leak.reach)).count() as u64;
        let errors = (self.errors.len() as u64).saturating_add(self.unreported.errors);
        (self.times().saturating_add(leaks), errors.saturating_add(leaks))
    }

    /// Returns the blocks of one reach. Reachable blocks include those that the checks counted
    /// without reporting.
    pub(crate) fn total(&self, reach: Reach) -> Amount {
        let reported = self.leaks.iter().filter(|leak| leak.reach == reach).map(|leak| &leak.lost);
        let processes = self.processes.iter().filter(|process| !process.is_skipped);
        let last =
            processes.filter_map(|process| process.checks.iter().rfind(|check| check.is_whole()));
        let omitted = last.map(|check| &check.omitted).filter(|_| reach == Reach::Reachable);
        reported.chain(omitted).copied().sum()
    }
}
