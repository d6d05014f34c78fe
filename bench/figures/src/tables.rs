//! The tables for the documentation: every program under every allocator, as
//! ratios to glibc, in markdown; and the feet below them, which say what failed
//! and what was measured too seldom.

use crate::compare::{Measure, heavy, is_heavy, mean, middle, single};
use crate::figures::shown;
use crate::results::{Kind, Outcome, Program, Race};

const BASE: &str = "glibc";
const US: &str = "heapwright";

/// What the figures ask for: rounds of a short program and of a long one.
const ROUNDS: usize = 15;
const ROUNDS_LONG: usize = 7;

/// Wall time.
pub(crate) fn time(race: &Race) -> String {
    let title = "Wall time: glibc's in milliseconds, the others' ratios to it (below 1 is faster); \
                 heapwright's with its 95 % interval.";
    let mut text = grid(race, title, "program", Measure::Time, &|ns| format!("{:.0} ms", ns / 1e6));
    let kinds: [(&str, Option<Kind>); 3] = [
        ("geomean, workloads", Some(Kind::Workload)),
        ("geomean, programs", Some(Kind::Program)),
        ("geomean, all", None),
    ];
    for (name, kind) in kinds {
        let chosen = || race.counted().filter(|p| kind.is_none_or(|kind| p.kind == kind));
        text.push_str(&means(race, name, Measure::Time, &chosen));
    }
    text
}

/// Peak memory.
pub(crate) fn peak(race: &Race) -> String {
    let title = "Peak RSS: glibc's in MiB, the others' ratios to it (below 1 is leaner). Programs with a \
                 star have >= 32 MiB live; the mean is over these, above what an empty program takes.";
    let mebibytes = |bytes: f64| format!("{:.1} MiB", bytes / 1048576.0);
    let mut text = grid(race, title, "program", Measure::Peak, &mebibytes);
    let starred = || heavy(race);
    text.push_str(&means(race, "geomean, starred", Measure::PeakAbove, &starred));
    text
}

fn grid(
    race: &Race,
    title: &str,
    first: &str,
    measure: Measure,
    absolute: &dyn Fn(f64) -> String,
) -> String {
    let mut text = format!("{title}\n\n| {first} |");
    for name in &race.allocators {
        text.push_str(&format!(" {name} |"));
    }
    text.push_str("\n|---|");
    text.push_str(&"---:|".repeat(race.allocators.len()));
    text.push('\n');
    let base = race.allocator(BASE);
    for program in &race.programs {
        let star = if measure == Measure::Peak && is_heavy(race, program) { "*" } else { "" };
        text.push_str(&format!("| {}{star} |", program.name));
        for allocator in 0..race.allocators.len() {
            let cell = if Some(allocator) == base {
                middle(program, measure, allocator).map(absolute)
            } else {
                ratio(race, measure, program, allocator, base)
            };
            let cell = cell.unwrap_or_else(|| why_not(program, allocator));
            text.push_str(&format!(" {cell} |"));
        }
        text.push('\n');
    }
    text
}

fn ratio(
    race: &Race,
    measure: Measure,
    program: &Program,
    allocator: usize,
    base: Option<usize>,
) -> Option<String> {
    let estimate = single(race, measure, program, allocator, base?)?;
    let ours = race.allocators[allocator] == US;
    Some(if ours { shown(estimate) } else { format!("{:.2}", estimate.value) })
}

/// The word for a cell without a number.
fn why_not(program: &Program, allocator: usize) -> String {
    match &program.outcomes[allocator] {
        Outcome::Failed(why) => why.split(':').next().unwrap_or(why).to_owned(),
        // Then it is the baseline that has no number.
        Outcome::Ran(_) | Outcome::NotRaced => "-".to_owned(),
    }
}

fn means<'a, I: Iterator<Item = &'a Program>>(
    race: &Race,
    name: &str,
    measure: Measure,
    programs: &dyn Fn() -> I,
) -> String {
    let mut text = format!("| **{name}** |");
    for (allocator, title) in race.allocators.iter().enumerate() {
        let cell = race
            .allocator(BASE)
            .and_then(|base| mean(race, measure, programs(), allocator, base))
            .map_or("-".to_owned(), |(estimate, _)| {
                if title == US { shown(estimate) } else { format!("{:.2}", estimate.value) }
            });
        text.push_str(&format!(" **{cell}** |"));
    }
    text.push('\n');
    text
}

/// What a reader must know of the tables above.
pub(crate) fn feet(race: &Race) -> String {
    let mut text = String::new();
    if !race.complete {
        text.push_str("- The race was interrupted: this is a part of it.\n");
    }
    for program in &race.programs {
        for (allocator, name) in race.allocators.iter().enumerate() {
            if let Outcome::Failed(why) = &program.outcomes[allocator] {
                text.push_str(&format!(
                    "- {} under {name} {why}; it is left out of {name}'s means.\n",
                    program.name
                ));
            }
        }
    }
    let seldom: Vec<&str> = race
        .counted()
        .filter(|program| {
            let asked = if program.long { ROUNDS_LONG } else { ROUNDS };
            let ours = race.allocator(US).and_then(|us| program.runs(us));
            ours.is_some_and(|runs| runs.len() < asked)
        })
        .map(|program| program.name.as_str())
        .collect();
    if !seldom.is_empty() {
        text.push_str(&format!(
            "- Fewer rounds than the figures ask for ({ROUNDS}, {ROUNDS_LONG} for a long program): {}.\n",
            seldom.join(", ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::made_up;

    fn race() -> Race {
        made_up(
            &["glibc", "heapwright", "peer"],
            &[
                ("empty", Some(0), &[&[(1.0, 2.0)], &[(1.0, 2.0)], &[(1.0, 2.0)]]),
                ("a", Some(64 << 20), &[&[(100.0, 66.0)], &[(50.0, 34.0)], &[]]),
                ("b", None, &[&[(10.0, 4.0)], &[(20.0, 8.0)], &[(5.0, 4.0)]]),
            ],
        )
    }

    #[test]
    fn cells_are_ratios_or_reasons() {
        let time = time(&race());
        assert!(time.contains("| a | 100 ms | 0.50 (0.50 to 0.50) | crashed |\n"), "{time}");
        assert!(
            time.contains(
                "| **geomean, programs** | **1.00** | **2.00 (2.00 to 2.00)** | **0.50** |"
            )
        );
        assert!(
            time.contains("| **geomean, all** | **1.00** | **1.00 (1.00 to 1.00)** | **0.50** |")
        );
    }

    #[test]
    fn memory_counts_where_there_is_some() {
        let peak = peak(&race());
        assert!(peak.contains("| a* | 66.0 MiB | 0.52 (0.52 to 0.52) | crashed |\n"), "{peak}");
        assert!(peak.contains("| b | 4.0 MiB | 2.00 (2.00 to 2.00) | 1.00 |\n"));
        assert!(
            peak.contains("| **geomean, starred** | **1.00** | **0.50 (0.50 to 0.50)** | **-** |")
        );
    }

    #[test]
    fn the_feet_say_what_failed_and_what_was_seldom() {
        let mut race = race();
        assert!(!feet(&race).contains("interrupted"));
        race.complete = false;
        let feet = feet(&race);
        assert!(feet.contains("interrupted"));
        assert!(feet.contains("a under peer crashed: signal 11; it is left out of peer's means."));
        assert!(feet.contains("for a long program): a, b."), "{feet}");
    }
}
