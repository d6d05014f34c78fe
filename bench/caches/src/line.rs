//! What a program of programs/ prints: one line.
//!
//! ```text
//! result program=rpc threads=40 wall_ns=654912669 operations=8203004 ... p50_ns=1212416
//! ```
//!
//! | name | |
//! |---|---|
//! | threads | at once |
//! | wall_ns, cpu_ns | of the work: after the tables were made, before the line is printed |
//! | operations, ns_an_operation | calls of the allocator; wall time over calls |
//! | live_peak, live_error | the most bytes that the program held, as asked for; how far off that may be |
//! | rss_peak, rss_end, anonymous_end | resident bytes at the peak and at the end, and what of these is no file |
//! | stacks, own | what of it are stacks of threads, and tables of the program |
//! | every, timed, inside_ns, clock_ns | with a clock: each so-manieth call, how many, the time inside of all calls, what a reading costs (taken off) |
//! | total | threads in all (ttest1, churn) |
//! | clients, servers, requests, p50_ns, p99_ns, p999_ns | of rpc |
//! | anonymous_first, stacks_first | of churn: after the first 10 threads |
//! | bursts | of idle |

use std::collections::BTreeMap;

use ::figures::record::Record;

/// The numbers by their names.
pub(crate) type Numbers = BTreeMap<String, f64>;

/// What every line has.
const ALWAYS: [&str; 12] = [
    "threads",
    "wall_ns",
    "cpu_ns",
    "operations",
    "ns_an_operation",
    "live_peak",
    "live_error",
    "rss_peak",
    "rss_end",
    "anonymous_end",
    "stacks",
    "own",
];
/// What a line of a timed run has besides.
const TIMED: [&str; 4] = ["every", "timed", "inside_ns", "clock_ns"];

/// What a program's own line has besides.
fn of_program(program: &str) -> Option<&'static [&'static str]> {
    Some(match program {
        "empty" => &[],
        "ttest1" => &["total"],
        "rpc" => &["clients", "servers", "requests", "p50_ns", "p99_ns", "p999_ns"],
        "churn" => &["total", "anonymous_first", "stacks_first"],
        "idle" => &["bursts"],
        _ => return None,
    })
}

/// Reads what `program` printed.
pub(crate) fn parse(text: &str, program: &str, timed: bool) -> Result<Numbers, String> {
    let own = of_program(program).ok_or_else(|| format!("there is no program {program}"))?;
    let timing: &[&str] = if timed { &TIMED } else { &[] };
    let needed = ALWAYS.iter().chain(own).chain(timing).copied();
    let record = Record::result(text, needed)?;
    match record.word("program") {
        Some(name) if name == program => Ok(record.numbers()),
        name => Err(format!("it is {}, not {program}", name.unwrap_or("nameless"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "result program=idle threads=100 wall_ns=1000826520 cpu_ns=201143396 \
        operations=400000 ns_an_operation=2502.07 live_peak=1246437 live_error=409600 \
        rss_peak=11681792 rss_end=11681792 anonymous_end=10481664 stacks=409600 own=245760 \
        bursts=2000\n";

    #[test]
    fn a_line_is_numbers() {
        let numbers = parse(LINE, "idle", false).unwrap();
        assert_eq!((numbers["threads"], numbers["ns_an_operation"]), (100.0, 2502.07));
        assert_eq!(numbers.len(), ALWAYS.len() + 1);
    }

    #[test]
    fn a_timed_line_says_how_it_was_timed() {
        assert!(parse(LINE, "idle", true).unwrap_err().contains("no every"));
        let timed = LINE.replace("\n", " every=61 timed=5 inside_ns=70 clock_ns=9.50\n");
        assert_eq!(parse(&timed, "idle", true).unwrap()["clock_ns"], 9.5);
    }

    #[test]
    fn what_is_of_another_program_or_short_is_refused() {
        let refused = |text: &str| parse(text, "idle", false).unwrap_err();
        assert!(refused(&LINE.replace(" bursts=2000", "")).contains("no bursts"));
        assert!(refused(&LINE.replace("program=idle", "program=rpc")).contains("it is rpc"));
    }
}
