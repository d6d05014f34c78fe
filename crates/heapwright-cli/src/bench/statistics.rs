//! The arithmetic of the race: medians, spreads, and intervals.
//!
//! Pure functions of numbers, with a fixed seed: the same measurements give the same results.
//! bench/figures includes this file.
//!
//! **One program.** Runs are paired: run `i` of every allocator belongs to one round, so noise
//! affects all of them alike. The estimate is the median of the rounds' ratios. Its interval is a
//! bootstrap: the rounds are drawn again, with replacement, [`RESAMPLES`] times, and the interval
//! holds the middle 95 % of the medians.
//!
//! **Many programs.** The estimate is the geometric mean of the programs' medians. Its interval
//! comes from the same redrawn medians: each redrawn mean takes one of every program. The programs
//! themselves are not redrawn: the interval is for the mean of *these* programs, not of others.
//!
//! From fewer than [`SURE_ROUNDS`] rounds no method can give 95 %. Then the interval reaches from
//! about the smallest to the largest ratio.

#![forbid(unsafe_code)]

/// The number of times that the rounds are drawn again.
const RESAMPLES: usize = 2000;

/// The distance between the draws of one program and of the next.
const APART: usize = 37;

/// The share of the medians outside the interval, half of it at each end.
const OUTSIDE: f64 = 0.05;

/// The fewest rounds whose extremes enclose the true median in 95 of 100 cases: with six the chance
/// is `1 - 2 / 2^6`, 0.97; with five it is 0.94.
pub(crate) const SURE_ROUNDS: usize = 6;

const SEED: u64 = 0x6865_6170_7772_6967;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    /// The 95 % interval; `None` after a single round.
    pub(crate) interval: Option<(f64, f64)>,
}

/// A ratio compared with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Less,
    /// 1 is in the interval, or there is no interval.
    Tie,
    More,
}

impl Estimate {
    pub(crate) fn verdict(&self) -> Verdict {
        match self.interval {
            Some((_, high)) if high < 1.0 => Verdict::Less,
            Some((low, _)) if low > 1.0 => Verdict::More,
            _ => Verdict::Tie,
        }
    }
}

/// Returns the median: of an even count, the mean of the two middle numbers.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Interpolates between the two nearest numbers.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, share)
}

fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (low, high) = (*sorted.get(below)?, *sorted.get(above)?);
    Some(low + (high - low) * place.fract())
}

/// Returns half the distance of the quartiles, as a share of the median: 0.02 is "+- 2 %".
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let (low, high) = (quantile(values, 0.25)?, quantile(values, 0.75)?);
    (middle > 0.0).then(|| (high - low) / 2.0 / middle)
}

/// The median of one program's ratios, and the redrawn medians.
#[derive(Clone, Debug)]
pub(crate) struct Ratios {
    median: f64,
    /// Medians of redrawn rounds; empty if there was a single round.
    redrawn: Vec<f64>,
}

impl Ratios {
    /// Makes ratios this / that from pairs (this, that), one for each round. Pairs with nothing
    /// measured are left out.
    pub(crate) fn new(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let measured = pairs.into_iter().filter(|(this, that)| *this > 0.0 && *that > 0.0);
        let ratios = measured.map(|(this, that)| this / that).filter(|ratio| ratio.is_finite());
        Self::of(ratios.collect())
    }

    /// Makes ratios from one number of each round.
    pub(crate) fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_unstable_by(f64::total_cmp);
        let median = quantile_of_sorted(&ratios, 0.5)?;
        let redrawn = if ratios.len() > 1 { redrawn_medians(&ratios) } else { Vec::new() };
        Some(Self { median, redrawn })
    }

    pub(crate) fn estimate(&self) -> Estimate {
        let interval = interval(self.redrawn.clone(), self.median);
        Estimate { value: self.median, interval }
    }
}

pub(crate) fn geometric_mean(programs: &[Ratios]) -> Option<Estimate> {
    if programs.is_empty() {
        return None;
    }
    let count = programs.len() as f64;
    let mean = |logarithms: f64| (logarithms / count).exp();
    let value = mean(programs.iter().map(|ratios| ratios.median.ln()).sum());
    let mut sums = vec![0.0; RESAMPLES];
    for (number, ratios) in programs.iter().enumerate() {
        if ratios.redrawn.is_empty() {
            return Some(Estimate { value, interval: None });
        }
        // All programs have the same draws, so each begins at another place in its redrawn medians.
        let redrawn = ratios.redrawn.iter().cycle().skip(number * APART % RESAMPLES);
        for (sum, median) in sums.iter_mut().zip(redrawn) {
            *sum += median.ln();
        }
    }
    let means = sums.into_iter().map(mean).collect();
    Some(Estimate { value, interval: interval(means, value) })
}

/// Returns the interval, widened to hold `value`.
fn interval(mut redrawn: Vec<f64>, value: f64) -> Option<(f64, f64)> {
    redrawn.sort_unstable_by(f64::total_cmp);
    let low = quantile_of_sorted(&redrawn, OUTSIDE / 2.0)?;
    let high = quantile_of_sorted(&redrawn, 1.0 - OUTSIDE / 2.0)?;
    Some((low.min(value), high.max(value)))
}

