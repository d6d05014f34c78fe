//! The page of a report: one file that can be kept, sent and opened anywhere.
//!
//! ```text
//! head          what ran, the verdict, the figures that matter
//! errors        a card each: what happened, and its moments on a line of time
//! memory held   how much met which fate; groups of blocks, with what leads to them
//! flame graph   the same as a picture that can be zoomed
//! over time     live bytes of each process; what grows
//! size classes  how full the buckets were
//! the run       processes, checks, suppressions, notes
//! ```
//!
//! This module decides what is said and in which order, where there are no heap profiles only: those have a
//! page of their own ([`profile`]). [`stack`], [`flame`], [`chart`]
//! and [`classes`] decide what their pieces show; how it looks is in `templates/report/`. The
//! page can be read without scripts: cards are `details`, pictures are SVG. Scripts add a
//! filter, zooming and figures under the pointer. It asks nothing of any network, and
//! forbids itself to.
//!
//! A page has to open: so many findings are shown in full, and so many lines of stacks in
//! all; what is left out is counted, and is in the JSON.

mod chart;
mod classes;
mod flame;
mod profile;
mod stack;

use self::chart::{Chart, Sparkline};
use self::flame::Flame;
use self::stack::{Stack, Stacker};
use super::Tile;
use crate::output::calls::{Call, look_at};
use crate::output::document::{Cell, Table, cells};
use crate::output::rules::Rule;
use crate::output::words::fault_stack;
use crate::output::{sentences, time, units};
use crate::report::model::{Amount, Error, Growth, Leak, Path, Process, Report, StackId};
use askama::Template;
use heapwright_record::debug::{End, Ending, FindingKind, Reach, Role};
use std::io;
use std::time::{Duration, UNIX_EPOCH};

/// How many are shown in full: of errors, and of groups of blocks.
const MOST: usize = 500;
/// Charts, tables of size classes, and what grows.
const MOST_CHARTS: usize = 24;
/// Rows of the tables of processes, checks and suppressions.
const MOST_ROWS: usize = 500;

/// The whole page.
#[derive(Template)]
#[template(path = "report/page.html")]
struct Page {
    command: String,
    facts: Vec<String>,
    verdict: Verdict,
    tiles: Vec<Tile>,
    links: Vec<Link>,
    errors: Vec<ErrorCard>,
    errors_left: Option<String>,
    fates: Vec<FateBar>,
    leaks: Vec<LeakCard>,
    leaks_left: Option<String>,
    omitted: Option<String>,
    flame: Option<Flame>,
    charts: Vec<Chart>,
    charts_left: Option<String>,
    growths: Vec<GrowthCard>,
    classes: Vec<Table>,
    used: Table,
    suppressed: Option<String>,
    notes: Vec<String>,
    processes: Table,
    processes_left: Option<String>,
    checks: Table,
    version: &'static str,
}

/// What it comes to.
struct Verdict {
    class: &'static str,
    text: String,
}

/// An entry of the page's own menu.
struct Link {
    place: &'static str,
    text: &'static str,
    count: Option<usize>,
}

struct ErrorCard {
    open: bool,
    kind: &'static str,
    title: &'static str,
    what: String,
    look: Look,
    process: String,
    means: &'static str,
    mend: &'static str,
    moments: Vec<MomentCard>,
}

struct MomentCard {
    class: &'static str,
    title: String,
    when: String,
    stack: Stack,
}

/// Where to look first.
#[derive(Default)]
struct Look {
    name: String,
    place: String,
}

/// How much met a fate.
struct FateBar {
    class: &'static str,
    title: &'static str,
    means: &'static str,
    width: String,
    bytes: String,
    blocks: String,
    share: String,
}

struct LeakCard {
    class: &'static str,
    fate: &'static str,
    bytes: String,
    blocks: String,
    look: Look,
    age: String,
    facts: Vec<String>,
    path: Option<PathCard>,
    stack: Stack,
}

/// What leads to a block.
struct PathCard {
    root: String,
    steps: Vec<StepCard>,
    size: String,
}

struct StepCard {
    size: String,
    offset: String,
    name: String,
}

struct GrowthCard {
    what: String,
    slope: String,
    sureness: String,
    process: String,
    look: Look,
    line: Sparkline,
    stack: Stack,
}

