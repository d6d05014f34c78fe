//! gcbench, splay and strings, against bdwgc, with one thread and with two.
//!
//! The heap's limit is the same for both: of the smallest heaps in which the load runs with
//! either, the larger one, times 1.5, 2 and 3. bdwgc marks with as many threads as there
//! are processors; a second row has it mark with one, and both rows show wall and
//! processor time.
//!
//! bdwgc is set up as it is at its best there: of the ways to grow (WAYS) the smallest heap is
//! any one's, and at each limit all are tried and the fastest one runs.

use crate::limits::smallest;
use crate::options::Options;
use crate::report::Report;
use crate::run::take;
use crate::run::{self, Ended, Variant};
use ::figures::text::{middle, number, ratio, table};
use ::figures::turns::Turns;
use ::figures::verdict::{Asked, Figure, Kind, Verdict};

pub(crate) const OURS: &str = "heapwright";
pub(crate) const BDWGC: &str = "bdwgc";
const ONE_MARKER: &str = "bdwgc, GC_MARKERS=1";
const FACTORS: [f64; 3] = [1.5, 2.0, 3.0];
/// How bdwgc's heap grows: how much of the limit it begins with, and how much it allocates
/// between two collections (GC_free_space_divisor). The first and the last are the extremes.
const WAYS: [&[&str]; 4] =
    [&["begin=100"], &["begin=50"], &["begin=0"], &["begin=0", "divisor=10"]];
const MS: f64 = 1e6;
const MIB: f64 = 1048576.0;

pub(crate) fn gcbench(options: &Options, report: &mut Report) -> Result<(), String> {
    both(options, report, "gcbench", &options.sizes("", "depth=14"))
}

pub(crate) fn splay(options: &Options, report: &mut Report) -> Result<(), String> {
    both(options, report, "splay", &options.sizes("", "size=300 rounds=20"))
}

pub(crate) fn strings(options: &Options, report: &mut Report) -> Result<(), String> {
    both(options, report, "strings", &options.sizes("", "texts=40 kept=8 lines=100"))?;
    // Last of what is asked of allocation, and not for this program to count.
    report.add(Figure {
        what: "allocation fast path, instructions".to_owned(),
        asked: "<= 10".to_owned(),
        measured: "ci/golden.sh counts them".to_owned(),
        verdict: Verdict::Elsewhere("judged there"),
    });
    Ok(())
}

/// The smallest heap of bdwgc, grown one way or the other.
fn smallest_of_ways(
    options: &Options,
    report: &mut Report,
    bdwgc: &Variant,
) -> Result<Option<u64>, String> {
    let mut least: Option<u64> = None;
    for way in [WAYS[0], WAYS[WAYS.len() - 1]] {
        let variant = bdwgc.clone().with(way.iter().copied());
        let found = smallest(options, report, &variant)?;
        least = [least, found].into_iter().flatten().min();
    }
    Ok(least)
}

/// The way in which bdwgc is the fastest under a limit: of two runs the better one counts. One in which both end well is better than
/// any in which one runs out of memory.
pub(crate) fn fastest_way(
    options: &Options,
    limited: &Variant,
) -> Result<&'static [&'static str], String> {
    let mut best = (2, f64::MAX, WAYS[0]);
    for way in WAYS {
        let variant = limited.clone().with(way.iter().copied());
        let (mut failed, mut wall) = (0, f64::MAX);
        for _ in 0..2 {
            match run::once(options, &variant, options.seconds)? {
                Ended::Well(run) => wall = run.number("wall_ns").unwrap_or(f64::MAX).min(wall),
                _ => failed += 1,
            }
        }
        if (failed, wall) < (best.0, best.1) {
            best = (failed, wall, way);
        }
    }
    Ok(best.2)
}

/// KiB of the larger of both smallest heaps. `None`: neither runs.
pub(crate) fn base(
    options: &Options,
    report: &mut Report,
    ours: &Variant,
    bdwgc: &Variant,
) -> Result<Option<u64>, String> {
    let needs = smallest(options, report, ours)?;
    let theirs = if options.has(BDWGC) { smallest_of_ways(options, report, bdwgc)? } else { None };
    Ok(needs.max(theirs))
}

