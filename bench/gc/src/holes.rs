//! fillers, quads and garbage: what lives lies among what died, or nothing lives, against bdwgc; without and with
//! generations, and with more mutators than processors.
//!
//! Limits and bdwgc's ways to grow are as for [`crate::peers`]. A figure is processor time, that of threads that mark included:
//! with eight mutators on two processors wall time says how they were scheduled. Wall time stands beside.

use crate::options::Options;
use crate::peers::{BDWGC, OURS, base, factors, fastest_way};
use crate::report::Report;
use crate::run::{Variant, take};
use ::figures::text::{middle, number, ratio, table};
use ::figures::turns::Turns;
use ::figures::verdict::{Asked, Kind};

const ALL_OF_IT: &str = "heapwright, collects when full";
const GENERATIONS: &str = "heapwright, generations";
const MS: f64 = 1e6;
const NS: f64 = 1e3;
const MIB: f64 = 1048576.0;

pub(crate) fn fillers(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("", "depth=11");
    let asked = [Asked::AtMost(0.75), Asked::AtMost(0.60)];
    limited(options, report, "fillers", &sizes, &[1, 2, 8], asked)?;
    // Of as many objects each, in a heap of as many times what lives.
    let variant = |threads: usize| {
        let words = sizes.iter().cloned().chain([format!("threads={threads}")]);
        Variant::new(&format!("{threads} mutators"), "fillers-heapwright")
            .with(words)
            .with(["percent=200"])
    };
    let variants = [2, 8].map(variant);
    let turns = take(options, report, "fillers, mutators", &variants)?;
    show(report, "fillers, mutators", &turns, "2 mutators");
    let rounds = turns.ratios("8 mutators", "2 mutators", "object_ps");
    let what = "fillers: CPU time an object, 8 mutators to 2";
    report.figure(what.to_owned(), Asked::AtMost(1.15), "x", Kind::Timed, &rounds);
    Ok(())
}

pub(crate) fn quads(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("", "depth=6 rounds=500");
    limited(options, report, "quads", &sizes, &[1, 2], [Asked::AtMost(0.75), Asked::Nothing])
}

/// A load with both doors in 1.5, 2 and 3 times the larger smallest heap, with so many mutators; what is `asked` without and
/// with generations, to bdwgc.
pub(crate) fn limited(
    options: &Options,
    report: &mut Report,
    load: &str,
    sizes: &[String],
    threads: &[usize],
    asked: [Asked; 2],
) -> Result<(), String> {
    for threads in threads {
        let words = || sizes.iter().cloned().chain([format!("threads={threads}")]);
        let ours = Variant::new(OURS, &format!("{load}-heapwright")).with(words());
        let bdwgc = Variant::new(BDWGC, &format!("{load}-bdwgc")).with(words());
        let Some(least) = base(options, report, &ours, &bdwgc)? else { continue };
        for factor in factors(options) {
            let limit = (least as f64 * factor) as u64;
            let limit_word = [format!("limit={limit}")];
            let limited = ours.clone().with(limit_word.clone());
            let mut variants =
                vec![limited.clone(), limited.named(GENERATIONS).with(["generations=1"])];
            if options.has(BDWGC) {
                let bdwgc = bdwgc.clone().with(limit_word);
                let way = fastest_way(options, &bdwgc)?;
                variants.push(bdwgc.with(way.iter().copied()));
            }
            let title = format!("{load}, {threads} mutators, {factor} x the larger smallest heap");
            let turns = take(options, report, &title, &variants)?;
            let heading = format!("{title} ({} MiB)", number(limit as f64 / 1024.0));
            show(report, &heading, &turns, OURS);
            for (name, asked) in [OURS, GENERATIONS].into_iter().zip(asked) {
                let rounds = turns.ratios(name, BDWGC, "cpu_ns");
                let what = format!("{title}: CPU time of {name} to bdwgc's");
                report.figure(what, asked, "x", Kind::Timed, &rounds);
            }
            let wall = turns.ratios(OURS, BDWGC, "wall_ns");
            let what = format!("{title}: wall time to bdwgc's");
            report.figure(what, Asked::Nothing, "x", Kind::Timed, &wall);
        }
    }
    Ok(())
}

/// Objects that nobody keeps, in a heap of 128 MiB, each collector as it is fastest there: bdwgc grows in one of its ways, and ours
/// collects when all of it is used, or each 4 MiB, as it does by default. What is collected sooner stays in the caches.
pub(crate) fn garbage(options: &Options, report: &mut Report) -> Result<(), String> {
    let total = options.sizes("total=2048", "total=64");
    let all = [20_000, 33_000, 70_000, 100_000];
    for kind in ["traced", "leaf"] {
        for size in if options.quick { &all[..1] } else { &all } {
            let variant = |name, door| {
                let words = [format!("size={size}"), format!("kind={kind}")];
                Variant::new(name, &format!("garbage-{door}")).with(words).with(total.clone())
            };
            let ours = variant(OURS, OURS).with(["least=4096"]);
            let mut variants = vec![ours, variant(ALL_OF_IT, OURS)];
            if options.has(BDWGC) {
                let bdwgc = variant(BDWGC, BDWGC);
                let way = fastest_way(options, &bdwgc)?;
                variants.push(bdwgc.with(way.iter().copied()));
            }
            let title = format!("garbage, {kind}, {size} bytes");
            let turns = take(options, report, &title, &variants)?;
            show(report, &title, &turns, OURS);
            let rounds = turns.ratios(OURS, BDWGC, "object_ps");
            let what = format!("{title}: CPU time an object to bdwgc's");
            report.figure(what, Asked::AtMost(0.8), "x", Kind::Timed, &rounds);
            let rounds = turns.ratios(ALL_OF_IT, BDWGC, "object_ps");
            let what = format!("{title}: the same, all of it used before it collects");
            report.figure(what, Asked::AtMost(0.8), "x", Kind::Timed, &rounds);
        }
    }
    Ok(())
}

fn show(report: &mut Report, title: &str, turns: &Turns, to: &str) {
    let row = |name: &str| {
        let of = |field| turns.numbers(name, field);
        let to = |field| ratio(&turns.ratios(name, to, field));
        vec![
            name.to_owned(),
            middle(&of("wall_ns"), MS),
            middle(&of("cpu_ns"), MS),
            middle(&of("object_ps"), NS),
            middle(&of("peak"), MIB),
            middle(&of("cycles"), 1.0),
            to("wall_ns"),
            to("cpu_ns"),
        ]
    };
    let rows: Vec<Vec<String>> = turns.names().map(row).collect();
    let wall = format!("wall to {to}");
    let cpu = format!("CPU to {to}");
    let head = ["", "wall ms", "CPU ms", "ns an object", "peak MiB", "collections", &wall, &cpu];
    report.table(title, &table(&head, &rows));
}
