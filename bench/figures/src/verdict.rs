//! A figure: its bound, its measured value, and the verdict.
//!
//! A bound is *met* if the 95 % interval reaches it, *met, certainly* if the whole interval lies
//! within the bound, *MISSED* otherwise. An interval needs 6 rounds. With fewer rounds, the kind of
//! the figure determines the judged value:
//!
//! | kind | the judged value | for |
//! |---|---|---|
//! | `Timed` | none: the verdict is "too few rounds" | times |
//! | `Middle` | the median | runs that take too long to repeat |
//! | `Counted` | the worst round | memory, slots, instructions |
//! | `Worst` | the worst round, with any number of rounds | pauses |

use crate::statistics::Estimate;
use crate::text::{interval, number, table};

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// The value must not be larger.
    AtMost(f64),
    /// The value must not be smaller.
    AtLeast(f64),
    /// There is no bound; the value is only shown.
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

    fn worst(self, estimate: Estimate) -> f64 {
        if let Self::AtLeast(_) = self { estimate.least } else { estimate.most }
    }
}

/// The value that is judged with few rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value is judged.
    Timed,
    /// The median.
    Middle,
    /// The worst round.
    Counted,
    /// The worst round, with any number of rounds.
    Worst,
}

/// The result for a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies within the bound.
    Certainly,
    /// The interval reaches the bound, or the judged value keeps it.
    Met,
    /// The interval does not reach the bound, or the judged value breaks it.
    Missed,
    /// The kind needs an interval, and there is none.
    TooFew,
    /// There is no number.
    NotMeasured,
    /// There is no bound.
    Shown,
    /// Another table judges the figure; the text says which.
    Elsewhere(&'static str),
}

impl Verdict {
    /// Judges a measured value.
    pub fn of(asked: Asked, kind: Kind, measured: Option<Estimate>) -> Self {
        let Some(measured) = measured else { return Self::NotMeasured };
        let met = |met| if met { Self::Met } else { Self::Missed };
        if asked == Asked::Nothing {
            return Self::Shown;
        }
        match kind {
            Kind::Worst => met(asked.allows(asked.worst(measured))),
            _ if measured.is_trusted() => {
                match (asked.allows(measured.low), asked.allows(measured.high)) {
                    (true, true) => Self::Certainly,
                    (low, high) => met(low || high),
                }
            }
            Kind::Timed => Self::TooFew,
            Kind::Middle => met(asked.allows(measured.value)),
            Kind::Counted => met(asked.allows(asked.worst(measured))),
        }
    }

    /// Returns whether the bound was measured and kept.
    pub fn holds(self) -> bool {
        matches!(self, Self::Certainly | Self::Met)
    }

    /// Returns the verdict in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Certainly => "met, certainly",
            Self::Met => "met",
            Self::Missed => "**MISSED**",
            Self::TooFew => "too few rounds",
            Self::NotMeasured => "not measured",
            Self::Shown => "",
            Self::Elsewhere(why) => why,
        }
    }
}

/// One line of a table of figures.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name of the figure.
    pub what: String,
    /// The bound, in words.
    pub asked: String,
    /// The measured value, in words.
    pub measured: String,
    /// The verdict.
    pub verdict: Verdict,
}

impl Figure {
    /// Judges a measured value.
    pub fn new(
        what: impl Into<String>,
        asked: Asked,
        unit: &str,
        kind: Kind,
        measured: Option<Estimate>,
    ) -> Self {
        let shown = measured.map_or("-".to_owned(), |estimate| match kind {
            Kind::Worst => format!("{}{unit}", number(asked.worst(estimate))),
            _ => format!("{}{unit}", interval(estimate)),
        });
        let verdict = Verdict::of(asked, kind, measured);
        Self { what: what.into(), asked: asked.text(unit), measured: shown, verdict }
    }

    /// Returns the cells of its row.
    pub fn cells(&self) -> [&str; 4] {
        [&self.what, &self.asked, &self.measured, self.verdict.text()]
    }
}

/// Renders the table of figures.
pub fn figures(figures: &[Figure]) -> String {
    let rows: Vec<Vec<&str>> = figures.iter().map(|figure| figure.cells().to_vec()).collect();
    table(&["what", "asked", "measured", "verdict"], &rows).replacen("---:", "---", 3)
}

/// Returns whether no bound is missed. A figure without a verdict misses none.
pub fn hold(figures: &[Figure]) -> bool {
    !figures.iter().any(|figure| figure.verdict == Verdict::Missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::of_rounds;

    fn of(asked: Asked, kind: Kind, rounds: &[f64]) -> Verdict {
        Verdict::of(asked, kind, of_rounds(rounds))
    }

    #[test]
    fn an_interval_decides() {
        for kind in [Kind::Timed, Kind::Middle, Kind::Counted] {
            let of = |rounds: &[f64]| of(Asked::AtLeast(0.97), kind, rounds);
            assert_eq!(of(&[]), Verdict::NotMeasured);
            assert_eq!(of(&[0.98; 6]), Verdict::Certainly);
            assert_eq!(of(&[0.96; 6]), Verdict::Missed);
            assert_eq!(of(&[0.90, 0.92, 0.94, 0.96, 0.98, 1.0, 1.02]), Verdict::Met);
        }
        assert_eq!(of(Asked::Nothing, Kind::Timed, &[0.1; 6]), Verdict::Shown);
    }

    #[test]
    fn of_few_rounds_the_kind_decides() {
        let asked = Asked::AtMost(5.0);
        let rounds = [4.0, 4.0, 6.0];
        assert_eq!(of(asked, Kind::Timed, &rounds), Verdict::TooFew);
        assert_eq!(of(asked, Kind::Middle, &rounds), Verdict::Met);
        assert_eq!(of(asked, Kind::Counted, &rounds), Verdict::Missed);
        assert_eq!(of(asked, Kind::Counted, &[4.0, 5.0]), Verdict::Met);
        let mut rounds = [1.0; 9];
        rounds[4] = 6.0;
        assert_eq!(of(asked, Kind::Counted, &rounds), Verdict::Certainly);
        assert_eq!(of(asked, Kind::Worst, &rounds), Verdict::Missed);
        assert_eq!(of(Asked::AtLeast(2.0), Kind::Worst, &rounds), Verdict::Missed);
    }

    #[test]
    fn a_row_says_all() {
        let rounds = of_rounds(&[0.96; 6]);
        let met = Figure::new("a", Asked::AtLeast(0.97), "x", Kind::Timed, rounds);
        let none = Figure::new("b", Asked::AtMost(5.0), " ms", Kind::Worst, None);
        assert_eq!(
            figures(&[met.clone(), none]),
            "| what | asked | measured | verdict |\n|---|---|---|---|\n\
             | a | >= 0.97x | 0.960 (0.960 to 0.960)x | **MISSED** |\n\
             | b | <= 5 ms | - | not measured |\n\n"
        );
        assert!(!hold(&[met]));
    }
}
