//! The words, figures and tables of a race.

use super::document::{Cell, Table, cells};
use super::units;
use crate::bench::allocators::HEAPWRIGHT;
use crate::bench::comparison::{self, Group};
use crate::bench::results::{
    Allocator, Comparison, Entry, Kind, Measure, Outcome, Program, Results, Run,
};
use crate::bench::statistics::{self, Estimate, SURE_ROUNDS, Verdict};
use std::time::Duration;

/// The width of a wide terminal.
pub(super) const WIDTH: usize = 110;

pub(super) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 {
            let fits = used + 1 + length <= WIDTH;
            lines.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        lines.push_str(word);
        used += length;
    }
    lines
}

/// Formats a ratio: `0.84`, `12.3`.
pub(super) fn ratio(value: f64) -> String {
    if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// Formats an estimate with its interval: `0.84 (0.81..0.88)`.
pub(super) fn estimate(estimate: &Estimate) -> String {
    let value = ratio(estimate.value);
    match estimate.interval {
        Some((low, high)) => format!("{value} ({}..{})", ratio(low), ratio(high)),
        None => format!("{value} (one round)"),
    }
}

/// Describes a failure: `crashed (signal 11, SIGSEGV)`, `exit 1 (0 under glibc)`.
pub(super) fn failure(entry: &Entry) -> Option<String> {
    let detail = entry.detail.as_deref().unwrap_or_default();
    let with = |word: &str| format!("{word} ({detail})");
    match entry.outcome {
        Outcome::Ok => None,
        Outcome::Crashed => Some(with("crashed")),
        Outcome::Hung => Some(with("hung")),
        Outcome::Failed => Some(detail.to_owned()),
        Outcome::Differs => Some("differs in output".to_owned()),
        Outcome::NotTaken => Some(with("could not be preloaded")),
    }
}

/// Returns a failure in one word, for a cell.
pub(super) fn failure_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Crashed => "crash",
        Outcome::Hung => "hung",
        Outcome::Failed => "fails",
        Outcome::Differs => "differs",
        Outcome::NotTaken => "-",
    }
}

pub(super) struct Middle {
    pub(super) time: Duration,
    /// Half the quartiles' distance, as a share of the time.
    pub(super) spread: f64,
    pub(super) cpu: Duration,
    pub(super) peak_rss: u64,
    pub(super) faults: u64,
}

impl Middle {
    /// Returns `None` for a failure.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        if entry.outcome != Outcome::Ok {
            return None;
        }
        let values = |of: fn(&Run) -> u64| -> Vec<f64> {
            entry.runs.iter().map(|run| of(run) as f64).collect()
        };
        let middle = |of| statistics::median(&values(of)).map(|value| value.round() as u64);
        Some(Self {
            time: Duration::from_nanos(middle(|run| run.wall_ns)?),
            spread: statistics::spread(&values(|run| run.wall_ns)).unwrap_or_default(),
            cpu: Duration::from_nanos(middle(Run::cpu_ns)?),
            peak_rss: middle(|run| run.peak_rss_bytes)?,
            faults: middle(|run| run.minor_faults + run.major_faults)?,
        })
    }
}

/// Describes an allocator with its file and version: `libmimalloc.so.3 (3.4.3), A=1`.
pub(super) fn library(allocator: &Allocator) -> String {
    let mut text = allocator.library.clone().unwrap_or_else(|| "the C library's malloc".to_owned());
    if let Some(version) = &allocator.version {
        text.push_str(&format!(" ({version})"));
    }
    for (variable, value) in &allocator.environment {
        text.push_str(&format!(", {variable}={value}"));
    }
    text
}

/// Returns a sentence for each other allocator, about the means of all programs.
pub(super) fn sentences(results: &Results) -> Vec<String> {
    let others = results.allocators.iter().filter(|other| other.name != HEAPWRIGHT);
    others.filter_map(|other| sentence(results, &other.name)).collect()
}

