//! Loads with both doors under equal limits: gcbench, splay, strings, fillers, quads, ephemerons
//! and finalizers; and garbage, whose limit is given.
//!
//! ```text
//!   smallest heap of each collector ---- the larger one, times 1.5, 2 and 3: the limit of all
//!   heapwright | with generations | bdwgc | bdwgc that marks with one thread        in turns
//! ```
//!
//! bdwgc marks with as many threads as there are processors; a row has it mark with one. It is set
//! up as it is at its best there: of the ways to grow (WAYS) the smallest heap is any one's, and at
//! each limit all are tried and the fastest one runs.
//!
//! Of loads that live among what died a figure is processor time, that of threads that mark
//! included: with eight mutators on two processors wall time says how they were scheduled.

use crate::limits::smallest;
use crate::options::Options;
use crate::run::{self, Ended, Variant, take};
use figures::report::Report;
use figures::text::number;
use figures::turns::Column::{Middle, Ratio};
use figures::turns::Turns;
use figures::verdict::{Asked, Figure, Kind, Verdict};

const OURS: &str = "heapwright";
const GENERATIONS: &str = "heapwright, generations";
const ALL_OF_IT: &str = "heapwright, collects when full";
const BDWGC: &str = "bdwgc";
const ONE_MARKER: &str = "bdwgc, GC_MARKERS=1";
const FACTORS: [f64; 3] = [1.5, 2.0, 3.0];
/// How bdwgc's heap grows: how much of the limit it begins with, and how much it allocates
/// between two collections (GC_free_space_divisor). The first and the last are the extremes.
const WAYS: [&[&str]; 4] =
    [&["begin=100"], &["begin=50"], &["begin=0"], &["begin=0", "divisor=10"]];
const MS: f64 = 1e6;
const MIB: f64 = 1048576.0;

/// What is asked of a load.
enum What {
    /// 1.5 times bdwgc's speed in no more memory; twice with generations, if so much is asked.
    Speed { twice: bool },
    /// Parts of bdwgc's processor time, without and with generations.
    Cpu([Asked; 2]),
}

/// A load: its settings, those of `--quick`, numbers of mutators, what is asked.
type Load = (&'static str, &'static str, &'static [usize], What);

fn load(name: &str) -> Load {
    const NOTHING: [Asked; 2] = [Asked::Nothing, Asked::Nothing];
    match name {
        "gcbench" => ("", "depth=14", &[1, 2], What::Speed { twice: true }),
        "splay" => ("", "size=300 rounds=20", &[1, 2], What::Speed { twice: false }),
        "strings" => ("", "texts=40 kept=8 lines=100", &[1, 2], What::Speed { twice: false }),
        "fillers" => {
            let asked = What::Cpu([Asked::AtMost(0.75), Asked::AtMost(0.60)]);
            ("", "depth=11", &[1, 2, 8], asked)
        }
        "quads" => {
            let asked = What::Cpu([Asked::AtMost(0.75), Asked::Nothing]);
            ("", "depth=6 rounds=500", &[1, 2], asked)
        }
        "ephemerons" => {
            let full = "keys=50000 rounds=500000";
            (full, "keys=2000 rounds=20000", &[1, 2, 8], What::Cpu(NOTHING))
        }
        _ => {
            let full = "kept=50000 rounds=500000";
            (full, "kept=2000 rounds=20000", &[1, 2, 8], What::Cpu(NOTHING))
        }
    }
}

/// Runs one of them.
pub(crate) fn limited(options: &Options, report: &mut Report, name: &str) -> Result<(), String> {
    let (full, quick, threads, what) = load(name);
    let sizes = options.sizes(full, quick);
    for threads in threads {
        let words = || sizes.iter().cloned().chain([format!("threads={threads}")]);
        let ours = Variant::new(OURS, &format!("{name}-heapwright")).with(words());
        let bdwgc = Variant::new(BDWGC, &format!("{name}-bdwgc")).with(words());
        let title = format!("{name}, {threads} thread{}", if *threads == 1 { "" } else { "s" });
        let needs = smallest(options, report, &ours)?;
        let theirs =
            if options.has(BDWGC) { smallest_of_ways(options, report, &bdwgc)? } else { None };
        let shown = |kib: Option<u64>| kib.map_or("-".to_owned(), mib);
        let limits =
            format!("The smallest heap: {OURS} {}, {BDWGC} {}.\n\n", shown(needs), shown(theirs));
        report.table(&format!("{title}: limits"), &limits);
        let Some(base) = needs.max(theirs) else { continue };
        for factor in if options.quick { &FACTORS[1..2] } else { &FACTORS } {
            let limit = (base as f64 * factor) as u64;
            let word = [format!("limit={limit}")];
            let ours = ours.clone().with(word.clone());
            let generations = ours.clone().named(GENERATIONS).with(["generations=1"]);
            let mut variants = vec![ours, generations];
            let mut grows = String::new();
            if options.has(BDWGC) {
                let bdwgc = bdwgc.clone().with(word);
                let way = fastest_way(options, &bdwgc)?;
                grows = format!("; bdwgc: {}", way.join(" "));
                let bdwgc = bdwgc.with(way.iter().copied());
                if let What::Speed { .. } = what {
                    let one = bdwgc.clone().named(ONE_MARKER).environment("GC_MARKERS=1");
                    variants.push(one);
                }
                variants.push(bdwgc);
            }
            let title = format!("{title}, {factor} x the larger smallest heap");
            let turns = take(options, report, &title, &variants)?;
            show(report, &format!("{title} ({}{grows})", mib(limit)), &turns);
            judge(report, &title, &turns, &what);
        }
    }
    match name {
        "strings" => report.add(Figure {
            what: "allocation fast path, instructions".to_owned(),
            asked: "<= 10".to_owned(),
            measured: "ci/golden.sh counts them".to_owned(),
            verdict: Verdict::Elsewhere("judged there"),
        }),
        "fillers" => mutators(options, report, &sizes)?,
        _ => {}
    }
    Ok(())
}

fn mib(kib: u64) -> String {
    format!("{} MiB", number(kib as f64 / 1024.0))
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

/// The way in which bdwgc is the fastest under a limit: of two runs the better one counts. One in
/// which both end well is better than any in which one runs out of memory.
fn fastest_way(options: &Options, limited: &Variant) -> Result<&'static [&'static str], String> {
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

/// Of as many objects each, in a heap of as many times what lives.
fn mutators(options: &Options, report: &mut Report, sizes: &[String]) -> Result<(), String> {
    let variants = [2, 8].map(|threads| {
        Variant::new(&format!("{threads} mutators"), "fillers-heapwright")
            .with(sizes.iter().cloned())
            .with([format!("threads={threads}"), "percent=200".to_owned()])
    });
    let turns = take(options, report, "fillers, mutators", &variants)?;
    show(report, "fillers, mutators", &turns);
    let rounds = turns.ratios("8 mutators", "2 mutators", "object_ps");
    let what = "fillers: CPU time an object, 8 mutators to 2";
    report.figure(what, Asked::AtMost(1.15), "x", Kind::Timed, &rounds);
    Ok(())
}

/// Objects that nobody keeps, in a heap of 128 MiB, each collector as it is fastest there: bdwgc
/// grows in one of its ways, and ours collects when all of it is used, or each 4 MiB, as it does by
/// default. What is collected sooner stays in the caches.
pub(crate) fn garbage(options: &Options, report: &mut Report, _: &str) -> Result<(), String> {
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
            show(report, &title, &turns);
            for (name, what) in [
                (OURS, "CPU time an object to bdwgc's"),
                (ALL_OF_IT, "the same, all of it used before it collects"),
            ] {
                let rounds = turns.ratios(name, BDWGC, "object_ps");
                let what = format!("{title}: {what}");
                report.figure(what, Asked::AtMost(0.8), "x", Kind::Timed, &rounds);
            }
        }
    }
    Ok(())
}