/// The page.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let page = match profile::Page::of(report) {
        Some(page) => page.render(),
        None => page(report, &Stacker::new(report)).render(),
    };
    out.write_all(page.map_err(io::Error::other)?.as_bytes())
}

fn page(report: &Report, stacker: &Stacker<'_>) -> Page {
    let command = report.first().map(sentences::command).map(stack::clipped).unwrap_or_default();
    let errors: Vec<_> = report.errors.iter().take(MOST).enumerate().collect();
    let errors = errors.into_iter().map(|(at, error)| error_card(report, stacker, error, at < 3));
    let errors: Vec<_> = errors.collect();
    let leaks: Vec<_> =
        report.leaks.iter().take(MOST).map(|leak| leak_card(report, stacker, leak)).collect();
    let growths: Vec<_> = report
        .growths
        .iter()
        .take(MOST_CHARTS)
        .map(|growth| growth_card(report, stacker, growth))
        .collect();
    let drawn: Vec<Chart> = report.processes.iter().filter_map(Chart::of).collect();
    let many = drawn.len();
    let mut page = Page {
        command: if command.is_empty() { "a program".to_owned() } else { command },
        facts: facts(report),
        verdict: verdict(report),
        tiles: tiles(report),
        links: Vec::new(),
        errors_left: left(report.errors.len(), MOST, "errors").or_else(|| unreported(report)),
        errors,
        fates: fates(report),
        leaks_left: left(report.leaks.len(), MOST, "groups"),
        leaks,
        omitted: omitted(report),
        flame: Flame::of(report),
        charts: drawn.into_iter().take(MOST_CHARTS).collect(),
        charts_left: left(many, MOST_CHARTS, "processes"),
        growths,
        classes: report.processes.iter().filter_map(classes::table).take(MOST_CHARTS).collect(),
        used: used(report),
        suppressed: suppressed(report),
        notes: report.lines().take(MOST_ROWS).cloned().collect(),
        processes: processes(report),
        processes_left: left(report.processes.len(), MOST_ROWS, "processes"),
        checks: checks(report),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.links = links(&page, report);
    page
}

/// `The other 12 errors are left out of this page; ...`, where there are more than fit.
fn left(all: usize, most: usize, things: &str) -> Option<String> {
    let left = all.checked_sub(most).filter(|left| *left != 0)?;
    let left = units::count(left as u64);
    Some(format!("{left} more {things} are left out of this page. The JSON has them all."))
}

/// Errors that even the report does not have.
fn unreported(report: &Report) -> Option<String> {
    let errors = Some(report.unreported.errors).filter(|errors| *errors != 0)?;
    let errors = units::counted(errors, "more different error");
    Some(format!(
        "{errors}, found {} times, are only counted.",
        units::count(report.unreported.times)
    ))
}

fn links(page: &Page, report: &Report) -> Vec<Link> {
    let mut links = Vec::new();
    let mut add = |there: bool, place, text, count| {
        if there {
            links.push(Link { place, text, count });
        }
    };
    add(true, "errors", "Errors", Some(report.errors.len()));
    let groups = Some(report.leaks.len()).filter(|count| *count != 0);
    add(!page.leaks.is_empty(), "memory", "Memory held", groups);
    add(page.flame.is_some(), "flame", "Flame graph", None);
    let grows = Some(report.growths.len()).filter(|count| *count != 0);
    add(!page.charts.is_empty() || grows.is_some(), "time", "Over time", grows);
    add(!page.classes.is_empty(), "classes", "Size classes", None);
    add(true, "run", "The run", None);
    links
}

fn facts(report: &Report) -> Vec<String> {
    let mut facts = Vec::new();
    let Some(first) = report.first() else { return facts };
    facts.push(date(first) + " UTC");
    let lasted = lasted(first);
    if lasted != 0 {
        facts.push(sentences::duration(lasted));
    }
    facts.push(match report.processes.len() {
        1 => format!("process {}", first.pid),
        many => {
            format!("process {} and {}", first.pid, units::counted(many as u64 - 1, "other"))
        }
    });
    facts.push(ending(first).to_owned());
    if !first.options.is_empty() {
        facts.push(first.options.clone());
    }
    facts
}

/// `2026-01-02 03:04:05`.
fn date(process: &Process) -> String {
    let began = time::rfc3339(UNIX_EPOCH + Duration::from_nanos(process.began));
    began.replace('T', " ").replace('Z', "")
}

/// The last moment that is known of a process.
fn lasted(process: &Process) -> u64 {
    let check = process.checks.last().map_or(0, |check| check.ns);
    check.max(process.samples.last().map_or(0, |sample| sample.ns))
}

fn ending(process: &Process) -> &'static str {
    match process.end.map(|end| end.ending) {
        None => "killed or still running",
        Some(Ending::Exit) => "exited",
        Some(Ending::Abort) => "aborted",
        Some(Ending::Signal) => "ended by a signal",
        Some(Ending::Exec) => "became another program",
        Some(Ending::ForkChild) => "a forked child that became no program",
        Some(_) => "ended in an unknown way",
    }
}