/// Compares with `other`: `heapwright is faster than mimalloc: 0.84 (0.81..0.88); ...`
fn sentence(results: &Results, other: &str) -> Option<String> {
    let find = |measure| results.summary.find(Group::All, measure, HEAPWRIGHT, other);
    let time = find(Measure::Time)?;
    let mut text = match time.estimate().verdict() {
        Verdict::Less => format!("{HEAPWRIGHT} is faster than {other}: "),
        Verdict::More => format!("{HEAPWRIGHT} is slower than {other}: "),
        Verdict::Tie => format!("{HEAPWRIGHT} and {other} are a tie in time: "),
    };
    text.push_str(&estimate(&time.estimate()));
    if let Some(memory) = find(Measure::PeakRss) {
        let words = match memory.estimate().verdict() {
            Verdict::Less => "it needs less memory",
            Verdict::More => "it needs more memory",
            Verdict::Tie => "a tie in memory",
        };
        text.push_str(&format!("; {words}: {}", estimate(&memory.estimate())));
    }
    Some(text)
}

/// Returns the groups with programs. Workloads or programs are left out if they are all there is.
pub(super) fn groups(results: &Results) -> Vec<Group> {
    let size = |group: Group| results.programs.iter().filter(|p| group.holds(p)).count();
    let all = size(Group::All);
    Group::EVERY
        .into_iter()
        .filter(|group| size(*group) > 0)
        .filter(|group| match group {
            Group::All | Group::MuchLive => true,
            Group::Workloads | Group::Programs => size(*group) < all,
        })
        .collect()
}

pub(super) fn mean<'a>(
    results: &'a Results,
    group: Group,
    measure: Measure,
    allocator: &str,
) -> Option<&'a Comparison> {
    results.summary.find(group, measure, allocator, &results.baseline)
}

fn name_width(results: &Results) -> usize {
    let names = results.allocators.iter().map(|allocator| allocator.name.chars().count());
    names.max().unwrap_or_default()
}

/// Returns a name in a title, where `|` would separate columns (see `Table::new`).
pub(super) fn title(name: &str) -> String {
    name.replace('|', "/")
}

pub(super) fn class(results: &Results, at: usize) -> &'static str {
    if results.allocators[at].name == HEAPWRIGHT {
        "ours"
    } else if at == results.baseline() {
        "base"
    } else {
        "peer"
    }
}

/// Makes the table of means over a group: a row for each allocator, by the first measure.
pub(super) fn means(results: &Results, group: Group) -> Table {
    let measures: &[(Measure, &str)] = match group {
        Group::MuchLive => {
            &[(Measure::PeakRss, "peak RSS"), (Measure::PeakRssAboveEmpty, "above empty")]
        }
        _ => &[(Measure::Time, "time"), (Measure::Cpu, "CPU"), (Measure::PeakRss, "peak RSS")],
    };
    let members = results.programs.iter().filter(|program| group.holds(program)).count();
    let counted = |thing| units::counted(members as u64, thing);
    let what = match group {
        Group::All => field(results),
        Group::Workloads => counted("workload"),
        Group::Programs => counted("real program"),
        Group::MuchLive => format!("{} with 32 MiB live or more", counted("workload")),
    };
    let mut rows: Vec<(usize, &Comparison)> = (0..results.allocators.len())
        .filter_map(|at| {
            Some((at, mean(results, group, measures[0].0, &results.allocators[at].name)?))
        })
        .collect();
    rows.sort_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    let mut columns = format!("allocator:{}", name_width(results));
    measures.iter().for_each(|(_, measure)| columns += &format!("|{measure}:20"));
    let caption = format!("geometric mean of {what}, ratio to {}", results.baseline);
    let mut table = Table::new(&(columns + "|")).titled(&caption, "");
    for (at, first) in rows {
        let name = &results.allocators[at].name;
        let mut cells = cells![name];
        cells.extend(measures.iter().map(|(measure, _)| {
            let mean = mean(results, group, *measure, name);
            mean.map(|mean| estimate(&mean.estimate())).unwrap_or_default().into()
        }));
        let is_of_all = first.programs == members;
        let only = if is_of_all { String::new() } else { format!("(of {} only)", first.programs) };
        cells.push(only.into());
        table.row(class(results, at), cells);
    }
    table
}