/// Draws with replacement. The numbers are sorted, so counting the draws of each place suffices.
fn redrawn_medians(sorted: &[f64]) -> Vec<f64> {
    let mut chance = Chance(SEED);
    let count = sorted.len();
    let mut drawn = vec![0_usize; count];
    let middle = |drawn: &[usize], rank: usize| {
        let mut seen = 0;
        let place = drawn.iter().position(|times| {
            seen += times;
            seen > rank
        });
        sorted[place.unwrap_or(count - 1)]
    };
    (0..RESAMPLES)
        .map(|_| {
            drawn.fill(0);
            for _ in 0..count {
                drawn[chance.below(count)] += 1;
            }
            let upper = middle(&drawn, count / 2);
            if count.is_multiple_of(2) {
                f64::midpoint(middle(&drawn, count / 2 - 1), upper)
            } else {
                upper
            }
        })
        .collect()
}

/// SplitMix64: a short generator, good enough to draw rounds.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; the bias is small because `end` is small.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratios(values: &[f64]) -> Ratios {
        Ratios::new(values.iter().map(|&value| (value, 1.0))).expect("has some")
    }

    #[test]
    fn medians_and_quartiles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(spread(&[9.0, 10.0, 11.0]), Some(0.05));
        assert_eq!(spread(&[0.0, 0.0]), None);
    }

    #[test]
    fn rounds_without_a_ratio_are_left_out() {
        let found = Ratios::new([(1.0, 2.0), (0.0, 1.0), (1.0, 0.0)]).expect("has one");
        assert_eq!(found.estimate(), Estimate { value: 0.5, interval: None });
        assert!(Ratios::new([(0.0, 0.0)]).is_none());
    }

    #[test]
    fn a_single_round_proves_nothing() {
        let one = ratios(&[0.5]).estimate();
        assert_eq!(one, Estimate { value: 0.5, interval: None });
        assert_eq!(one.verdict(), Verdict::Tie);
        let mean = geometric_mean(&[ratios(&[0.5, 0.5]), ratios(&[0.5])]).expect("has some");
        assert_eq!(mean.interval, None);
    }

    #[test]
    fn verdicts_need_the_whole_interval() {
        let of = |low, high| Estimate { value: 1.0, interval: Some((low, high)) }.verdict();
        assert_eq!(of(0.8, 0.99), Verdict::Less);
        assert_eq!(of(0.8, 1.0), Verdict::Tie);
        assert_eq!(of(0.9, 1.1), Verdict::Tie);
        assert_eq!(of(1.01, 1.1), Verdict::More);
    }

    #[test]
    fn the_mean_of_a_half_and_a_double_is_one() {
        let mean = geometric_mean(&[ratios(&[0.5; 7]), ratios(&[2.0; 7])]).expect("has some");
        assert!((mean.value - 1.0).abs() < 1e-12, "{mean:?}");
        assert_eq!(geometric_mean(&[]), None);
    }

    /// About 95 of 100 intervals must enclose a known truth.
    #[test]
    fn intervals_enclose_the_truth_as_often_as_they_say() {
        let mut chance = Chance(7);
        let mut even = move || chance.next() as f64 / u64::MAX as f64;
        // Noise like that of timings: lopsided.
        let mut noisy = move || 0.95 + 0.1 * even() + if even() < 0.2 { 0.1 * even() } else { 0.0 };
        let mut many: Vec<f64> = (0..20_000).map(|_| noisy()).collect();
        many.sort_unstable_by(f64::total_cmp);
        let truth = quantile_of_sorted(&many, 0.5).expect("has some");
        let trials = 400;
        let hits = (0..trials)
            .filter(|_| {
                let rounds: Vec<f64> = (0..15).map(|_| noisy()).collect();
                let (low, high) = ratios(&rounds).estimate().interval.expect("has one");
                (low..=high).contains(&truth)
            })
            .count();
        let share = hits as f64 / f64::from(trials);
        assert!((0.91..=0.99).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn intervals_hold_the_value_and_lie_within_the_rounds(
            values in prop::collection::vec(0.01_f64..100.0, 2..40)
        ) {
            let estimate = ratios(&values).estimate();
            let (low, high) = estimate.interval.expect("has one");
            prop_assert!(low <= estimate.value && estimate.value <= high);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            prop_assert!(least <= low && high <= most);
        }

        #[test]
        fn the_order_of_rounds_does_not_matter(
            values in prop::collection::vec(0.01_f64..100.0, 1..20), turn in 0_usize..20
        ) {
            let mut turned = values.clone();
            turned.rotate_left(turn % values.len());
            prop_assert_eq!(ratios(&values).estimate(), ratios(&turned).estimate());
        }

        #[test]
        fn scaling_the_ratios_scales_the_mean(
            programs in prop::collection::vec(
                prop::collection::vec(0.1_f64..10.0, 3..8), 1..6),
            factor in 0.5_f64..2.0
        ) {
            let of = |factor: f64| {
                let all: Vec<Ratios> = programs
                    .iter()
                    .map(|rounds| ratios(&rounds.iter().map(|v| v * factor).collect::<Vec<_>>()))
                    .collect();
                geometric_mean(&all).expect("has some")
            };
            let (one, other) = (of(1.0), of(factor));
            prop_assert!((other.value / one.value / factor - 1.0).abs() < 1e-9);
            let (low, high) = (one.interval.expect("one"), other.interval.expect("one"));
            prop_assert!((high.0 / low.0 / factor - 1.0).abs() < 1e-9);
        }

        #[test]
        fn swapping_the_sides_turns_the_verdict_round(
            pairs in prop::collection::vec((1.0_f64..3.0, 1.0_f64..3.0), 3..4)
        ) {
            // The median of an odd number of ratios is one of them, so its inverse is exact.
            let this = Ratios::new(pairs.iter().copied()).expect("has some").estimate();
            let that = Ratios::new(pairs.iter().map(|&(a, b)| (b, a))).expect("has some").estimate();
            prop_assert!((this.value * that.value - 1.0).abs() < 1e-12);
        }
    }
}
