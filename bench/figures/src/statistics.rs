//! The arithmetic: medians, geometric means, and 95 % intervals by drawing
//! rounds again.
//!
//! The runs of one round stand side by side in time, so what is compared is the
//! ratio within a round; a program's ratio is the median over its rounds, and a
//! mean over programs is the geometric one. The interval is a bootstrap's: draw
//! as many rounds as there are, with repetition, 2,000 times, each program by
//! itself, and take the middle 95 % of what comes out. The draws start from a
//! fixed seed: the same file gives the same figures.

use crate::random::Random;

/// How often rounds are drawn again.
const DRAWS: usize = 2000;

/// A ratio and the interval that it lies in, 95 times of 100.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The middle.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Of all rounds the least; over programs the mean of these.
    pub least: f64,
    /// Of all rounds the most.
    pub most: f64,
    /// The rounds of the program that had the fewest.
    pub rounds: usize,
}

/// The fewest rounds that an interval can be trusted with: of fewer, even the
/// range from the smallest to the largest misses the middle more often than
/// 5 times of 100 (2 of 2^n).
const TRUSTED_ROUNDS: usize = 6;

impl Estimate {
    /// A number that was not repeated.
    pub fn single(value: f64) -> Self {
        Self { value, low: value, high: value, least: value, most: value, rounds: 1 }
    }

    /// Whether the interval says anything.
    pub fn is_trusted(&self) -> bool {
        self.rounds >= TRUSTED_ROUNDS
    }
}

/// The middle value; of an even number, the mean of the two middle ones.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    median_of(&mut sorted)
}

fn median_of(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The geometric mean; of one number that number, bit by bit.
fn geomean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum, last) =
        values.fold((0.0, 0.0, f64::NAN), |(n, sum, _), value| (n + 1.0, sum + value.ln(), value));
    if count == 1.0 { last } else { f64::exp(sum / count) }
}

/// The geometric mean over programs of the median over each one's rounds;
/// nothing of no programs.
pub fn estimate(programs: &[Vec<f64>]) -> Option<Estimate> {
    if programs.is_empty() || programs.iter().any(Vec::is_empty) {
        return None;
    }
    let value = geomean(programs.iter().map(|rounds| median(rounds)));
    let mut random = Random::new(0x68_77_62_65_6e_63_68);
    let mut drawn = Vec::new();
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            geomean(programs.iter().map(|rounds| {
                drawn.clear();
                drawn.extend(rounds.iter().map(|_| rounds[random.below(rounds.len())]));
                median_of(&mut drawn)
            }))
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let extreme = |of: fn(f64, f64) -> f64| {
        geomean(programs.iter().filter_map(|rounds| rounds.iter().copied().reduce(of)))
    };
    Some(Estimate {
        value,
        low: means[DRAWS / 40],
        high: means[DRAWS - 1 - DRAWS / 40],
        least: extreme(f64::min),
        most: extreme(f64::max),
        rounds: programs.iter().map(Vec::len).min()?,
    })
}

/// The median of one program's rounds; nothing of none.
pub fn of_rounds(rounds: &[f64]) -> Option<Estimate> {
    estimate(&[rounds.to_vec()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
    }

    #[test]
    fn one_round_has_no_width_and_no_trust() {
        let one = estimate(&[vec![0.5]]).unwrap();
        assert_eq!(one, Estimate::single(0.5));
        assert!(!one.is_trusted());
        // The program with the fewest rounds decides.
        assert!(!estimate(&[vec![1.0; 15], vec![1.0; 5]]).unwrap().is_trusted());
        assert!(estimate(&[vec![1.0; 15], vec![1.0; 6]]).unwrap().is_trusted());
    }

    #[test]
    fn the_mean_is_geometric_and_over_medians() {
        let mean = estimate(&[vec![2.0, 2.0, 99.0], vec![0.5, 0.5, 0.5]]).unwrap();
        assert!((mean.value - 1.0).abs() < 1e-12);
        assert!(mean.low <= mean.value && mean.value <= mean.high);
    }

    #[test]
    fn nothing_has_no_mean() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[vec![]]), None);
    }

    #[test]
    fn noise_makes_the_interval_wide_and_rounds_make_it_narrow() {
        let noise = |rounds: usize| -> Vec<f64> {
            (0..rounds).map(|i| 1.0 + (i % 5) as f64 * 0.1).collect()
        };
        let few = estimate(&[noise(5)]).unwrap();
        let many = estimate(&[noise(500)]).unwrap();
        assert!(few.low < few.value && few.value < few.high);
        assert!(many.high - many.low < few.high - few.low);
    }

    #[test]
    fn the_same_runs_give_the_same_interval() {
        let runs = [vec![1.0, 1.2, 0.9, 1.1], vec![0.5, 0.7, 0.6]];
        assert_eq!(estimate(&runs), estimate(&runs));
    }
}
