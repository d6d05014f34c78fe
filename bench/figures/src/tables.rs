//! The tables for the documentation: every program under every allocator, as
//! ratios to glibc, in markdown; and the feet below them, which say what failed
//! and what was measured too seldom.

use crate::figures::shown;
use crate::race::{ABOVE, BASE, PEAK, Program, Race, TIME, US};
use ::figures::cells::matrix;

/// What the figures ask for: rounds of a short program and of a long one.
const ROUNDS: usize = 15;
const ROUNDS_LONG: usize = 7;

/// Wall time.
pub(crate) fn time(race: &Race) -> String {
    let title = "Wall time: glibc's in milliseconds, the others' ratios to it (below 1 is faster); \
                 heapwright's with its 95 % interval.";
    let milliseconds = |ns: f64| format!("{:.0} ms", ns / 1e6);
    let mut text = grid(race, title, TIME, &milliseconds, &|_| "");
    for (name, of) in [
        ("geomean, workloads", (|program| program.is_workload) as fn(&Program) -> bool),
        ("geomean, programs", |program| !program.is_workload),
        ("geomean, all", |_| true),
    ] {
        text.push_str(&means(race, name, TIME, &|program| of(program)));
    }
    text
}

/// Peak memory.
pub(crate) fn peak(race: &Race) -> String {
    let title = "Peak RSS: glibc's in MiB, the others' ratios to it (below 1 is leaner). Programs with a \
                 star have >= 32 MiB live; the mean is over these, above what an empty program takes.";
    let mebibytes = |bytes: f64| format!("{:.1} MiB", bytes / 1048576.0);
    let star = |program: &Program| if race.is_heavy(program) { "*" } else { "" };
    grid(race, title, PEAK, &mebibytes, &star)
        + &means(race, "geomean, starred", ABOVE, &|program| race.is_heavy(program))
}

fn grid(
    race: &Race,
    title: &str,
    measure: &str,
    absolute: &dyn Fn(f64) -> String,
    star: &dyn Fn(&Program) -> &'static str,
) -> String {
    let names: Vec<String> =
        race.programs.iter().map(|one| format!("{}{}", one.name, star(one))).collect();
    let rows: Vec<&str> = names.iter().map(String::as_str).collect();
    let columns: Vec<&str> = race.allocators.iter().map(String::as_str).collect();
    let table = matrix("program", &rows, &columns, |row, allocator| {
        let named = |program: &&Program| row.trim_end_matches('*') == program.name;
        let Some(program) = race.programs.iter().find(named) else { return String::new() };
        let cell = if allocator == BASE {
            race.middle(program, allocator, measure).map(absolute)
        } else {
            let ratio = race.single(program, (allocator, BASE), measure);
            ratio.map(|ratio| match allocator {
                US => shown(ratio),
                _ => format!("{:.2}", ratio.value),
            })
        };
        // The word for a cell without a number; or it is the baseline that has none.
        let word = || race.failure(program, allocator)?.split(':').next();
        cell.unwrap_or_else(|| word().unwrap_or("-").to_owned())
    });
    format!("{title}\n\n{}\n", table.trim_end())
}

fn means(race: &Race, name: &str, measure: &str, of: &dyn Fn(&Program) -> bool) -> String {
    let mut text = format!("| **{name}** |");
    for allocator in &race.allocators {
        let programs = race.counted().filter(|program| of(program));
        let cell = match race.mean(programs, (allocator, BASE), measure) {
            Some((estimate, _)) if allocator == US => shown(estimate),
            Some((estimate, _)) => format!("{:.2}", estimate.value),
            None => "-".to_owned(),
        };
        text.push_str(&format!(" **{cell}** |"));
    }
    text + "\n"
}

/// What a reader must know of the tables above.
pub(crate) fn feet(race: &Race) -> String {
    let mut text = String::new();
    if !race.complete {
        text.push_str("- The race was interrupted: this is a part of it.\n");
    }
    for program in &race.programs {
        for name in &race.allocators {
            if let Some(why) = race.failure(program, name) {
                text.push_str(&format!(
                    "- {} under {name} {why}; it is left out of {name}'s means.\n",
                    program.name
                ));
            }
        }
    }
    let asked = |program: &Program| if program.long { ROUNDS_LONG } else { ROUNDS };
    let seldom: Vec<&str> = race
        .counted()
        .filter(|program| (1..asked(program)).contains(&race.rounds(program, US)))
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
    use crate::race::tests::made_up;

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
