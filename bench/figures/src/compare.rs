//! Two allocators side by side: the ratio of one to the other, on one program
//! or over many.
//!
//! A program on which either of the two failed is left out of that pair's mean,
//! and the tables' feet say so.

use crate::results::{Kind, Program, Race};
use ::figures::statistics::{Estimate, estimate, median};

/// From here on a program's memory is its own doing, not its start's.
const HEAVY_BYTES: f64 = 32.0 * 1024.0 * 1024.0;

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Wall time.
    Time,
    /// Peak resident memory of the program, all of it.
    Peak,
    /// Peak resident memory above that of the empty program under the same
    /// allocator.
    PeakAbove,
}

/// A program's numbers under an allocator, one a round; nothing if it failed,
/// or if there is no empty program to compare with.
fn numbers(race: &Race, measure: Measure, program: &Program, allocator: usize) -> Option<Vec<f64>> {
    let runs = program.runs(allocator)?;
    match measure {
        Measure::Time => Some(runs.iter().map(|run| run.wall_ns).collect()),
        Measure::Peak => Some(runs.iter().map(|run| run.peak_bytes).collect()),
        Measure::PeakAbove => {
            let empty = middle(race.empty()?, Measure::Peak, allocator)?;
            // One page at least: a ratio to nothing means nothing.
            Some(runs.iter().map(|run| (run.peak_bytes - empty).max(4096.0)).collect())
        }
    }
}

/// The median of a program's numbers under an allocator: time or whole peak.
pub(crate) fn middle(program: &Program, measure: Measure, allocator: usize) -> Option<f64> {
    let runs = program.runs(allocator)?;
    let number = |run: &crate::results::Run| match measure {
        Measure::Time => run.wall_ns,
        Measure::Peak | Measure::PeakAbove => run.peak_bytes,
    };
    Some(median(&runs.iter().map(number).collect::<Vec<_>>()))
}

/// The ratios round by round.
fn ratios(
    race: &Race,
    measure: Measure,
    program: &Program,
    one: usize,
    other: usize,
) -> Option<Vec<f64>> {
    let one = numbers(race, measure, program, one)?;
    let other = numbers(race, measure, program, other)?;
    Some(one.iter().zip(&other).map(|(a, b)| a / b).collect())
}

/// One program.
pub(crate) fn single(
    race: &Race,
    measure: Measure,
    program: &Program,
    one: usize,
    other: usize,
) -> Option<Estimate> {
    estimate(&[ratios(race, measure, program, one, other)?])
}

/// The mean over programs, and how many there were.
pub(crate) fn mean<'a>(
    race: &Race,
    measure: Measure,
    programs: impl Iterator<Item = &'a Program>,
    one: usize,
    other: usize,
) -> Option<(Estimate, usize)> {
    let all: Vec<Vec<f64>> =
        programs.filter_map(|program| ratios(race, measure, program, one, other)).collect();
    Some((estimate(&all)?, all.len()))
}

/// The programs whose memory is worth comparing: workloads that say they have
/// that much live, real programs that take it under glibc.
pub(crate) fn heavy(race: &Race) -> impl Iterator<Item = &Program> {
    race.counted().filter(|program| is_heavy(race, program))
}

/// Whether a program is one of those.
pub(crate) fn is_heavy(race: &Race, program: &Program) -> bool {
    match (program.kind, program.live_bytes) {
        (Kind::Workload, Some(live)) => live as f64 >= HEAVY_BYTES,
        _ => {
            let glibc = race.allocator("glibc");
            let above = glibc.and_then(|a| numbers(race, Measure::PeakAbove, program, a));
            above.is_some_and(|bytes| median(&bytes) >= HEAVY_BYTES)
        }
    }
}

