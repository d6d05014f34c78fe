//! The current run and the remaining time, on stderr, for people.
//!
//! On a terminal the progress is a bar. Elsewhere, on request, it is a line for each round. A race
//! of a minute or more announces its length first. The main thread draws at most four times a
//! second, so the timed program does not measurably slow down.

use crate::output;
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Showing {
    Nothing,
    /// Only the length of the race, before its first round.
    Length,
    Bar,
    Lines,
}

impl Showing {
    pub(crate) fn of(quiet: bool, asked: bool) -> Self {
        if quiet {
            Self::Nothing
        } else if std::io::stderr().is_terminal() {
            Self::Bar
        } else if asked {
            Self::Lines
        } else {
            Self::Length
        }
    }
}

pub(crate) struct Progress {
    showing: Showing,
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(showing: Showing, runs: usize) -> Self {
        let template = "{bar:24} {pos}/{len} runs  {wide_msg}";
        Self { showing, bar: output::bar(runs as u64, template, showing == Showing::Bar) }
    }

    /// Shows the current run, and the time left if that is known.
    pub(crate) fn running(&self, program: &str, allocator: &str, left: Option<Duration>) {
        let left = left.map(|left| format!(", {} left", rough(left))).unwrap_or_default();
        self.bar.set_message(format!("{program} under {allocator}{left}"));
    }

    pub(crate) fn done(&self, runs: usize) {
        self.bar.inc(runs as u64);
    }

    /// Prints the expected time of the race, if that is a minute or more.
    pub(crate) fn expected(&self, left: Duration) {
        if self.showing != Showing::Nothing && left >= Duration::from_secs(60) {
            let line = format!("heapwright: the race takes about {}", rough(left));
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }

    pub(crate) fn round(&self, name: &str, left: Option<Duration>) {
        if self.showing == Showing::Lines {
            let left = left.map(|left| format!(", {} left", rough(left))).unwrap_or_default();
            eprintln!("heapwright: {name}{left}");
        }
    }

    pub(crate) fn tick(&self) {
        self.bar.tick();
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Formats a time in a rough unit: `40 s`, `3 min`, `1 h 20 min`.
fn rough(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_roughly() {
        for (seconds, text) in
            [(0, "0 s"), (99, "99 s"), (100, "2 min"), (5999, "100 min"), (7300, "2 h 1 min")]
        {
            assert_eq!(rough(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn quiet_is_stronger_than_asking() {
        assert_eq!(Showing::of(true, true), Showing::Nothing);
    }
}