/// Whether a leak check was finished.
fn was_checked(report: &Report) -> bool {
    let mut checks = report.processes.iter().flat_map(|process| &process.checks);
    checks.any(|check| check.occasion.follows() && check.took_ns.is_some())
}

fn verdict(report: &Report) -> Verdict {
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
        return Verdict { class: "bad", text: parts.join(", ") };
    }
    if possible.blocks != 0 {
        parts.push(format!("{} possibly lost", units::bytes(possible.bytes)));
    }
    if !report.growths.is_empty() {
        let many = report.growths.len() as u64;
        parts.push(format!("{} that grows", units::counted(many, "stack")));
    }
    if !parts.is_empty() {
        return Verdict { class: "warn", text: format!("No errors, but {}", parts.join(" and ")) };
    }
    let text = if was_checked(report) { "No errors, nothing lost" } else { "No errors" };
    Verdict { class: "good", text: text.to_owned() }
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
    let checked = was_checked(report);
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

fn look(report: &Report, stack: StackId) -> Look {
    let look = |call: Call<'_>| Look {
        name: stack::clipped(call.name()),
        place: stack::clipped(call.place()),
    };
    look_at(&report.stacks, stack).map(look).unwrap_or_default()
}

fn error_card(report: &Report, stacker: &Stacker<'_>, error: &Error, open: bool) -> ErrorCard {
    let about = Rule::of(error.finding.kind).about();
    let moments = error.moments.iter().map(|happened| MomentCard {
        class: match happened.role {
            Role::Here => "here",
            Role::Freed => "freed",
            Role::Allocated => "allocated",
        },
        // That no stack was kept is said in its place.
        title: sentences::moment(&error.finding, happened).replace(" (no stack was kept)", ""),
        when: match happened.moment.ns {
            0 => String::new(),
            ns => format!("at {}", sentences::duration(ns)),
        },
        stack: stacker.stack(happened.stack),
    });
    ErrorCard {
        open,
        kind: if error.finding.kind == FindingKind::Unknown {
            "error"
        } else {
            error.finding.kind.heading()
        },
        title: about.title,
        what: sentences::error(error),
        look: look(report, fault_stack(error)),
        process: process_name(report, error.process),
        means: about.means,
        mend: about.mend,
        moments: moments.collect(),
    }
}

/// The class that colours a fate.
fn fate_class(reach: Reach) -> &'static str {
    match reach {
        Reach::Definite => "definite",
        Reach::Indirect => "indirect",
        Reach::Possible => "possible",
        _ => "reachable",
    }
}

fn fate_word(reach: Reach) -> &'static str {
    match reach {
        Reach::Definite => "definitely lost",
        Reach::Indirect => "indirectly lost",
        Reach::Possible => "possibly lost",
        Reach::Reachable => "still reachable",
        _ => "unknown",
    }
}

