//! generations and compact: what the heap learned after the others were measured.
//!
//! *generations*: every load runs with them and without, under the same limit, in the same rounds: what
//! they gain, and that no load loses by them; gcbench beside bdwgc as well. *compact*: two
//! million objects of which a tenth is left, moved together in steps.

use crate::options::Options;
use crate::peers::{self, BDWGC, OURS};
use crate::report::Report;
use crate::request::GLIBC;
use crate::run::Variant;
use crate::run::take;
use ::figures::text::{middle, ratio, table};
use ::figures::turns::Turns;
use ::figures::verdict::{Asked, Kind};

const WITH: &str = "with generations";
const MS: f64 = 1e6;
const MIB: f64 = 1048576.0;

/// Loads under a limit, and what makes them short.
const LIMITED: [(&str, &str); 3] = [
    ("gcbench", "depth=14"),
    ("splay", "size=300 rounds=20"),
    ("strings", "texts=40 kept=8 lines=100"),
];

/// Loads that decide themselves how much they take: program, settings, what makes them short.
const FREE: [(&str, &str, &str); 6] = [
    (
        "request",
        "factor=150 incremental=1 layout=fine",
        "factor=150 incremental=1 requests=200 warm=20 classes=100 entries=1000 records=40 rare=10 least=256",
    ),
    ("document", "", "chapters=5"),
    ("template", "", "times=50"),
    ("boot", "collections=200", "collections=20"),
    ("quiet", "", "frames=20"),
    ("scaling-heapwright", "how=threads count=2", "how=threads count=2 rounds=50"),
];

pub(crate) fn generations(options: &Options, report: &mut Report) -> Result<(), String> {
    for (load, quick) in LIMITED {
        let sizes = options.sizes("", quick);
        let ours = Variant::new(OURS, &format!("{load}-heapwright")).with(sizes.iter().cloned());
        let bdwgc = Variant::new(BDWGC, &format!("{load}-bdwgc")).with(sizes.iter().cloned());
        let Some(base) = peers::base(options, report, &ours, &bdwgc)? else { continue };
        for factor in peers::factors(options) {
            let limit = format!("limit={}", (base as f64 * factor) as u64);
            let mut variants = both(&ours.clone().with([limit.clone()]));
            if load == "gcbench" && options.has(BDWGC) {
                let limited = bdwgc.clone().with([limit]);
                let way = peers::fastest_way(options, &limited)?;
                variants.push(limited.with(way.iter().copied()));
            }
            let title = format!("{load}, {factor} x the larger smallest heap, generations");
            let turns = take(options, report, &title, &variants)?;
            show(report, &title, &turns);
            judge(report, &title, &turns);
        }
    }
    for (load, full, quick) in FREE {
        let sizes = options.sizes(full, quick);
        let ours = Variant::new(OURS, load).with(sizes).environment(GLIBC);
        let title = format!("{load}, generations");
        let turns = take(options, report, &title, &both(&ours))?;
        show(report, &title, &turns);
        judge(report, &title, &turns);
    }
    Ok(())
}

fn both(ours: &Variant) -> Vec<Variant> {
    vec![ours.clone(), ours.clone().named(WITH).with(["generations=1"])]
}

fn show(report: &mut Report, title: &str, turns: &Turns) {
    let rows: Vec<Vec<String>> = turns
        .names()
        .map(|name| {
            let of = |field| turns.numbers(name, field);
            vec![
                name.to_owned(),
                middle(&of("wall_ns"), MS),
                middle(&of("cpu_ns"), MS),
                middle(&of("peak"), MIB),
                middle(&of("cycles"), 1.0),
                middle(&of("minors"), 1.0),
                ratio(&turns.ratios(name, OURS, "wall_ns")),
                ratio(&turns.ratios(name, OURS, "peak")),
            ]
        })
        .collect();
    let head =
        ["", "wall ms", "CPU ms", "peak MiB", "collections", "minor", "wall to without", "peak"];
    report.table(title, &table(&head, &rows));
}

fn judge(report: &mut Report, title: &str, turns: &Turns) {
    let time = turns.ratios(WITH, OURS, "wall_ns");
    let what = format!("{title}: time to that without");
    report.figure(what, Asked::AtMost(1.03), "x", Kind::Timed, &time);
    let speed = turns.ratios(BDWGC, WITH, "wall_ns");
    if !speed.is_empty() {
        let what = format!("{title}: speed to bdwgc's");
        report.figure(what, Asked::AtLeast(2.0), "x", Kind::Timed, &speed);
    }
}

/// What a step of the load may take: its budget, and what is asked beyond that.
const BUDGET_MS: f64 = 0.5;
const BEYOND_MS: f64 = 1.0;

pub(crate) fn compact(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("", "objects=40000 budget=50000");
    let of = |name: &str, words: &[&str]| {
        Variant::new(name, "compact")
            .with(sizes.iter().cloned())
            .with(["incremental=1"])
            .with(words.iter().copied())
    };
    let variants = [
        of("fine", &[]),
        of(WITH, &["generations=1"]),
        of("ruby", &["layout=ruby"]),
        of("half is kept", &["keep=50"]),
    ];
    // Not the same sum: what is kept is another half.
    let mut rows = Vec::new();
    for variant in variants {
        let name = variant.name.clone();
        let turns = take(options, report, &format!("compact, {name}"), &[variant])?;
        let of = |field: &str| turns.numbers(&name, field);
        let share = |over: &str, under: &str| -> Vec<f64> {
            of(over).iter().zip(of(under)).map(|(over, under)| over / under).collect()
        };
        rows.push(vec![
            name.clone(),
            middle(&of("heap_before"), MIB),
            middle(&of("heap_after"), MIB),
            middle(&of("live_after"), MIB),
            middle(&of("moved"), 1.0),
            middle(&of("compacting_ns"), MS),
            middle(&of("steps"), 1.0),
            middle(&of("step_p50"), MS),
            middle(&of("step_p99"), MS),
            middle(&of("step_most"), MS),
        ]);
        let heap = share("heap_after", "live_after");
        let asked = if options.quick { Asked::Nothing } else { Asked::AtMost(1.3) };
        let what = format!("2M objects, compacted, {name}: heap to what lives");
        report.figure(what, asked, "x", Kind::Worst, &heap);
        let worst: Vec<f64> = of("step_most").iter().map(|ns| ns / MS).collect();
        let what = format!("2M objects, compacted, {name}: worst step of {BUDGET_MS} ms");
        let asked = Asked::AtMost(BUDGET_MS + BEYOND_MS);
        report.figure(what, asked, " ms", Kind::Worst, &worst);
    }
    let head =
        ["", "heap MiB", "after", "live", "moved", "took ms", "steps", "p50 ms", "p99", "most"];
    report.table("compact: thread CPU time", &table(&head, &rows));
    Ok(())
}
