//! The model of a report: the contents of some records in one picture.
//!
//! ```text
//! Report
//!   processes   that wrote: command, end, live bytes over time, full buckets, checks
//!   stacks      every distinct stack once; frames every distinct place once
//!   errors      mistakes, those with one cause together
//!   leaks       groups of blocks that one stack allocated and one fate met
//!   growths     stacks whose live bytes grow and grow
//!   used        suppressions that hid something
//!   unseen      lines for people: which processes had no last look
//!   notes       lines for people: what could not be read
//! ```
//!
//! Plain data: [`super`] makes it of records, the formatters in `output` print it and
//! change nothing. Errors, leaks and growths are in the order in which they are reported.
//! Indexes are into the vectors of this struct and always valid.

use crate::process;
use crate::symbols::Frame;
use heapwright_record::debug::{
    self as record, Class, End, Finding, Memory, Moment, Occasion, Origin, Reach, Role, Root,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

/// Everything that is reported.
#[derive(Default)]
pub(crate) struct Report {
    /// In the order in which they began; the first is the one that was started.
    pub(crate) processes: Vec<Process>,
    pub(crate) stacks: Stacks,
    pub(crate) errors: Vec<Error>,
    pub(crate) leaks: Vec<Leak>,
    pub(crate) growths: Vec<Growth>,
    pub(crate) used: Vec<Used>,
    pub(crate) notes: Vec<String>,
    /// Processes that had no last look, a line each: what comes first in a report.
    pub(crate) unseen: Vec<String>,
    /// Files in the place of the run's records, of users that none of its processes had.
    pub(crate) foreign: Vec<String>,
    /// Stacks of which more frames were not kept.
    pub(crate) cut: BTreeSet<StackId>,
    /// Lines of source, by file and the line in the middle.
    pub(crate) sources: BTreeMap<(String, u32), Vec<(u32, String)>>,
    /// What is only counted because there is so much.
    pub(crate) unreported: Unreported,
    /// What suppressions hid.
    pub(crate) suppressed: Suppressed,
    /// Findings that their process made and did not write down, or made again without
    /// saying which.
    pub(crate) unwritten: u64,
    /// What was asked for.
    pub(crate) wanted: Wanted,
}

/// Sites of a heap profile that are listed where nothing else was said.
pub(crate) const SITES: usize = 20;

/// What a report is to contain.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The leaks whose details are reported; the others are in the sums.
    pub(crate) details: Vec<Reach>,
    /// How to write suppressions that are ready to be used.
    pub(crate) suppressions: Ready,
    /// The folder that sources are reported relative to, where one is known.
    pub(crate) folder: PathBuf,
    /// Groups of leaks whose details are reported.
    pub(crate) most: usize,
    /// What is reported of a heap profile, and of how many of its sites in text.
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

/// The kinds of leaks, as options and suppressions name them: `definite,possible`, `all`, `none`.
/// The word that is none of them otherwise.
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

/// All kinds.
pub(crate) const LEAKS: [Reach; 4] =
    [Reach::Definite, Reach::Indirect, Reach::Possible, Reach::Reachable];

/// A suppression that is ready to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ready {
    /// One line, in LeakSanitizer's language
    #[default]
    #[value(name = "lsan", alias = "line")]
    Line,
    /// A block in valgrind's
    #[value(name = "valgrind", alias = "yes")]
    Block,
    /// None
    #[value(name = "no")]
    None,
}

/// What is only counted because there is so much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unreported {
    /// Different mistakes, and how often they were found.
    pub(crate) errors: u64,
    pub(crate) times: u64,
    /// Groups of blocks that are reported as one without a stack.
    pub(crate) leaks: u64,
}

/// What suppressions hid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suppressed {
    /// Different mistakes, and how often they were found.
    pub(crate) errors: u64,
    pub(crate) times: u64,
    /// Groups of blocks, and what they came to.
    pub(crate) leaks: u64,
    pub(crate) lost: Amount,
    pub(crate) growths: u64,
}

/// A program in a process. One process that executes another program is two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// When it began, in nanoseconds since 1970.
    pub(crate) began: u64,
    pub(crate) exe: String,
    /// The words of the command line, fit for a screen.
    pub(crate) command: Vec<String>,
    pub(crate) options: String,
    pub(crate) version: String,
    /// How it ended, where it could still say so.
    pub(crate) end: Option<End>,
    /// How it ended, as whoever waited for it knows.
    pub(crate) fate: Fate,
    /// Nothing of it is to be reported.
    pub(crate) is_skipped: bool,
    /// Why its leaks could not be looked for at its end.
    pub(crate) no_leak_check: Option<String>,
    /// Live bytes over time, by time.
    pub(crate) samples: Vec<Sample>,
    /// Its leak checks and counts, by time.
    pub(crate) checks: Vec<Check>,
    /// How full the buckets of each size were at the last check that said so.
    pub(crate) classes: Vec<Class>,
}

