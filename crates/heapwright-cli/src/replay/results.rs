//! The results of a replay: the structures of `--format json`, which also feed the table.
//!
//! `schema` names the format. A new meaning of a field changes this name; a new field does not.

use super::plan::Touch;
use crate::bench::results::{Allocator, Head, Outcome};
use crate::trace::{Facts, Story};
use serde::Serialize;

pub(crate) const SCHEMA: &str = "heapwright-replay/1";

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    #[serde(flatten)]
    pub(crate) head: Head,
    pub(crate) trace: Trace,
    pub(crate) rounds: usize,
    pub(crate) touch: Touch,
    /// Whether one thread did all, in the order of the trace.
    pub(crate) sequential: bool,
    /// False if the replay was interrupted.
    pub(crate) complete: bool,
    pub(crate) notes: Vec<String>,
    /// One row for each allocator; ratios are relative to the first.
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) process: Option<u32>,
    pub(crate) program: Option<String>,
    #[serde(flatten)]
    pub(crate) facts: Facts,
}

impl Trace {
    /// Describes the story in a file of this name.
    pub(crate) fn of(story: &Story, name: String) -> Self {
        Self {
            name,
            process: Some(story.pid).filter(|pid| *pid != 0),
            program: Some(story.name()).filter(|name| !name.is_empty()),
            facts: story.facts(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) allocator: Allocator,
    pub(crate) outcome: Outcome,
    /// The failure in words, if the outcome is not `ok`.
    pub(crate) detail: Option<String>,
    /// One answer for each round.
    pub(crate) runs: Vec<Answer>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
    pub(crate) operations: u64,
    pub(crate) wall_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// Resident bytes before the first operation: the player's own, which no other figure contains.
    pub(crate) resident_before: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) left_bytes: u64,
    pub(crate) failed: u64,
    /// The number of failed checks of contents and alignments.
    pub(crate) wrong: u64,
}

impl Answer {
    /// Returns the numbers in the order in which they are printed.
    fn places(&mut self) -> [&mut u64; 9] {
        [
            &mut self.operations,
            &mut self.wall_ns,
            &mut self.user_ns,
            &mut self.system_ns,
            &mut self.resident_before,
            &mut self.peak_bytes,
            &mut self.left_bytes,
            &mut self.failed,
            &mut self.wrong,
        ]
    }

    pub(super) fn numbers(mut self) -> [u64; 9] {
        self.places().map(|place| *place)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> =
            text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let mut answer = Self::default();
        let places = answer.places();
        if numbers.len() != places.len() {
            return None;
        }
        places.into_iter().zip(numbers).for_each(|(place, number)| *place = number);
        Some(answer)
    }

    /// Returns the nanoseconds of wall time for each operation.
    pub(crate) fn time(&self) -> f64 {
        self.wall_ns as f64 / self.operations.max(1) as f64
    }

    /// Returns the nanoseconds of CPU time for each operation.
    pub(crate) fn cpu(&self) -> f64 {
        (self.user_ns + self.system_ns) as f64 / self.operations.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        let answer =
            Answer { operations: 100, wall_ns: 2500, user_ns: 1, wrong: 9, ..Answer::default() };
        let text: Vec<String> = answer.numbers().iter().map(u64::to_string).collect();
        assert_eq!(Answer::parse(&text.join(" ")), Some(answer));
        assert_eq!(Answer::parse("1 2 3"), None);
        assert_eq!(Answer::parse("1 2 3 4 5 6 7 8 9 10"), None);
        assert!((answer.time() - 25.0).abs() < 1e-9);
    }
}
