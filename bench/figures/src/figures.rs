//! The bounds that the project set itself, and whether a race holds them.
//!
//! A ratio that takes no more than the bound is met (`figures::verdict` says how certainly).
//! The bounds on memory that a
//! program of its own measures (give-back, idle threads, flat traffic) are not
//! here: no race shows them.

use crate::race::{ABOVE, BASE, Program, Race, TIME, US};
use ::figures::statistics::Estimate;
use ::figures::verdict::{self, Asked, Figure, Kind, Verdict};

const MIMALLOC: &str = "mimalloc";
const RANDOM_FREES: &str = "random-400k";

/// `0.75 (0.73 to 0.78)`.
pub(crate) fn shown(estimate: Estimate) -> String {
    format!("{:.2} ({:.2} to {:.2})", estimate.value, estimate.low, estimate.high)
}

fn bounded(what: String, bound: f64, measured: Option<(Estimate, String)>) -> Figure {
    let asked = format!("<= {bound:.2}");
    let estimate = measured.as_ref().map(|(estimate, _)| *estimate);
    let measured =
        measured.map_or("-".to_owned(), |(estimate, foot)| format!("{}{foot}", shown(estimate)));
    let verdict = Verdict::of(Asked::AtMost(bound), Kind::Timed, estimate);
    Figure { what, asked, measured, verdict }
}

/// Every figure that follows from a race.
pub(crate) fn all(race: &Race) -> Vec<Figure> {
    let best = race.best_peer();
    let best_name =
        best.map_or("the best peer".to_owned(), |best| format!("the best peer, {best}"));
    let time = |other: &str, peer: &str, bound| {
        let ratio = race.mean(race.counted(), (US, peer), TIME);
        bounded(
            format!("geomean time, all workloads and programs, to {other}"),
            bound,
            ratio.map(|(ratio, count)| (ratio, format!(" over {count}"))),
        )
    };
    let memory = |other: &str, peer: &str, bound| {
        let ratio = race.mean(race.heavy(), (US, peer), ABOVE);
        let what = "geomean peak RSS above an empty program's, where >= 32 MiB are live";
        bounded(
            format!("{what}, to {other}"),
            bound,
            ratio.map(|(ratio, count)| (ratio, format!(" over {count}"))),
        )
    };
    let random = race.counted().find(|program| program.name == RANDOM_FREES);
    let random = random.and_then(|program| race.single(program, (US, MIMALLOC), TIME));
    vec![
        time(&best_name, best.unwrap_or_default(), 0.93),
        time("mimalloc v3 as it comes", MIMALLOC, 0.85),
        time("glibc", BASE, 0.72),
        none_worse(race, "mimalloc v3", 1.10, &|_| Some(MIMALLOC)),
        none_worse(race, "the best peer there", 1.25, &|program| race.best_there(program)),
        memory("glibc", BASE, 1.00),
        memory("mimalloc v3 without huge pages", "mimalloc-no-thp", 0.80),
        memory("snmalloc", "snmalloc", 0.85),
        bounded(
            format!(
                "random frees with 400k live blocks ({RANDOM_FREES}), per pair, to mimalloc v3"
            ),
            0.55,
            random.map(|ratio| (ratio, String::new())),
        ),
    ]
}

/// The programs on which the whole interval lies beyond the bound.
fn none_worse<'a>(
    race: &'a Race,
    other: &str,
    bound: f64,
    peer: &dyn Fn(&Program) -> Option<&'a str>,
) -> Figure {
    let (mut judged, mut seldom) = (0, 0);
    let mut worse = Vec::new();
    for program in race.counted() {
        let Some(peer) = peer(program) else { continue };
        let Some(ratio) = race.single(program, (US, peer), TIME) else { continue };
        judged += usize::from(ratio.is_trusted());
        seldom += usize::from(!ratio.is_trusted());
        if ratio.is_trusted() && ratio.low > bound {
            worse.push(format!("{} {} of {peer}", program.name, shown(ratio)));
        }
    }
    let mut measured = match (judged, worse.is_empty()) {
        (0, _) => "-".to_owned(),
        (_, true) => format!("none of {judged}"),
        (_, false) => format!("{} of {judged}: {}", worse.len(), worse.join("; ")),
    };
    if seldom > 0 {
        measured.push_str(&format!("; {seldom} ran too seldom to say"));
    }
    let verdict = match (judged, seldom) {
        (0, 0) => Verdict::NotMeasured,
        _ if !worse.is_empty() => Verdict::Missed,
        (_, 0) => Verdict::Certainly,
        _ => Verdict::TooFew,
    };
    Figure {
        what: format!("any single one certainly worse than {bound:.2} of {other}"),
        asked: "none".to_owned(),
        measured,
        verdict,
    }
}

/// The table.
pub(crate) fn table(judged: &[Figure]) -> String {
    format!(
        "heapwright's ratio to others, with the 95 % interval; below 1 heapwright is ahead.\n\n{}",
        verdict::figures(judged).trim_end()
    ) + "\n"
}