/// How a process ended, as whoever waited for it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody who would say so has waited for it.
    #[default]
    Unknown,
    /// It has not.
    Running,
    /// So.
    Ended(process::End),
}

/// What was live at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sample {
    /// Nanoseconds since the process began.
    pub(crate) ns: u64,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

/// One leak check, or one count of what is live.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    pub(crate) number: u32,
    pub(crate) occasion: Occasion,
    /// Nanoseconds since the process began.
    pub(crate) ns: u64,
    /// For how long the program stood still.
    pub(crate) stopped_ns: u64,
    /// For how long the check worked; none: it did not finish.
    pub(crate) took_ns: Option<u64>,
    pub(crate) threads: u32,
    /// Threads that did not say what is in their registers.
    pub(crate) silent: u32,
    /// Everything that was live.
    pub(crate) live: Amount,
    /// What was too small to be distinguished.
    pub(crate) omitted: Amount,
    /// Live blocks by stack, the largest first; small ones may be missing.
    pub(crate) usage: Vec<(StackId, Amount)>,
    /// Where it is a heap profile: what else is estimated.
    pub(crate) profile: Option<Profile>,
}

/// What is estimated in a heap profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// Bytes from one sample to the next, on average.
    pub(crate) period: u64,
    /// Live bytes at the highest, and when that was, in nanoseconds since sampling began.
    pub(crate) peak_bytes: u64,
    pub(crate) peak_ns: u64,
    /// Samples for which there was no memory.
    pub(crate) lost: u64,
    /// By stack, in the order of the record.
    pub(crate) sites: Vec<Sampled>,
    pub(crate) threads: Vec<SampledThread>,
    /// Live bytes in time, the last at the moment of the profile; none in records of older
    /// versions.
    pub(crate) points: Vec<ProfilePoint>,
}

/// A moment of a heap profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfilePoint {
    /// Nanoseconds since sampling began.
    pub(crate) ns: u64,
    /// Live bytes, estimated.
    pub(crate) live: u64,
    /// Bytes of the process that were in memory, where that is known.
    pub(crate) resident: Option<u64>,
}

/// What is estimated of a stack's blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub(crate) stack: StackId,
    /// Samples that are live, what they stand for, and one standard deviation of those bytes.
    pub(crate) samples: u64,
    pub(crate) live: Amount,
    pub(crate) live_error: u64,
    /// The same of all since sampling began.
    pub(crate) allocated: Amount,
    pub(crate) allocated_error: u64,
    /// What was freed within a millisecond.
    pub(crate) temporary: Amount,
    /// What was live at the peak.
    pub(crate) peak: Amount,
    /// When the oldest and the youngest live sample were made, in nanoseconds since sampling began.
    pub(crate) oldest_ns: u64,
    pub(crate) youngest_ns: u64,
    /// What its blocks are.
    pub(crate) memory: Memory,
    /// None in records of older versions.
    pub(crate) more: Option<SampledMore>,
}

/// More of what is estimated of a stack's blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledMore {
    /// One standard deviation each.
    pub(crate) temporary_error: u64,
    pub(crate) peak_error: u64,
    /// The moment that growth is counted from, in nanoseconds since sampling began, and what was
    /// live then.
    pub(crate) earlier_ns: u64,
    pub(crate) earlier: Amount,
    /// Of what is live less what was live then.
    pub(crate) growth_error: u64,
}

/// What is estimated of a thread's blocks.
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
    /// The check that the profile is.
    pub(crate) check: &'r Check,
    pub(crate) profile: &'r Profile,
}

impl Check {
    /// Whether it looked for leaks, and finished.
    pub(crate) fn is_whole(&self) -> bool {
        self.occasion.follows() && self.took_ns.is_some()
    }
}

impl Process {
    /// The last moment that is known of it.
    pub(crate) fn lasted(&self) -> u64 {
        let check = self.checks.last().map_or(0, |check| check.ns);
        check.max(self.samples.last().map_or(0, |sample| sample.ns))
    }

    /// Its last heap profile, and the check that is one.
    pub(crate) fn last_profile(&self) -> Option<(&Check, &Profile)> {
        self.checks.iter().rev().find_map(|check| Some((check, check.profile.as_ref()?)))
    }
}

impl Profile {
    /// The moment that growth is counted from, in nanoseconds since sampling began; none in records
    /// of older versions.
    pub(crate) fn earlier_ns(&self) -> Option<u64> {
        self.sites.iter().find_map(|site| site.more.map(|more| more.earlier_ns))
    }

