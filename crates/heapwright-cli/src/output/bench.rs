//! A race: a headline, means as a plot and in tables, and the figures of each program.
//!
//! ```text
//! allocator      time    +-  ratio to glibc          CPU   peak RSS  ratio     faults
//! heapwright  50.0 ms  0.3%  0.50 (0.50..0.51)   49.8 ms   34.0 MiB   0.81      8,704
//! ```
//!
//! On a screen, a few programs have a table each, with the fastest allocator first. Many have a
//! matrix of ratios for time and one for peak memory.

use super::document::{Document, Part, Table, Words, cells};
use super::race::{self, Middle, WIDTH};
use super::sentences::quoted;
use super::{Look, json, scatter, units};
use crate::bench::allocators::{self, HEAPWRIGHT};
use crate::bench::comparison::{self, Group};
use crate::bench::results::{Measure, Program, Results};
use crate::bench::statistics::{Estimate, Verdict};
use heapwright_workloads::Workload;

/// The most programs that have tables of their own on a screen.
const FEW: usize = 3;

const METHOD: &str = "Every allocator is preloaded into the same program. In each round each \
    program runs once under every one of them, in turning order; ratios are formed round by round. \
    Times are medians, +- is half the quartiles' distance. Peak RSS is that of the largest process, \
    as the kernel counts it; every program is started by a parent of a few pages, so that it is the \
    program's own.";

pub(crate) fn document(results: &Results) -> Document<'_> {
    let baseline = &results.baseline;
    let (field, rounds) = (race::field(results), race::rounds(results));
    let mut document = Document {
        kind: "bench",
        title: field.clone(),
        verdict: headline(results).into(),
        facts: vec![
            rounds.clone(),
            results.head.started.replace('T', " ").replace('Z', " UTC"),
            format!(
                "A ratio below 1 means less time or memory than {baseline}; behind it stands its \
                 95 % interval"
            ),
        ],
        data: Some(Box::new(|| json::text(results))),
        ..Document::default()
    };
    let is_counted = |program: &&Program| !program.is_empty_workload();
    let counted = results.programs.iter().filter(is_counted).count();
    let allocators = units::counted(results.allocators.len() as u64, "allocator");
    let heading = format!("heapwright bench: {field}, {allocators}, {rounds}");
    let mut screen = vec![Part::screen_heading(heading)];
    if counted <= FEW {
        let shown = results.programs.iter().filter(|one| counted == 0 || is_counted(one));
        screen.extend(shown.flat_map(|program| on_screen(results, program)));
    } else {
        screen.extend(matrix(results, Measure::Time));
        screen.extend(matrix(results, Measure::PeakRss));
    }
    document.add_to_screen(screen);
    let sentences = race::sentences(results);
    let all = sentences.iter().map(|text| Words::from(text.as_str())).collect();
    document.add_to_page("", "", vec![Part::List("listed", all)]);
    if let Some(drawing) = scatter::picture(results) {
        let lead = format!(
            "Geometric means over {field}, ratios to {baseline}; left is faster, low is leaner."
        );
        document.add("scatter", "Time and memory", vec![Part::text_of("lead", lead), drawing]);
    }
    let groups = race::groups(results).into_iter().filter(|_| counted > 1);
    let mut means: Vec<Part> =
        groups.map(|group| Part::Table(race::means(results, group))).collect();
    if !means.is_empty() {
        let lead = format!(
            "Geometric means of the programs' median ratios to {baseline}, the least first."
        );
        means.insert(0, Part::text_of("lead", lead));
    }
    document.add("means", "Means", means);
    let mut screen: Vec<Part> = sentences.into_iter().map(|text| Part::text_of("", text)).collect();
    if !screen.is_empty() {
        screen.insert(0, Part::gap());
        document.add_to_screen(screen);
    }
    let failures = race::failures(results);
    if !failures.is_empty() {
        let failures = vec![Part::gap(), Part::Fields("", 0, failures)];
        // A table on the screen has the failures in its rows.
        let add = if counted > FEW { Document::add } else { Document::add_to_page };
        add(&mut document, "failures", "What went wrong", failures);
    }
    let lead = format!(
        "Medians, and ratios to {baseline} with their 95 % intervals; bars are of the slowest and \
         of the largest."
    );
    let mut programs = vec![Part::text_of("lead", lead)];
    programs.extend(results.programs.iter().flat_map(|program| on_page(results, program)));
    document.add_to_page("programs", "Each program", programs);
    let libraries = results.allocators.iter();
    let libraries = libraries.map(|one| (one.name.clone(), race::library(one))).collect();
    let (machine, notes) = (race::machine(results), race::notes(results));
    let mut measured = vec![
        Part::text_of("", format!("{machine}.")),
        Part::Text(Words::default().and("code", quoted(&results.head.command))),
        Part::text_of("left", METHOD),
        Part::Fields("", 0, libraries),
    ];
    measured.extend(notes.iter().map(|note| Part::text_of("left", format!("Note: {note}."))));
    document.add_to_page("measured", "How it was measured", measured);
    let notes = notes.iter().map(|note| Part::text_of("", format!("note: {note}")));
    let foot = [Part::gap(), Part::text_of("", machine)];
    document.add_to_screen(foot.into_iter().chain(notes).collect());
    document
}

