//! The rounds.
//!
//! First every program runs under every allocator, uncounted: this fills the page cache and
//! shows failures. Then each round runs each program under each allocator, in an order that rotates
//! by one. Rounds are the outer loop, so an interrupted race has measured all programs a little.
//!
//! An allocator under which a program fails leaves the race on this program, and the failure
//! becomes a row of the results. If the program fails under the baseline, its race ends for all.

use super::allocators::Allocator;
use super::launcher::{Attempt, End, Fingerprint, Launcher, Ran};
use super::probe::Known;
use super::program::{Comparing, Program};
use super::progress::Progress;
use super::results::{Entry, Outcome, Run};
use super::warm::warm;
use crate::process;
use crate::process::interrupt;
use std::time::Duration;

/// The limit of the baseline's first run, without --timeout.
const FIRST_LIMIT: Duration = Duration::from_secs(3600);
/// The least limit of all other runs, without --timeout.
const LEAST_LIMIT: Duration = Duration::from_secs(60);
/// The time limit of other runs, as a multiple of the baseline's first run.
const TIMES_SLOWER: u32 = 10;

pub(crate) struct Race<'a> {
    pub(crate) programs: &'a [Program],
    pub(crate) allocators: &'a [Allocator],
    pub(crate) baseline: usize,
    pub(crate) known: &'a [Known],
    pub(crate) launcher: &'a Launcher,
    pub(crate) rounds: usize,
    pub(crate) rounds_long: usize,
    pub(crate) limit: Option<Duration>,
}

pub(crate) struct Raced {
    /// For each program, one entry for each allocator.
    pub(crate) entries: Vec<Vec<Entry>>,
    /// Programs that fail under the baseline, with the reason in words.
    pub(crate) broken: Vec<(String, String)>,
    pub(crate) notes: Vec<String>,
    pub(crate) interrupted: bool,
}

type Failure = (Outcome, String);

struct Lane<'a> {
    program: &'a Program,
    rounds: usize,
    /// The output of the first run, if outputs are compared.
    expected: Option<Fingerprint>,
    limit: Duration,
    /// The most memory that a good run took so far.
    peak: u64,
    places: Vec<Place>,
    /// The reason why the program fails under the baseline.
    broken: Option<String>,
}

#[derive(Default)]
struct Place {
    runs: Vec<Run>,
    failure: Option<Failure>,
    /// The time of the last run, for the estimate.
    takes: Duration,
}

struct Interrupted;

type Step<T> = anyhow::Result<Result<T, Interrupted>>;