    /// One standard deviation of a figure's bytes, in all; of growth, of the difference. Where that
    /// is known.
    pub(crate) fn error(&self, figure: Figure) -> Option<u64> {
        let squares: Option<f64> =
            self.sites.iter().map(|site| Some((figure.error(site)? as f64).powi(2))).sum();
        squares.map(|squares| squares.sqrt() as u64)
    }

    /// By how many bytes more is live than at the earlier moment, stacks of which less is live
    /// included.
    pub(crate) fn growth(&self) -> Option<i64> {
        self.sites.iter().map(Sampled::growth).sum()
    }

    /// Bytes of the process that were in memory when it was written, where that is known.
    pub(crate) fn resident(&self) -> Option<u64> {
        self.points.last()?.resident
    }

    /// What a record says of one; sites, threads and points come later.
    pub(crate) fn of(profile: &record::Profile) -> Self {
        let record::Profile { period, peak_bytes, peak_ns, lost, .. } = *profile;
        Self { period, peak_bytes, peak_ns, lost, ..Self::default() }
    }

    /// The sum of one of the figures.
    pub(crate) fn total(&self, of: impl Fn(&Sampled) -> Amount) -> Amount {
        self.sites.iter().map(of).sum()
    }
}

impl Sampled {
    /// What a record says of a stack.
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

    /// What one of its blocks is called.
    pub(crate) fn noun(&self) -> &'static str {
        match self.memory {
            Memory::Pool => "pool segment",
            Memory::Arena => "arena chunk",
            Memory::Collected => "collected heap page",
            _ => "block",
        }
    }

    /// By how many bytes more is live than at the earlier moment.
    pub(crate) fn growth(&self) -> Option<i64> {
        let more = self.more?;
        // No number of a sound record is larger.
        let bytes = |bytes: u64| bytes.min(1 << 56).cast_signed();
        Some(bytes(self.live.bytes) - bytes(more.earlier.bytes))
    }
}

impl SampledMore {
    /// What a record says.
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
    /// What a record says.
    pub(crate) fn of(point: &record::SampledPoint) -> Self {
        let resident = Some(point.resident_bytes).filter(|bytes| *bytes != 0);
        Self { ns: point.ns, live: point.live_bytes, resident }
    }
}

impl SampledThread {
    /// What a record says of a thread.
    pub(crate) fn of(name: String, thread: &record::SampledThread) -> Self {
        Self {
            number: thread.thread,
            name,
            live: Amount { blocks: thread.live_blocks, bytes: thread.live_bytes },
            allocated: Amount { blocks: thread.allocated_blocks, bytes: thread.allocated_bytes },
        }
    }
}

/// Which of a heap profile's figures is reported.
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
    /// By how much more is live at the end than at an earlier moment, behind the first quarter of
    /// the time
    Growth,
}

impl Figure {
    /// All, in the order in which they are shown together.
    pub(crate) const ALL: [Self; 5] =
        [Self::Live, Self::Growth, Self::Temporary, Self::Peak, Self::Allocated];

    /// What it is called in machines' formats.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::Peak => "peak",
            Self::Live => "live",
            Self::Allocated => "allocated",
            Self::Temporary => "temporary",
        }
    }

    /// The figure of a site. Of growth nothing where less is live than before, or that is not
    /// known.
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

    /// One standard deviation of its bytes, where that is known.
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

/// Blocks and their bytes.
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
    /// No stack was kept.
    pub(crate) const NONE: Self = Self(0);
}

/// All stacks. Equal stacks have one id, in whatever process they were.
pub(crate) struct Stacks {
    /// Every distinct place in code, with its names.
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
    /// The frames of a stack, innermost first.
    pub(crate) fn frames(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> {
        self.stacks[stack.0 as usize].iter().map(|&frame| &self.frames[frame as usize])
    }
}

/// A mistake of the program: all findings that have one cause.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    /// The first of them.
    pub(crate) finding: Finding,
    /// Whose it is: an index into `processes`.
    pub(crate) process: usize,
    /// Those of its moments of which something is known, as they are reported.
    pub(crate) moments: Vec<Happened>,
    /// How often it was found.
    pub(crate) times: u64,
    /// In how many processes.
    pub(crate) processes: usize,
    /// Of an uninitialised value: what it changes, fit for a screen.
    pub(crate) effect: String,
}

/// A moment of an error.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) role: Role,
    pub(crate) moment: Moment,
    /// The thread's name, where it has one, fit for a screen.
    pub(crate) thread: String,
    pub(crate) stack: StackId,
}