/// Makes a row for each allocator, by time. A page also has bars, and the intervals of memory.
pub(super) fn figures(results: &Results, program: &Program, page: bool) -> Table {
    let mut rows: Vec<(usize, Option<Middle>)> =
        program.results.iter().map(Middle::of).enumerate().collect();
    rows.sort_by_key(|(_, middle)| {
        middle.as_ref().map_or((true, None), |middle| (false, Some(middle.time)))
    });
    let empty = comparison::empty_peak(results).filter(|_| program.live_bytes.is_some());
    let most = |of: fn(&Middle) -> u64| {
        rows.iter().filter_map(|(_, middle)| middle.as_ref()).map(of).max().unwrap_or(0)
    };
    let nanoseconds = |middle: &Middle| middle.time.as_nanos() as u64;
    let (slowest, largest) = (most(nanoseconds), most(|middle| middle.peak_rss));
    let mut table = Table::new(&format!(
        "allocator:{}{}|>time:9|>+-:6|ratio to {}:22|>CPU:9|>peak RSS:10|>ratio:6{}|>faults:10",
        name_width(results),
        if page { "|%of time|%of peak RSS" } else { "" },
        title(&results.baseline),
        if empty.is_some() { "|>above empty:11" } else { "" }
    ));
    let baseline = results.baseline();
    for (at, middle) in rows {
        let name = results.allocators[at].name.as_str();
        let Some(middle) = middle else {
            let why = program.results.get(at).and_then(failure);
            let why = why.unwrap_or_else(|| "not run".to_owned());
            table.row(class(results, at), cells![name, why]);
            continue;
        };
        let compared = |measure, text: &dyn Fn(Estimate) -> String| {
            if at == baseline {
                return "1".to_owned();
            }
            let found = comparison::on_program(results, program, at, baseline, measure);
            found.map(text).unwrap_or_default()
        };
        let time = compared(Measure::Time, &|found| {
            let tie = if found.verdict() == Verdict::Tie { " tie" } else { "" };
            format!("{}{tie}", estimate(&found))
        });
        let memory = compared(Measure::PeakRss, &|found| {
            if page { estimate(&found) } else { ratio(found.value) }
        });
        let mut cells = cells![name];
        if page {
            cells.push(Cell::share("thin", nanoseconds(&middle), slowest));
            cells.push(Cell::share("thin", middle.peak_rss, largest));
        }
        cells.extend(cells![
            units::duration(middle.time),
            format!("{:.1}%", middle.spread * 100.0),
            time,
            units::duration(middle.cpu),
            units::bytes(middle.peak_rss),
            memory,
        ]);
        let above = empty.map(|empty| units::bytes(middle.peak_rss.saturating_sub(empty)));
        cells.extend(above.map(Into::into));
        cells.push(units::count(middle.faults).into());
        table.row(class(results, at), cells);
    }
    table
}

/// Returns failures: `larson under peer`, `crashed (...)`. Equal ones on all programs become one.
pub(super) fn failures(results: &Results) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (at, allocator) in results.allocators.iter().enumerate() {
        let entries = results.programs.iter().filter_map(|p| Some((p, p.results.get(at)?)));
        let failed: Vec<(&Program, String)> =
            entries.filter_map(|(p, entry)| Some((p, failure(entry)?))).collect();
        let same = failed.windows(2).all(|pair| pair[0].1 == pair[1].1);
        match failed.first() {
            Some((_, words)) if same && failed.len() == results.programs.len() => {
                all.push((allocator.name.clone(), words.clone()));
            }
            _ => all.extend(failed.into_iter().map(|(program, words)| {
                (format!("{} under {}", program.name, allocator.name), words)
            })),
        }
    }
    all
}

/// Returns the programs in a few words: `24 workloads and 8 programs`.
pub(super) fn field(results: &Results) -> String {
    let count = |kind| {
        let of_kind = |p: &&Program| p.kind == kind && !p.is_empty_workload();
        results.programs.iter().filter(of_kind).count() as u64
    };
    let parts: Vec<String> =
        [(count(Kind::Workload), "workload"), (count(Kind::Program), "program")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, thing)| units::counted(number, thing))
            .collect();
    let command = results.programs.iter().find(|program| program.kind == Kind::Command);
    match command {
        Some(program) => units::clipped(&program.stands_for, 60),
        None if parts.is_empty() => "the empty program".to_owned(),
        None => parts.join(" and "),
    }
}

