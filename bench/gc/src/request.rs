//! The request load: layouts, on one malloc or another.
//!
//! As in the ticket, `single` is life before variable widths, and what any other is compared
//! with. The load counts because a heap that sweeps to the end was 1.68 times `single` here, as
//! there it was worse (docs/decisions.md): a load that does not bring that out says nothing about its cure.
//!
//! The heap may have half as much again as is live: a request must be one of fewer than a hundred in
//! a collection, or its 99th percentile does not see the collector at all.
//!
//! heapwright's library has a malloc too, and a program that is linked with it uses that
//! one; whoever is to have another has it preloaded.

use crate::options::Options;
use crate::report::Report;
use crate::run::Variant;
use crate::run::take;
use ::figures::text::{middle, ratio, table};
use ::figures::turns::Turns;
use ::figures::verdict::{Asked, Kind};

/// What makes glibc's malloc come before ours.
pub(crate) const GLIBC: &str = "LD_PRELOAD=libc.so.6";
const JEMALLOC: &str = "LD_PRELOAD=libjemalloc.so.2";

const SINGLE: &str = "single, glibc";
const RUBY: &str = "ruby";
const FINE: &str = "fine";
const SINGLE_JEMALLOC: &str = "single, jemalloc";
const FINE_JEMALLOC: &str = "fine, jemalloc";

const PERCENTILES: [&str; 8] = ["p50", "p66", "p75", "p80", "p90", "p95", "p98", "p99"];

pub(crate) fn all(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes(
        "factor=150",
        "requests=200 warm=20 classes=100 entries=1000 records=40 rare=10 least=256",
    );
    let of = |name: &str, words: &[&str], preload: &str| {
        let variant = Variant::new(name, "request").with(sizes.iter().cloned());
        variant.with(words.iter().copied()).with(["incremental=1"]).environment(preload)
    };
    let mut variants = vec![
        of(SINGLE, &["layout=single"], GLIBC),
        of(RUBY, &["layout=ruby"], GLIBC),
        of(FINE, &["layout=fine"], GLIBC),
    ];
    if options.has("jemalloc") {
        variants.push(of(SINGLE_JEMALLOC, &["layout=single"], JEMALLOC));
        variants.push(of(FINE_JEMALLOC, &["layout=fine"], JEMALLOC));
    }
    let turns = take(options, report, "request", &variants)?;
    rates(report, &turns);
    for (part, title) in [
        ("cpu", "request: thread CPU time, ms a request"),
        ("wall", "request: wall time, ms a request"),
        ("work", "request: of it the collector's, ms a request"),
        ("step", "request: the collector's work a step, ms"),
    ] {
        percentiles(report, &turns, part, title);
    }
    judge(report, &turns);
    Ok(())
}

/// Requests a second, one a round.
fn per_second(turns: &Turns, name: &str) -> Vec<f64> {
    turns
        .of(name)
        .filter_map(|run| Some(run.number("requests")? / run.number("serving_ns")? * 1e9))
        .collect()
}

/// Faster is more: the inverse of the ratio of times.
fn speed(turns: &Turns, name: &str, other: &str) -> Vec<f64> {
    turns.ratios(other, name, "serving_ns")
}

fn rates(report: &mut Report, turns: &Turns) {
    let rows: Vec<Vec<String>> = turns
        .names()
        .map(|name| {
            let of = |field| turns.numbers(name, field);
            vec![
                name.to_owned(),
                middle(&per_second(turns, name), 1.0),
                ratio(&speed(turns, name, SINGLE)),
                middle(&of("peak"), 1048576.0),
                ratio(&turns.ratios(name, SINGLE, "peak")),
                middle(&of("cycles"), 1.0),
                middle(&of("pause_max_ns"), 1e6),
            ]
        })
        .collect();
    let head =
        ["", "requests/s", "to single", "peak MiB", "to single", "collections", "longest pause ms"];
    report.table("request: rates and memory", &table(&head, &rows));
}

fn percentiles(report: &mut Report, turns: &Turns, part: &str, title: &str) {
    let fields: Vec<&str> = PERCENTILES.iter().copied().chain(["p999", "most"]).collect();
    let rows: Vec<Vec<String>> = turns
        .names()
        .map(|name| {
            let of = |field| middle(&turns.numbers(name, &format!("{part}_{field}")), 1e6);
            [name.to_owned()].into_iter().chain(fields.iter().map(of)).collect()
        })
        .collect();
    let head: Vec<&str> = [""].into_iter().chain(fields.iter().copied()).collect();
    report.table(title, &table(&head, &rows));
}

fn judge(report: &mut Report, turns: &Turns) {
    let mut add = |what: String, asked, kind, rounds: &[f64]| {
        report.figure(format!("request: {what}"), asked, "x", kind, rounds);
    };
    let p99 = |name, other| turns.ratios(name, other, "cpu_p99");
    for (name, other) in [(RUBY, SINGLE), (FINE, SINGLE), (FINE_JEMALLOC, SINGLE_JEMALLOC)] {
        if !turns.names().any(|known| known == name) {
            continue;
        }
        let rate = speed(turns, name, other);
        let peak = turns.ratios(name, other, "peak");
        let wall = turns.ratios(name, other, "wall_p99");
        let what = |what: &str| format!("{what} of {name} to that of {other}");
        add(what("p99 of thread CPU time"), Asked::AtMost(1.05), Kind::Timed, &p99(name, other));
        add(what("p99 of wall time"), Asked::Nothing, Kind::Timed, &wall);
        add(what("requests/s"), Asked::AtLeast(1.0), Kind::Timed, &rate);
        add(what("peak RSS"), Asked::AtMost(1.02), Kind::Counted, &peak);
    }
}
