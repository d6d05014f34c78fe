//! The page of a report: one file that can be kept, sent and opened anywhere.
//!
//! ```text
//! head          the command, the verdict, the main figures
//! errors        a card each: the error, and its moments on a line of time
//! memory held   bytes of each fate; groups of blocks, with the pointers that lead to them
//! flame graph   memory held as a picture that can be zoomed
//! over time     live bytes of each process; growth
//! size classes  the use of the buckets
//! the run       processes, checks, suppressions, notes
//! ```
//!
//! A report of only heap profiles has a page of its own ([`profile_page`]). This module decides the
//! contents and their order; [`flame`], [`chart`](super::chart) and [`classes`] draw.
//!
//! The page limits the number of findings and of stack lines for browsers, and counts the others.
//! The JSON has them all.

use super::chart::{Chart, Sparkline};
use super::document::{Card, Cell, Document, Part, Table, Tile, Words, cells, left};
use super::rules::Rule;
use super::stack::{Stacker, clipped};
use super::text::report::ended;
use super::words::fault_stack;
use super::{classes, flame, profile_page, sentences, units};
use crate::report::calls::look_at;
use crate::report::model::{Amount, Check, Error, Growth, Leak, Path, Process, Report, StackId};
use askama::Template;
use heapwright_record::debug::{End, FindingKind, Reach, Role};

/// The most errors, and the most groups of blocks, that are shown in full.
const MOST: usize = 500;
/// The most charts, tables of size classes, and growths.
const MOST_CHARTS: usize = 24;
/// The most rows of the tables of processes, checks and suppressions.
pub(super) const MOST_ROWS: usize = 500;

#[derive(Template)]
#[template(path = "fates.html")]
struct Fates(Vec<FateBar>);

struct FateBar {
    class: &'static str,
    title: String,
    means: &'static str,
    width: String,
    bytes: String,
    more: String,
}

pub(super) fn of(report: &Report) -> Document<'static> {
    profile_page::of(report).unwrap_or_else(|| page(report))
}

fn page(report: &Report) -> Document<'static> {
    let stacker = Stacker::new(report);
    let command = report.first().map(sentences::command).filter(|command| !command.is_empty());
    let mut page = Document {
        kind: "report",
        title: command.map_or_else(|| "a program".to_owned(), clipped),
        verdict: verdict(report),
        facts: facts(report),
        tiles: tiles(report),
        filter: Some(["a function, a file, a kind", "findings"]),
        ..Document::default()
    };
    let count = |count: usize| Some(count).filter(|count| *count != 0).map(|all| all.to_string());
    let shown = report.errors.iter().take(MOST).enumerate();
    let mut errors: Vec<Part> =
        shown.map(|(at, error)| error_card(report, &stacker, error, at < 3)).collect();
    if errors.is_empty() {
        errors.push(Part::text_of("none", "No mistake was found."));
    }
    let more = left(report.errors.len(), MOST, "error").or_else(|| unreported(report));
    errors.extend(more);
    page.add("errors", "Errors", errors);
    page.sections[0].count = Some(report.errors.len().to_string());
    if !report.leaks.is_empty() {
        page.add("memory", "Memory held", memory(report, &stacker));
        page.sections[1].count = count(report.leaks.len());
    }
    if let Some(graph) = flame::of(report) {
        let lead = "Bytes held, callers above what they called. Wide is much.";
        page.add("flame", "Flame graph", vec![Part::text_of("lead", lead), graph]);
    }
    page.add("time", "Over time", over_time(report, &stacker));
    if let Some(time) = page.sections.last_mut().filter(|section| section.id == "time") {
        time.count = count(report.growths.len());
    }
    let tables: Vec<_> =
        report.processes.iter().filter_map(classes::table).take(MOST_CHARTS).collect();
    if !tables.is_empty() {
        let lead = "How the memory of each slot size was used at the last check.";
        let mut parts = vec![Part::text_of("lead", lead), classes::legend()];
        parts.extend(tables.into_iter().map(Part::Table));
        page.add("classes", "Size classes", parts);
    }
    page.add("run", "The run", run(report));
    page
}

