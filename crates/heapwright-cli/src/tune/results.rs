//! What a tuning measured and chose: the structures of `--format json`, from which the text is made too.
//!
//! The format is named in `schema`. A field may be added under the same name; one that
//! changes its meaning changes the name.

use super::candidates::Candidate;
use super::decision::{self, Compared, Judgement, Measure, Measured};
use crate::bench::results::{Entry, Head, Outcome};
use crate::bench::statistics::Estimate;
use crate::replay::results::{Answer, Row, Trace};
use serde::Serialize;

/// The name of the format.
pub(crate) const SCHEMA: &str = "heapwright-tune/1";

/// A whole tuning.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// The program, unless a trace alone was given.
    pub(crate) program: Option<Tuned>,
    /// What was replayed; none if the program was not worth recording.
    pub(crate) trace: Option<Trace>,
    /// Why there is nothing to tune, if there is nothing.
    pub(crate) nothing: Option<String>,
    /// How what is recommended is chosen.
    pub(crate) rule: &'static str,
    /// False if it was interrupted.
    pub(crate) complete: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) screening: Option<Set>,
    /// None if nothing looked better than the defaults.
    pub(crate) deciding: Option<Set>,
    /// None if it was interrupted before.
    pub(crate) decision: Option<Decision>,
    /// None if there is nothing to check, or no program to run.
    pub(crate) check: Option<Check>,
    /// The option string to use, empty for the defaults. None if it was interrupted before.
    pub(crate) recommended: Option<String>,
}

/// The program.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tuned {
    pub(crate) name: String,
    /// Its command line.
    pub(crate) words: String,
    /// What it takes with the defaults, by the clock; once.
    pub(crate) wall_ns: u64,
}

/// A set of rounds of the replay.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Set {
    pub(crate) rounds: usize,
    /// The first is the defaults.
    pub(crate) rows: Vec<Place>,
}

/// What a row is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Defaults,
    /// The defaults spelt out.
    Control,
    Candidate(Candidate),
    /// Another allocator.
    Peer,
}

impl Role {
    /// The options, if the row is ours.
    pub(crate) fn candidate(&self) -> Option<Candidate> {
        match self {
            Self::Defaults => Some(Candidate::defaults()),
            Self::Control => Some(Candidate::control()),
            Self::Candidate(candidate) => Some(candidate.clone()),
            Self::Peer => None,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Defaults => "defaults",
            Self::Control => "control",
            Self::Candidate(_) => "candidate",
            Self::Peer => "peer",
        }
    }
}

/// A row of a set.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Place {
    #[serde(serialize_with = "word")]
    pub(crate) role: Role,
    /// The option string; none for a peer.
    options: Option<String>,
    /// Time an operation and peak memory, to the defaults; none for those, and for what failed.
    pub(crate) time: Option<Ratio>,
    pub(crate) memory: Option<Ratio>,
    #[serde(flatten)]
    pub(crate) row: Row,
}

fn word<S: serde::Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.word())
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) ratio: f64,
    /// Its interval; none where there was a single round.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl From<Estimate> for Ratio {
    fn from(estimate: Estimate) -> Self {
        Self {
            ratio: estimate.value,
            low: estimate.interval.map(|(low, _)| low),
            high: estimate.interval.map(|(_, high)| high),
        }
    }
}

impl Ratio {
    /// The ratio with its interval, for words and verdicts.
    pub(crate) fn estimate(&self) -> Estimate {
        Estimate { value: self.ratio, interval: self.low.zip(self.high) }
    }
}

/// What was chosen; none is the defaults.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Decision {
    pub(crate) fastest: Option<Choice>,
    pub(crate) leanest: Option<Choice>,
    /// What is to be recommended by the replay, in order, before the program was asked.
    pub(crate) eligible: Vec<Choice>,
}

/// Options that were chosen.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Choice {
    pub(crate) options: String,
    /// What they were chosen for.
    pub(crate) goal: Measure,
    pub(crate) time: Ratio,
    pub(crate) memory: Ratio,
    /// Options that cannot be distinguished from them in that.
    pub(crate) ties: Vec<String>,
}

impl From<&decision::Choice> for Choice {
    fn from(choice: &decision::Choice) -> Self {
        Self {
            options: choice.candidate.text(),
            goal: choice.goal,
            time: choice.compared.time.into(),
            memory: choice.compared.memory.into(),
            ties: choice.ties.iter().map(Candidate::text).collect(),
        }
    }
}

