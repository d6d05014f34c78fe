//! A tuning while it goes on: the program and its trace are run, set by set of rounds.
//!
//! ```text
//! try        the program once with glibc's malloc and with ours: does it work, how long does it take
//! record     the program once, with a trace
//! screening  the trace, replayed: defaults, control, each option by itself, peers
//! deciding   the trace, replayed again: defaults, control, what looked better
//! check      the program itself: defaults, what may be recommended
//! ```
//!
//! A set of rounds gets a share of the time that the user gives, but never so few rounds that it decides
//! nothing. Each step ends with what it found in [`Results`], so that an interrupted tuning
//! shows what is there.

use super::Args;
use crate::bench::allocators::{Allocator, GLIBC};
use crate::bench::results::{Entry, Outcome};
use crate::bench::{Attempt, End, Launcher, Program, Progress, Showing, probe_all, race};
use crate::commands::record::{self, collect};
use crate::commands::replay::{about, chosen, write_plan};
use crate::output;
use crate::process;
use crate::replay::results::Trace;
use crate::replay::rounds::{Played, Rounds};
use crate::replay::{Touch, compile};
use crate::statistics::Folder;
use crate::trace::{self, Facts, Story};
use crate::tune::candidates::{Setting, singles};
use crate::tune::decision::{self, comparisons, finalists};
use crate::tune::results::{Check, Decision, Results, Role, Set, Tuned};
use crate::wrong::wrong;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A program that takes less spends most of its time being started.
const SHORTEST: Duration = Duration::from_millis(30);

/// Less than both of these is nothing to tune.
const LEAST_OPERATIONS: u64 = 10_000;
const LEAST_LIVE: u64 = 4 << 20;

/// Rounds that a set has at least: to choose finalists, and to decide. With nine, the extremes
/// enclose a median in 1 - 2 / 2^9 = 0.996 of all cases, enough for a dozen comparisons.
const LEAST_SCREENING: u32 = 3;
const LEAST_DECIDING: u32 = 9;

/// What share of the user's time a set of rounds gets, in percent.
const FOR_SCREENING: u32 = 40;
const FOR_DECIDING: u32 = 30;
const FOR_CHECK: u32 = 30;

/// How many times the rounds of the replay the check may have: of a program's time its calls for
/// memory are a part, and a gain in them is a small one.
const CHECK_TIMES: u32 = 10;

/// Recording takes longer than running, by less than this.
const TIMES_SLOWER: u32 = 30;
const LEAST_LIMIT: Duration = Duration::from_secs(60);

/// Why there is no result.
pub(super) enum Stop {
    /// Asked to stop.
    Interrupted,
    /// It ends with this code, and has said why.
    Exit(u8),
}

pub(super) type Step<T> = anyhow::Result<Result<T, Stop>>;

/// What is to be replayed, and what to know of it.
pub(super) struct Tape {
    story: Story,
    /// The trace's file name, or the program's.
    name: String,
    notes: Vec<String>,
}

/// Reads a trace, and chooses what is replayed of it.
pub(super) fn read(path: &Path, process: Option<u32>) -> anyhow::Result<Tape> {
    let input = trace::read(path)?;
    let story = chosen(path, input.stories, process)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Tape { story, name, notes: input.notes })
}

/// A tuning while it goes on.
pub(super) struct Tuning<'a> {
    pub(super) args: &'a Args,
    pub(super) launcher: &'a Launcher,
    /// Our library, without options.
    pub(super) defaults: &'a Allocator,
    pub(super) results: Results,
}