/// Returns blocks by fate, as a bar and a legend, and their groups.
fn memory(report: &Report, stacker: &Stacker<'_>) -> Vec<Part> {
    let lead = "Every block that was live at the last check, by what still leads to it.";
    let mut parts = vec![
        Part::text_of("lead", lead),
        Part::Drawing(fates(report).to_string()),
        Part::Heads("row", vec!["bytes", "blocks", "fate", "allocated in", "oldest"]),
    ];
    parts.extend(report.leaks.iter().take(MOST).map(|leak| leak_card(report, stacker, leak)));
    parts.extend(left(report.leaks.len(), MOST, "group"));
    parts.extend(omitted(report));
    parts
}

fn over_time(report: &Report, stacker: &Stacker<'_>) -> Vec<Part> {
    let drawn: Vec<Chart> = report.processes.iter().filter_map(Chart::of).collect();
    let mut parts: Vec<Part> =
        drawn.iter().take(MOST_CHARTS).map(|chart| Part::Drawing(chart.to_string())).collect();
    parts.extend(left(drawn.len(), MOST_CHARTS, "process"));
    if !report.growths.is_empty() {
        parts.push(Part::Heading(Words::of("sub", "What grows")));
    }
    let growths = report.growths.iter().take(MOST_CHARTS);
    parts.extend(growths.map(|growth| growth_card(report, stacker, growth)));
    parts
}

fn run(report: &Report) -> Vec<Part> {
    let table = |table: Table| (!table.is_empty()).then_some(Part::Table(table));
    let parts = [
        Part::notes(report.lines().take(MOST_ROWS)),
        table(processes(report)),
        table(checks(report)),
        suppressed(report).map(|text| Part::text_of("left", text)),
        table(used(report)),
    ];
    parts.into_iter().flatten().collect()
}

fn unreported(report: &Report) -> Option<Part> {
    let errors = Some(report.unreported.errors).filter(|errors| *errors != 0)?;
    let (errors, times) =
        (units::counted(errors, "more different error"), units::count(report.unreported.times));
    Some(Part::text_of("left", format!("{errors}, found {times} times, are only counted.")))
}

fn facts(report: &Report) -> Vec<String> {
    let mut facts = Vec::new();
    let Some(first) = report.first() else { return facts };
    facts.push(units::date_of(first.began) + " UTC");
    let lasted = first.lasted();
    if lasted != 0 {
        facts.push(sentences::duration(lasted));
    }
    facts.push(sentences::processes(first, report.processes.len()));
    facts.push(ended(first));
    if !first.options.is_empty() {
        facts.push(first.options.clone());
    }
    facts
}

fn verdict(report: &Report) -> Words {
    let errors = (report.errors.len() as u64).saturating_add(report.unreported.errors);
    let lost = report.total(Reach::Definite);
    let possible = report.total(Reach::Possible);
    let mut parts = Vec::new();
    if errors != 0 {
        parts.push(units::counted(errors, "error"));
    }
    if lost.blocks != 0 {
        parts.push(format!("{} definitely lost", units::bytes(lost.bytes)));
    }
    if !parts.is_empty() {
        return Words::of("bad", parts.join(", "));
    }
    if possible.blocks != 0 {
        parts.push(format!("{} possibly lost", units::bytes(possible.bytes)));
    }
    if !report.growths.is_empty() {
        let many = report.growths.len() as u64;
        parts.push(format!("{} that grows", units::counted(many, "stack")));
    }
    if !parts.is_empty() {
        return Words::of("warn", format!("No errors, but {}", parts.join(" and ")));
    }
    Words::of(
        "good",
        if report.checks().any(Check::is_whole) { "No errors, nothing lost" } else { "No errors" },
    )
}