/// The means again, for workloads and programs apart: which of the two carries
/// a result.
pub(crate) fn by_kind(race: &Race) -> String {
    let mut text = String::from(
        "heapwright's geomean ratio to each allocator, by kind.\n\n\
         | to | time, workloads | time, programs | peak RSS*, workloads | peak RSS*, programs |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for name in race.allocators.iter().filter(|name| race.has(US) && *name != US) {
        text.push_str(&format!("| {name} "));
        for measure in [TIME, ABOVE] {
            for is_workload in [true, false] {
                let of_kind = |program: &&Program| {
                    program.is_workload == is_workload
                        && (measure == TIME || race.is_heavy(program))
                };
                let ratio = race.mean(race.counted().filter(of_kind), (US, name), measure);
                let cell = ratio.map_or("-".to_owned(), |(ratio, _)| shown(ratio));
                text.push_str(&format!("| {cell} "));
            }
        }
        text.push_str("|\n");
    }
    text.push_str("\n*Above an empty program's, where >= 32 MiB are live.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::tests::made_up;

    const MIB: u64 = 1 << 20;

    fn figure<'a>(figures: &'a [Figure], part: &str) -> &'a Figure {
        figures.iter().find(|f| f.what.contains(part)).unwrap()
    }

    fn steady(ms: f64, mib: f64, rounds: usize) -> Vec<(f64, f64)> {
        vec![(ms, mib); rounds]
    }

    /// One workload under five allocators, each round the same.
    fn even(rounds: usize) -> Race {
        let empty = steady(1.0, 2.0, rounds);
        let runs = [(100.0, 52.0), (50.0, 42.0), (100.0, 92.0), (100.0, 62.0), (60.0, 62.0)]
            .map(|(ms, mib)| steady(ms, mib, rounds));
        made_up(
            &["glibc", "heapwright", "mimalloc", "mimalloc-no-thp", "snmalloc"],
            &[
                ("empty", Some(0), &[&empty, &empty, &empty, &empty, &empty]),
                (RANDOM_FREES, Some(40 * MIB), &runs.each_ref().map(Vec::as_slice)),
            ],
        )
    }

    #[test]
    fn figures_are_taken_from_the_right_pairs() {
        let race = even(15);
        let figures = all(&race);
        let measured = |part| figure(&figures, part).measured.as_str();
        assert_eq!(measured("to the best peer, snmalloc"), "0.83 (0.83 to 0.83) over 1");
        assert_eq!(measured("to mimalloc v3 as it comes"), "0.50 (0.50 to 0.50) over 1");
        assert_eq!(measured("are live, to glibc"), "0.80 (0.80 to 0.80) over 1");
        assert_eq!(measured("to mimalloc v3 without"), "0.67 (0.67 to 0.67) over 1");
        assert_eq!(measured("per pair"), "0.50 (0.50 to 0.50)");
        assert!(figures.iter().all(|f| f.verdict == Verdict::Certainly), "{}", table(&figures));
        let kinds = by_kind(&race);
        assert!(kinds.contains("| glibc | 0.50 (0.50 to 0.50) | - | 0.80 (0.80 to 0.80) | - |"));
    }

    #[test]
    fn one_round_shows_a_ratio_and_no_verdict() {
        let figures = all(&even(1));
        assert_eq!(figure(&figures, "per pair").measured, "0.50 (0.50 to 0.50)");
        assert_eq!(figure(&figures, "worse than 1.10").measured, "-; 1 ran too seldom to say");
        assert!(figures.iter().all(|f| f.verdict == Verdict::TooFew), "{}", table(&figures));
    }

    #[test]
    fn a_program_that_is_certainly_worse_is_named() {
        let [ten, twelve, twenty] = [10.0, 12.0, 20.0].map(|ms| steady(ms, 1.0, 7));
        let race = made_up(
            &["glibc", "heapwright", "mimalloc"],
            &[("slow", None, &[&twenty, &twelve, &ten]), ("fine", None, &[&ten, &ten, &ten])],
        );
        let figures = all(&race);
        let mimalloc = figure(&figures, "worse than 1.10");
        assert_eq!(mimalloc.verdict, Verdict::Missed);
        assert_eq!(mimalloc.measured, "1 of 2: slow 1.20 (1.20 to 1.20) of mimalloc");
        assert_eq!(figure(&figures, "worse than 1.25").measured, "none of 2");
    }

    #[test]
    fn noise_makes_no_certainty() {
        let ten = steady(10.0, 1.0, 9);
        let mut noisy = [steady(10.0, 1.0, 4), steady(12.0, 1.0, 5)].concat();
        let race = |noisy: &[(f64, f64)]| {
            made_up(&["glibc", "heapwright", "mimalloc"], &[("noisy", None, &[&ten, noisy, &ten])])
        };
        assert_eq!(figure(&all(&race(&noisy)), "worse than 1.10").verdict, Verdict::Certainly);
        noisy[..4].fill((12.0, 1.0));
        assert_eq!(figure(&all(&race(&noisy)), "worse than 1.10").verdict, Verdict::Missed);
    }

    #[test]
    fn what_was_not_raced_is_said() {
        let race =
            made_up(&["glibc", "heapwright"], &[("a", None, &[&[(1.0, 1.0)], &[(1.0, 1.0)]])]);
        let figures = all(&race);
        assert_eq!(figure(&figures, "to mimalloc v3 as it comes").verdict, Verdict::NotMeasured);
        assert_eq!(figure(&figures, "worse than 1.10").verdict, Verdict::NotMeasured);
        assert_eq!(figure(&figures, "to snmalloc").verdict, Verdict::NotMeasured);
        assert!(figure(&figures, "best peer, glibc").measured.starts_with("1.00"));
        let nobody = made_up(&["glibc"], &[("a", None, &[&[(1.0, 1.0)]])]);
        assert!(all(&nobody).iter().all(|f| f.verdict == Verdict::NotMeasured));
    }
}
