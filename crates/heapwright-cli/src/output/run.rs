//! A run of a program and its memory.
//!
//! ```text
//! heapwright: python3 ended with exit code 0
//!
//! time         120.0 ms wall, 100.0 ms user, 20.0 ms system
//! ...
//! resident memory at exit: 21.9 MiB
//!   live            12.0 MiB   54.8 %  ###############
//! ```
//!
//! Figures that were not measured are left out, not shown as zero.

use super::document::{Bar, Document, Part};
use super::json::{Figures, list, object};
use super::{printable_text, units};
use crate::process::{End, Outcome, signal_name};
use heapwright_record::{SIZE_BUCKETS, Stats};
use serde::Serialize;
use std::ffi::OsString;

/// The chart's first row: up to 8 bytes. Row `LAST_BUCKET` is up to 1 MiB; one more is over it.
const FIRST_BUCKET: usize = 3;
const LAST_BUCKET: usize = 20;

/// The most other processes in the list.
const LISTED: usize = 20;

/// The share of the whole by which the parts' sum may differ without a remark.
const TOLERANCE: f64 = 0.05;

pub(crate) struct Run {
    pub(crate) command: Vec<OsString>,
    pub(crate) outcome: Outcome,
    /// The program's own statistics, or why they are missing.
    pub(crate) stats: Result<Box<Stats>, String>,
    /// The statistics of other processes that the program started, by pid.
    pub(crate) others: Vec<Stats>,
    pub(crate) unreadable: Vec<String>,
}

pub(crate) fn document(run: &Run) -> Document<'_> {
    let name = run.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let heading = format!("heapwright: {} {}", printable_text(&name), ended(run.outcome.end));
    let mut fields = times(&run.outcome);
    let mut more = Vec::new();
    match &run.stats {
        Ok(stats) => {
            fields.extend(figures(stats));
            if knows_resident(stats) {
                more.extend(residency(stats));
            }
            more.extend(sizes(stats));
        }
        Err(reason) => {
            let peak = units::bytes(run.outcome.usage.max_rss);
            let whose = "by the kernel's count, which includes heapwright's memory before it started the program";
            fields.push(("resident", format!("{peak} at peak, {whose}")));
            more.push(Part::text_of("", format!("\nno statistics of its heap: {reason}")));
        }
    }
    let mut parts = vec![Part::heading(heading), Part::gap(), Part::fields("", 12, fields)];
    parts.extend(more);
    parts.extend(others(run));
    Document::plain(parts, || data(run))
}

fn data(run: &Run) -> impl Serialize {
    let (code, signal, core_dumped) = match run.outcome.end {
        End::Code(code) => (Some(code), None, false),
        End::Signal { number, core_dumped } => (None, Some(number), core_dumped),
    };
    let (outcome, usage) = (&run.outcome, run.outcome.usage);
    object! {
        command: list(run.command.iter().map(|word| word.to_string_lossy())),
        pid: outcome.pid,
        exit: object! { code: code, signal: signal, core_dumped: core_dumped },
        wall_seconds: outcome.wall.as_secs_f64(),
        user_seconds: usage.user.as_secs_f64(),
        system_seconds: usage.system.as_secs_f64(),
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        max_rss_bytes: usage.max_rss,
        stats: run.stats.as_deref().ok().map(Figures),
        no_stats_because: run.stats.as_ref().err(),
        other_processes: list(run.others.iter().map(Figures)),
        problems: &run.unreadable,
    }
}

/// Returns the end of a program in words.
pub(crate) fn ended(end: End) -> String {
    match end {
        End::Code(code) => format!("ended with exit code {code}"),
        End::Signal { number, core_dumped } => {
            let core = if core_dumped { " (core dumped)" } else { "" };
            format!("was killed by {}{core}", signal_name(number))
        }
    }
}