fn tiles(report: &Report) -> Vec<Tile> {
    let many = (report.errors.len() as u64).saturating_add(report.unreported.errors);
    let times = report.times();
    let mut tiles = vec![Tile {
        class: if many == 0 { "good" } else { "bad" },
        label: "errors",
        value: units::count(many),
        more: if times > many {
            format!("found {} times", units::count(times))
        } else {
            String::new()
        },
    }];
    let checked = report.checks().any(Check::is_whole);
    let indirect = report.total(Reach::Indirect);
    for (reach, label, class) in [
        (Reach::Definite, "definitely lost", "bad"),
        (Reach::Possible, "possibly lost", "warn"),
        (Reach::Reachable, "still reachable", "calm"),
    ] {
        let total = report.total(reach);
        if !checked && total == Amount::default() {
            continue;
        }
        let mut more = units::counted(total.blocks, "block");
        if reach == Reach::Definite && indirect.blocks != 0 {
            more += &format!(", {} more with them", units::bytes(indirect.bytes));
        }
        let class = match (total.blocks, class) {
            (0, "calm") => "calm",
            (0, _) => "good",
            _ => class,
        };
        tiles.push(Tile { class, label, value: units::bytes(total.bytes), more });
    }
    if let Some(end) = report.first().and_then(|first| first.end) {
        tiles.push(Tile {
            class: "calm",
            label: "peak",
            value: units::bytes(end.peak_live_bytes),
            more: format!("{} in all", units::counted(end.allocations, "allocation")),
        });
    }
    if !report.growths.is_empty() {
        let steepest = report.growths.iter().map(|growth| growth.slope).fold(0.0, f64::max);
        tiles.push(Tile {
            class: "grow",
            label: "grows",
            value: units::counted(report.growths.len() as u64, "stack"),
            more: format!("up to {}", sentences::slope(steepest)),
        });
    }
    tiles
}

fn process_name(report: &Report, process: usize) -> String {
    if report.processes.len() < 2 {
        return String::new();
    }
    report
        .processes
        .get(process)
        .map(|process| format!("process {}", process.pid))
        .unwrap_or_default()
}

pub(super) fn whereabouts(report: &Report, stack: StackId, process: &str) -> Words {
    let words = Words::of("where", "");
    let words = match look_at(&report.stacks, stack) {
        None => words.and("em", "no stack was kept"),
        Some(call) => words.and("code", clipped(call.name())).and("place", clipped(call.place())),
    };
    words.and("place", process)
}

fn error_card(report: &Report, stacker: &Stacker<'_>, error: &Error, open: bool) -> Part {
    let about = Rule::of(error.finding.kind).about();
    let moments = error.moments.iter().map(|happened| {
        let class = match happened.role {
            Role::Here => "here",
            Role::Freed => "freed",
            Role::Allocated => "allocated",
        };
        // The place of the stack says so already.
        let title = sentences::moment(&error.finding, happened).replace(" (no stack was kept)", "");
        let at = Some(happened.moment.ns).filter(|ns| *ns != 0).map(sentences::duration);
        let when = at.map(|at| format!(" at {at}")).unwrap_or_default();
        let title = Part::Heading(Words::from(title).and("small", when));
        Part::Group(
            format!("moment {class}"),
            "",
            vec![title, Part::Stack(stacker.stack(happened.stack))],
        )
    });
    let kind = match error.finding.kind {
        FindingKind::Unknown => "error",
        kind => kind.heading(),
    };
    let help = Words::of("help", "").and("b", format!("{}.", about.title));
    let help = help.and("", format!(" {} ", about.means)).and("mend", about.mend);
    Part::Card(Card {
        class: "error".to_owned(),
        open,
        summary: vec![
            Words::of("badge bad", kind),
            Words::of("what", sentences::error(error)),
            whereabouts(report, fault_stack(error), &process_name(report, error.process)),
        ],
        body: vec![Part::Text(help), Part::Group("moments".to_owned(), "", moments.collect())],
        ..Card::default()
    })
}

pub(super) fn fate_class(reach: Reach) -> &'static str {
    match reach {
        Reach::Definite => "definite",
        Reach::Indirect => "indirect",
        Reach::Possible => "possible",
        _ => "reachable",
    }
}

fn fates(report: &Report) -> Fates {
    let all = report.leaks.iter().fold(0, |sum: u64, leak| sum.saturating_add(leak.lost.bytes));
    let reaches =
        [Reach::Definite, Reach::Indirect, Reach::Possible, Reach::Reachable, Reach::Unknown];
    let totals = reaches.map(|reach| (reach, report.total(reach)));
    let bar = |(reach, total): (Reach, Amount)| FateBar {
        class: fate_class(reach),
        title: sentences::fate(reach),
        means: Rule::Leak(reach).about().means,
        width: units::css(total.bytes, all),
        bytes: units::bytes(total.bytes),
        more: format!(
            "{}, {}",
            units::counted(total.blocks, "block"),
            units::percent(total.bytes, all)
        ),
    };
    Fates(totals.into_iter().filter(|(_, total)| total.blocks != 0).map(bar).collect())
}