/// Returns `15 rounds`, or that the race was interrupted.
pub(super) fn rounds(results: &Results) -> String {
    let long = results.programs.iter().any(|program| program.long);
    let mut text = units::counted(results.rounds as u64, "round");
    if long && results.rounds_long != results.rounds {
        text.push_str(&format!(" ({} of long programs)", results.rounds_long));
    }
    if !results.complete {
        let fewest = comparison::fewest_rounds(results).unwrap_or_default() as u64;
        text = format!("interrupted after {} of {text}", units::count(fewest));
    }
    text
}

/// Describes the machine in one line.
pub(super) fn machine(results: &Results) -> String {
    let machine = &results.head.machine;
    format!(
        "{}, {}, {}, Linux {}, {}, pages of {}, huge pages: {}",
        machine.cpu,
        units::counted(machine.cores as u64, "core"),
        units::bytes(machine.memory_bytes),
        machine.kernel,
        machine.libc,
        units::round_bytes(machine.page_bytes),
        machine.thp
    )
}

pub(super) fn notes(results: &Results) -> Vec<String> {
    let mut notes = results.notes.clone();
    if !results.complete {
        notes.push("the race was interrupted: these figures are partial".to_owned());
    }
    if comparison::fewest_rounds(results).is_some_and(|rounds| rounds < SURE_ROUNDS) {
        notes.push(format!(
            "with fewer than {SURE_ROUNDS} rounds the intervals hold less than 95 %"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::comparison::tests::{example, failed};

    #[test]
    fn ratios_have_two_digits_while_that_says_something() {
        assert_eq!(ratio(0.844), "0.84");
        assert_eq!(ratio(9.996), "10.0");
        let of = |interval| estimate(&Estimate { value: 0.84, interval });
        assert_eq!(of(Some((0.81, 0.88))), "0.84 (0.81..0.88)");
        assert_eq!(of(None), "0.84 (one round)");
    }

    #[test]
    fn failures_are_put_in_words() {
        let printed = |outcome, detail| failure(&failed("x", outcome, detail)).expect("failed");
        assert_eq!(printed(Outcome::Crashed, "signal 11, SIGSEGV"), "crashed (signal 11, SIGSEGV)");
        assert_eq!(printed(Outcome::Differs, "it printed something else"), "differs in output");
        assert_eq!(printed(Outcome::Hung, "killed after 60 s"), "hung (killed after 60 s)");
        assert_eq!(printed(Outcome::Failed, "exit 1 (0 under glibc)"), "exit 1 (0 under glibc)");
        assert_eq!(
            printed(Outcome::NotTaken, "it is statically linked"),
            "could not be preloaded (it is statically linked)"
        );
    }

    #[test]
    fn the_same_failure_everywhere_is_reported_once() {
        let results = example(&[("odd", Kind::Program), ("a", Kind::Program)]);
        assert_eq!(
            failures(&results),
            [("odd under peer".to_owned(), "crashed (signal 11 (SIGSEGV))".to_owned())]
        );
        let results = example(&[("odd", Kind::Program)]);
        assert_eq!(failures(&results)[0].0, "peer");
    }

    #[test]
    fn sentences_say_what_is_certain() {
        let results = example(&[("a", Kind::Workload), ("b", Kind::Program)]);
        let texts = sentences(&results);
        assert_eq!(
            texts[0],
            "heapwright is faster than glibc: 0.50 (0.50..0.50); it needs less memory: 0.81 \
             (0.81..0.81)"
        );
        assert!(texts[1].starts_with("heapwright is faster than peer: 0.50 (0."), "{}", texts[1]);
        let mut tied = results;
        for comparison in &mut tied.summary.comparisons {
            (comparison.ratio, comparison.low, comparison.high) = (1.0, Some(0.98), Some(1.02));
        }
        assert_eq!(
            sentences(&tied)[0],
            "heapwright and glibc are a tie in time: 1.00 (0.98..1.02); a tie in memory: 1.00 \
             (0.98..1.02)"
        );
    }
}