fn on_screen(results: &Results, program: &Program) -> Vec<Part> {
    if program.results.iter().all(|entry| Middle::of(entry).is_none()) {
        return Vec::new();
    }
    let table = race::figures(results, program, false);
    let about = race::wrapped(&format!("{}: {}", program.name, program.stands_for));
    vec![Part::Table(if results.programs.len() > 1 { table.titled(&about, "") } else { table })]
}

/// Returns the matrices of programs by allocators. Each has the allocators that fit into the width.
fn matrix(results: &Results, measure: Measure) -> Vec<Part> {
    let baseline = results.baseline();
    let raced = |at: &usize| results.programs.iter().any(|p| !p.results[*at].runs.is_empty());
    let others: Vec<usize> =
        (0..results.allocators.len()).filter(|at| *at != baseline).filter(raced).collect();
    let first = results.programs.iter().map(|p| p.name.chars().count()).max().unwrap_or(0).max(12);
    let own = results.baseline.chars().count().max(10);
    let (what, note) = match measure {
        Measure::Time => ("time", "~ is a tie"),
        _ => ("peak RSS", "of the largest process"),
    };
    let heading =
        format!("{what}: {} as measured, the others as ratios to it ({note})", results.baseline);
    let column = |at: usize| results.allocators[at].name.chars().count().max(7) + 1;
    let mut parts = Vec::new();
    let mut rest = &others[..];
    while !rest.is_empty() {
        let mut used = first + own + 2;
        let fits = |at: &&usize| {
            used += column(**at) + 1;
            used <= WIDTH
        };
        let fitting = rest.iter().take_while(fits).count().max(1);
        let (block, later) = rest.split_at(fitting);
        let mut columns = format!(":{first}|>{}:{}", race::title(&results.baseline), own + 1);
        for &at in block {
            let name = race::title(&results.allocators[at].name);
            columns += &format!("|>{name}:{}", column(at));
        }
        let caption = if parts.is_empty() { &*heading } else { "" };
        let table = Table::new(&columns).titled(caption, "");
        parts.push(Part::Table(filled(table, results, measure, block)));
        rest = later;
    }
    parts
}

/// Fills a matrix: the programs, a line, and the means.
fn filled(mut table: Table, results: &Results, measure: Measure, block: &[usize]) -> Table {
    let baseline = results.baseline();
    for program in &results.programs {
        let absolute = match Middle::of(&program.results[baseline]) {
            Some(middle) if measure == Measure::Time => units::duration(middle.time),
            Some(middle) => units::bytes(middle.peak_rss),
            None => race::failure_word(program.results[baseline].outcome).to_owned(),
        };
        let mut cells = cells![&program.name, absolute];
        cells.extend(block.iter().map(|&at| {
            match comparison::on_program(results, program, at, baseline, measure) {
                Some(estimate) => marked(estimate, measure).into(),
                None => race::failure_word(program.results[at].outcome).into(),
            }
        }));
        table.row("", cells);
    }
    table.row("", Vec::new());
    let groups = race::groups(results);
    let shown = [Group::Workloads, Group::Programs, Group::All];
    for group in shown.into_iter().filter(|group| groups.contains(group)) {
        let mut cells = cells![format!("mean of {}", group.name()), "1"];
        cells.extend(block.iter().map(|&at| {
            let mean = race::mean(results, group, measure, &results.allocators[at].name);
            mean.map_or_else(|| "-".to_owned(), |mean| marked(mean.estimate(), measure)).into()
        }));
        table.row("", cells);
    }
    table
}

/// Returns a ratio; a tie in time is marked.
fn marked(estimate: Estimate, measure: Measure) -> String {
    let tie = measure == Measure::Time && estimate.verdict() == Verdict::Tie;
    format!("{}{}", if tie { "~" } else { "" }, race::ratio(estimate.value))
}

