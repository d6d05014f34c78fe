//! boot, pauses and scaling: what is asked of the heap alone.

use crate::options::Options;
use crate::report::Report;
use crate::run::Variant;
use crate::run::take;
use ::figures::record::Record;
use ::figures::text::{middle, number, table};
use ::figures::turns::Turns;
use ::figures::verdict::{Asked, Kind};

const MS: f64 = 1e6;

pub(crate) fn boot(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("collections=1000", "collections=20");
    let collections = if options.quick { 20 } else { 1000 };
    let variants = ["fine", "ruby"].map(|layout| {
        Variant::new(layout, "boot").with(sizes.iter().cloned()).with([format!("layout={layout}")])
    });
    let turns = take(options, report, "boot", &variants)?;
    for layout in turns.names() {
        let rounds: Vec<f64> =
            turns.numbers(layout, "full").iter().map(|share| share / 100.0).collect();
        let what =
            format!("boot: pool of the classes, {layout}, full through {collections} collections");
        report.figure(what, Asked::AtLeast(97.0), " %", Kind::Worst, &rounds);
    }
    Ok(())
}

const STEPS: &str = "steps of 500 us";
const STOP: &str = "stop the world";

pub(crate) fn pauses(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("live=1048576 turnover=400 budget=500000", "live=2048 least=256");
    let of = |name, word| Variant::new(name, "pauses").with(sizes.iter().cloned()).with([word]);
    let variants = [of(STEPS, "incremental=1"), of(STOP, "incremental=0")];
    let turns = take(options, report, "pauses", &variants)?;
    let rows: Vec<Vec<String>> = turns
        .names()
        .map(|name| {
            let of = |field| middle(&turns.numbers(name, field), MS);
            let counted = |field| middle(&turns.numbers(name, field), 1.0);
            let times = ["step_p50", "step_p99", "step_p999", "step_most"].map(of);
            let batches = ["batch_p99", "batch_p999", "batch_most", "pause_max_ns"].map(of);
            [name.to_owned(), of("steady_ns"), counted("cycles"), counted("pauses")]
                .into_iter()
                .chain(times)
                .chain(batches)
                .collect()
        })
        .collect();
    let head = [
        "",
        "wall ms",
        "collections",
        "steps",
        "step p50 ms",
        "p99",
        "p99.9",
        "most",
        "64 stores p99 ms",
        "p99.9",
        "most",
        "most, as the heap says",
    ];
    report.table("pauses: thread CPU time", &table(&head, &rows));
    histogram(report, &turns);
    let of = |field| -> Vec<f64> { turns.numbers(STEPS, field).iter().map(|ns| ns / MS).collect() };
    let live = if options.quick { "2 MiB" } else { "1 GiB" };
    let mut add = |what: &str, asked, unit, kind, rounds: &[f64]| {
        report.figure(format!("{live} live, {what}"), asked, unit, kind, rounds);
    };
    add("step(500 us): p99.9", Asked::AtMost(1.0), " ms", Kind::Worst, &of("step_p999"));
    add("step(500 us): worst", Asked::AtMost(5.0), " ms", Kind::Worst, &of("step_most"));
    // A step that an allocation does is no less a pause.
    add(
        "64 stores between two steps: worst",
        Asked::AtMost(5.0),
        " ms",
        Kind::Worst,
        &of("batch_most"),
    );
    let cost = turns.ratios(STEPS, STOP, "steady_ns");
    add("time to that of stopping the world", Asked::Nothing, "x", Kind::Timed, &cost);
    Ok(())
}

/// Of all rounds together: how many steps took so long.
fn histogram(report: &mut Report, turns: &Turns) {
    let mut buckets = [0_u64; 64];
    for run in turns.of(STEPS) {
        for one in Record::series(&run.text, "pause") {
            if let (Some(bucket), Some(count)) = (one.number("bucket"), one.number("count"))
                && let Some(place) = buckets.get_mut(bucket as usize)
            {
                *place += count as u64;
            }
        }
    }
    let rows: Vec<Vec<String>> = buckets
        .iter()
        .enumerate()
        .filter(|(_, count)| **count != 0)
        .map(|(bucket, &count)| {
            let from = 2f64.powi(bucket as i32) / 1e3;
            vec![format!("{} to {}", number(from), number(2.0 * from)), count.to_string()]
        })
        .collect();
    report.table("pauses: how many steps took so long", &table(&["us", "steps"], &rows));
}

const TWO_THREADS: &str = "2 threads, one heap";
const TWO_PROCESSES: &str = "2 processes";
const ONE: &str = "1 thread";

pub(crate) fn scaling(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("", "rounds=50");
    let of = |name: &str, program: &str, how: &str, count: u32| {
        let words = [format!("how={how}"), format!("count={count}")];
        Variant::new(name, program).with(sizes.iter().cloned()).with(words)
    };
    for (door, program) in [("heapwright", "scaling-heapwright"), ("bdwgc", "scaling-bdwgc")] {
        if !options.has(door) {
            continue;
        }
        let title = format!("scaling, {door}");
        let two =
            [of(TWO_THREADS, program, "threads", 2), of(TWO_PROCESSES, program, "processes", 2)];
        let turns = take(options, report, &title, &two)?;
        // Not of the same sum, so not in the same turns.
        let one = [of(ONE, program, "threads", 1)];
        let alone = take(options, report, &format!("{title}, alone"), &one)?;
        let rows: Vec<Vec<String>> =
            [(ONE, &alone), (TWO_PROCESSES, &turns), (TWO_THREADS, &turns)]
                .iter()
                .map(|(name, turns)| {
                    let wall = turns.numbers(name, "wall_ns");
                    vec![(*name).to_owned(), middle(&wall, MS)]
                })
                .collect();
        report.table(&title, &table(&["", "wall ms"], &rows));
        let rounds = turns.ratios(TWO_PROCESSES, TWO_THREADS, "wall_ns");
        let asked = if door == "heapwright" { Asked::AtLeast(0.9) } else { Asked::Nothing };
        let what = format!("scaling of 2 threads on one heap to that of 2 processes, {door}");
        report.figure(what, asked, "x", Kind::Timed, &rounds);
    }
    Ok(())
}
