//! The page of a heap profile.
//!
//! ```text
//! head          the command, and the sum of each figure
//! over time     live and resident bytes of the largest processes
//! figures       a tab each: live, growth, temporary, peak, allocated
//!                 a description; the sum, with its 95 % interval; a flame graph; largest stacks
//! by thread     live and allocated
//! the run       processes, notes
//! ```
//!
//! Figures are sums over the last profiles of all processes that have one. Without scripts all tabs
//! are shown, one below the other. A report has this page only if it contains nothing but profiles.

use super::chart::Chart;
use super::document::{Card, Cell, Document, Part, Table, Tile, Words, cells};
use super::flame::{self, Tree};
use super::page::{MOST_ROWS, whereabouts};
use super::sentences::{self, FigureWords};
use super::stack::{Stacker, clipped};
use super::units;
use crate::report::model::{Amount, Check, Figure, Profiled as One, Report, Sampled};
use askama::Template;
use std::cmp::Reverse;

/// The most stacks of each figure.
const MOST_SITES: usize = 50;
/// The most time lines. A process has one if its peak is at least the highest divided by `SMALL`.
const MOST_CHARTS: usize = 8;
const SMALL: u64 = 20;
const MOST_THREADS: usize = 100;
/// The length of the longest bar, in rem.
const BAR: f64 = 4.4;
/// The standard deviations on each side of a 95 % interval.
const SURE: f64 = 1.96;

/// The figures, one of which is chosen.
#[derive(Template)]
#[template(path = "tabs.html")]
struct Tabs(Vec<Tab>);

struct Tab {
    id: &'static str,
    title: &'static str,
    amount: String,
    open: bool,
}

fn name(one: &One<'_>) -> String {
    let exe = one.process.exe.rsplit('/').next().unwrap_or_default();
    clipped(format!("{exe} ({})", one.process.pid))
}

/// `None` if the report has no profiles, or has other findings.
pub(super) fn of(report: &Report) -> Option<Document<'static>> {
    let all = report.profiles();
    let is_more = !report.errors.is_empty()
        || !report.leaks.is_empty()
        || report.checks().any(|check| check.profile.is_none());
    if is_more {
        return None;
    }
    let largest = all.first()?;
    let stacker = Stacker::new(report);
    let known = |figure: &Figure| is_known(*figure, &all);
    let figures: Vec<Figure> = Figure::ALL.into_iter().filter(known).collect();
    let sums: Vec<_> = figures.iter().map(|&figure| (figure, sum(&all, figure))).collect();
    let mut page = Document {
        kind: "profile",
        // The started program may not be the program that allocates: shells start other programs.
        title: clipped(sentences::command(largest.process)),
        verdict: verdict(&all).into(),
        facts: facts(&all),
        tiles: sums.iter().map(|(figure, (amount, _))| tile(&all, *figure, amount)).collect(),
        filter: Some(["a function, a file", "call stacks"]),
        ..Document::default()
    };
    page.add("time", "Over time", charts(&all));
    let tab = |(figure, (amount, _)): &(Figure, (String, String))| Tab {
        id: figure.word(),
        title: FigureWords::of(*figure).title,
        amount: amount.clone(),
        open: *figure == report.wanted.figure,
    };
    let mut sites = vec![Part::Drawing(Tabs(sums.iter().map(tab).collect()).to_string())];
    let of = figures.len();
    sites.extend(
        sums.into_iter().map(|(figure, sum)| panel(report, &stacker, figure, &all, of, sum)),
    );
    page.add("sites", "Where memory comes from", sites);
    page.add("threads", "By thread", threads(&all));
    let lost: u64 = all.iter().map(|one| one.profile.lost).sum();
    let lost = sentences::lost_samples(lost);
    let notes = report.notes.iter().chain(&lost).take(MOST_ROWS);
    let mut run = Vec::from_iter(Part::notes(notes));
    run.push(Part::Table(processes(&all)));
    let period = units::round_bytes(largest.profile.period);
    run.push(Part::text_of(
        "left",
        format!(
            "All figures are estimates from a random sample of blocks, one per {period} allocated, \
             on average. In 95 of 100 cases the true value lies within ±. With few samples, ± is \
             large and less reliable."
        ),
    ));
    page.add("run", "The run", run);
    Some(page)
}

