//! Decides whether a stack's memory grows for good, by its live bytes over time.
//!
//! A program also grows when it fills a cache, reads input or starts threads. So a verdict needs:
//!
//! ```text
//! the last three quarters of the run     the first quarter is the program's start
//! at least 6 points there                5 points in a row are ordered by chance once
//!                                        in 120 times, and there are many stacks
//! Kendall's tau at least 0.8             nine pairs of points in ten go up; a plateau's
//!                                        ties count as not going up, so that steps, such
//!                                        as a table that doubles, are not a slope
//! a growth of at least 64 KiB, and       less is noise, or does no harm
//! of a tenth of the median of its bytes
//! the last third goes up, too            memory that has stopped growing is no leak
//! ```
//!
//! The slope is Theil's and Sen's: the median of the slopes of all pairs. A few outliers do not
//! move it.

use super::model::Sample;

/// The least points for a verdict.
const POINTS: usize = 6;
/// The most points to compare. More points would make many more pairs, but no better verdict.
const MOST: usize = 128;
const SURE: f64 = 0.8;
const LEAST: u64 = 64 << 10;
/// The least growth as a share of the median.
const SHARE: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// The slope in bytes a second.
    pub(super) slope: f64,
    /// Kendall's tau, 0.8 to 1.
    pub(super) tau: f64,
}

/// Returns the trend if these points, in the order of time, grow for good.
pub(super) fn verdict(points: &[Sample]) -> Option<Trend> {
    let end = points.last()?.ns;
    let warm = points.partition_point(|point| point.ns < end / 4);
    let points = thinned(&points[warm..]);
    if points.len() < POINTS {
        return None;
    }
    let (first, last) = (points.first()?, points.last()?);
    let growth = last.bytes.saturating_sub(first.bytes);
    let usual = median(points.iter().map(|point| point.bytes as f64).collect());
    if growth < LEAST || (growth as f64) < SHARE * usual {
        return None;
    }
    let tau = kendall(&points);
    if tau < SURE || slope(&points[points.len() - points.len().div_ceil(3)..]) <= 0.0 {
        return None;
    }
    Some(Trend { slope: slope(&points), tau })
}

/// Keeps at most [`MOST`] points, among them the first and the last.
fn thinned(points: &[Sample]) -> Vec<Sample> {
    let last = points.len().saturating_sub(1);
    if last < MOST {
        return points.to_vec();
    }
    (0..MOST).map(|at| points[at * last / (MOST - 1)]).collect()
}

fn pairs(points: &[Sample]) -> impl Iterator<Item = (&Sample, &Sample)> {
    let after = |at: usize| points.iter().skip(at + 1);
    points.iter().enumerate().flat_map(move |(at, early)| after(at).map(move |late| (early, late)))
}

/// Returns Kendall's tau: pairs that go up less pairs that go down, as a share of all pairs.
fn kendall(points: &[Sample]) -> f64 {
    let (mut sum, mut count) = (0_i64, 0_i64);
    for (early, late) in pairs(points) {
        sum += late.bytes.cmp(&early.bytes) as i64;
        count += 1;
    }
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// Returns the median slope of all pairs, in bytes a second; 0 without pairs.
fn slope(points: &[Sample]) -> f64 {
    let of_pair = |(early, late): (&Sample, &Sample)| {
        let seconds = late.ns.saturating_sub(early.ns) as f64 / 1e9;
        (seconds > 0.0).then(|| (late.bytes as f64 - early.bytes as f64) / seconds)
    };
    median(pairs(points).filter_map(of_pair).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    let (_, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    *value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Makes a series with one point a second.
    fn series(bytes: impl IntoIterator<Item = u64>) -> Vec<Sample> {
        let point = |(at, bytes)| Sample { ns: at as u64 * 1_000_000_000, blocks: 1, bytes };
        bytes.into_iter().enumerate().map(point).collect()
    }

    #[test]
    fn what_grows_grows() {
        let trend = verdict(&series((0..30).map(|at| at * 100_000))).expect("grows");
        assert_eq!(trend, Trend { slope: 100_000.0, tau: 1.0 });
        let noisy = (0..60_u64).map(|at| 5_000_000 + at * 100_000 + at * 7919 % 5 * 30_000);
        let trend = verdict(&series(noisy)).expect("grows");
        assert!((90_000.0..110_000.0).contains(&trend.slope) && trend.tau > 0.9, "{trend:?}");
    }

    #[test]
    fn what_only_looks_like_it_does_not() {
        const MIB: u64 = 1 << 20;
        for (name, bytes) in [
            ("nothing", vec![]),
            ("too few", (0..6).map(|at| at * MIB).collect()),
            ("a start", (0..40).map(|at| (at * MIB).min(10 * MIB)).collect()),
            ("a table that doubles", (0..64_u64).map(|at| MIB << at.max(1).ilog2()).collect()),
            ("up and down", (0..40).map(|at| (at % 8) * MIB).collect()),
            ("little", (0..40).map(|at| at * 1000).collect()),
            ("little of much", (0..40).map(|at| 1000 * MIB + at * MIB / 2).collect()),
            ("it ended", (0..60).map(|at| if at < 45 { at * MIB } else { 45 * MIB }).collect()),
            ("down", (0..40).map(|at| (40 - at) * MIB).collect()),
        ] {
            assert_eq!(verdict(&series(bytes)), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_points_have_a_verdict(points in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..300)) {
            let mut points: Vec<Sample> =
                points.into_iter().map(|(ns, bytes)| Sample { ns, blocks: 0, bytes }).collect();
            points.sort_by_key(|point| point.ns);
            if let Some(trend) = verdict(&points) {
                prop_assert!(trend.slope.is_finite() && (SURE..=1.0).contains(&trend.tau));
            }
        }

        #[test]
        fn a_line_is_found_at_any_speed_and_scale(
            start in 0_u64..1 << 20,
            step in 60_000_u64..1 << 30,
            count in 10_usize..400,
        ) {
            let trend = verdict(&series((0..count as u64).map(|at| start + at * step)));
            let trend = trend.expect("grows");
            prop_assert!((trend.slope - step as f64).abs() < 1e-3 * step as f64, "{trend:?}");
            prop_assert!(trend.tau == 1.0);
        }

        #[test]
        fn the_order_of_values_decides_not_their_sum(bytes in proptest::collection::vec(0_u64..1 << 30, 10..100)) {
            let mut falling = bytes;
            falling.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
            prop_assert_eq!(verdict(&series(falling)), None);
        }
    }
}
