//! A figure: what was asked, what was measured, and the verdict.
//!
//! A bound is *met* if the 95 % interval reaches it, *met, certainly* if the whole interval
//! lies within, *MISSED* otherwise. Times need 6 rounds for an interval; with fewer there
//! is no verdict. What is counted is not a matter of luck (memory, slots), and of a pause
//! the worst is asked for: with fewer rounds the worst one decides.

use ::figures::statistics::estimate;

use crate::text::interval;

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Asked {
    AtMost(f64),
    AtLeast(f64),
    /// Only shown.
    Nothing,
}

impl Asked {
    fn allows(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
            Self::Nothing => true,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            Self::AtMost(bound) => format!("<= {bound}{unit}"),
            Self::AtLeast(bound) => format!(">= {bound}{unit}"),
            Self::Nothing => String::new(),
        }
    }
}

/// Whether luck is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Timed,
    Counted,
    /// Of all rounds the worst, whatever the interval.
    Worst,
}

/// How a bound fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Certainly,
    Met,
    Missed,
    TooFew,
    NotMeasured,
    Shown,
    /// A figure that another script judges.
    Elsewhere,
}

impl Verdict {
    pub(crate) fn of(asked: Asked, kind: Kind, rounds: &[f64]) -> Self {
        let Some(estimate) = estimate(&[rounds.to_vec()]) else { return Self::NotMeasured };
        let worst = rounds.iter().all(|&value| asked.allows(value));
        match kind {
            _ if asked == Asked::Nothing => Self::Shown,
            Kind::Worst if worst => Self::Met,
            Kind::Worst => Self::Missed,
            Kind::Timed if !estimate.is_trusted() => Self::TooFew,
            Kind::Counted if !estimate.is_trusted() => {
                if worst {
                    Self::Met
                } else {
                    Self::Missed
                }
            }
            _ => match (asked.allows(estimate.low), asked.allows(estimate.high)) {
                (true, true) => Self::Certainly,
                (false, false) => Self::Missed,
                _ => Self::Met,
            },
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Certainly => "met, certainly",
            Self::Met => "met",
            Self::Missed => "**MISSED**",
            Self::TooFew => "too few rounds",
            Self::NotMeasured => "not measured",
            Self::Shown => "",
            Self::Elsewhere => "judged there",
        }
    }
}

/// One line of the table of figures.
#[derive(Debug)]
pub(crate) struct Figure {
    what: String,
    asked: String,
    measured: String,
    pub(crate) verdict: Verdict,
}

impl Figure {
    pub(crate) fn new(what: String, asked: Asked, unit: &str, kind: Kind, rounds: &[f64]) -> Self {
        let verdict = Verdict::of(asked, kind, rounds);
        let measured = match estimate(&[rounds.to_vec()]) {
            Some(_) if kind == Kind::Worst => worst(asked, rounds),
            Some(estimate) => interval(estimate, rounds),
            None => "-".to_owned(),
        };
        let unit_shown = if measured == "-" { "" } else { unit };
        let measured = format!("{measured}{unit_shown}");
        Self { what, asked: asked.text(unit), measured, verdict }
    }

    /// A figure that is measured by another script.
    pub(crate) fn elsewhere(what: &str, asked: &str, script: &str) -> Self {
        let (what, asked) = (what.to_owned(), asked.to_owned());
        Self { what, asked, measured: script.to_owned(), verdict: Verdict::Elsewhere }
    }

    /// As a row of a table.
    pub(crate) fn row(&self) -> String {
        let Self { what, asked, measured, verdict } = self;
        format!("| {what} | {asked} | {measured} | {} |\n", verdict.text())
    }
}

fn worst(asked: Asked, rounds: &[f64]) -> String {
    let worst = rounds.iter().copied().reduce(match asked {
        Asked::AtLeast(_) => f64::min,
        Asked::AtMost(_) | Asked::Nothing => f64::max,
    });
    crate::text::number(worst.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_times_need_rounds() {
        let of = |rounds: &[f64]| Verdict::of(Asked::AtLeast(1.5), Kind::Timed, rounds);
        assert_eq!(of(&[]), Verdict::NotMeasured);
        assert_eq!(of(&[9.0; 5]), Verdict::TooFew);
        assert_eq!(of(&[1.6; 6]), Verdict::Certainly);
        assert_eq!(of(&[1.4; 6]), Verdict::Missed);
        // The median is below, but not certainly.
        assert_eq!(of(&[1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 1.8]), Verdict::Met);
        assert_eq!(Verdict::of(Asked::Nothing, Kind::Timed, &[1.0]), Verdict::Shown);
    }

    #[test]
    fn the_worst_decides_on_what_is_counted_seldom_and_on_pauses() {
        let of = |kind, rounds: &[f64]| Verdict::of(Asked::AtMost(5.0), kind, rounds);
        assert_eq!(of(Kind::Counted, &[4.0, 6.0]), Verdict::Missed);
        assert_eq!(of(Kind::Counted, &[4.0, 5.0]), Verdict::Met);
        let mut rounds = [1.0; 9];
        rounds[4] = 6.0;
        assert_eq!(of(Kind::Counted, &rounds), Verdict::Certainly);
        assert_eq!(of(Kind::Worst, &rounds), Verdict::Missed);
        let figure = Figure::new("x".into(), Asked::AtMost(5.0), " ms", Kind::Worst, &rounds);
        assert_eq!(figure.row(), "| x | <= 5 ms | 6.00 ms | **MISSED** |\n");
    }

    #[test]
    fn nothing_is_not_measured() {
        let figure = Figure::new("x".into(), Asked::AtLeast(1.5), "x", Kind::Timed, &[]);
        assert_eq!(figure.row(), "| x | >= 1.5x | - | not measured |\n");
    }
}
