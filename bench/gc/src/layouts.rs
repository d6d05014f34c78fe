//! document, template and quiet: what a layout saves, and that it costs nothing where there is
//! nothing to save. All on glibc's malloc.

use crate::options::Options;
use crate::report::Report;
use crate::request::GLIBC;
use crate::run::Variant;
use crate::run::take;
use ::figures::text::{middle, ratio, table};
use ::figures::turns::Turns;
use ::figures::verdict::{Asked, Kind};

const LAYOUTS: [&str; 4] = ["single", "ruby", "powers", "fine"];
const SINGLE: &str = "single";

fn run(
    options: &Options,
    report: &mut Report,
    title: &str,
    program: &str,
    words: &[String],
) -> Result<Turns, String> {
    let variants = LAYOUTS.map(|layout| {
        let layout_word = format!("layout={layout}");
        Variant::new(layout, program)
            .with(words.iter().cloned())
            .with([layout_word])
            .environment(GLIBC)
    });
    let turns = take(options, report, title, &variants)?;
    show(report, title, &turns);
    Ok(turns)
}

fn show(report: &mut Report, title: &str, turns: &Turns) {
    let rows: Vec<Vec<String>> = turns
        .names()
        .map(|name| {
            let of = |field| turns.numbers(name, field);
            vec![
                name.to_owned(),
                middle(&of("wall_ns"), 1e6),
                middle(&of("cpu_ns"), 1e6),
                middle(&of("peak"), 1048576.0),
                middle(&of("cycles"), 1.0),
                middle(&of("freed_bodies"), 1.0),
                ratio(&turns.ratios(name, SINGLE, "cpu_ns")),
                ratio(&turns.ratios(name, SINGLE, "peak")),
            ]
        })
        .collect();
    let head = [
        "layout",
        "wall ms",
        "CPU ms",
        "peak MiB",
        "collections",
        "bodies freed",
        "CPU to single",
        "peak to single",
    ];
    report.table(title, &table(&head, &rows));
}

/// The time of `fine` and of `ruby`, within 2 % of `single`. There is one thread, so its processor
/// time is its time, without that of others.
fn level(report: &mut Report, title: &str, turns: &Turns) {
    for layout in ["fine", "ruby"] {
        let rounds = turns.ratios(layout, SINGLE, "cpu_ns");
        let what = format!("{title}: time of {layout} to that of single");
        report.figure(what, Asked::AtMost(1.02), "x", Kind::Timed, &rounds);
    }
}

pub(crate) fn document(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("", "chapters=5");
    let turns = run(options, report, "document", "document", &sizes)?;
    let rounds = turns.ratios(SINGLE, "fine", "peak");
    let what = "document: peak RSS of single to that of fine".to_owned();
    report.figure(what, Asked::AtLeast(1.13), "x", Kind::Counted, &rounds);
    Ok(())
}

pub(crate) fn template(options: &Options, report: &mut Report) -> Result<(), String> {
    for part in ["parse", "render", "both"] {
        let mut words = options.sizes("", "times=50");
        words.push(format!("part={part}"));
        let title = format!("template, {part}");
        let turns = run(options, report, &title, "template", &words)?;
        level(report, &title, &turns);
    }
    Ok(())
}

pub(crate) fn quiet(options: &Options, report: &mut Report) -> Result<(), String> {
    let turns = run(options, report, "quiet", "quiet", &options.sizes("", "frames=20"))?;
    level(report, "hardly allocates (quiet)", &turns);
    Ok(())
}
