//! The rounds: each allocator in turn. The order rotates by one from round to round.
//!
//! The first run of each allocator is not counted. After a failure an allocator runs no more, and
//! its row reports the failure.

use super::player::SUBCOMMAND;
use super::results::{Answer, Row};
use crate::bench::allocators::Allocator;
use crate::bench::results::{Kind, Outcome};
use crate::bench::{Attempt, Comparing, End, Known, Launcher, Program, Progress, Ran, warm};
use crate::process::{self, interrupt};
use anyhow::Context;
use std::path::PathBuf;
use std::time::Duration;

/// The time limit of an allocator's first run, if the user gave none.
const FIRST_LIMIT: Duration = Duration::from_secs(600);
/// The time limit of other runs is the larger of this time and this multiple of the fastest run.
const LEAST_LIMIT: Duration = Duration::from_secs(30);
const TIMES_SLOWER: u32 = 30;

pub(crate) struct Rounds<'a> {
    pub(crate) plan: PathBuf,
    pub(crate) name: &'a str,
    pub(crate) allocators: &'a [Allocator],
    pub(crate) known: &'a [Known],
    pub(crate) launcher: &'a Launcher,
    pub(crate) rounds: usize,
    pub(crate) limit: Option<Duration>,
}

#[derive(Default)]
struct Part {
    runs: Vec<Answer>,
    failure: Option<(Outcome, String)>,
    /// Our library's message about options that it refused.
    complaint: Option<String>,
}

pub(crate) struct Played {
    pub(crate) rows: Vec<Row>,
    /// Our library's messages about options that it refused.
    pub(crate) complaints: Vec<String>,
    pub(crate) interrupted: bool,
}

impl Rounds<'_> {
    pub(crate) fn runs(&self) -> usize {
        (self.rounds + 1) * self.allocators.len()
    }

    pub(crate) fn play(&self, progress: &Progress) -> anyhow::Result<Played> {
        let program = Program {
            arguments: vec![SUBCOMMAND.into(), self.plan.clone().into()],
            ..Program::bare(
                self.name.to_owned(),
                Kind::Workload,
                std::env::current_exe().context("cannot find out where this command is")?,
                Comparing::Never,
            )
        };
        let part = |known: &Known| Part { failure: known.unfit.clone(), ..Part::default() };
        let mut parts: Vec<Part> = self.known.iter().map(part).collect();
        let count = parts.len();
        let mut peak = 0;
        let mut fastest: Option<Duration> = None;
        for round in 0..=self.rounds {
            let left = fastest.map(|time| time * ((self.rounds + 1 - round) * count) as u32);
            let title = format!("round {round} of {}", self.rounds);
            progress.round(if round == 0 { "warming up" } else { &title }, left);
            for turn in 0..count {
                let at = (turn + round) % count;
                let part = &mut parts[at];
                if part.failure.is_none() {
                    if interrupt::came().is_some() {
                        return Ok(self.over(parts, true, progress));
                    }
                    progress.running(self.name, &self.allocators[at].name, left);
                    warm(peak);
                    let limit = self.limit.unwrap_or_else(|| {
                        fastest.map_or(FIRST_LIMIT, |time| LEAST_LIMIT.max(time * TIMES_SLOWER))
                    });
                    let allocator = &self.allocators[at];
                    match self.launcher.run(&program, allocator, limit, &|| progress.tick())? {
                        Attempt::Interrupted => return Ok(self.over(parts, true, progress)),
                        Attempt::NotStarted(error) => {
                            return Err(error).context("cannot run the player");
                        }
                        Attempt::Ran(mut ran) => match verdict(&mut ran, limit) {
                            Ok(answer) => {
                                let said = ran.complaint();
                                part.complaint =
                                    said.filter(|line| line.starts_with("heapwright: option"));
                                peak = peak.max(ran.cost.peak_rss_bytes);
                                let took = Duration::from_nanos(ran.cost.wall_ns);
                                fastest = Some(fastest.map_or(took, |time| time.min(took)));
                                if round > 0 {
                                    part.runs.push(answer);
                                }
                            }
                            Err(failure) => part.failure = Some(failure),
                        },
                    }
                }
                progress.done(1);
            }
        }
        Ok(self.over(parts, false, progress))
    }

    /// Makes the rows. After an interrupt, only whole rounds are kept.
    fn over(&self, mut parts: Vec<Part>, interrupted: bool, progress: &Progress) -> Played {
        progress.finish();
        if interrupted {
            keep_whole_rounds(&mut parts);
        }
        let places = self.allocators.iter().zip(self.known);
        let complaints = self.allocators.iter().zip(&parts).filter_map(|(allocator, part)| {
            Some(format!("{}: {}", allocator.name, part.complaint.as_ref()?))
        });
        Played {
            complaints: complaints.collect(),
            rows: places
                .zip(parts)
                .map(|((allocator, known), part)| Row {
                    allocator: allocator.described(known.version.clone()),
                    outcome: part.failure.as_ref().map_or(Outcome::Ok, |(outcome, _)| *outcome),
                    detail: part.failure.map(|(_, detail)| detail),
                    runs: part.runs,
                })
                .collect(),
            interrupted,
        }
    }
}

/// Drops the runs of a round that some allocator has not run.
fn keep_whole_rounds(parts: &mut [Part]) {
    let whole = parts.iter().filter(|part| part.failure.is_none());
    let whole = whole.map(|part| part.runs.len()).min().unwrap_or_default();
    parts.iter_mut().for_each(|part| part.runs.truncate(whole));
}

fn verdict(ran: &mut Ran, limit: Duration) -> Result<Answer, (Outcome, String)> {
    let complaint = ran.complaint().map(|line| format!(": {line}")).unwrap_or_default();
    match ran.end {
        End::Code(0) => {}
        End::Code(code) => return Err((Outcome::Failed, format!("exit {code}{complaint}"))),
        End::Signal(signal) => {
            let name = process::signal_name(signal);
            return Err((Outcome::Crashed, format!("signal {signal}, {name}{complaint}")));
        }
        End::Limit => {
            return Err((Outcome::Hung, format!("killed after {} s", limit.as_secs())));
        }
        End::TooMuchOutput => {
            return Err((Outcome::Failed, "printed without end".to_owned()));
        }
    }
    let answer = ran.text().ok().and_then(|text| Answer::parse(&text));
    let answer = answer.ok_or_else(|| (Outcome::Failed, format!("gave no answer{complaint}")))?;
    if answer.wrong > 0 {
        let text = format!("{} times a block was not as it was left", answer.wrong);
        return Err((Outcome::Differs, text));
    }
    if answer.failed > 0 {
        return Err((Outcome::Failed, format!("{} blocks could not be allocated", answer.failed)));
    }
    Ok(answer)
}