impl Tuning<'_> {
    /// All of it.
    pub(super) fn all(
        &mut self,
        program: Option<&Program>,
        tape: Option<Tape>,
        peers: &[Allocator],
    ) -> Step<()> {
        if let Some(program) = program {
            let wall = match self.try_out(program)? {
                Ok(wall) => wall,
                Err(stop) => return Ok(Err(stop)),
            };
            self.results.program = Some(Tuned {
                name: program.name.clone(),
                words: program.stands_for.clone(),
                wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            });
            if wall < SHORTEST && tape.is_none() {
                self.results.nothing = Some(too_short(program, wall));
                return Ok(Ok(()));
            }
        }
        let tape = match (tape, program) {
            (Some(tape), _) => tape,
            (None, Some(program)) => match self.record(program)? {
                Ok(tape) => tape,
                Err(stop) => return Ok(Err(stop)),
            },
            (None, None) => {
                let why = "there is nothing to tune: name a program, or a trace with --trace";
                return Err(wrong(why.to_owned()));
            }
        };
        self.results.notes.extend(tape.notes);
        self.results.notes.extend(about(&tape.story));
        let trace = Trace::of(&tape.story, tape.name);
        let facts = trace.facts;
        self.results.trace = Some(trace);
        if facts.operations < LEAST_OPERATIONS && facts.peak_live_bytes < LEAST_LIVE {
            self.results.nothing = Some(too_little(&facts));
            return Ok(Ok(()));
        }
        let folder = Folder::new()?;
        let plan = folder.path().join("plan");
        write_plan(&plan, &compile(&tape.story, Touch::Pages, false))?;
        drop(tape.story);
        let chosen = match self.choose(&plan, &facts, peers)? {
            Ok(chosen) => chosen,
            Err(stop) => return Ok(Err(stop)),
        };
        self.results.decision = Some(Decision::from(&chosen));
        let first = chosen.eligible.first().map(|choice| choice.candidate.text());
        let program = program.filter(|_| first.is_some());
        let Some(program) = program else {
            self.results.recommended = Some(first.unwrap_or_default());
            return Ok(Ok(()));
        };
        let check = match self.check(program, &chosen.eligible)? {
            Ok(check) => check,
            Err(stop) => return Ok(Err(stop)),
        };
        let kept = check.kept().map(|kept| kept.options.clone());
        self.results.recommended = Some(kept.unwrap_or_default());
        self.results.check = Some(check);
        Ok(Ok(()))
    }

    fn progress(&self, runs: usize) -> Progress {
        Progress::new(Showing::of(self.args.output_args.quiet, self.args.progress), runs)
    }

    /// Runs the program: how long it takes, with the defaults.
    fn try_out(&mut self, program: &Program) -> Step<Duration> {
        let glibc =
            Allocator { name: GLIBC.to_owned(), library: None, environment: BTreeMap::new() };
        let entries = match self.race(program, &[glibc, self.defaults.clone()], 1)? {
            Ok(entries) => entries,
            Err(stop) => return Ok(Err(stop)),
        };
        let ours = entries.last().filter(|entry| entry.outcome == Outcome::Ok);
        if let Some(run) = ours.and_then(|entry| entry.runs.first()) {
            return Ok(Ok(Duration::from_nanos(run.wall_ns)));
        }
        let why = entries.last().and_then(|entry| entry.detail.clone()).unwrap_or_default();
        eprintln!("heapwright: {} fails on heapwright: {why}", program.name);
        Ok(Err(Stop::Exit(super::PROGRAM_FAILS)))
    }

    /// Runs the program in turns; the first of the allocators is what it must work with.
    fn race(
        &mut self,
        program: &Program,
        allocators: &[Allocator],
        rounds: usize,
    ) -> Step<Vec<Entry>> {
        let known = probe_all(allocators, self.launcher, self.args.timeout)?;
        let race = race::Race {
            programs: std::slice::from_ref(program),
            allocators,
            baseline: 0,
            known: &known,
            launcher: self.launcher,
            rounds,
            rounds_long: rounds,
            limit: self.args.timeout,
        };
        let raced = race.run(&self.progress(race.runs()))?;
        if raced.interrupted {
            return Ok(Err(Stop::Interrupted));
        }
        if let Some((name, why)) = raced.broken.first() {
            eprintln!("heapwright: the program itself fails: {name}: {why}");
            return Ok(Err(Stop::Exit(super::PROGRAM_FAILS)));
        }
        for note in raced.notes {
            if !self.results.notes.contains(&note) {
                self.results.notes.push(note);
            }
        }
        Ok(Ok(raced.entries.into_iter().flatten().collect()))
    }

    /// Records the program.
    fn record(&mut self, program: &Program) -> Step<Tape> {
        let folder = Folder::new()?;
        let prefix = folder.path().join(record::STEM);
        let recording = self
            .defaults
            .with_options("recording".to_owned(), &format!("trace={}", prefix.display()));
        let took = self.results.program.as_ref().map_or(0, |program| program.wall_ns);
        let limit = self.args.timeout.unwrap_or_else(|| {
            LEAST_LIMIT.max(Duration::from_nanos(took).saturating_mul(TIMES_SLOWER))
        });
        let progress = self.progress(1);
        progress.round("recording", None);
        progress.running(&program.name, &recording.name, None);
        let attempt = self.launcher.run(program, &recording, limit, &|| progress.tick())?;
        progress.finish();
        let mut ran = match attempt {
            Attempt::Ran(ran) => ran,
            Attempt::Interrupted => return Ok(Err(Stop::Interrupted)),
            Attempt::NotStarted(error) => return Err(error.into()),
        };
        if ran.end != End::Code(0) {
            let how = match ran.end {
                End::Code(code) => format!("exit {code}"),
                End::Signal(signal) => format!("signal {signal}, {}", process::signal_name(signal)),
                End::Limit => format!("killed after {} s (see --timeout)", limit.as_secs()),
                End::TooMuchOutput => "it printed more than 256 MiB".to_owned(),
            };
            let complaint = ran.complaint().map(|line| format!(": {line}")).unwrap_or_default();
            eprintln!("heapwright: {} fails while it is recorded: {how}{complaint}", program.name);
            return Ok(Err(Stop::Exit(super::PROGRAM_FAILS)));
        }
        let (mut stories, mut notes) = collect(folder.path());
        stories.retain(|story| story.operations() > 0);
        let processes = stories.len();
        let Some(story) = stories.into_iter().max_by_key(Story::operations) else {
            eprintln!(
                "heapwright: nothing was recorded of {}: it never asked for memory, or ended without its exit handlers (see \
                 heapwright doctor)",
                program.name
            );
            return Ok(Err(Stop::Exit(super::PROGRAM_FAILS)));
        };
        if processes > 1 {
            let name = story.name();
            notes.push(format!("of {processes} processes the busiest is replayed: {name}"));
        }
        Ok(Ok(Tape { story, name: program.name.clone(), notes }))
    }

    /// Replays, and chooses.
    fn choose(
        &mut self,
        plan: &Path,
        facts: &Facts,
        peers: &[Allocator],
    ) -> Step<decision::Decision> {
        let began = Instant::now();
        let ours = |role: &Role| self.ours(role);
        let first = match self.play(plan, &[ours(&Role::Defaults)], 1)? {
            Ok(first) if first.interrupted => return Ok(Err(Stop::Interrupted)),
            Ok(first) => first,
            Err(stop) => return Ok(Err(stop)),
        };
        // A run that is not counted, and one that is.
        let one_run = began.elapsed() / 2;
        let share = self.share(&first);

        let setting = Setting {
            threads: facts.threads,
            cores: self.results.head.machine.cores,
            huge_pages: &self.results.head.machine.thp,
        };
        let candidates = singles(setting).into_iter().map(Role::Candidate);
        let mut roles: Vec<Role> =
            [Role::Defaults, Role::Control].into_iter().chain(candidates).collect();
        let mut rows: Vec<Allocator> = roles.iter().map(ours).collect();
        rows.extend(peers.iter().cloned());
        roles.resize(rows.len(), Role::Peer);
        let screening =
            match self.set(plan, roles, &rows, one_run, (FOR_SCREENING, LEAST_SCREENING), 1)? {
                Ok(set) => set,
                Err(stop) => return Ok(Err(stop)),
            };
        let is_single = |role: &Role| matches!(role, Role::Candidate(_));
        let defaults = screening.measured(|role| *role == Role::Defaults);
        let better = defaults
            .first()
            .map(|defaults| finalists(defaults, &screening.measured(is_single), share))
            .unwrap_or_default();
        self.results.screening = Some(screening);
        if !self.results.complete {
            return Ok(Err(Stop::Interrupted));
        }
        if better.is_empty() {
            return Ok(Ok(decision::Decision::default()));
        }

        let count = comparisons(better.len());
        let candidates = better.into_iter().map(Role::Candidate);
        let roles: Vec<Role> =
            [Role::Defaults, Role::Control].into_iter().chain(candidates).collect();
        let rows: Vec<Allocator> = roles.iter().map(|role| self.ours(role)).collect();
        let most = (FOR_DECIDING, LEAST_DECIDING);
        let deciding = match self.set(plan, roles, &rows, one_run, most, count)? {
            Ok(set) => set,
            Err(stop) => return Ok(Err(stop)),
        };
        let defaults = deciding.measured(|role| *role == Role::Defaults);
        let control = deciding.measured(|role| *role == Role::Control);
        let finalists = deciding.measured(is_single);
        self.results.deciding = Some(deciding);
        if !self.results.complete {
            return Ok(Err(Stop::Interrupted));
        }
        let Some(defaults) = defaults.first() else {
            return Ok(Err(Stop::Exit(super::PROGRAM_FAILS)));
        };
        Ok(Ok(decision::decide(defaults, control.first(), &finalists, share)))
    }

    /// The part of the program's time that the replay takes; all of it, if that is not known.
    fn share(&self, first: &Played) -> f64 {
        let replay = first.rows.first().and_then(|row| row.runs.first()).map(|run| run.wall_ns);
        match (replay, &self.results.program) {
            (Some(replay), Some(program)) => replay as f64 / program.wall_ns.max(1) as f64,
            _ => 1.0,
        }
    }

    /// Our library with a row's options.
    fn ours(&self, role: &Role) -> Allocator {
        let options = role.candidate().unwrap_or_default().text();
        if options.is_empty() {
            return Allocator { name: "defaults".to_owned(), ..self.defaults.clone() };
        }
        self.defaults.with_options(options.clone(), &options)
    }

    /// Measures a set of rows, in as many rounds as its share of the time allows. Interrupted, it
    /// is what was measured before, and the results are no longer complete.
    fn set(
        &mut self,
        plan: &Path,
        roles: Vec<Role>,
        rows: &[Allocator],
        one_run: Duration,
        (share, least): (u32, u32),
        comparisons: usize,
    ) -> Step<Set> {
        let round = one_run * u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let rounds = self.rounds(share, round, least, self.args.rounds);
        let played = match self.play(plan, rows, rounds)? {
            Ok(played) => played,
            Err(stop) => return Ok(Err(stop)),
        };
        self.results.complete &= !played.interrupted;
        for complaint in played.complaints {
            if !self.results.notes.contains(&complaint) {
                self.results.notes.push(complaint);
            }
        }
        Ok(Ok(Set::new(roles, played.rows, comparisons)))
    }

    /// How many rounds a set gets, if one takes so long.
    fn rounds(&self, share: u32, round: Duration, least: u32, most: u32) -> usize {
        rounds_within(self.args.time * share / 100, round, least, most)
    }

    /// Replays; the first row must get through.
    fn play(&self, plan: &Path, rows: &[Allocator], rounds: usize) -> Step<Played> {
        let known = probe_all(rows, self.launcher, self.args.timeout)?;
        let name = self.results.trace.as_ref().map(|trace| trace.name.as_str()).unwrap_or_default();
        let rounds = Rounds {
            plan: plan.to_owned(),
            name,
            allocators: rows,
            known: &known,
            launcher: self.launcher,
            rounds,
            limit: self.args.timeout,
        };
        let played = rounds.play(&self.progress(rounds.runs()))?;
        let defaults = played.rows.first();
        if let Some(why) = defaults.and_then(|row| row.detail.as_ref()) {
            eprintln!("heapwright: the replay fails with the defaults: {why}");
            return Ok(Err(Stop::Exit(super::PROGRAM_FAILS)));
        }
        Ok(Ok(played))
    }

    /// Runs the program itself with the defaults and with what may be recommended.
    fn check(&mut self, program: &Program, eligible: &[decision::Choice]) -> Step<Check> {
        let candidates = eligible.iter().map(|choice| Role::Candidate(choice.candidate.clone()));
        let rows: Vec<Allocator> = std::iter::once(Role::Defaults)
            .chain(candidates)
            .map(|role| self.ours(&role))
            .collect();
        let took = self.results.program.as_ref().map_or(0, |program| program.wall_ns);
        let round = Duration::from_nanos(took) * u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let most = self.args.rounds * CHECK_TIMES;
        let rounds = self.rounds(FOR_CHECK, round, LEAST_DECIDING.min(self.args.rounds), most);
        let entries = self.race(program, &rows, rounds)?;
        Ok(entries.map(|entries| Check::new(eligible, rounds, entries)))
    }
}