/// The limits, as parts of that.
pub(crate) fn factors(options: &Options) -> &'static [f64] {
    if options.quick { &FACTORS[1..2] } else { &FACTORS }
}

fn both(
    options: &Options,
    report: &mut Report,
    load: &str,
    sizes: &[String],
) -> Result<(), String> {
    for threads in [1, 2] {
        let words = || sizes.iter().cloned().chain([format!("threads={threads}")]);
        let ours = Variant::new(OURS, &format!("{load}-heapwright")).with(words());
        let bdwgc = Variant::new(BDWGC, &format!("{load}-bdwgc")).with(words());
        let title =
            format!("{load}, {threads} {}", if threads == 1 { "thread" } else { "threads" });
        let mut needs = vec![smallest(options, report, &ours)?];
        let mut variants = vec![ours];
        if options.has(BDWGC) {
            needs.push(smallest_of_ways(options, report, &bdwgc)?);
            let one = bdwgc.clone().named(ONE_MARKER).environment("GC_MARKERS=1");
            variants.extend([bdwgc, one]);
        }
        let kib = |at: usize| needs.get(at).copied().flatten();
        let shown = |at: usize| {
            kib(at).map_or("-".to_owned(), |kib| format!("{} MiB", number(kib as f64 / 1024.0)))
        };
        let smallest = format!("The smallest heap: {OURS} {}, {BDWGC} {}.\n\n", shown(0), shown(1));
        report.table(&format!("{title}: limits"), &smallest);
        let Some(base) = kib(0).max(kib(1)) else { continue };
        for factor in factors(options) {
            let limit = (base as f64 * factor) as u64;
            let mut limited: Vec<Variant> =
                variants.iter().map(|one| one.clone().with([format!("limit={limit}")])).collect();
            let mut grows = String::new();
            if let Some(bdwgc) = limited.get(1) {
                let way = fastest_way(options, bdwgc)?;
                grows = format!("; bdwgc: {}", way.join(" "));
                for one in &mut limited[1..] {
                    *one = one.clone().with(way.iter().copied());
                }
            }
            let title = format!("{title}, {factor} x the larger smallest heap");
            let turns = take(options, report, &title, &limited)?;
            show(
                report,
                &format!("{title} ({} MiB{grows})", number(limit as f64 / 1024.0)),
                &turns,
            );
            judge(report, &title, &turns);
        }
    }
    Ok(())
}

fn show(report: &mut Report, title: &str, turns: &Turns) {
    let rows: Vec<Vec<String>> = turns
        .names()
        .map(|name| {
            let of = |field| turns.numbers(name, field);
            let to = |field| ratio(&turns.ratios(name, OURS, field));
            vec![
                name.to_owned(),
                middle(&of("wall_ns"), MS),
                middle(&of("cpu_ns"), MS),
                middle(&of("peak"), MIB),
                middle(&of("cycles"), 1.0),
                to("wall_ns"),
                to("cpu_ns"),
                to("peak"),
            ]
        })
        .collect();
    let head = [
        "",
        "wall ms",
        "CPU ms",
        "peak MiB",
        "collections",
        "wall to ours",
        "CPU to ours",
        "peak to ours",
    ];
    report.table(title, &table(&head, &rows));
}

fn judge(report: &mut Report, title: &str, turns: &Turns) {
    let speed = |field| turns.ratios(BDWGC, OURS, field);
    let mut add = |what: &str, asked, kind, rounds: &[f64]| {
        report.figure(format!("{title}: {what}"), asked, "x", kind, rounds);
    };
    add("speed to bdwgc's", Asked::AtLeast(1.5), Kind::Timed, &speed("wall_ns"));
    add("speed to bdwgc's, CPU time", Asked::Nothing, Kind::Timed, &speed("cpu_ns"));
    let peak = turns.ratios(OURS, BDWGC, "peak");
    add("peak RSS to bdwgc's", Asked::AtMost(1.0), Kind::Counted, &peak);
    let one = turns.ratios(ONE_MARKER, OURS, "wall_ns");
    add("speed to bdwgc's with one marker", Asked::Nothing, Kind::Timed, &one);
}