fn fates(report: &Report) -> Vec<FateBar> {
    let all = report.leaks.iter().fold(0, |sum: u64, leak| sum.saturating_add(leak.lost.bytes));
    [Reach::Definite, Reach::Indirect, Reach::Possible, Reach::Reachable, Reach::Unknown]
        .into_iter()
        .map(|reach| (reach, report.total(reach)))
        .filter(|(_, total)| total.blocks != 0)
        .map(|(reach, total)| FateBar {
            class: fate_class(reach),
            title: fate_word(reach),
            means: Rule::Leak(reach).about().means,
            width: units::css(total.bytes, all),
            bytes: units::bytes(total.bytes),
            blocks: units::counted(total.blocks, "block"),
            share: units::percent(total.bytes, all),
        })
        .collect()
}

fn leak_card(report: &Report, stacker: &Stacker<'_>, leak: &Leak) -> LeakCard {
    let ages = [leak.youngest_age_ns, leak.oldest_age_ns].map(sentences::duration);
    let mut facts = Vec::new();
    facts.push(match leak.lost.blocks {
        1 => format!(
            "made {} after the start, {} old at the check",
            sentences::duration(leak.oldest_ns),
            ages[1]
        ),
        _ => format!(
            "made between {} and {} after the start, {} to {} old at the check",
            sentences::duration(leak.oldest_ns),
            sentences::duration(leak.youngest_ns),
            ages[0],
            ages[1]
        ),
    });
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
    LeakCard {
        class: fate_class(leak.reach),
        fate: fate_word(leak.reach),
        bytes: units::bytes(leak.lost.bytes),
        blocks: units::counted(leak.lost.blocks, "block"),
        look: look(report, leak.stack),
        age: ages[1].clone(),
        facts,
        path: leak.path.as_ref().map(|path| path_card(report, path, leak.size)),
        stack: stacker.stack(leak.stack),
    }
}

fn path_card(report: &Report, path: &Path, size: u64) -> PathCard {
    let step = |step: &crate::report::model::Step| StepCard {
        size: units::bytes(step.size),
        offset: format!("{:#x}", step.offset),
        name: look(report, step.stack).name,
    };
    PathCard {
        root: sentences::root(path),
        steps: path.steps.iter().map(step).collect(),
        size: units::bytes(size),
    }
}

/// What the checks left out, being small.
fn omitted(report: &Report) -> Option<String> {
    let last =
        |process: &Process| process.checks.last().map(|check| check.omitted).unwrap_or_default();
    let sum: Amount = report.processes.iter().map(last).sum();
    (sum.blocks != 0).then(|| {
        format!("{} in groups too small to be distinguished are not shown.", sentences::amount(sum))
    })
}

fn growth_card(report: &Report, stacker: &Stacker<'_>, growth: &Growth) -> GrowthCard {
    GrowthCard {
        what: sentences::growth(growth),
        slope: sentences::slope(growth.slope),
        sureness: format!("{:.2}", growth.tau),
        process: process_name(report, growth.process),
        look: look(report, growth.stack),
        line: Sparkline::of(&growth.points),
        stack: stacker.stack(growth.stack),
    }
}

fn used(report: &Report) -> Table {
    let mut table = Table::new("*name|from|>hid|>memory").titled("Suppressions", "");
    for used in report.used.iter().take(MOST_ROWS) {
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

/// What suppressions hid.
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
        .titled("Processes", "");
    for process in report.processes.iter().take(MOST_ROWS) {
        let end = |of: fn(End) -> String| process.end.map(of).unwrap_or_default();
        let cells = cells![
            process.pid.to_string(),
            process.parent.to_string(),
            Cell::Code(stack::clipped(sentences::command(process))),
            date(process),
            ending(process),
            end(|end| units::count(end.allocations)),
            end(|end| units::bytes(end.peak_live_bytes)),
        ];
        table.row("", cells);
    }
    table
}

fn checks(report: &Report) -> Table {
    let mut table = Table::new("pid|check|why|>at|>stood still|>took|>threads|>live")
        .titled("Checks and counts", "");
    let all = report.processes.iter().flat_map(|of| of.checks.iter().map(move |one| (of, one)));
    for (process, check) in all.take(MOST_ROWS) {
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
    use crate::output::sample;

    fn html(report: &Report) -> String {
        let mut out = Vec::new();
        write(report, &mut out).expect("is written");
        String::from_utf8(out).expect("is text")
    }

    #[test]
    fn verdicts_begin_with_the_worst() {
        let mut report = sample::report();
        let text = |report: &Report| verdict(report).text;
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
