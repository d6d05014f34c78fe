//! A replay.
//!
//! ```text
//! allocator    time/op    +-  ratio to glibc           CPU/op  peak memory  over live     at end
//! heapwright   50.1 ns  0.3%  0.50 (0.50..0.51)       49.8 ns      2.4 MiB       1.14    2.1 MiB
//! ```

use super::document::{Document, Part, Table, cells};
use super::{json, race, recorded, units};
use crate::bench::results::Outcome;
use crate::bench::statistics::{self, Ratios, SURE_ROUNDS, Verdict};
use crate::replay::results::{Answer, Results, Row};

pub(crate) fn document(results: &Results) -> Document<'_> {
    let trace = &results.trace;
    let whose = trace.program.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let rounds = units::counted(results.rounds as u64, "round");
    let explained = format!(
        "\ntime/op: by the clock, median of {rounds}; +-: half the quartiles' distance; ratios with \
         their 95 % interval.\npeak memory: the most that was resident, without the player's own; \
         over live: that, by the\npeak of live bytes; at end: what is resident after the last \
         operation, with {} live.",
        units::bytes(trace.facts.left_bytes)
    );
    let few = format!("with fewer than {SURE_ROUNDS} rounds, the intervals are not reliable");
    let few = (results.rounds < SURE_ROUNDS).then_some(&few);
    let mut parts = vec![
        Part::heading(format!("heapwright replay: {}{whose}", trace.name)),
        Part::text_of("", recorded(&trace.facts)),
        Part::Table(table(results)),
        Part::text_of("", explained),
    ];
    let notes = few.into_iter().chain(&results.notes);
    parts.extend(notes.map(|note| Part::text_of("", format!("note: {note}"))));
    let mut document =
        Document { data: Some(Box::new(|| json::text(results))), ..Document::default() };
    document.add("", "", parts);
    document
}

fn table(results: &Results) -> Table {
    let rows = &results.rows;
    let names = rows.iter().map(|row| row.allocator.name.len());
    let first = rows.first().map_or("", |first| &first.allocator.name);
    let mut table = Table::new(&format!(
        "allocator:{}|>time/op:9|>+-:6|ratio to {}:23|>CPU/op:9\
         |>peak memory:12|>over live:10|>at end:10",
        names.max().unwrap_or(0),
        race::title(first)
    ));
    for (at, row) in rows.iter().enumerate() {
        let name = row.allocator.name.as_str();
        if row.outcome != Outcome::Ok || row.runs.is_empty() {
            let why = row.detail.as_deref().unwrap_or("not measured");
            table.row("", cells![name, failure(row.outcome, why)]);
            continue;
        }
        let values = |of: fn(&Answer) -> f64| -> Vec<f64> { row.runs.iter().map(of).collect() };
        let middle = |of| statistics::median(&values(of)).unwrap_or_default();
        let peak = middle(|run| run.peak_bytes as f64);
        let spread = statistics::spread(&values(Answer::time)).unwrap_or_default();
        let live = results.trace.facts.peak_live_bytes;
        let over_live = if live == 0 { "-".to_owned() } else { race::ratio(peak / live as f64) };
        let cells = cells![
            name,
            nanoseconds(middle(Answer::time)),
            format!("{:.1}%", spread * 100.0),
            if at == 0 { "1".to_owned() } else { ratio(row, &rows[0]) },
            nanoseconds(middle(Answer::cpu)),
            units::bytes(peak as u64),
            over_live,
            units::bytes(middle(|run| run.left_bytes as f64) as u64),
        ];
        table.row("", cells);
    }
    table
}

fn ratio(row: &Row, first: &Row) -> String {
    let pairs = row.runs.iter().zip(&first.runs).map(|(this, that)| (this.time(), that.time()));
    let Some(ratios) = Ratios::new(pairs) else { return "-".to_owned() };
    let estimate = ratios.estimate();
    let tie = if estimate.verdict() == Verdict::Tie { " tie" } else { "" };
    format!("{}{tie}", race::estimate(&estimate))
}

fn failure(outcome: Outcome, why: &str) -> String {
    match outcome {
        Outcome::Ok | Outcome::Failed => why.to_owned(),
        Outcome::Crashed => format!("crashed ({why})"),
        Outcome::Hung => format!("hung ({why})"),
        Outcome::Differs => format!("loses what is written ({why})"),
        Outcome::NotTaken => format!("could not be preloaded ({why})"),
    }
}

/// Formats a time: `12.3 ns`, `1.2 us`.
fn nanoseconds(ns: f64) -> String {
    match ns {
        ..1000.0 => format!("{ns:.1} ns"),
        ..1e6 => format!("{:.1} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Allocator, Head};
    use crate::output::Look;
    use crate::replay::Touch;
    use crate::replay::results::Trace;
    use crate::report::sample;
    use crate::trace::Facts;

    fn row(name: &str, outcome: Outcome, detail: Option<&str>, wall_ns: &[u64]) -> Row {
        let answer = |&wall_ns: &u64| Answer {
            operations: 1000,
            wall_ns,
            user_ns: 20_000,
            peak_bytes: 3 << 20,
            left_bytes: 1 << 20,
            ..Answer::default()
        };
        Row {
            allocator: Allocator { name: name.to_owned(), ..Allocator::default() },
            outcome,
            detail: detail.map(str::to_owned),
            runs: wall_ns.iter().map(answer).collect(),
        }
    }

    #[test]
    fn a_table_says_it_all() {
        let facts = Facts {
            threads: 1,
            operations: 1000,
            peak_live_bytes: 2 << 20,
            peak_live_blocks: 10,
            ..Facts::default()
        };
        let results = Results {
            head: Head::default(),
            trace: Trace { name: "x.trace".to_owned(), process: None, program: None, facts },
            rounds: 3,
            touch: Touch::Pages,
            sequential: false,
            complete: true,
            notes: vec!["busy".to_owned()],
            rows: vec![
                row("glibc", Outcome::Ok, None, &[50_000; 3]),
                row("heapwright", Outcome::Ok, None, &[25_000; 3]),
                row("broken", Outcome::Crashed, Some("signal 11, SIGSEGV"), &[]),
            ],
        };
        sample::golden("replay.text", &document(&results).text(Look::PLAIN));
        assert_eq!(nanoseconds(1500.0), "1.5 us");
        assert_eq!(nanoseconds(2.5e6), "2.5 ms");
    }
}