/// Blocks that one stack allocated and one fate met, at the last check of each process.
#[derive(Clone, Debug)]
pub(crate) struct Leak {
    pub(crate) reach: Reach,
    pub(crate) origin: Origin,
    pub(crate) stack: StackId,
    pub(crate) lost: Amount,
    /// Definitely lost: what was lost with them.
    pub(crate) indirect: Amount,
    /// The size of one of them, which the path leads to.
    pub(crate) size: u64,
    pub(crate) block: u64,
    /// When the oldest and the youngest were made, in nanoseconds since the process
    /// began, and how old they were then at the check.
    pub(crate) oldest_ns: u64,
    pub(crate) youngest_ns: u64,
    pub(crate) oldest_age_ns: u64,
    pub(crate) youngest_age_ns: u64,
    /// Which check found it: an index into the process's `checks`.
    pub(crate) check: usize,
    /// Whose the example is: an index into `processes`.
    pub(crate) process: usize,
    /// In how many processes.
    pub(crate) processes: usize,
    /// What leads to the example.
    pub(crate) path: Option<Path>,
}

/// A chain of pointers from a root to a block.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) root: Root,
    pub(crate) address: u64,
    /// The variable, as in `cache+0x10`, where the root is a named one.
    pub(crate) name: Option<String>,
    /// The file whose data it is.
    pub(crate) module: Option<String>,
    /// Whose stack, registers or variables.
    pub(crate) thread: Option<(u32, String)>,
    /// The blocks on the way, the root's first.
    pub(crate) steps: Vec<Step>,
}

/// A block on the way.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) size: u64,
    /// Where in it the pointer to the next is.
    pub(crate) offset: u64,
    pub(crate) stack: StackId,
}

/// A stack whose live bytes grow and grow.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    pub(crate) stack: StackId,
    /// An index into `processes`.
    pub(crate) process: usize,
    /// Its live blocks over time, by time.
    pub(crate) points: Vec<Sample>,
    /// The median slope, in bytes a second.
    pub(crate) slope: f64,
    /// How surely it grows: Kendall's tau, 0 to 1.
    pub(crate) tau: f64,
}

/// A suppression that hid something.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    /// Its name or its line.
    pub(crate) name: String,
    /// The file it is from, and its line there.
    pub(crate) file: String,
    pub(crate) line: u32,
    /// Findings and groups of blocks that it hid; 0: none, it is of no use here.
    pub(crate) times: u64,
    /// The different causes of these: a kind of finding, and the calls that a suggestion would
    /// name.
    pub(crate) causes: HashSet<String>,
    pub(crate) amount: Amount,
}

impl Leak {
    /// Whether the blocks are lost for sure.
    pub(crate) fn is_definite(&self) -> bool {
        self.reach == Reach::Definite
    }
}

impl Report {
    /// What is reported of the process that was started, if any was.
    pub(crate) fn first(&self) -> Option<&Process> {
        self.processes.first()
    }

    /// All checks of all processes.
    pub(crate) fn checks(&self) -> impl DoubleEndedIterator<Item = &Check> + Clone {
        self.processes.iter().flat_map(|process| &process.checks)
    }

    /// The last profile of each process that has one, those that allocated most first.
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

    /// All lines for people, those that come first first.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        self.unseen.iter().chain(&self.notes)
    }

    /// How often mistakes were found, those included that are only counted.
    pub(crate) fn times(&self) -> u64 {
        let add = |sum: u64, error: &Error| sum.saturating_add(error.times);
        self.errors.iter().fold(self.unreported.times, add)
    }

    /// How many errors a summary counts, and from how many contexts: a group of leaked blocks of
    /// `reaches` is an error, as it is for memcheck.
    pub(crate) fn counted(&self, reaches: &[Reach]) -> (u64, u64) {
        let leaks = self.leaks.iter().filter(|leak| reaches.contains(&leak.reach)).count() as u64;
        let errors = (self.errors.len() as u64).saturating_add(self.unreported.errors);
        (self.times().saturating_add(leaks), errors.saturating_add(leaks))
    }

    /// Everything of one reach. Of what is reachable also what the checks have counted and not
    /// reported.
    pub(crate) fn total(&self, reach: Reach) -> Amount {
        let reported = self.leaks.iter().filter(|leak| leak.reach == reach).map(|leak| &leak.lost);
        let processes = self.processes.iter().filter(|process| !process.is_skipped);
        let last =
            processes.filter_map(|process| process.checks.iter().rfind(|check| check.is_whole()));
        let omitted = last.map(|check| &check.omitted).filter(|_| reach == Reach::Reachable);
        reported.chain(omitted).copied().sum()
    }
}