/// Returns the headline: heapwright's results in time and in memory, and the programs. If programs
/// disagree with a mean, it claims only the mean.
fn headline(results: &Results) -> String {
    let verdicts = |measure| -> Vec<Verdict> {
        let find = |other: &str| results.summary.find(Group::All, measure, HEAPWRIGHT, other);
        let others = results.allocators.iter();
        others.filter_map(|other| Some(find(&other.name)?.estimate().verdict())).collect()
    };
    let time =
        standing(&verdicts(Measure::Time), ["is faster than", "is as fast as", "is slower than"]);
    let memory = standing(
        &verdicts(Measure::PeakRss),
        ["needs less memory than", "needs as much memory as", "needs more memory than"],
    );
    let time = time.map(|words| format!("{HEAPWRIGHT} {words}"));
    let memory = memory.map(|words| format!("it {words}"));
    let claims: Vec<String> = [time, memory].into_iter().flatten().collect();
    if claims.is_empty() {
        return String::new();
    }
    let mut measured = vec![race::field(results), race::rounds(results)];
    if results.notes.iter().any(|note| note.contains("busy")) {
        measured.push("busy machine".to_owned());
    }
    let on_average = if agrees(results) { "" } else { "on average, " };
    format!("{on_average}{} ({})", claims.join("; "), measured.join(", "))
}

/// Returns whether every program's verdict on heapwright and another allocator is the mean's, in
/// time and in memory.
fn agrees(results: &Results) -> bool {
    let Some(ours) = results.allocator(HEAPWRIGHT) else { return true };
    let others = (0..results.allocators.len()).filter(|other| *other != ours);
    let pairs = others.flat_map(|other| [(other, Measure::Time), (other, Measure::PeakRss)]);
    let agrees = |(other, measure): (usize, Measure)| {
        let name = &results.allocators[other].name;
        let mean = results.summary.find(Group::All, measure, HEAPWRIGHT, name)?.estimate();
        let raced = results.programs.iter().filter(|program| !program.is_empty_workload());
        let of = |program| comparison::on_program(results, program, ours, other, measure);
        Some(raced.filter_map(of).all(|one| one.verdict() == mean.verdict()))
    };
    pairs.into_iter().all(|pair| agrees(pair).unwrap_or(true))
}

/// Returns `is faster than 4 of the 6 others, is as fast as 1 and is slower than 1`.
fn standing(verdicts: &[Verdict], [less, same, more]: [&str; 3]) -> Option<String> {
    let all = verdicts.len();
    let mut text = String::new();
    let parts: Vec<(usize, &str)> =
        [(Verdict::Less, less), (Verdict::Tie, same), (Verdict::More, more)]
            .into_iter()
            .map(|(which, words)| (verdicts.iter().filter(|found| **found == which).count(), words))
            .filter(|(number, _)| *number > 0)
            .collect();
    for (at, (number, words)) in parts.iter().enumerate() {
        text.push_str(match at {
            0 => "",
            _ if at + 1 == parts.len() => " and ",
            _ => ", ",
        });
        text.push_str(words);
        text.push_str(&match (at, number, all) {
            (_, 1, 1) => " the other".to_owned(),
            (_, 2, 2) => " both others".to_owned(),
            _ if *number == all => format!(" all {all} others"),
            (0, ..) => format!(" {number} of the {all} others"),
            _ => format!(" {number}"),
        });
    }
    Some(text).filter(|text| !text.is_empty())
}

fn on_page(results: &Results, program: &Program) -> Vec<Part> {
    let mut facts = vec![units::counted(u64::from(program.threads), "thread")];
    if let Some(live) = program.live_bytes.filter(|live| *live > 0) {
        facts.push(format!("{} live at its peak", units::bytes(live)));
    }
    if let Some(operations) = program.operations.filter(|operations| *operations > 0) {
        facts.push(units::counted(operations, "operation"));
    }
    let mut parts = vec![Part::Heading(Words::of("sub", &program.name))];
    if program.stands_for != program.name {
        parts.push(Part::text_of("", &program.stands_for));
    }
    parts.push(Part::text_of("left", facts.join(", ")));
    parts.push(Part::Table(race::figures(results, program, true).titled("", "classes")));
    parts
}

