//! Makes cells of the file that `heapwright bench --format json` writes.
//!
//! ```text
//!   section                 row       column     metrics
//!   race                    program   allocator  wall_ns, peak
//!   workloads, programs     the same by kind
//!   memory                  the same   above: the peak above the empty program's, if the program
//!                                      is heavy: >= 32 MiB live, or taken under glibc
//!   start                   the empty program, whose peak is part of every peak
//! ```
//!
//! An error names a required field that is missing or has another type. If one of two allocators
//! failed on a program, the mean of the pair leaves that program out.

use ::figures::cells::Cells;
use serde_json::Value;

const SCHEMA: &str = "heapwright-bench/1";
/// The least memory at which the program, and not its start, determines the peak.
const HEAVY_BYTES: f64 = 32.0 * 1024.0 * 1024.0;
const EMPTY: &str = "empty";

/// Reads a race's file. Returns its numbers, and whether all of its rounds were run.
pub(crate) fn cells(text: &str) -> Result<(Cells, bool), String> {
    let file: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
    let schema = file["schema"].as_str().unwrap_or("nothing");
    if schema != SCHEMA {
        return Err(format!("its schema is {schema}, and this program reads {SCHEMA}"));
    }
    let mut cells = Cells::default();
    let programs = list(&file, "programs")?;
    for program in programs {
        let name = text_of(program, "name")?;
        add(&mut cells, &name, program).map_err(|e| format!("program {name}: {e}"))?;
    }
    for program in programs {
        weigh(&mut cells, &text_of(program, "name")?, program);
    }
    Ok((cells, file["complete"].as_bool().unwrap_or(true)))
}

fn add(cells: &mut Cells, name: &str, program: &Value) -> Result<(), String> {
    let kind = text_of(program, "kind")? + "s";
    let sections = if name == EMPTY { vec!["start"] } else { vec!["race", &kind] };
    for result in list(program, "results")? {
        let (allocator, outcome) = (text_of(result, "allocator")?, text_of(result, "outcome")?);
        for section in &sections {
            let cell = ((*section).to_owned(), name.to_owned(), allocator.clone());
            if outcome != "ok" {
                cells.add(&cell, 1, "failed", 1.0);
                continue;
            }
            for (round, run) in list(result, "runs")?.iter().enumerate() {
                cells.add(&cell, round, "wall_ns", number(run, "wall_ns")?);
                cells.add(&cell, round, "peak", number(run, "peak_rss_bytes")?);
            }
        }
    }
    Ok(())
}

/// A workload is heavy by its stated live bytes, a real program by its peak under glibc.
fn weigh(cells: &mut Cells, name: &str, program: &Value) {
    let above = |allocator: &str| {
        let empty = cells.middle(("start", EMPTY, allocator), "peak")?;
        let peaks = cells.of(("race", name, allocator), "peak")?.iter();
        // At least one page: a ratio to zero means nothing.
        Some(peaks.map(|(round, peak)| (*round, (peak - empty).max(4096.0))).collect::<Vec<_>>())
    };
    let middle = |rounds: Vec<(usize, f64)>| {
        ::figures::statistics::median(&rounds.iter().map(|one| one.1).collect::<Vec<_>>())
    };
    let live = program["live_bytes"].as_f64().filter(|_| program["kind"] == "workload");
    if !live.or_else(|| above("glibc").map(middle)).is_some_and(|bytes| bytes >= HEAVY_BYTES) {
        return;
    }
    let columns = cells.columns("race").into_iter().map(str::to_owned);
    let all: Vec<_> = columns.filter_map(|one| Some((above(&one)?, one))).collect();
    for (rounds, allocator) in all {
        let cell = ("memory".to_owned(), name.to_owned(), allocator);
        for (round, bytes) in rounds {
            cells.add(&cell, round, "above", bytes);
        }
    }
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
    value[name].as_array().ok_or_else(|| format!("no list named {name}"))
}

fn text_of(value: &Value, name: &str) -> Result<String, String> {
    value[name].as_str().map(str::to_owned).ok_or_else(|| format!("no text named {name}"))
}

fn number(value: &Value, name: &str) -> Result<f64, String> {
    value[name].as_f64().ok_or_else(|| format!("no number named {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MIB: f64 = 1048576.0;

    fn program(name: &str, live: Option<f64>, peaks: [Option<f64>; 2]) -> Value {
        let result = |(allocator, peak): (&str, Option<f64>)| {
            let runs: Vec<Value> = peak
                .iter()
                .map(|mib| json!({"wall_ns": 1e6, "peak_rss_bytes": mib * MIB}))
                .collect();
            let outcome = if runs.is_empty() { "crashed" } else { "ok" };
            json!({"allocator": allocator, "outcome": outcome, "runs": runs})
        };
        let results: Vec<Value> = ["glibc", "peer"].into_iter().zip(peaks).map(result).collect();
        let kind = if live.is_some() { "workload" } else { "program" };
        json!({"name": name, "kind": kind, "live_bytes": live.map(|mib| mib * MIB), "results": results})
    }

    #[test]
    fn memory_is_counted_above_the_empty_program_where_there_is_some() {
        let programs = [
            program("empty", Some(0.0), [Some(2.0), Some(10.0)]),
            program("light", Some(31.0), [Some(90.0), Some(90.0)]),
            program("full", Some(32.0), [Some(20.0), Some(20.0)]),
            program("small program", None, [Some(33.0), Some(33.0)]),
            program("large program", None, [Some(34.0), None]),
        ];
        let file = json!({"schema": SCHEMA, "programs": programs});
        let (cells, complete) = super::cells(&file.to_string()).unwrap();
        assert!(complete);
        assert_eq!(cells.rows("memory"), ["full", "large program"]);
        assert_eq!(cells.middle(("memory", "full", "peer"), "above"), Some(10.0 * MIB));
        assert_eq!((cells.rows("race").len(), cells.rows("programs").len()), (4, 2));
        assert!(cells.of(("race", "large program", "peer"), "failed").is_some());
    }

    #[test]
    fn a_bad_file_is_named_and_an_interrupted_race_is_known_as_one() {
        let error = |text: &str| cells(text).map(|_| ()).unwrap_err();
        assert!(error("{").contains("not JSON"));
        assert!(error(r#"{"schema":"other/2"}"#).contains("other/2"));
        let of = |more: &str| format!(r#"{{"schema":"{SCHEMA}",{more}"programs":[]}}"#);
        assert!(error(&of("").replace("[]", r#"[{"name":"x"}]"#)).contains("program x"));
        let complete = |more: &str| cells(&of(more)).unwrap().1;
        assert!(complete("") && !complete(r#""complete":false,"#));
    }
}
