//! Rounds: each runs every variant once, one after the other, in an order that turns from
//! round to round.
//!
//! ```text
//!   round 1   a b c d
//!   round 2   b c d a
//! ```
//!
//! What is compared are the runs of one round, which stand side by side in time.

use crate::options::Options;
use crate::report::Report;
use crate::run::{self, Ended, Run, Variant};

/// What came of it: for each variant a run a round, nothing where it failed.
pub(crate) struct Turns {
    names: Vec<String>,
    runs: Vec<Vec<Option<Run>>>,
}

/// Runs the variants of a load, as many rounds as were asked for.
pub(crate) fn take(
    options: &Options,
    report: &mut Report,
    load: &str,
    variants: &[Variant],
) -> Result<Turns, String> {
    let count = variants.len();
    let mut turns = Turns {
        names: variants.iter().map(|variant| variant.name.clone()).collect(),
        runs: vec![Vec::new(); count],
    };
    let mut peak = 16 << 20;
    for round in 0..options.rounds {
        for turn in 0..count {
            let at = (turn + round) % count;
            let variant = &variants[at];
            run::warm(peak + peak / 4);
            let ended = run::once(options, variant, options.seconds)?;
            let why = match ended {
                Ended::Well(run) => {
                    peak = peak.max(run.fields["peak"]);
                    report.ran(load, &variant.name, round, &run);
                    turns.runs[at].push(Some(run));
                    continue;
                }
                Ended::OutOfMemory => "out of memory".to_owned(),
                Ended::Badly(why) => why,
            };
            report.failed(format!("{load}, {}, round {}: {why}", variant.name, round + 1));
            turns.runs[at].push(None);
        }
    }
    turns.agree(report, load);
    Ok(turns)
}

impl Turns {
    /// The runs of a variant that ended well.
    pub(crate) fn of(&self, name: &str) -> impl Iterator<Item = &Run> {
        let at = self.names.iter().position(|known| known == name);
        at.into_iter().flat_map(|at| self.runs[at].iter().flatten())
    }

    /// The numbers of a variant, one a round.
    pub(crate) fn numbers(&self, name: &str, field: &str) -> Vec<f64> {
        self.of(name).filter_map(|run| run.number(field)).collect()
    }

    /// The ratio of one to the other in each round where both ended well.
    pub(crate) fn ratios(&self, one: &str, other: &str, field: &str) -> Vec<f64> {
        let at = |name: &str| self.names.iter().position(|known| known == name);
        let (Some(one), Some(other)) = (at(one), at(other)) else { return Vec::new() };
        let pairs = self.runs[one].iter().zip(&self.runs[other]);
        pairs
            .filter_map(|(one, other)| {
                let (one, other) = (one.as_ref()?.number(field)?, other.as_ref()?.number(field)?);
                (other != 0.0).then_some(one / other)
            })
            .collect()
    }

    /// The variants, as they were given.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// All runs computed the same: otherwise the load was not the same.
    fn agree(&self, report: &mut Report, load: &str) {
        let mut first: Option<(&str, u64)> = None;
        for (name, runs) in self.names.iter().zip(&self.runs) {
            for run in runs.iter().flatten() {
                let sum = run.fields["checksum"];
                let (whose, expected) = *first.get_or_insert((name, sum));
                if sum != expected {
                    report.failed(format!(
                        "{load}: the checksum of {name} is {sum}, that of {whose} {expected}"
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Turns of which only numbers were seen: of each variant its name, and of each round
    /// the field `peak`, 0 for a run that failed. The checksum is the name's length.
    pub(crate) fn made_up(variants: &[(&str, &[u64])]) -> Turns {
        let run = |name: &str, peak: u64| {
            let fields = [("peak".to_owned(), peak), ("checksum".to_owned(), name.len() as u64)];
            Run { fields: fields.into(), text: String::new() }
        };
        Turns {
            names: variants.iter().map(|(name, _)| (*name).to_owned()).collect(),
            runs: variants
                .iter()
                .map(|(name, peaks)| {
                    peaks.iter().map(|&peak| (peak != 0).then(|| run(name, peak))).collect()
                })
                .collect(),
        }
    }

    #[test]
    fn a_ratio_is_of_one_round() {
        let turns = made_up(&[("a", &[10, 0, 30]), ("b", &[5, 5, 10])]);
        assert_eq!(turns.ratios("a", "b", "peak"), [2.0, 3.0]);
        assert_eq!(turns.numbers("a", "peak"), [10.0, 30.0]);
        assert!(turns.ratios("a", "c", "peak").is_empty());
        assert!(turns.numbers("a", "wall_ns").is_empty());
    }

    #[test]
    fn checksums_must_agree() {
        let mut report = Report::new();
        made_up(&[("a", &[1]), ("b", &[2])]).agree(&mut report, "x");
        assert!(report.is_sound());
        made_up(&[("a", &[1]), ("bb", &[2])]).agree(&mut report, "x");
        assert!(!report.is_sound());
    }
}
