//! The results of a replay: the structures of `--format json`, from which the table is made too.
//!
//! `schema` names the format. A new field keeps the name; a field with a new meaning changes it.

use super::plan::Touch;
use crate::bench::results::{Allocator, Head, Outcome};
use crate::trace::{Facts, Story};
use serde::Serialize;

/// The name of the format.
pub(crate) const SCHEMA: &str = "heapwright-replay/1";

/// A whole replay.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    #[serde(flatten)]
    pub(crate) head: Head,
    pub(crate) trace: Trace,
    pub(crate) rounds: usize,
    pub(crate) touch: Touch,
    /// One thread did all, in the order of the trace.
    pub(crate) sequential: bool,
    /// False if it was interrupted.
    pub(crate) complete: bool,
    pub(crate) notes: Vec<String>,
    /// The first is what ratios are formed to.
    pub(crate) rows: Vec<Row>,
}

/// What was replayed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trace {
    /// The file's name.
    pub(crate) name: String,
    /// The process, where the trace knows.
    pub(crate) process: Option<u32>,
    pub(crate) program: Option<String>,
    #[serde(flatten)]
    pub(crate) facts: Facts,
}

impl Trace {
    /// What a story of a file of this name is.
    pub(crate) fn of(story: &Story, name: String) -> Self {
        Self {
            name,
            process: Some(story.pid).filter(|pid| *pid != 0),
            program: Some(story.name()).filter(|name| !name.is_empty()),
            facts: story.facts(),
        }
    }
}

/// An allocator, and how it did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) allocator: Allocator,
    pub(crate) outcome: Outcome,
    /// In words, where it is not `ok`.
    pub(crate) detail: Option<String>,
    /// One a round.
    pub(crate) runs: Vec<Answer>,
}

/// What a player answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
    pub(crate) operations: u64,
    pub(crate) wall_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// Before the first operation: the player's own, which is in no other figure.
    pub(crate) resident_before: u64,
    /// The most that was resident meanwhile.
    pub(crate) peak_bytes: u64,
    /// What is resident at the end.
    pub(crate) left_bytes: u64,
    /// Blocks that could not be had.
    pub(crate) failed: u64,
    /// Times when a block was not as it should be.
    pub(crate) wrong: u64,
}

impl Answer {
    /// The numbers, in the order in which they are printed.
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

    /// What is printed.
    pub(super) fn numbers(mut self) -> [u64; 9] {
        self.places().map(|place| *place)
    }

    /// From what was printed.
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

    /// Nanoseconds an operation, by the clock.
    pub(crate) fn time(&self) -> f64 {
        self.wall_ns as f64 / self.operations.max(1) as f64
    }

    /// Nanoseconds an operation, of the processor.
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