fn leak_card(report: &Report, stacker: &Stacker<'_>, leak: &Leak) -> Part {
    let time = sentences::duration;
    let (made, last) = (time(leak.oldest_ns), time(leak.youngest_ns));
    let (young, old) = (time(leak.youngest_age_ns), time(leak.oldest_age_ns));
    let mut facts = vec![match leak.lost.blocks {
        1 => format!("made {made} after the start, {old} old at the check"),
        _ => format!(
            "made between {made} and {last} after the start, {young} to {old} old at the check"
        ),
    }];
    if leak.indirect.blocks != 0 {
        facts.push(format!("{} are lost with them", sentences::amount(leak.indirect)));
    }
    let process = process_name(report, leak.process);
    if leak.processes > 1 {
        facts.push(format!("in {} processes, {process} among them", leak.processes));
    } else if !process.is_empty() {
        facts.push(process);
    }
    facts.push(format!("made by {}", leak.origin.word()));
    let mut body = vec![Part::List("facts", facts.into_iter().map(Words::from).collect())];
    if let Some(path) = &leak.path {
        body.push(Part::Heading("the pointers that lead to one of them".into()));
        body.push(Part::List("path", path_steps(report, path, leak.size)));
    }
    body.extend([Part::Heading("allocated".into()), Part::Stack(stacker.stack(leak.stack))]);
    let class = fate_class(leak.reach);
    Part::Card(Card {
        class: format!("leak {class}"),
        fate: class,
        row: "row",
        summary: vec![
            Words::of("bytes", units::bytes(leak.lost.bytes)),
            Words::of("blocks", units::counted(leak.lost.blocks, "block")),
            Words::default().and("badge", sentences::fate(leak.reach)),
            whereabouts(report, leak.stack, ""),
            Words::of("age", old),
        ],
        body,
        ..Card::default()
    })
}

/// Returns the pointers that lead to a block of `size` bytes.
fn path_steps(report: &Report, path: &Path, size: u64) -> Vec<Words> {
    let mut steps = vec![Words::of("root", sentences::root(path))];
    steps.extend(path.steps.iter().map(|step| {
        let name = look_at(&report.stacks, step.stack).map(|call| clipped(call.name()));
        let block = Words::default().and("b", units::bytes(step.size)).and("", " block");
        let block = match name {
            Some(name) => block.and("", " of ").and("code", name),
            None => block,
        };
        block.and("", format!(", pointer at {:#x}", step.offset))
    }));
    let this = Words::of("this", "");
    steps.push(this.and("b", units::bytes(size)).and("", " block, this one"));
    steps
}

/// Returns a note on the small groups that the checks left out.
fn omitted(report: &Report) -> Option<Part> {
    let last =
        |process: &Process| process.checks.last().map(|check| check.omitted).unwrap_or_default();
    let sum: Amount = report.processes.iter().map(last).sum();
    let sum = Some(sum).filter(|sum| sum.blocks != 0).map(sentences::amount)?;
    let text = format!("{sum} in groups too small to be distinguished are not shown.");
    Some(Part::text_of("left", text))
}

fn growth_card(report: &Report, stacker: &Stacker<'_>, growth: &Growth) -> Part {
    let what = sentences::growth(growth);
    let sureness = format!("sure by {:.2} of 1", growth.tau);
    let slope = format!("+{}", sentences::slope(growth.slope));
    Part::Card(Card {
        class: "growth".to_owned(),
        drawing: Sparkline::of(&growth.points).picture(&what),
        summary: vec![
            Words::of("what", "").and("b", slope).and("small", sureness),
            whereabouts(report, growth.stack, &process_name(report, growth.process)),
        ],
        body: vec![
            Part::text_of("help", format!("What is allocated here {what}.")),
            Part::Stack(stacker.stack(growth.stack)),
        ],
        ..Card::default()
    })
}