impl Race<'_> {
    fn rounds_of(&self, program: &Program) -> usize {
        if program.long { self.rounds_long } else { self.rounds }
    }

    pub(crate) fn runs(&self) -> usize {
        let turns = |program: &Program| self.rounds_of(program) + 1;
        self.programs.iter().map(|program| turns(program) * self.allocators.len()).sum()
    }

    pub(crate) fn run(&self, progress: &Progress) -> anyhow::Result<Raced> {
        let mut lanes: Vec<Lane<'_>> = self.programs.iter().map(|p| self.lane(p)).collect();
        let mut notes = Vec::new();
        let mut interrupted = false;
        let ready = self.warm_up(&mut lanes, &mut notes, progress)?;
        if ready.is_err() {
            interrupted = true;
        } else {
            progress.expected(lanes.iter().map(|lane| lane.left(0)).sum());
            let most = lanes.iter().map(|lane| lane.rounds).max().unwrap_or_default();
            for round in 0..most {
                if self.round(round, most, &mut lanes, progress)?.is_err() {
                    interrupted = true;
                    break;
                }
            }
        }
        progress.finish();
        if interrupted {
            for lane in &mut lanes {
                lane.keep_whole_rounds();
            }
        }
        let broken = lanes
            .iter()
            .filter_map(|lane| Some((lane.program.name.clone(), lane.broken.clone()?)))
            .collect();
        let entries = lanes.into_iter().map(|lane| lane.entries(self.allocators)).collect();
        Ok(Raced { entries, broken, notes, interrupted })
    }

    fn lane<'p>(&self, program: &'p Program) -> Lane<'p> {
        let place = |(at, known): (usize, &Known)| {
            let refuses =
                program.refuses.as_ref().filter(|_| self.allocators[at].library.is_some());
            let refuses = refuses.map(|why| (Outcome::NotTaken, why.clone()));
            Place { failure: refuses.or_else(|| known.unfit.clone()), ..Place::default() }
        };
        Lane {
            program,
            rounds: self.rounds_of(program),
            expected: None,
            limit: self.limit.unwrap_or(FIRST_LIMIT),
            peak: 0,
            places: self.known.iter().enumerate().map(place).collect(),
            broken: None,
        }
    }

    /// Does the first runs, which do not count.
    fn warm_up(
        &self,
        lanes: &mut [Lane<'_>],
        notes: &mut Vec<String>,
        progress: &Progress,
    ) -> Step<()> {
        progress.round("warming up", None);
        for lane in lanes {
            // The baseline runs first: its output is the expected one, and its time sets the limit.
            let others = (0..self.allocators.len()).filter(|at| *at != self.baseline);
            for at in std::iter::once(self.baseline).chain(others) {
                if at == self.baseline {
                    if self.first(lane, notes, progress)?.is_err() {
                        return Ok(Err(Interrupted));
                    }
                } else if self.once(lane, at, None, progress)?.is_err() {
                    return Ok(Err(Interrupted));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Does the baseline's first run, which sets the expected output and the time limit.
    fn first(&self, lane: &mut Lane<'_>, notes: &mut Vec<String>, progress: &Progress) -> Step<()> {
        let program = lane.program;
        let mut ran = match self.attempt(lane, self.baseline, None, progress)? {
            Ok(Ok(ran)) => ran,
            Ok(Err(failure)) => {
                self.fail(lane, self.baseline, failure);
                return Ok(Ok(()));
            }
            Err(Interrupted) => return Ok(Err(Interrupted)),
        };
        if let Some(failure) = self.verdict(lane, self.baseline, &mut ran) {
            self.fail(lane, self.baseline, failure);
            return Ok(Ok(()));
        }
        lane.peak = ran.cost.peak_rss_bytes;
        let took = Duration::from_nanos(ran.cost.wall_ns);
        lane.places[self.baseline].takes = took;
        if self.limit.is_none() {
            lane.limit = LEAST_LIMIT.max(took * TIMES_SLOWER);
        }
        match program.comparing {
            Comparing::Never => {}
            Comparing::Always => lane.expected = Some(ran.output),
            Comparing::IfSteady => {
                let again = match self.attempt(lane, self.baseline, None, progress)? {
                    Ok(Ok(again)) => again.output,
                    Ok(Err(failure)) => {
                        self.fail(lane, self.baseline, failure);
                        return Ok(Ok(()));
                    }
                    Err(Interrupted) => return Ok(Err(Interrupted)),
                };
                if again == ran.output {
                    lane.expected = Some(again);
                } else {
                    let name = &program.name;
                    notes.push(format!(
                        "{name} prints something else each time, so its output was not compared"
                    ));
                }
            }
        }
        progress.done(1);
        Ok(Ok(()))
    }

    fn round(
        &self,
        round: usize,
        most: usize,
        lanes: &mut [Lane<'_>],
        progress: &Progress,
    ) -> Step<()> {
        let left: Duration = lanes.iter().map(|lane| lane.left(round)).sum();
        progress.round(&format!("round {} of {most}", round + 1), Some(left));
        for number in 0..lanes.len() {
            if round >= lanes[number].rounds {
                continue;
            }
            for turn in 0..self.allocators.len() {
                let at = (turn + round + number) % self.allocators.len();
                let left = lanes.iter().map(|lane| lane.left(round)).sum();
                if self.once(&mut lanes[number], at, Some(left), progress)?.is_err() {
                    return Ok(Err(Interrupted));
                }
            }
        }
        Ok(Ok(()))
    }

    /// `left`: the time left; `None` in the warm-up, whose runs do not count.
    fn once(
        &self,
        lane: &mut Lane<'_>,
        at: usize,
        left: Option<Duration>,
        progress: &Progress,
    ) -> Step<()> {
        if lane.broken.is_none() && lane.places[at].failure.is_none() {
            let failure = match self.attempt(lane, at, left, progress)? {
                Ok(Ok(mut ran)) => {
                    let failure = self.verdict(lane, at, &mut ran);
                    if failure.is_none() {
                        lane.peak = lane.peak.max(ran.cost.peak_rss_bytes);
                        lane.places[at].takes = Duration::from_nanos(ran.cost.wall_ns);
                        if left.is_some() {
                            lane.places[at].runs.push(ran.cost);
                        }
                    }
                    failure
                }
                Ok(Err(failure)) => Some(failure),
                Err(Interrupted) => return Ok(Err(Interrupted)),
            };
            if let Some(failure) = failure {
                self.fail(lane, at, failure);
            }
        }
        progress.done(1);
        Ok(Ok(()))
    }

    fn attempt(
        &self,
        lane: &Lane<'_>,
        at: usize,
        left: Option<Duration>,
        progress: &Progress,
    ) -> Step<Result<Box<Ran>, Failure>> {
        if interrupt::came().is_some() {
            return Ok(Err(Interrupted));
        }
        let (program, allocator) = (lane.program, &self.allocators[at]);
        progress.running(&program.name, &allocator.name, left);
        warm(lane.peak);
        let attempt = self.launcher.run(program, allocator, lane.limit, &|| progress.tick())?;
        Ok(match attempt {
            Attempt::Ran(ran) => Ok(Ok(ran)),
            Attempt::Interrupted => Err(Interrupted),
            Attempt::NotStarted(error) => {
                let (text, _) =
                    process::explain(program.file.as_os_str(), &error, Some(&program.file));
                Ok(Err((Outcome::Failed, text)))
            }
        })
    }

    fn verdict(&self, lane: &Lane<'_>, at: usize, ran: &mut Ran) -> Option<Failure> {
        let is_baseline = at == self.baseline;
        let complaint =
            |ran: &mut Ran| ran.complaint().map(|line| format!(": {line}")).unwrap_or_default();
        match ran.end {
            End::Code(0) => {}
            End::Code(code) => {
                let other = &self.allocators[self.baseline].name;
                let under = if is_baseline {
                    format!(" under {other}")
                } else {
                    format!(" (0 under {other})")
                };
                let text = format!("exit {code}{under}{}", complaint(ran));
                return Some((Outcome::Failed, text));
            }
            End::Signal(signal) => {
                let name = process::signal_name(signal);
                let text = format!("signal {signal}, {name}{}", complaint(ran));
                return Some((Outcome::Crashed, text));
            }
            End::Limit => {
                let text = format!("killed after {}", seconds(lane.limit));
                return Some((Outcome::Hung, text));
            }
            End::TooMuchOutput => {
                return Some((Outcome::Failed, "it printed more than 256 MiB".to_owned()));
            }
        }
        if !is_baseline && ran.preload_refused() {
            return Some((Outcome::NotTaken, "the loader refused the preload".to_owned()));
        }
        if lane.expected.is_some_and(|expected| expected != ran.output) {
            let text = if is_baseline {
                "it prints something else each time (compare_output = false allows that)"
            } else {
                "it printed something else"
            };
            return Some((Outcome::Differs, text.to_owned()));
        }
        None
    }

    /// A failure of the baseline closes the whole lane.
    fn fail(&self, lane: &mut Lane<'_>, at: usize, failure: Failure) {
        if at == self.baseline {
            let name = &self.allocators[at].name;
            lane.broken = Some(match &failure {
                (Outcome::Crashed, text) => format!("it crashes under {name} ({text})"),
                (Outcome::Hung, text) => {
                    format!("it does not end under {name} ({text}; see --timeout)")
                }
                (_, text) => text.clone(),
            });
        }
        lane.places[at].failure = Some(failure);
    }
}

/// Formats a time: `60 s`, `0.5 s`.
fn seconds(time: Duration) -> String {
    let rounded = (time.as_secs_f64() * 10.0).round() / 10.0;
    format!("{rounded} s")
}

impl Lane<'_> {
    /// Returns the estimated time of its rounds from `round` on.
    fn left(&self, round: usize) -> Duration {
        if self.broken.is_some() {
            return Duration::ZERO;
        }
        let rounds = u32::try_from(self.rounds.saturating_sub(round)).unwrap_or(u32::MAX);
        let racing = self.places.iter().filter(|place| place.failure.is_none());
        racing.map(|place| place.takes).sum::<Duration>().saturating_mul(rounds)
    }

    /// Drops the runs of a round that some allocator has not run.
    fn keep_whole_rounds(&mut self) {
        let racing = || self.places.iter().filter(|place| place.failure.is_none());
        let whole = racing().map(|place| place.runs.len()).min().unwrap_or_default();
        for place in &mut self.places {
            place.runs.truncate(whole);
        }
    }

    fn entries(self, allocators: &[Allocator]) -> Vec<Entry> {
        let broken = self.broken;
        let entry = |(place, allocator): (Place, &Allocator)| {
            let failure = place.failure.or_else(|| {
                let why = broken.as_ref()?;
                Some((Outcome::Failed, format!("the program itself fails: {why}")))
            });
            let (outcome, detail) = match failure {
                Some((outcome, detail)) => (outcome, Some(detail)),
                None => (Outcome::Ok, None),
            };
            Entry { allocator: allocator.name.clone(), outcome, detail, runs: place.runs }
        };
        self.places.into_iter().zip(allocators).map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_in_seconds() {
        assert_eq!(seconds(Duration::from_secs(60)), "60 s");
        assert_eq!(seconds(Duration::from_millis(1500)), "1.5 s");
    }
}
