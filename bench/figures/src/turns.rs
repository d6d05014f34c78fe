//! Rounds: each runs every variant once, one after the other, in an order that turns from
//! round to round.
//!
//! ```text
//!   round 0   a b c d
//!   round 1   b c d a
//! ```
//!
//! What is compared are the runs of one round, which stand side by side in time.

use crate::record::Record;
use crate::text::{middle, ratio, table};

/// A column of a table of turns.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// The median of a field, divided by a unit.
    Middle(&'a str, f64),
    /// The ratio of a field to that of a variant, within rounds.
    Ratio(&'a str, &'a str),
    /// The inverse: the variant's to this one.
    Inverse(&'a str, &'a str),
}

/// The variants of a round, in its order; rounds count from 0.
pub fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (round + turn) % count)
}

/// What came of it: for each variant a run a round, or why there is none.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    names: Vec<String>,
    runs: Vec<Vec<Result<Record, String>>>,
}

impl Turns {
    /// Runs the variants so often. `run` is given what came so far, the round and the variant.
    pub fn take(
        names: impl IntoIterator<Item = impl Into<String>>,
        rounds: usize,
        mut run: impl FnMut(&Self, usize, usize) -> Result<Record, String>,
    ) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let count = names.len();
        let mut turns = Self { names, runs: vec![Vec::new(); count] };
        for round in 0..rounds {
            for at in order(round, count) {
                let came = run(&turns, round, at);
                turns.runs[at].push(came);
            }
        }
        turns
    }

    /// The variants, as they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    fn rounds(&self, name: &str) -> &[Result<Record, String>] {
        let at = self.names.iter().position(|known| known == name);
        at.map_or(&[], |at| &self.runs[at])
    }

    /// The runs of a variant that ended well.
    pub fn of(&self, name: &str) -> impl Iterator<Item = &Record> {
        self.rounds(name).iter().flatten()
    }

    /// The numbers of a variant, one a round.
    pub fn numbers(&self, name: &str, field: &str) -> Vec<f64> {
        self.of(name).filter_map(|run| run.number(field)).collect()
    }

    /// The ratio of one to the other in each round where both ended well.
    pub fn ratios(&self, one: &str, other: &str, field: &str) -> Vec<f64> {
        let pairs = self.rounds(one).iter().zip(self.rounds(other));
        let numbers = pairs.filter_map(|(one, other)| {
            Some((one.as_ref().ok()?.number(field)?, other.as_ref().ok()?.number(field)?))
        });
        numbers.filter(|&(_, other)| other != 0.0).map(|(one, other)| one / other).collect()
    }

    /// A row for each variant; of each column its head, and what it shows.
    pub fn table(&self, first: &str, columns: &[(&str, Column<'_>)]) -> String {
        let row = |name: &str| {
            let cell = |(_, column): &(&str, Column<'_>)| match *column {
                Column::Middle(field, unit) => middle(&self.numbers(name, field), unit),
                Column::Ratio(field, to) => ratio(&self.ratios(name, to, field)),
                Column::Inverse(field, of) => ratio(&self.ratios(of, name, field)),
            };
            [name.to_owned()].into_iter().chain(columns.iter().map(cell)).collect()
        };
        let rows: Vec<Vec<String>> = self.names().map(row).collect();
        let head: Vec<&str> = [first].into_iter().chain(columns.iter().map(|c| c.0)).collect();
        table(&head, &rows)
    }

    /// Each run that there is none of: variant, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let runs = self.names().zip(&self.runs);
        runs.flat_map(|(name, runs)| {
            runs.iter().filter_map(move |run| Some((name, run.as_ref().err()?.as_str())))
        })
    }

    /// All runs must have computed the same, or the load was not the same: who did not.
    pub fn disagreements(&self) -> Vec<String> {
        let mut first: Option<(&str, &str)> = None;
        let mut all = Vec::new();
        for name in self.names() {
            for sum in self.of(name).filter_map(|run| run.word("checksum")) {
                let (whose, expected) = *first.get_or_insert((name, sum));
                if sum != expected {
                    all.push(format!(
                        "the checksum of {name} is {sum}, that of {whose} {expected}"
                    ));
                }
            }
        }
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each variant its name, and of each round `peak`; 0 for a run that failed. The checksum
    /// is the name's length.
    fn made_up(variants: &[(&str, &[f64])]) -> Turns {
        let names = variants.iter().map(|(name, _)| *name);
        Turns::take(names, variants[0].1.len(), |_, round, at| {
            let (name, peaks) = variants[at];
            let fields = [("peak", peaks[round]), ("checksum", name.len() as f64)];
            if peaks[round] == 0.0 { Err("no".to_owned()) } else { Ok(Record::of(&fields)) }
        })
    }

    #[test]
    fn the_order_turns() {
        let of = |round| order(round, 3).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(3)], [[0, 1, 2], [1, 2, 0], [0, 1, 2]]);
    }

    #[test]
    fn a_ratio_is_of_one_round() {
        let turns = made_up(&[("a", &[10.0, 0.0, 30.0]), ("b", &[5.0, 5.0, 10.0])]);
        assert_eq!(turns.ratios("a", "b", "peak"), [2.0, 3.0]);
        assert_eq!(turns.numbers("a", "peak"), [10.0, 30.0]);
        assert!(turns.ratios("a", "c", "peak").is_empty());
        assert!(turns.numbers("a", "wall_ns").is_empty());
        assert_eq!(turns.failures().collect::<Vec<_>>(), [("a", "no")]);
    }

    #[test]
    fn checksums_must_agree() {
        assert!(made_up(&[("a", &[1.0]), ("b", &[2.0])]).disagreements().is_empty());
        let said = made_up(&[("a", &[1.0]), ("bb", &[2.0])]).disagreements();
        assert_eq!(said, ["the checksum of bb is 2, that of a 1"]);
    }
}
