//! A race, on a screen.
//!
//! A few programs have a table each, the fastest allocator first:
//!
//! ```text
//! allocator      time    +-  ratio to glibc          CPU   peak RSS  ratio     faults
//! heapwright  50.0 ms  0.3%  0.50 (0.50..0.51)   49.8 ms   34.0 MiB   0.81      8,704
//! ```
//!
//! Many programs have a matrix of ratios for time and one for peak memory. The means over all
//! programs follow, and a sentence for each other allocator.

use crate::bench::allocators::{self, HEAPWRIGHT};
use crate::bench::comparison::{self, Group};
use crate::bench::results::{Entry, Measure, Program, Results};
use crate::bench::statistics::Verdict;
use crate::output::document::{Table, cells};
use crate::output::race::{self, Middle, WIDTH};
use crate::output::{Look, units};
use heapwright_workloads::Workload;
use std::fmt::Write;

/// The most programs that have tables of their own.
const FEW: usize = 3;

pub(crate) fn report(results: &Results, look: Look) -> String {
    let mut out = String::new();
    let heading = format!(
        "heapwright bench: {}, {}, {}",
        race::field(results),
        units::counted(results.allocators.len() as u64, "allocator"),
        race::rounds(results)
    );
    let _ = writeln!(out, "{}", look.strong(&heading));
    let counted = results.programs.iter().filter(|p| !p.is_empty_workload()).count();
    if counted <= FEW {
        for program in &results.programs {
            if counted == 0 || !program.is_empty_workload() {
                table(&mut out, results, program, look);
            }
        }
    } else {
        matrix(&mut out, results, Measure::Time, look);
        matrix(&mut out, results, Measure::PeakRss, look);
    }
    if counted > 1 {
        for group in race::groups(results) {
            means(&mut out, results, group, look);
        }
    }
    sentences(&mut out, results);
    foot(&mut out, results);
    out
}

/// Writes one program's table: a row for each allocator, by time.
fn table(out: &mut String, results: &Results, program: &Program, look: Look) {
    if program.results.iter().all(|entry| Middle::of(entry).is_none()) {
        return;
    }
    out.push('\n');
    if results.programs.len() > 1 {
        let about = format!("{}: {}", program.name, program.stands_for);
        let _ = writeln!(out, "{}", race::wrapped(&about));
    }
    out.push_str(&race::figures(results, program, false).text(look));
}

/// Writes matrices of programs by allocators, each with as many allocators as fit in the width.
fn matrix(out: &mut String, results: &Results, measure: Measure, look: Look) {
    let baseline = results.baseline();
    let raced = |at: &usize| results.programs.iter().any(|p| !p.results[*at].runs.is_empty());
    let others: Vec<usize> =
        (0..results.allocators.len()).filter(|at| *at != baseline).filter(raced).collect();
    let first = results.programs.iter().map(|p| p.name.chars().count()).max().unwrap_or(0).max(12);
    let own = results.baseline.chars().count().max(10);
    let (what, note) = match measure {
        Measure::Time => ("time", "~ is a tie"),
        _ => ("peak RSS", "of the largest process"),
    };
    let heading =
        format!("{what}: {} as measured, the others as ratios to it ({note})", results.baseline);
    let _ = writeln!(out, "\n{}", look.strong(&heading));
    let mut rest = &others[..];
    while !rest.is_empty() {
        let mut used = first + own + 2;
        let fitting = rest
            .iter()
            .take_while(|at| {
                used += column(results, **at) + 2;
                used <= WIDTH
            })
            .count()
            .max(1);
        let (block, later) = rest.split_at(fitting);
        matrix_block(out, results, measure, block, first, own);
        rest = later;
        if !rest.is_empty() {
            let _ = writeln!(out);
        }
    }
}

fn column(results: &Results, at: usize) -> usize {
    results.allocators[at].name.chars().count().max(7)
}

