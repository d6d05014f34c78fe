//! Medians, geometric means over programs, and 95 % intervals: the arithmetic of `heapwright
//! bench`, with additions for the verdicts.

use command::{Ratios, SURE_ROUNDS, geometric_mean};

#[path = "../../../crates/heapwright-cli/src/bench/statistics.rs"]
#[allow(dead_code, reason = "the command needs more of it")]
mod command;

/// An amount or a ratio, and the interval that contains it 95 times of 100.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The median, or the mean over programs.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The least of all rounds. Over programs: the mean of the programs' least rounds.
    pub least: f64,
    /// The most of all rounds. Over programs: the mean of the programs' most rounds.
    pub most: f64,
    /// The rounds of the program that had the fewest.
    pub rounds: usize,
}

impl Estimate {
    /// Makes an estimate from a single measurement.
    pub fn single(value: f64) -> Self {
        Self { value, low: value, high: value, least: value, most: value, rounds: 1 }
    }

    /// Returns whether there are enough rounds for an interval.
    pub fn is_trusted(&self) -> bool {
        self.rounds >= SURE_ROUNDS
    }
}

/// Returns the median. If the number of values is even, it is the mean of the two middle values.
pub fn median(values: &[f64]) -> f64 {
    command::median(values).unwrap_or(f64::NAN)
}

/// Returns the geometric mean of the programs' medians, or `None` without programs or rounds.
pub fn estimate(programs: &[Vec<f64>]) -> Option<Estimate> {
    let all: Option<Vec<Ratios>> =
        programs.iter().map(|rounds| Ratios::of(rounds.clone())).collect();
    let all = all?;
    let mean = match &all[..] {
        [one] => one.estimate(),
        _ => geometric_mean(&all)?,
    };
    let (low, high) = mean.interval.unwrap_or((mean.value, mean.value));
    let extreme = |of: fn(f64, f64) -> f64| {
        let each = programs.iter().filter_map(|rounds| rounds.iter().copied().reduce(of));
        match programs.len() {
            1 => each.sum(),
            count => (each.map(f64::ln).sum::<f64>() / count as f64).exp(),
        }
    };
    Some(Estimate {
        value: mean.value,
        low,
        high,
        least: extreme(f64::min),
        most: extreme(f64::max),
        rounds: programs.iter().map(Vec::len).min()?,
    })
}

/// Returns the median of one program's rounds, or `None` without rounds.
pub fn of_rounds(rounds: &[f64]) -> Option<Estimate> {
    estimate(&[rounds.to_vec()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_has_no_width_and_no_trust() {
        assert_eq!(estimate(&[vec![0.5]]), Some(Estimate::single(0.5)));
        assert_eq!(of_rounds(&[0.0]), Some(Estimate::single(0.0)));
        assert!(!estimate(&[vec![1.0; 15], vec![1.0; 5]]).unwrap().is_trusted());
        assert!(estimate(&[vec![1.0; 15], vec![1.0; 6]]).unwrap().is_trusted());
        assert_eq!((estimate(&[]), estimate(&[vec![]])), (None, None));
    }

    #[test]
    fn noise_makes_the_interval_wide_and_rounds_and_programs_make_it_narrow() {
        let noise = |rounds: usize| -> Vec<f64> {
            (0..rounds).map(|i| 1.0 + (i % 5) as f64 * 0.1).collect()
        };
        let width = |programs: &[Vec<f64>]| {
            let estimate = estimate(programs).unwrap();
            assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
            estimate.high - estimate.low
        };
        assert!(width(&[noise(500)]) < width(&[noise(5)]));
        assert!(width(&vec![noise(7); 16]) < 0.5 * width(&[noise(7)]));
    }
}