fn times(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let usage = outcome.usage;
    let [wall, user, system] = [outcome.wall, usage.user, usage.system].map(units::duration);
    let [memory, disk] = [usage.minor_faults, usage.major_faults].map(units::count);
    vec![
        ("time", format!("{wall} wall, {user} user, {system} system")),
        ("page faults", format!("{memory} from memory, {disk} from disk")),
    ]
}

fn figures(stats: &Stats) -> Vec<(&'static str, String)> {
    let (bytes, count, counted) = (units::bytes, units::count, units::counted);
    let resident = format!("{} at peak, {} at exit", bytes(stats.peak_rss), bytes(stats.rss));
    let blocks = counted(stats.live_blocks, "block");
    let mut live = format!("{} at exit in {blocks}", bytes(stats.live_bytes));
    if stats.detailed != 0 {
        live += &format!(", {} at peak", bytes(stats.peak_live_bytes));
    }
    let mut figures = Vec::new();
    let mut add = |is: bool, label, text: String| figures.extend(is.then_some((label, text)));
    add(knows_resident(stats), "resident", resident);
    add(true, "live", live);
    let (large, blocks) = (bytes(stats.large_bytes), counted(stats.large_blocks, "block"));
    add(stats.large_blocks != 0, "large", format!("{large} at exit in {blocks} over 32 KiB"));
    let (requested, frees) = (bytes(stats.requested_bytes), counted(stats.frees, "free"));
    let allocations = format!("{} of {requested} in all, {frees}", count(stats.allocations));
    add(stats.detailed != 0, "allocations", allocations);
    let frees = counted(stats.foreign_frees, "free");
    let foreign = format!("{frees} of blocks of another allocator, passed on to it");
    add(stats.foreign_frees != 0, "foreign", foreign);
    let shared = format!(
        "{} of {} used, {} free in them; {}, {}",
        count(stats.caches_touched),
        count(stats.caches_shared),
        bytes(stats.caches_bytes),
        counted(stats.cache_failed_tries, "failed attempt"),
        counted(stats.cache_waits, "wait"),
    );
    add(stats.caches_shared != 0, "shared caches", shared);
    let all = stats.rseq_commits + stats.rseq_aborts;
    let (aborts, sequences) = (counted(stats.rseq_aborts, "abort"), counted(all, "sequence"));
    add(all != 0, "rseq", format!("{aborts} of {sequences}"));
    figures
}

/// Returns whether the process knew its resident memory; without /proc it knows only the heap's.
fn knows_resident(stats: &Stats) -> bool {
    stats.rss_not_ours != 0
}

fn residency(stats: &Stats) -> Vec<Part> {
    let parts = [
        ("live", stats.rss_live),
        ("rounding", stats.rss_rounding),
        ("partial slabs", stats.rss_partial),
        ("caches", stats.rss_caches),
        ("remote backlog", stats.rss_remote),
        ("lazily freed", stats.rss_lazy),
        ("metadata", stats.rss_metadata),
        ("pools, arenas", stats.rss_pools),
        ("not ours", stats.rss_not_ours),
    ];
    let bars = parts.map(|(name, value)| Bar::of(name, units::bytes(value), value, stats.rss));
    let mut parts = vec![
        Part::heading(format!("resident memory at exit: {}", units::bytes(stats.rss))),
        Part::Bars([14, 13], "  ", bars.into()),
    ];
    let sum = stats.rss_parts();
    if (units::share(sum, stats.rss) - 1.0).abs() > TOLERANCE {
        let sum = units::bytes(sum);
        let why = "memory was changing while it was measured";
        parts.push(Part::text_of("", format!("  (the parts add up to {sum}: {why})")));
    }
    parts
}

fn sizes(stats: &Stats) -> Vec<Part> {
    let rows = size_rows(&stats.sizes);
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    if most == 0 {
        return Vec::new();
    }
    let row = |(name, count)| Bar {
        share: units::share(count, most),
        ..Bar::of(name, units::count(count), count, all)
    };
    let bars = rows.into_iter().map(row).collect();
    vec![Part::heading("allocation sizes"), Part::Bars([14, 13], "  ", bars)]
}