fn used(report: &Report) -> Table {
    let mut table = Table::new("*name|from|>hid|>memory").titled("Suppressions", "").limited(
        "suppression",
        MOST_ROWS,
        MOST_ROWS,
    );
    for used in &report.used {
        let place = match &*used.file {
            "" => String::new(),
            file => format!("{file}:{}", used.line),
        };
        let amount = Some(used.amount).filter(|amount| amount.blocks != 0);
        let cells = cells![
            used.name.clone(),
            place,
            units::count(used.times),
            amount.map(sentences::amount).unwrap_or_default(),
        ];
        table.row(if used.times == 0 { "idle" } else { "" }, cells);
    }
    table
}

/// Returns a sentence on the findings that suppressions hid.
fn suppressed(report: &Report) -> Option<String> {
    let hid = &report.suppressed;
    let mut parts = Vec::new();
    if hid.errors != 0 {
        parts.push(units::counted(hid.errors, "error"));
    }
    if hid.leaks != 0 {
        let groups = units::counted(hid.leaks, "group");
        parts.push(format!("{groups} of blocks ({})", sentences::amount(hid.lost)));
    }
    if hid.growths != 0 {
        parts.push(format!("{} that grows", units::counted(hid.growths, "stack")));
    }
    (!parts.is_empty()).then(|| format!("Suppressed: {}.", parts.join(", ")))
}

fn processes(report: &Report) -> Table {
    let mut table = Table::new("pid|>parent|*command|began, UTC|end|>allocations|>peak")
        .titled("Processes", "")
        .limited("process", MOST_ROWS, MOST_ROWS);
    for process in &report.processes {
        let end = |of: fn(End) -> String| process.end.map(of).unwrap_or_default();
        let cells = cells![
            process.pid.to_string(),
            process.parent.to_string(),
            Cell::Code(clipped(sentences::command(process))),
            units::date_of(process.began),
            ended(process),
            end(|end| units::count(end.allocations)),
            end(|end| units::bytes(end.peak_live_bytes)),
        ];
        table.row("", cells);
    }
    table
}

fn checks(report: &Report) -> Table {
    let mut table = Table::new("pid|check|why|>at|>stood still|>took|>threads|>live")
        .titled("Checks and counts", "")
        .limited("check", MOST_ROWS, MOST_ROWS);
    let all = report.processes.iter().flat_map(|of| of.checks.iter().map(move |one| (of, one)));
    for (process, check) in all {
        let cells = cells![
            process.pid.to_string(),
            check.number.to_string(),
            sentences::occasion(check.occasion).to_owned(),
            sentences::duration(check.ns),
            sentences::duration(check.stopped_ns),
            check.took_ns.map_or_else(|| "not finished".to_owned(), sentences::duration),
            match check.silent {
                0 => check.threads.to_string(),
                silent => format!("{} ({silent} silent)", check.threads),
            },
            sentences::amount(check.live),
        ];
        table.row("", cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn html(report: &Report) -> String {
        of(report).render().expect("is rendered")
    }

    #[test]
    fn verdicts_begin_with_the_worst() {
        let mut report = sample::report();
        let text = |report: &Report| verdict(report).text();
        report.errors.clear();
        report.unreported = Default::default();
        assert_eq!(text(&report), "1.2 MiB definitely lost");
        report.leaks.retain(|leak| !leak.is_definite());
        assert_eq!(text(&report), "No errors, but 468.8 KiB possibly lost and 1 stack that grows");
        report.leaks.clear();
        report.growths.clear();
        assert_eq!(text(&report), "No errors, nothing lost");
        report.processes.clear();
        assert_eq!(text(&report), "No errors");
    }

    #[test]
    fn a_page_of_very_much_stays_a_page() {
        let mut report = sample::report();
        for _ in 0..10 {
            report.errors.extend(report.errors.clone());
            report.leaks.extend(report.leaks.clone());
        }
        report.processes = vec![report.processes[0].clone(); 2000];
        let html = html(&report);
        assert!(html.contains("2,572 more errors are left out of this page."));
        assert!(html.contains("6,668 more groups are left out of this page."));
        assert!(html.contains("1,500 more processes are left out of this page."));
        assert!(html.len() < 8 << 20, "{}", html.len());
    }
}