/// As many rounds as fit into a time, between bounds of which the upper one is the user's.
fn rounds_within(time: Duration, round: Duration, least: u32, most: u32) -> usize {
    let fitting = time.as_nanos() / round.as_nanos().max(1);
    let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
    fitting.clamp(least.min(most), most) as usize
}

fn too_short(program: &Program, wall: Duration) -> String {
    let stdin =
        if program.stdin.is_none() { "; it reads nothing from stdin (see --stdin)" } else { "" };
    format!(
        "{} ends after {:.1} ms, which is mostly its start{stdin}",
        program.name,
        wall.as_secs_f64() * 1000.0
    )
}

fn too_little(facts: &Facts) -> String {
    format!(
        "{} calls for memory and {} live at most are too few to measure",
        facts.operations,
        output::size(facts.peak_live_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_fit_into_the_time_but_decide_something() {
        let ms = Duration::from_millis;
        assert_eq!(rounds_within(ms(1000), ms(100), 3, 15), 10);
        assert_eq!(rounds_within(ms(1000), ms(1), 3, 15), 15);
        assert_eq!(rounds_within(ms(1000), ms(900), 3, 15), 3);
        assert_eq!(rounds_within(ms(1000), ms(900), 9, 2), 2);
        assert_eq!(rounds_within(ms(1000), ms(0), 3, 15), 15);
    }
}