/// The fastest allocator but `except`, by its mean ratio to glibc. One that
/// failed on more than half of the programs is no peer.
pub(crate) fn best_peer(race: &Race, except: usize) -> Option<usize> {
    let glibc = race.allocator("glibc")?;
    let all = race.counted().count();
    (0..race.allocators.len())
        .filter(|&peer| peer != except)
        .filter_map(|peer| {
            let (mean, count) = mean(race, Measure::Time, race.counted(), peer, glibc)?;
            (count * 2 >= all).then_some((peer, mean.value))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(peer, _)| peer)
}

/// The fastest allocator but `except` on one program.
pub(crate) fn best_there(race: &Race, program: &Program, except: usize) -> Option<usize> {
    (0..race.allocators.len())
        .filter(|&peer| peer != except)
        .filter_map(|peer| Some((peer, middle(program, Measure::Time, peer)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(peer, _)| peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::made_up;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_failure_leaves_the_program_out_of_that_pair_only() {
        let race = made_up(
            &["glibc", "heapwright", "peer"],
            &[
                ("a", Some(1), &[&[(10.0, 9.0)], &[(5.0, 9.0)], &[]]),
                ("b", Some(1), &[&[(10.0, 9.0)], &[(20.0, 9.0)], &[(5.0, 9.0)]]),
            ],
        );
        let (mean_glibc, count) = mean(&race, Measure::Time, race.counted(), 1, 0).unwrap();
        assert_eq!((mean_glibc.value, count), (1.0, 2));
        let (mean_peer, count) = mean(&race, Measure::Time, race.counted(), 1, 2).unwrap();
        assert_eq!((mean_peer.value, count), (4.0, 1));
    }

    #[test]
    fn memory_is_counted_above_the_empty_program() {
        let race = made_up(
            &["glibc", "heapwright"],
            &[
                ("empty", Some(0), &[&[(1.0, 2.0)], &[(1.0, 10.0)]]),
                ("a", Some(40 * MIB), &[&[(1.0, 42.0)], &[(1.0, 30.0)]]),
            ],
        );
        let program = race.counted().next().unwrap();
        let ratio = single(&race, Measure::PeakAbove, program, 1, 0).unwrap();
        assert_eq!(ratio.value, 0.5);
        assert!(single(&race, Measure::Peak, program, 1, 0).unwrap().value > 0.7);
    }

    #[test]
    fn without_an_empty_program_nothing_is_above_it() {
        let race =
            made_up(&["glibc", "b"], &[("a", Some(40 * MIB), &[&[(1.0, 42.0)], &[(1.0, 30.0)]])]);
        assert_eq!(mean(&race, Measure::PeakAbove, heavy(&race), 1, 0), None);
    }

    #[test]
    fn heavy_is_said_by_a_workload_and_measured_of_a_program() {
        let race = made_up(
            &["glibc"],
            &[
                ("empty", Some(0), &[&[(1.0, 2.0)]]),
                ("light", Some(31 * MIB), &[&[(1.0, 90.0)]]),
                ("full", Some(32 * MIB), &[&[(1.0, 20.0)]]),
                ("small program", None, &[&[(1.0, 33.0)]]),
                ("large program", None, &[&[(1.0, 34.0)]]),
            ],
        );
        let names: Vec<&str> = heavy(&race).map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["full", "large program"]);
    }

    #[test]
    fn the_best_peer_is_the_fastest_that_runs_most() {
        let slow: &[(f64, f64)] = &[(10.0, 1.0)];
        let fast: &[(f64, f64)] = &[(5.0, 1.0)];
        let faster: &[(f64, f64)] = &[(1.0, 1.0)];
        let race = made_up(
            &["glibc", "heapwright", "steady", "fragile"],
            &[
                ("a", None, &[slow, faster, fast, faster]),
                ("b", None, &[slow, faster, fast, &[]]),
                ("c", None, &[slow, faster, fast, &[]]),
            ],
        );
        assert_eq!(best_peer(&race, 1), Some(2));
        assert_eq!(best_there(&race, &race.programs[0], 1), Some(3));
        assert_eq!(best_there(&race, &race.programs[1], 1), Some(2));
    }
}
