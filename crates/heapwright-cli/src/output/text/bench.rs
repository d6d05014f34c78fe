//! A race, on a screen.
//!
//! Of a few programs each has a table of its own, the fastest allocator first:
//!
//! ```text
//! allocator      time    +-  ratio to glibc          CPU   peak RSS  ratio     faults
//! heapwright  50.0 ms  0.3%  0.50 (0.50..0.51)   49.8 ms   34.0 MiB   0.81      8,704
//! ```
//!
//! Of many, a matrix of ratios for time and one for peak memory; then, always,
//! the means over all of them and a sentence for each other allocator.

use crate::bench::allocators::{self, HEAPWRIGHT};
use crate::bench::comparison::{self, Group};
use crate::bench::results::{Entry, Measure, Program, Results};
use crate::bench::statistics::Verdict;
use crate::output::race::{self, Middle, WIDTH};
use crate::output::{Look, units};
use heapwright_workloads::Workload;
use std::fmt::Write;

/// Up to so many programs have tables of their own.
const FEW: usize = 3;

/// The whole report.
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

/// One program: a row an allocator, by time.
fn table(out: &mut String, results: &Results, program: &Program, look: Look) {
    let mut rows: Vec<(usize, Option<Middle>)> =
        program.results.iter().map(Middle::of).enumerate().collect();
    if rows.iter().all(|(_, middle)| middle.is_none()) {
        return;
    }
    rows.sort_by_key(|(_, middle)| {
        middle.as_ref().map_or((true, None), |middle| (false, Some(middle.time)))
    });
    let empty = comparison::empty_peak(results).filter(|_| program.live_bytes.is_some());
    let name = name_width(results);
    let _ = writeln!(out);
    if results.programs.len() > 1 {
        let about = format!("{}: {}", program.name, program.stands_for);
        let _ = writeln!(out, "{}", race::wrapped(&about));
    }
    let ratio_title = format!("ratio to {}", results.baseline);
    let mut title = format!(
        "{:<name$} {:>9} {:>6}  {ratio_title:<22} {:>9} {:>10} {:>6}",
        "allocator", "time", "+-", "CPU", "peak RSS", "ratio"
    );
    if empty.is_some() {
        let _ = write!(title, " {:>11}", "above empty");
    }
    let _ = writeln!(out, "{}", look.strong(&format!("{title} {:>10}", "faults")));
    let baseline = results.baseline();
    for (at, middle) in rows {
        let label = &results.allocators[at].name;
        let Some(middle) = middle else {
            let why = program.results.get(at).and_then(race::failure).unwrap_or_default();
            let _ = writeln!(out, "{label:<name$} {why}");
            continue;
        };
        let compared = |measure| comparison::on_program(results, program, at, baseline, measure);
        let (ratio, memory) = if at == baseline {
            ("1".to_owned(), "1".to_owned())
        } else {
            let time = compared(Measure::Time).map(|estimate| {
                let tie = if estimate.verdict() == Verdict::Tie { " tie" } else { "" };
                format!("{}{tie}", race::estimate(&estimate))
            });
            let memory = compared(Measure::PeakRss).map(|estimate| race::ratio(estimate.value));
            (time.unwrap_or_default(), memory.unwrap_or_default())
        };
        let _ = write!(
            out,
            "{label:<name$} {:>9} {:>6}  {ratio:<22} {:>9} {:>10} {memory:>6}",
            units::duration(middle.time),
            format!("{:.1}%", middle.spread * 100.0),
            units::duration(middle.cpu),
            units::bytes(middle.peak_rss),
        );
        if let Some(empty) = empty {
            let _ = write!(out, " {:>11}", units::bytes(middle.peak_rss.saturating_sub(empty)));
        }
        let _ = writeln!(out, " {:>10}", units::count(middle.faults));
    }
}

fn name_width(results: &Results) -> usize {
    let names = results.allocators.iter().map(|allocator| allocator.name.chars().count());
    names.max().unwrap_or_default().max("allocator".len())
}

