//! pauses, scaling and compact: what is asked of the heap alone. *compact*: two million objects of
//! which a tenth is left, moved together in steps.

use crate::options::Options;
use crate::run::{Variant, take};
use figures::record::Record;
use figures::report::Report;
use figures::text::{number, table};
use figures::turns::Column::Middle;
use figures::turns::Turns;
use figures::verdict::{Asked, Kind};

const MS: f64 = 1e6;
const MIB: f64 = 1048576.0;
const STEPS: &str = "steps of 500 us";
const STOP: &str = "stop the world";

pub(crate) fn pauses(options: &Options, report: &mut Report, _: &str) -> Result<(), String> {
    let sizes = options.sizes("live=1048576 turnover=400 budget=500000", "live=2048 least=256");
    let of = |name, word| Variant::new(name, "pauses").with(sizes.iter().cloned()).with([word]);
    let variants = [of(STEPS, "incremental=1"), of(STOP, "incremental=0")];
    let turns = take(options, report, "pauses", &variants)?;
    let columns = [
        ("wall ms", Middle("steady_ns", MS)),
        ("collections", Middle("cycles", 1.0)),
        ("steps", Middle("pauses", 1.0)),
        ("step p50 ms", Middle("step_p50", MS)),
        ("p99", Middle("step_p99", MS)),
        ("p99.9", Middle("step_p999", MS)),
        ("most", Middle("step_most", MS)),
        ("64 stores p99 ms", Middle("batch_p99", MS)),
        ("p99.9", Middle("batch_p999", MS)),
        ("most", Middle("batch_most", MS)),
        ("most, as the heap says", Middle("pause_max_ns", MS)),
    ];
    report.table("pauses: thread CPU time", &turns.table("", &columns));
    histogram(report, &turns);
    let live = if options.quick { "2 MiB" } else { "1 GiB" };
    // A step that an allocation does is no less a pause.
    for (what, most, field) in [
        ("step(500 us): p99.9", 1.0, "step_p999"),
        ("step(500 us): worst", 5.0, "step_most"),
        ("64 stores between two steps: worst", 5.0, "batch_most"),
    ] {
        let rounds: Vec<f64> = turns.numbers(STEPS, field).iter().map(|ns| ns / MS).collect();
        let what = format!("{live} live, {what}");
        report.figure(what, Asked::AtMost(most), " ms", Kind::Worst, &rounds);
    }
    let cost = turns.ratios(STEPS, STOP, "steady_ns");
    let what = format!("{live} live, time to that of stopping the world");
    report.figure(what, Asked::Nothing, "x", Kind::Timed, &cost);
    Ok(())
}

/// Of all rounds together: how many steps took so long.
fn histogram(report: &mut Report, turns: &Turns) {
    let mut buckets = [0_u64; 64];
    for one in turns.of(STEPS).flat_map(|run| Record::series(&run.text, "pause")) {
        if let (Some(bucket), Some(count)) = (one.number("bucket"), one.number("count"))
            && let Some(place) = buckets.get_mut(bucket as usize)
        {
            *place += count as u64;
        }
    }
    let counted = buckets.iter().enumerate().filter(|(_, count)| **count != 0);
    let row = |(bucket, count): (usize, &u64)| {
        let from = 2f64.powi(bucket as i32) / 1e3;
        vec![format!("{} to {}", number(from), number(2.0 * from)), count.to_string()]
    };
    let rows: Vec<Vec<String>> = counted.map(row).collect();
    report.table("pauses: how many steps took so long", &table(&["us", "steps"], &rows));
}

const TWO_THREADS: &str = "2 threads, one heap";
const TWO_PROCESSES: &str = "2 processes";

pub(crate) fn scaling(options: &Options, report: &mut Report, _: &str) -> Result<(), String> {
    let sizes = options.sizes("", "rounds=50");
    for door in ["heapwright", "bdwgc"].into_iter().filter(|door| options.has(door)) {
        let of = |name: &str, how: &str, count: u32| {
            let words = [format!("how={how}"), format!("count={count}")];
            let variant = Variant::new(name, &format!("scaling-{door}"));
            variant.with(sizes.iter().cloned()).with(words)
        };
        let title = format!("scaling, {door}");
        let two = [of(TWO_THREADS, "threads", 2), of(TWO_PROCESSES, "processes", 2)];
        let turns = take(options, report, &title, &two)?;
        // Not of the same sum, so not in the same turns.
        let one = [of("1 thread", "threads", 1)];
        let alone = take(options, report, &format!("{title}, alone"), &one)?;
        let columns = [("wall ms", Middle("wall_ns", MS))];
        report.table(&title, &(alone.table("", &columns) + &turns.table("", &columns)));
        let rounds = turns.ratios(TWO_PROCESSES, TWO_THREADS, "wall_ns");
        let asked = if door == "heapwright" { Asked::AtLeast(0.9) } else { Asked::Nothing };
        let what = format!("scaling of 2 threads on one heap to that of 2 processes, {door}");
        report.figure(what, asked, "x", Kind::Timed, &rounds);
    }
    Ok(())
}

/// What a step of compact may take: its budget, and what is asked beyond that.
const BUDGET_MS: f64 = 0.5;
const BEYOND_MS: f64 = 1.0;

pub(crate) fn compact(options: &Options, report: &mut Report, _: &str) -> Result<(), String> {
    let sizes = options.sizes("", "objects=40000 budget=50000");
    for (name, word) in [
        ("fine", None),
        ("with generations", Some("generations=1")),
        ("ruby", Some("layout=ruby")),
        ("half is kept", Some("keep=50")),
    ] {
        let variant = Variant::new(name, "compact").with(sizes.iter().cloned());
        let variant = variant.with(["incremental=1"]).with(word);
        // Each alone: what is kept is another sum.
        let turns = take(options, report, &format!("compact, {name}"), &[variant])?;
        let columns = [
            ("heap MiB", Middle("heap_before", MIB)),
            ("after", Middle("heap_after", MIB)),
            ("live", Middle("live_after", MIB)),
            ("moved", Middle("moved", 1.0)),
            ("took ms", Middle("compacting_ns", MS)),
            ("steps", Middle("steps", 1.0)),
            ("p50 ms", Middle("step_p50", MS)),
            ("p99", Middle("step_p99", MS)),
            ("most", Middle("step_most", MS)),
        ];
        let title = format!("compact, {name}: thread CPU time");
        report.table(&title, &turns.table("", &columns));
        let of = |field: &str| turns.numbers(name, field);
        let heap: Vec<f64> =
            of("heap_after").iter().zip(of("live_after")).map(|(heap, live)| heap / live).collect();
        let asked = if options.quick { Asked::Nothing } else { Asked::AtMost(1.3) };
        let what = format!("2M objects, compacted, {name}: heap to what lives");
        report.figure(what, asked, "x", Kind::Worst, &heap);
        let worst: Vec<f64> = of("step_most").iter().map(|ns| ns / MS).collect();
        let what = format!("2M objects, compacted, {name}: worst step of {BUDGET_MS} ms");
        let asked = Asked::AtMost(BUDGET_MS + BEYOND_MS);
        report.figure(what, asked, " ms", Kind::Worst, &worst);
    }
    Ok(())
}