impl From<&decision::Decision> for Decision {
    fn from(decision: &decision::Decision) -> Self {
        let choice = |choice: &Option<decision::Choice>| choice.as_ref().map(Choice::from);
        Self {
            fastest: choice(&decision.fastest),
            leanest: choice(&decision.leanest),
            eligible: decision.eligible.iter().map(Choice::from).collect(),
        }
    }
}

/// The program itself, with the defaults and with what may be recommended.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) rounds: usize,
    /// In the order of `eligible`.
    pub(crate) checked: Vec<Checked>,
    /// The runs: the defaults, and then those.
    results: Vec<Entry>,
}

/// The program with some options.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Checked {
    pub(crate) options: String,
    pub(crate) outcome: Outcome,
    /// Of what is not ok: how it went wrong, in words.
    pub(crate) detail: Option<String>,
    /// None if it went wrong.
    pub(crate) judgement: Option<Judgement>,
    pub(crate) time: Option<Ratio>,
    pub(crate) memory: Option<Ratio>,
}

impl Set {
    /// From the rows of a replay and their roles, in the same order; ratios have intervals
    /// for so many comparisons.
    pub(crate) fn new(roles: Vec<Role>, rows: Vec<Row>, comparisons: usize) -> Self {
        let rounds = rows.first().map_or(0, |row| row.runs.len());
        let first = rows.first().map(|row| measured(Candidate::defaults(), row));
        let place = |(role, row): (Role, Row)| {
            let compared = first
                .as_ref()
                .filter(|_| role != Role::Defaults && row.outcome == Outcome::Ok)
                .and_then(|first| {
                    measured(Candidate::defaults(), &row).compared(first, comparisons)
                });
            Place {
                options: role.candidate().map(|candidate| candidate.text()),
                role,
                time: compared.map(|Compared { time, .. }| time.into()),
                memory: compared.map(|Compared { memory, .. }| memory.into()),
                row,
            }
        };
        Self { rounds, rows: roles.into_iter().zip(rows).map(place).collect() }
    }

    /// What was measured of the rows of a role that went well.
    pub(crate) fn measured(&self, of: impl Fn(&Role) -> bool) -> Vec<Measured> {
        self.rows
            .iter()
            .filter(|place| place.row.outcome == Outcome::Ok && of(&place.role))
            .filter_map(|place| Some(measured(place.role.candidate()?, &place.row)))
            .collect()
    }
}

fn measured(candidate: Candidate, row: &Row) -> Measured {
    Measured {
        candidate,
        time: row.runs.iter().map(Answer::time).collect(),
        memory: row.runs.iter().map(|run| run.peak_bytes as f64).collect(),
    }
}

impl Check {
    /// From the runs of the program: first with the defaults, then with each of `eligible`.
    pub(crate) fn new(eligible: &[decision::Choice], rounds: usize, results: Vec<Entry>) -> Self {
        let of = |entry: &Entry, candidate: Candidate| Measured {
            candidate,
            time: entry.runs.iter().map(|run| run.wall_ns as f64).collect(),
            memory: entry.runs.iter().map(|run| run.peak_rss_bytes as f64).collect(),
        };
        let defaults = results.first().map(|entry| of(entry, Candidate::defaults()));
        let checked = eligible.iter().zip(results.iter().skip(1)).map(|(choice, entry)| {
            let judged =
                defaults.as_ref().filter(|_| entry.outcome == Outcome::Ok).and_then(|defaults| {
                    let chosen = of(entry, choice.candidate.clone());
                    decision::judge(defaults, &chosen, choice.goal, eligible.len())
                });
            Checked {
                options: choice.candidate.text(),
                outcome: entry.outcome,
                detail: entry.detail.clone(),
                judgement: judged.map(|(judgement, _)| judgement),
                time: judged.map(|(_, compared)| compared.time.into()),
                memory: judged.map(|(_, compared)| compared.memory.into()),
            }
        });
        Self { rounds, checked: checked.collect(), results }
    }

    /// The first options that the program confirms.
    pub(crate) fn kept(&self) -> Option<&Checked> {
        self.checked.iter().find(|checked| checked.judgement == Some(Judgement::Kept))
    }
}