/// Merges sizes at both ends, and leaves out empty ends.
fn size_rows(sizes: &[u64; SIZE_BUCKETS]) -> Vec<(String, u64)> {
    let mut rows = vec![(
        format!("to {}", units::round_bytes(1 << FIRST_BUCKET)),
        sizes[..=FIRST_BUCKET].iter().sum::<u64>(),
    )];
    for (bucket, &count) in sizes.iter().enumerate().take(LAST_BUCKET + 1).skip(FIRST_BUCKET + 1) {
        rows.push((format!("to {}", units::round_bytes(1 << bucket)), count));
    }
    rows.push((
        format!("over {}", units::round_bytes(1 << LAST_BUCKET)),
        sizes[LAST_BUCKET + 1..].iter().sum(),
    ));
    while rows.last().is_some_and(|(_, count)| *count == 0) {
        rows.pop();
    }
    let empty = rows.iter().take_while(|(_, count)| *count == 0).count();
    rows.drain(..empty);
    rows
}

fn others(run: &Run) -> Vec<Part> {
    let mut parts = Vec::new();
    if !run.others.is_empty() {
        let line = |stats: &Stats| {
            let (peak, live) = (units::bytes(stats.peak_rss), units::bytes(stats.live_bytes));
            let peak = format!("{peak:>10} resident at peak, ");
            let peak = if knows_resident(stats) { peak } else { String::new() };
            format!("pid {:<8} {peak}{live:>10} live at exit", stats.pid)
        };
        let more = run.others.len().checked_sub(LISTED).filter(|more| *more != 0);
        let more = more.map(|more| format!("and {more} more"));
        parts.push(Part::heading(format!("other processes ({})", run.others.len())));
        parts.push(Part::listed(run.others.iter().take(LISTED).map(line).chain(more)));
    }
    if !run.unreadable.is_empty() {
        let mut lines = run.unreadable[..run.unreadable.len().min(LISTED)].join("\n");
        if run.unreadable.len() > LISTED {
            lines += &format!("\nand {} more", run.unreadable.len() - LISTED);
        }
        parts.push(Part::text_of("", format!("\n{lines}")));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Look, Plain};
    use crate::process::Usage;
    use crate::report::sample;
    use std::time::Duration;

    fn text(run: &Run) -> String {
        document(run).text(Look::PLAIN)
    }

    fn example() -> Run {
        let mut stats = Stats {
            pid: 4711,
            detailed: 1,
            rss: 20 << 20,
            peak_rss: 24 << 20,
            rss_live: 10 << 20,
            rss_rounding: 1 << 20,
            rss_partial: 2 << 20,
            rss_caches: 512 << 10,
            rss_remote: 0,
            rss_lazy: 1 << 20,
            rss_metadata: 512 << 10,
            rss_not_ours: 5 << 20,
            live_bytes: 11 << 20,
            live_blocks: 12_345,
            peak_live_bytes: 14 << 20,
            large_blocks: 1,
            large_bytes: 3 << 20,
            allocations: 1_000_100,
            frees: 987_755,
            requested_bytes: 1 << 30,
            ..Stats::zero()
        };
        stats.sizes[0] = 50;
        stats.sizes[3] = 50;
        stats.sizes[5] = 600_000;
        stats.sizes[6] = 400_000;
        Run {
            command: vec!["python3".into(), "x.py".into()],
            outcome: Outcome {
                pid: 4711,
                end: End::Code(0),
                wall: Duration::from_millis(1234),
                usage: Usage {
                    user: Duration::from_millis(1100),
                    system: Duration::from_millis(80),
                    minor_faults: 3214,
                    major_faults: 2,
                    max_rss: 24 << 20,
                },
                was_late: false,
            },
            stats: Ok(Box::new(stats)),
            others: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    fn killed() -> Run {
        let mut run = example();
        run.outcome.end = End::Signal { number: 9, core_dumped: true };
        run.stats = Err(String::from("it was killed before it could write them"));
        run.unreadable = [5, 6].map(|pid| format!("statistics of process {pid}: cut short")).into();
        run
    }

    #[test]
    fn a_run_is_printed_as_it_was() {
        let golden = |name: &str, run: &Run, format: Plain| {
            let made = document(run).rendered(format, Look::PLAIN).expect("is made");
            sample::golden(name, &made);
        };
        let mut run = example();
        golden("run.text", &run, Plain::Text);
        golden("killed.text", &killed(), Plain::Text);
        golden("killed.json", &killed(), Plain::Json);
        let stats = run.stats.as_mut().expect("has some");
        stats.sizes[SIZE_BUCKETS - 1] = 1;
        stats.set_name(*b"python3\0\0\0\0\0\0\0\0\0");
        golden("run.json", &run, Plain::Json);
        run.stats = Ok(Box::new(Stats { rss: 1, rss_not_ours: 1, ..Stats::zero() }));
        let text = text(&run);
        assert!(!text.contains("allocations") && !text.contains("allocation sizes"), "{text}");
    }

    #[test]
    fn other_processes_have_a_line_each() {
        let mut run = example();
        let other = |pid| Stats {
            pid,
            peak_rss: 3 << 20,
            rss_not_ours: 1 << 20,
            live_bytes: 1 << 20,
            ..Stats::zero()
        };
        run.others = (1..=22).map(other).collect();
        let text = text(&run);
        let lines: Vec<_> = text.lines().skip_while(|l| !l.starts_with("other")).collect();
        assert_eq!(lines[0], "other processes (22)");
        assert_eq!(lines[1], "  pid 1           3.0 MiB resident at peak,    1.0 MiB live at exit");
        assert_eq!(lines.last(), Some(&"  and 2 more"));
    }

    /// Without /proc a process does not know its resident memory.
    #[test]
    fn unknown_resident_memory_is_left_out() {
        let mut run = example();
        run.stats = Ok(Box::new(Stats { rss: 4096, peak_rss: 4096, ..Stats::zero() }));
        run.others = vec![Stats { pid: 1, peak_rss: 4096, ..Stats::zero() }];
        assert!(!text(&run).contains("resident"), "{}", text(&run));
    }

    #[test]
    fn parts_that_miss_the_whole_are_admitted() {
        let mut run = example();
        let stats = run.stats.as_mut().expect("has some");
        stats.rss_live += 2 << 20;
        let text = text(&run);
        assert!(text.contains("(the parts add up to 22.0 MiB:"), "{text}");
    }

    #[test]
    fn the_histograms_ends_are_drawn_together() {
        let mut sizes = [0; SIZE_BUCKETS];
        sizes[20] = 1;
        sizes[21] = 2;
        sizes[47] = 3;
        assert_eq!(
            size_rows(&sizes),
            [(String::from("to 1 MiB"), 1), (String::from("over 1 MiB"), 5)]
        );
        assert_eq!(size_rows(&[0; SIZE_BUCKETS]), []);
        assert_eq!(size_rows(&[1; SIZE_BUCKETS]).len(), 19);
        assert_eq!(size_rows(&[1; SIZE_BUCKETS]).iter().map(|row| row.1).sum::<u64>(), 48);
    }

    #[test]
    fn colour_and_blocks_where_they_can_be_seen() {
        let text = document(&example()).text(Look { colour: true, unicode: true });
        assert!(text.starts_with("\x1b[1mheapwright: python3 ended with exit code 0\x1b[0m\n"));
        assert!(text.contains("\x1b[36m██████████████\x1b[0m\n"), "{text}");
    }
}