fn show(report: &mut Report, title: &str, turns: &Turns) {
    let first = turns.names().next().unwrap_or_default();
    let columns = [
        ("wall ms", Middle("wall_ns", MS)),
        ("CPU ms", Middle("cpu_ns", MS)),
        ("ns an object", Middle("object_ps", 1e3)),
        ("peak MiB", Middle("peak", MIB)),
        ("collections", Middle("cycles", 1.0)),
        ("minor", Middle("minors", 1.0)),
        ("wall to the first", Ratio("wall_ns", first)),
        ("CPU", Ratio("cpu_ns", first)),
        ("peak", Ratio("peak", first)),
    ];
    report.table(title, &turns.table("", &columns));
}

fn judge(report: &mut Report, title: &str, turns: &Turns, what: &What) {
    let mut add = |what: &str, asked, kind, (one, other): (&str, &str), field: &str| {
        let rounds = turns.ratios(one, other, field);
        report.figure(format!("{title}: {what}"), asked, "x", kind, &rounds);
    };
    let (timed, nothing) = (Kind::Timed, Asked::Nothing);
    match *what {
        What::Speed { twice } => {
            let speed = (BDWGC, OURS);
            add("speed to bdwgc's", Asked::AtLeast(1.5), timed, speed, "wall_ns");
            add("speed to bdwgc's, CPU time", nothing, timed, speed, "cpu_ns");
            let kind = Kind::Counted;
            add("peak RSS to bdwgc's", Asked::AtMost(1.0), kind, (OURS, BDWGC), "peak");
            let what = "speed to bdwgc's with one marker";
            add(what, nothing, timed, (ONE_MARKER, OURS), "wall_ns");
            let what = "time with generations to that without";
            add(what, Asked::AtMost(1.03), timed, (GENERATIONS, OURS), "wall_ns");
            let asked = if twice { Asked::AtLeast(2.0) } else { nothing };
            let what = "speed with generations to bdwgc's";
            add(what, asked, timed, (BDWGC, GENERATIONS), "wall_ns");
        }
        What::Cpu(asked) => {
            for (name, asked) in [OURS, GENERATIONS].into_iter().zip(asked) {
                let what = format!("CPU time of {name} to bdwgc's");
                add(&what, asked, timed, (name, BDWGC), "cpu_ns");
            }
            add("wall time to bdwgc's", nothing, timed, (OURS, BDWGC), "wall_ns");
        }
    }
}