fn matrix_block(
    out: &mut String,
    results: &Results,
    measure: Measure,
    block: &[usize],
    first: usize,
    own: usize,
) {
    let baseline = results.baseline();
    let mut columns = format!(":{first}|>{}:{}", race::title(&results.baseline), own + 1);
    for &at in block {
        let name = race::title(&results.allocators[at].name);
        columns += &format!("|>{name}:{}", column(results, at) + 1);
    }
    let mut table = Table::new(&columns);
    for program in &results.programs {
        let absolute = match Middle::of(&program.results[baseline]) {
            Some(middle) if measure == Measure::Time => units::duration(middle.time),
            Some(middle) => units::bytes(middle.peak_rss),
            None => race::failure_word(program.results[baseline].outcome).to_owned(),
        };
        let mut cells = cells![&program.name, absolute];
        cells.extend(block.iter().map(|&at| cell(results, program, at, measure).into()));
        table.row("", cells);
    }
    for group in [Group::Workloads, Group::Programs, Group::All] {
        if !race::groups(results).contains(&group) {
            continue;
        }
        let mut cells = cells![format!("mean of {}", group.name()), "1"];
        cells.extend(block.iter().map(|&at| {
            let mean = race::mean(results, group, measure, &results.allocators[at].name);
            mean.map_or_else(|| "-".to_owned(), |mean| marked(mean.estimate(), measure)).into()
        }));
        table.row("", cells);
    }
    let text = table.text(Look { colour: false, unicode: false });
    for (at, line) in text.lines().enumerate() {
        if at == results.programs.len() + 1 {
            let _ = writeln!(out, "{}", "-".repeat(line.chars().count()));
        }
        let _ = writeln!(out, "{line}");
    }
}

fn cell(results: &Results, program: &Program, at: usize, measure: Measure) -> String {
    let entry: &Entry = &program.results[at];
    match comparison::on_program(results, program, at, results.baseline(), measure) {
        Some(estimate) => marked(estimate, measure),
        None => race::failure_word(entry.outcome).to_owned(),
    }
}

/// Returns a ratio; a tie in time is marked.
fn marked(estimate: crate::bench::statistics::Estimate, measure: Measure) -> String {
    let tie = measure == Measure::Time && estimate.verdict() == Verdict::Tie;
    format!("{}{}", if tie { "~" } else { "" }, race::ratio(estimate.value))
}

/// Writes the geometric means over a group.
fn means(out: &mut String, results: &Results, group: Group, look: Look) {
    let (what, table) = race::means(results, group);
    let heading = format!("geometric mean of {what}, ratio to {}", results.baseline);
    let _ = write!(out, "\n{}\n{}", look.strong(&heading), table.text(look));
}

fn sentences(out: &mut String, results: &Results) {
    let all = race::sentences(results);
    if !all.is_empty() {
        let _ = writeln!(out);
    }
    for sentence in all {
        let _ = writeln!(out, "{sentence}");
    }
}

/// Failures, notes, and the machine.
fn foot(out: &mut String, results: &Results) {
    let counted = results.programs.iter().filter(|p| !p.is_empty_workload()).count();
    let failures = race::failures(results);
    if counted > FEW && !failures.is_empty() {
        let _ = writeln!(out);
        for (where_, words) in failures {
            let _ = writeln!(out, "{where_}: {words}");
        }
    }
    let _ = writeln!(out, "\n{}", race::machine(results));
    for note in race::notes(results) {
        let _ = writeln!(out, "note: {note}");
    }
}

/// Returns the text of `--list`: the allocators and programs of a race.
pub(crate) fn list(all: &[allocators::Allocator], workloads: &[Workload]) -> String {
    let mut out = String::from("allocators\n");
    let name = all.iter().map(|one| one.name.len()).max().unwrap_or_default();
    for one in all {
        let from = match &one.library {
            None => "the C library's malloc".to_owned(),
            Some(_) if one.name == HEAPWRIGHT => "this command's library".to_owned(),
            Some(path) => path.display().to_string(),
        };
        let set: String = one
            .environment
            .iter()
            .map(|(variable, value)| format!(", {variable}={value}"))
            .collect();
        let _ = writeln!(out, "  {:<name$}  {from}{set}", one.name);
    }
    out.push_str("\nworkloads\n");
    let name = workloads.iter().map(|one| one.name.len()).max().unwrap_or_default();
    for one in workloads {
        let _ = writeln!(out, "  {:<name$}  {}", one.name, one.stands_for);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::comparison::tests::example;
    use crate::bench::results::Kind;
    use crate::output::{html, json, sample};

    #[test]
    fn a_race_is_printed_as_it_was() {
        let one = example(&[("odd", Kind::Program)]);
        let names = ["empty", "small", "large", "odd", "even"];
        let kind = |name| if name == "odd" { Kind::Program } else { Kind::Workload };
        let many = example(&names.map(|name| (name, kind(name))));
        sample::golden("bench-one.text", &report(&one, Look::PLAIN));
        sample::golden("bench-many.text", &report(&many, Look::PLAIN));
        sample::golden("bench.html", &html::bench::document(&many).page().expect("renders"));
        sample::golden("bench.json", &json::text(&one));
    }
}