/// Programs down, allocators across: as many at a time as fit.
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
    let _ = write!(out, "{:<first$}  {:>own$}", "", results.baseline);
    for &at in block {
        let _ =
            write!(out, "  {:>width$}", results.allocators[at].name, width = column(results, at));
    }
    let _ = writeln!(out);
    for program in &results.programs {
        let absolute = match Middle::of(&program.results[baseline]) {
            Some(middle) if measure == Measure::Time => units::duration(middle.time),
            Some(middle) => units::bytes(middle.peak_rss),
            None => race::failure_word(program.results[baseline].outcome).to_owned(),
        };
        let mut line = format!("{:<first$}  {absolute:>own$}", program.name);
        for &at in block {
            let text = cell(results, program, at, measure);
            let _ = write!(line, "  {text:>width$}", width = column(results, at));
        }
        let _ = writeln!(out, "{line}");
    }
    let mut ruled = false;
    for group in [Group::Workloads, Group::Programs, Group::All] {
        if !race::groups(results).contains(&group) {
            continue;
        }
        let mut line = format!("{:<first$}  {:>own$}", format!("mean of {}", group.name()), "1");
        for &at in block {
            let mean = race::mean(results, group, measure, &results.allocators[at].name);
            let text = mean.map_or_else(|| "-".to_owned(), |mean| marked(mean.estimate(), measure));
            let _ = write!(line, "  {text:>width$}", width = column(results, at));
        }
        if !ruled {
            let _ = writeln!(out, "{}", "-".repeat(line.chars().count()));
            ruled = true;
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

/// A ratio; a tie in time is marked.
fn marked(estimate: crate::bench::statistics::Estimate, measure: Measure) -> String {
    let tie = measure == Measure::Time && estimate.verdict() == Verdict::Tie;
    format!("{}{}", if tie { "~" } else { "" }, race::ratio(estimate.value))
}

/// The geometric means over a group: a row an allocator, the fastest first.
fn means(out: &mut String, results: &Results, group: Group, look: Look) {
    let columns: &[(Measure, &str)] = match group {
        Group::MuchLive => {
            &[(Measure::PeakRss, "peak RSS"), (Measure::PeakRssAboveEmpty, "above empty")]
        }
        _ => &[(Measure::Time, "time"), (Measure::Cpu, "CPU"), (Measure::PeakRss, "peak RSS")],
    };
    let members = results.programs.iter().filter(|p| group.holds(p)).count() as u64;
    let what = match group {
        Group::All => race::field(results),
        Group::Workloads => units::counted(members, "workload"),
        Group::Programs => units::counted(members, "real program"),
        Group::MuchLive => {
            format!("{} with 32 MiB live or more", units::counted(members, "workload"))
        }
    };
    let heading = format!("geometric mean of {what}, ratio to {}", results.baseline);
    let name = name_width(results);
    let _ = writeln!(out, "\n{}", look.strong(&heading));
    let _ = write!(out, "{:<name$}", "allocator");
    for (_, title) in columns {
        let _ = write!(out, "  {title:<20}");
    }
    trim_line(out);
    let mut rows: Vec<_> = results
        .allocators
        .iter()
        .filter_map(|one| Some((one, race::mean(results, group, columns[0].0, &one.name)?)))
        .collect();
    rows.sort_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    for (allocator, first) in rows {
        let _ = write!(out, "{:<name$}", allocator.name);
        for (measure, _) in columns {
            let mean = race::mean(results, group, *measure, &allocator.name);
            let text = mean.map(|mean| race::estimate(&mean.estimate())).unwrap_or_default();
            let _ = write!(out, "  {text:<20}");
        }
        if (first.programs as u64) < members {
            let _ = write!(out, "  (of {} only)", first.programs);
        }
        trim_line(out);
    }
}

/// Ends a line, without blanks at its end.
fn trim_line(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

fn sentences(out: &mut String, results: &Results) {
    let all = race::sentences(results);
    if !all.is_empty() {
        let _ = writeln!(out);
    }
    for sentence in all {
        let _ = writeln!(out, "{}", sentence.text);
    }
}

/// What went wrong, what to bear in mind, and where it was measured.
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

/// `--list`: what would race, and on what.
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