fn charts(all: &[One<'_>]) -> Vec<Part> {
    let highest = all.iter().map(|one| one.profile.peak_bytes).max().unwrap_or(0);
    let is_large = |one: &&One<'_>| one.profile.peak_bytes >= highest / SMALL;
    let drawn = |one: &One<'_>| Chart::of_profile(one.process, one.check, one.profile);
    let large = all.iter().filter(is_large).take(MOST_CHARTS);
    let mut charts: Vec<Chart> = large.filter_map(drawn).collect();
    if let ([_], [chart]) = (all, &mut charts[..]) {
        chart.forget_name();
    }
    let left = if charts.is_empty() { None } else { undrawn(all.len() - charts.len()) };
    let drawings = charts.iter().map(|chart| Part::Drawing(chart.to_string()));
    drawings.chain(left.map(|text| Part::text_of("left", text))).collect()
}

fn undrawn(processes: usize) -> Option<String> {
    let of = match processes {
        0 => return None,
        1 => "another, smaller process".to_owned(),
        many => format!("{} smaller processes", units::count(many as u64)),
    };
    Some(format!("The time line of {of} is left out of this page. The JSON has it."))
}

/// Records of older versions lack growth.
fn is_known(figure: Figure, all: &[One<'_>]) -> bool {
    figure != Figure::Growth || all.iter().any(|one| one.profile.earlier_ns().is_some())
}

fn facts(all: &[One<'_>]) -> Vec<String> {
    let Some(largest) = all.first() else { return Vec::new() };
    let mut facts = vec![
        units::date_of(largest.process.began) + " UTC",
        sentences::duration(largest.check.ns),
        sentences::processes(largest.process, all.len()),
        format!(
            "one sample per {} allocated, on average",
            units::round_bytes(largest.profile.period)
        ),
    ];
    if let Some(resident) = largest.profile.resident() {
        facts.push(format!("{} resident at the end", units::bytes(resident)));
    }
    facts
}

fn verdict(all: &[One<'_>]) -> String {
    let live = total(all, Figure::Live).bytes;
    let peak = total(all, Figure::Peak).bytes;
    format!("{} live, {} at the peak", units::bytes(live), units::bytes(peak))
}

fn total(all: &[One<'_>], figure: Figure) -> Amount {
    all.iter().map(|one| one.profile.total(|site| figure.of(site))).sum()
}

fn error(all: &[One<'_>], figure: Figure) -> Option<f64> {
    let squares: Option<f64> =
        all.iter().map(|one| Some((one.profile.error(figure)? as f64).powi(2))).sum();
    squares.map(f64::sqrt)
}

fn growth(all: &[One<'_>]) -> i64 {
    all.iter().filter_map(|one| one.profile.growth()).sum()
}

fn half(error: f64) -> u64 {
    (error * SURE) as u64
}

/// Returns a figure's sum, as in `12.0 MiB`, and the words behind it: blocks, the interval.
fn sum(all: &[One<'_>], figure: Figure) -> (String, String) {
    let Amount { bytes, blocks } = total(all, figure);
    let half = error(all, figure).map(half);
    if figure == Figure::Growth {
        let growth = growth(all);
        let interval = half.map_or_else(String::new, |half| {
            let half = half.min(1 << 56).cast_signed();
            let (low, high) = (units::difference(growth - half), units::difference(growth + half));
            format!(" (95 % interval: {low} to {high})")
        });
        let since = match all {
            [one] => sentences::duration(one.profile.earlier_ns().unwrap_or(0)),
            _ => "an earlier moment of each process".to_owned(),
        };
        let grown = units::bytes(bytes);
        let text = format!("net, since {since}{interval}; without the stacks that shrank: {grown}");
        return (units::difference(growth), text);
    }
    let interval = half.map_or_else(String::new, |half| {
        let (low, high) = (bytes.saturating_sub(half), bytes.saturating_add(half));
        format!(" (95 % interval: {} to {})", units::bytes(low), units::bytes(high))
    });
    (units::bytes(bytes), format!("in {}{interval}", units::counted(blocks, "block")))
}

fn means(all: &[One<'_>], figure: Figure) -> String {
    match (figure, all) {
        (Figure::Live, _) => "Blocks that were live when the profile was written: what the program keeps, or has lost.".to_owned(),
        (Figure::Growth, _) => "The growth of each stack's live bytes, from a moment in the second quarter of the time to the end. \
                                Memory that keeps growing is a leak, or a cache without a bound."
            .to_owned(),
        (Figure::Temporary, _) => "Blocks that were freed within a millisecond. A buffer that the program reuses would save the \
                                   allocator this work."
            .to_owned(),
        (Figure::Peak, [one]) => format!(
            "Blocks that were live when live bytes were highest, after {}: what decides how much memory the program needs.",
            sentences::duration(one.profile.peak_ns)
        ),
        (Figure::Peak, _) => "Blocks that were live when live bytes were highest, of each process at its own time.".to_owned(),
        (Figure::Allocated, _) => "All blocks that were allocated since sampling began, freed or not: where the allocator's time goes.".to_owned(),
    }
}

/// Returns the tab of a figure, with its `sum`.
fn panel(
    report: &Report,
    stacker: &Stacker<'_>,
    figure: Figure,
    all: &[One<'_>],
    of: usize,
    (amount, sum): (String, String),
) -> Part {
    let mut sites: Vec<(&One<'_>, &Sampled)> = all
        .iter()
        .flat_map(|one| one.profile.sites.iter().map(move |site| (one, site)))
        .filter(|(_, site)| figure.of(site).bytes != 0)
        .collect();
    sites.sort_by_key(|(_, site)| Reverse(figure.of(site).bytes));
    let mut tree = Tree::default();
    let many = all.len() > 1;
    for (one, site) in &sites {
        let name = many.then(|| name(one));
        tree.add(report, name.as_deref(), site.stack, figure.of(site));
    }
    let words = FigureWords::of(figure);
    let whole = total(all, figure).bytes;
    let largest = sites.first().map_or(0, |(_, site)| figure.of(site).bytes);
    let card = |&(one, site): &(&One<'_>, &Sampled)| {
        let Amount { bytes, blocks } = figure.of(site);
        let off = figure.error(site).map(|error| half(error as f64));
        let width = format!("{:.2}rem", units::share(bytes, largest) * BAR);
        let share = Words::of("share", "").and("width", width);
        let process = if many { name(one) } else { String::new() };
        Part::Card(Card {
            class: format!("leak figure {}", figure.word()),
            row: "row site",
            summary: vec![
                Words::of("bytes", units::bytes(bytes)),
                Words::of("off", sentences::off(off).trim_start()),
                share.and("b", units::percent(bytes, whole)),
                Words::of("blocks", units::count(blocks)),
                whereabouts(report, site.stack, &process),
                Words::of("age", extra(figure, one.check, site)),
            ],
            body: vec![
                Part::List(
                    "facts",
                    site_facts(one.check, site).into_iter().map(Words::from).collect(),
                ),
                Part::Stack(stacker.stack(site.stack)),
            ],
            ..Card::default()
        })
    };
    let sum = Words::of("sum", "").and("b", amount).and("", format!(" {sum}"));
    let mut parts = vec![
        Part::Heading(Words::of("sub", words.title)),
        Part::text_of("lead", means(all, figure)),
        Part::Text(sum),
    ];
    let label = format!("flame graph: {}", words.title.to_lowercase());
    parts.extend(tree.flame(label, flame::MOST / of));
    parts.push(match sites.first() {
        None => Part::text_of("none", words.none),
        Some(_) => {
            let titles = ["bytes", "±, 95 %", "share", "blocks", "allocated in"];
            Part::Heads("row site", [&titles[..], &[words.extra]].concat())
        }
    });
    parts.extend(sites.iter().take(MOST_SITES).map(card));
    if let Some(rest) = sites.get(MOST_SITES..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|(_, site)| figure.of(site).bytes).sum();
        let text = format!(
            "{} left out of this page, {} in all. The JSON has them.",
            units::counted(rest.len() as u64, "smaller stack"),
            units::bytes(bytes)
        );
        parts.push(Part::text_of("left", text));
    }
    let id = figure.word();
    Part::Group(format!("panel figure {id}"), id, parts)
}

fn extra(figure: Figure, check: &Check, site: &Sampled) -> String {
    match figure {
        Figure::Live => age(check, site.oldest_ns),
        Figure::Growth => {
            site.more.map_or_else(String::new, |more| units::bytes(more.earlier.bytes))
        }
        Figure::Temporary | Figure::Allocated => {
            units::percent(site.temporary.bytes, site.allocated.bytes)
        }
        Figure::Peak => units::bytes(site.live.bytes),
    }
}

fn age(check: &Check, ns: u64) -> String {
    sentences::duration(check.ns.saturating_sub(ns))
}

fn site_facts(check: &Check, site: &Sampled) -> Vec<String> {
    let error = |figure: Figure| figure.error(site).map(|error| half(error as f64));
    let amount = |figure: Figure| sentences::estimate(figure.of(site), error(figure), site.noun());
    let mut facts = Vec::new();
    if site.samples == 0 {
        facts.push("nothing live".to_owned());
    } else {
        let ages = sentences::ages(&age(check, site.youngest_ns), &age(check, site.oldest_ns));
        let samples = units::counted(site.samples, "sample");
        facts.push(format!("live: {}, {samples}, {ages}", amount(Figure::Live)));
    }
    if let Some(growth) = site.growth() {
        let off = sentences::off(error(Figure::Growth));
        facts.push(format!("growth: {}{off}", units::difference(growth)));
    }
    facts.push(format!("at the peak: {}", amount(Figure::Peak)));
    facts.push(format!("allocated: {}", amount(Figure::Allocated)));
    facts.push(format!("freed within a millisecond: {}", amount(Figure::Temporary)));
    facts
}

fn tile(all: &[One<'_>], figure: Figure, amount: &str) -> Tile {
    Tile {
        class: if figure == Figure::Growth { "grow" } else { "calm" },
        label: FigureWords::of(figure).label,
        value: amount.to_owned(),
        more: error(all, figure)
            .map(|error| format!("± {} (95 %)", units::bytes(half(error))))
            .unwrap_or_default(),
    }
}

/// The largest figures come first; empty for a single thread.
fn threads(all: &[One<'_>]) -> Vec<Part> {
    let mut threads: Vec<_> = all.iter().flat_map(|one| &one.profile.threads).collect();
    if threads.len() < 2 {
        return Vec::new();
    }
    threads.sort_by_key(|thread| Reverse((thread.live.bytes, thread.allocated.bytes)));
    let mut table = Table::new("thread|*name|>live|>blocks|>allocated|>blocks").limited(
        "thread",
        MOST_THREADS,
        MOST_THREADS,
    );
    for thread in threads {
        let cells = cells![
            thread.number.to_string(),
            clipped(thread.name.clone()),
            units::bytes(thread.live.bytes),
            units::count(thread.live.blocks),
            units::bytes(thread.allocated.bytes),
            units::count(thread.allocated.blocks),
        ];
        table.row("", cells);
    }
    let lead =
        "What each thread has allocated, and what of it is live, whichever thread holds it now.";
    vec![Part::text_of("lead", lead), Part::Table(table)]
}

fn processes(all: &[One<'_>]) -> Table {
    let mut table = Table::new("pid|>parent|*command|began, UTC|>after|>live|>peak|>allocated")
        .titled("Processes", "")
        .limited("process", MOST_ROWS, MOST_ROWS);
    for one in all {
        let bytes = |figure: Figure| units::bytes(one.profile.total(|site| figure.of(site)).bytes);
        let cells = cells![
            one.process.pid.to_string(),
            one.process.parent.to_string(),
            Cell::Code(clipped(sentences::command(one.process))),
            units::date_of(one.process.began),
            sentences::duration(one.check.ns),
            bytes(Figure::Live),
            units::bytes(one.profile.peak_bytes),
            bytes(Figure::Allocated),
        ];
        table.row("", cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::Process;
    use crate::report::sample;

    fn page(report: &Report) -> String {
        of(report).expect("is a profile").render().expect("is rendered")
    }

    #[test]
    fn a_record_of_an_older_version_has_a_page_without_growth() {
        let mut report = sample::profile();
        for profile in report.processes.iter_mut().flat_map(|one| &mut one.checks[0].profile) {
            profile.points.clear();
            profile.sites.iter_mut().for_each(|site| site.more = None);
        }
        let html = page(&report);
        assert!(html.contains("id=\"tab-peak\"") && !html.contains("id=\"tab-growth\""));
        assert!(!html.contains("id=\"time\"") && html.contains("<b>79.0 MiB</b> in "));
    }

    #[test]
    fn processes_are_told_apart_where_there_are_several() {
        let mut report = sample::profile();
        report.processes.push(Process { pid: 7, ..report.processes[0].clone() });
        let html = page(&report);
        assert!(html.contains("83.0 MiB live, 158.0 MiB at the peak<"));
        assert!(html.contains("shop server (7)") && html.contains("shop server (4242)"));
        let charts = |report: &Report| page(report).matches("<figure").count();
        assert_eq!(charts(&report), 2);
        let profile = report.processes[1].checks[0].profile.as_mut().expect("is one");
        profile.peak_bytes /= 100;
        assert_eq!(charts(&report), 1);
        assert!(
            page(&report)
                .contains("The time line of another, smaller process is left out of this page.")
        );
    }

    #[test]
    fn what_has_findings_too_is_a_report() {
        let mut report = sample::profile();
        report.processes.extend(sample::report().processes);
        assert!(of(&report).is_none());
        assert!(of(&sample::report()).is_none() && of(&Report::default()).is_none());
    }
}