/// Returns the text of `--list`: the allocators and programs of a race.
pub(crate) fn list(all: &[allocators::Allocator], workloads: &[Workload]) -> String {
    let allocator = |one: &allocators::Allocator| {
        let from = match &one.library {
            None => "the C library's malloc".to_owned(),
            Some(_) if one.name == HEAPWRIGHT => "this command's library".to_owned(),
            Some(path) => path.display().to_string(),
        };
        let set = one.environment.iter().map(|(variable, value)| format!(", {variable}={value}"));
        (one.name.clone(), from + &set.collect::<String>())
    };
    let workload = |one: &Workload| (one.name.to_owned(), one.stands_for.to_owned());
    let listed = |names: Vec<(String, String)>| {
        let width = names.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        Part::Fields("  ", width + 1, names)
    };
    let mut document = Document::default();
    document.add_to_screen(vec![
        Part::heading("allocators"),
        listed(all.iter().map(allocator).collect()),
        Part::heading("workloads"),
        listed(workloads.iter().map(workload).collect()),
    ]);
    document.text(Look { colour: false, unicode: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::comparison::tests::example;
    use crate::bench::results::Kind;
    use crate::output::WithPage;
    use crate::report::sample;

    fn made(results: &Results, format: WithPage) -> String {
        document(results).rendered(format, Look::PLAIN).expect("renders")
    }

    #[test]
    fn standings_are_counted() {
        use Verdict::{Less, More, Tie};
        let printed = |verdicts: &[Verdict]| standing(verdicts, ["beats", "equals", "loses to"]);
        assert_eq!(printed(&[]), None);
        assert_eq!(printed(&[Tie]).as_deref(), Some("equals the other"));
        assert_eq!(printed(&[More, More]).as_deref(), Some("loses to both others"));
        assert_eq!(printed(&[Less; 3]).as_deref(), Some("beats all 3 others"));
        assert_eq!(
            printed(&[Less, More]).as_deref(),
            Some("beats 1 of the 2 others and loses to 1")
        );
        assert_eq!(
            printed(&[Less, Tie, More, Less]).as_deref(),
            Some("beats 2 of the 4 others, equals 1 and loses to 1")
        );
    }

    /// The headline claims every program only if all agree with the mean.
    #[test]
    fn the_headline_says_what_was_measured_and_whether_all_agree() {
        let mut results = example(&[("a", Kind::Program), ("b", Kind::Program)]);
        let all = headline(&results);
        assert!(all.starts_with("heapwright is faster than"), "{all}");
        assert!(all.ends_with(" (2 programs, 7 rounds)"), "{all}");
        results.notes.push("the machine was busy at the start: load 9.0 on 2 cores".to_owned());
        let slow = results.programs[1].results[0].runs.clone();
        results.programs[1].results[1].runs = slow;
        results.summary = comparison::summary(&results, HEAPWRIGHT);
        let some = headline(&results);
        assert!(some.starts_with("on average, heapwright is "), "{some}");
        assert!(some.ends_with(" (2 programs, 7 rounds, busy machine)"), "{some}");
    }

    #[test]
    fn everything_foreign_is_escaped() {
        let mut results = example(&[("odd", Kind::Program)]);
        let foreign = "<script>alert('&')</script>\"";
        results.programs[0].name = foreign.to_owned();
        results.programs[0].stands_for = format!("{foreign}.");
        results.programs[0].results[2].detail = Some(foreign.to_owned());
        results.allocators[2].name = foreign.to_owned();
        results.head.command.push(foreign.to_owned());
        results.head.machine.cpu = foreign.to_owned();
        results.notes.push(foreign.to_owned());
        let page = made(&results, WithPage::Html);
        assert!(!page.contains("<script>alert"), "not escaped");
        assert!(page.matches("&#60;script&#62;alert").count() >= 7);
    }

    #[test]
    fn a_race_without_heapwright_has_a_page_too() {
        let mut results = example(&[("a", Kind::Program)]);
        results.allocators[1].name = "other".to_owned();
        results.programs[0].results[1].allocator = "other".to_owned();
        results.summary = comparison::summary(&results, HEAPWRIGHT);
        let page = made(&results, WithPage::Html);
        assert!(page.contains("other") && !page.contains("is faster than"));
    }

    #[test]
    fn a_race_is_printed_as_it_was() {
        let one = example(&[("odd", Kind::Program)]);
        let names = ["empty", "small", "large", "odd", "even"];
        let kind = |name| if name == "odd" { Kind::Program } else { Kind::Workload };
        let many = example(&names.map(|name| (name, kind(name))));
        sample::golden("bench-one.text", &made(&one, WithPage::Text));
        sample::golden("bench-many.text", &made(&many, WithPage::Text));
        sample::golden("bench.html", &made(&many, WithPage::Html));
        sample::golden("bench.json", &made(&one, WithPage::Json));
    }
}
