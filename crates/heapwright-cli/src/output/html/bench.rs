//! The page of a race: a headline, means as a scatter plot and in tables, the figures of each
//! program, and the way to repeat it.
//!
//! This module decides the contents and the places of the dots. Only heapwright has a colour: it is
//! compared with every other allocator.

use super::scale::{Mark, Scale, place};
use crate::bench::allocators::{HEAPWRIGHT, OPTION_SET};
use crate::bench::comparison::{self, Group};
use crate::bench::results::{Measure, Program, Results};
use crate::bench::statistics::{Estimate, Verdict};
use crate::output::document::{Document, Part, Words};
use crate::output::sentences::quoted;
use crate::output::{race, units};
use askama::Template;

/// The description of the method.
const METHOD: &str = "Every allocator is preloaded into the same program. In each round each \
    program runs once under every one of them, in turning order; ratios are formed round by round. \
    Times are medians, +- is half the quartiles' distance. Peak RSS is that of the largest process, \
    as the kernel counts it; every program is started by a parent of a few pages, so that it is the \
    program's own.";

/// Time against memory: a dot for each allocator.
#[derive(Template)]
#[template(path = "scatter.html")]
struct Scatter {
    x_marks: Vec<Mark>,
    y_marks: Vec<Mark>,
    dots: Vec<ScatterDot>,
}

#[derive(Default)]
struct ScatterDot {
    class: &'static str,
    name: String,
    title: String,
    x: String,
    y: String,
    /// The ends of the intervals.
    left: String,
    right: String,
    top: String,
    bottom: String,
    label_x: String,
    label_y: String,
    label_anchor: &'static str,
}

/// Makes the page.
pub(crate) fn document(results: &Results) -> Document {
    let baseline = &results.baseline;
    let mut document = Document {
        kind: "bench",
        title: race::field(results),
        verdict: headline(results).into(),
        facts: vec![
            race::rounds(results),
            results.head.started.replace('T', " ").replace('Z', " UTC"),
            format!(
                "A ratio below 1 means less time or memory than {baseline}; behind it stands its \
                 95 % interval"
            ),
        ],
        ..Document::default()
    };
    let sentences: Vec<Words> = race::sentences(results).into_iter().map(Words::from).collect();
    document.add("", "", vec![Part::List("listed", sentences)]);
    if let Some(scatter) = scatter(results) {
        let field = race::field(results);
        let lead = format!(
            "Geometric means over {field}, ratios to {baseline}; left is faster, low is leaner."
        );
        let drawing = Part::Drawing(scatter.to_string());
        document.add("scatter", "Time and memory", vec![Part::text_of("lead", lead), drawing]);
    }
    let means = race::groups(results).into_iter().map(|group| race::means(results, group));
    let means = means.map(|(what, table)| Part::Table(table.titled(&what, "")));
    let lead =
        format!("Geometric means of the programs' median ratios to {baseline}, the least first.");
    let means = std::iter::once(Part::text_of("lead", lead)).chain(means).collect::<Vec<_>>();
    if means.len() > 1 {
        document.add("means", "Means", means);
    }
    let failures = race::failures(results);
    if !failures.is_empty() {
        document.add("failures", "What went wrong", vec![Part::Fields("", 0, failures)]);
    }
    let lead = format!(
        "Medians, and ratios to {baseline} with their 95 % intervals; bars are of the slowest and \
         of the largest."
    );
    let mut programs = vec![Part::text_of("lead", lead)];
    programs.extend(results.programs.iter().flat_map(|program| card(results, program)));
    document.add("programs", "Each program", programs);
    let allocators = results.allocators.iter();
    let libraries =
        allocators.map(|allocator| (allocator.name.clone(), race::library(allocator))).collect();
    let mut measured = vec![
        Part::text_of("", race::machine(results) + "."),
        Part::Text(Words::of("", "").and("code", quoted(&results.head.command))),
        Part::text_of("left", METHOD),
        Part::Fields("", 0, libraries),
    ];
    let notes = race::notes(results).into_iter();
    measured.extend(notes.map(|note| Part::text_of("left", format!("Note: {note}."))));
    document.add("measured", "How it was measured", measured);
    document
}

/// Describes heapwright's results in time and in memory, and the programs of the race. If programs
/// disagree with a mean, the sentence claims only the mean.
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

/// Returns whether every program puts heapwright on the same side of each other allocator, in time
/// and in memory, by the intervals.
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

const SCATTER: (f64, f64, f64, f64) = (44.0, 12.0, 340.0, 250.0);

fn scatter(results: &Results) -> Option<Scatter> {
    let others: Vec<(usize, Estimate, Estimate)> = (0..results.allocators.len())
        .filter_map(|at| {
            if at == results.baseline() {
                let one = Estimate { value: 1.0, interval: None };
                return Some((at, one, one));
            }
            let name = &results.allocators[at].name;
            let mean = |measure| race::mean(results, Group::All, measure, name);
            Some((at, mean(Measure::Time)?.estimate(), mean(Measure::PeakRss)?.estimate()))
        })
        .collect();
    if others.len() < 2 {
        return None;
    }
    let (left, top, width, height) = SCATTER;
    let ends = |estimate: Estimate| estimate.interval.unwrap_or((estimate.value, estimate.value));
    let span = |estimate: Estimate| [ends(estimate).0, ends(estimate).1];
    let x = Scale::around(others.iter().flat_map(|(_, time, _)| span(*time)), left, width);
    let memories = others.iter().flat_map(|(_, _, memory)| span(*memory));
    let y = Scale::around(memories, top, height).upwards();
    let mut dots: Vec<ScatterDot> = others
        .iter()
        .map(|&(at, time, memory)| {
            let right_half = x.number(time.value) > left + 0.7 * width;
            let shift = if right_half { -6.0 } else { 6.0 };
            let name = results.allocators[at].name.clone();
            ScatterDot {
                class: race::class(results, at),
                title: format!(
                    "{name}: time {}, memory {}",
                    race::estimate(&time),
                    race::estimate(&memory)
                ),
                name: shortened(&name),
                x: x.at(time.value),
                y: y.at(memory.value),
                left: x.at(ends(time).0),
                right: x.at(ends(time).1),
                top: y.at(ends(memory).1),
                bottom: y.at(ends(memory).0),
                label_x: place(x.number(time.value) + shift),
                label_y: place(y.number(memory.value) - 5.0),
                label_anchor: if right_half { "end" } else { "start" },
            }
        })
        .collect();
    spread_labels(&mut dots);
    // The last dot is drawn on top.
    dots.sort_by_key(|dot| dot.class == "ours");
    Some(Scatter { x_marks: x.marks(30.0), y_marks: y.marks(20.0), dots })
}

/// Moves labels up so that they do not overlap.
fn spread_labels(dots: &mut [ScatterDot]) {
    const LETTER: f64 = 6.2;
    const LINE: f64 = 12.0;
    let number = |text: &str| text.parse::<f64>().unwrap_or_default();
    dots.sort_by(|a, b| number(&b.label_y).total_cmp(&number(&a.label_y)));
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for dot in dots {
        let width = dot.name.chars().count() as f64 * LETTER;
        let x = number(&dot.label_x);
        let (from, to) = if dot.label_anchor == "end" { (x - width, x) } else { (x, x + width) };
        let mut y = number(&dot.label_y);
        for &(other_from, other_to, other_y) in &taken {
            if from < other_to && other_from < to && y > other_y - LINE {
                y = other_y - LINE;
            }
        }
        taken.push((from, to, y));
        dot.label_y = place(y);
    }
}

/// Describes a program and its figures.
fn card(results: &Results, program: &Program) -> Vec<Part> {
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

/// Shortens a name to fit beside a plot; the title has the whole name. Option sets are cut at the
/// front, because they differ at their ends.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 16;
    let options = name.strip_prefix(OPTION_SET);
    let name = options.unwrap_or(name);
    let over = (name.chars().count() + 1).saturating_sub(LONGEST);
    if over <= 1 {
        return name.to_owned();
    }
    if options.is_some() {
        return std::iter::once('\u{2026}').chain(name.chars().skip(over)).collect();
    }
    name.chars().take(LONGEST - 1).chain(std::iter::once('\u{2026}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::comparison::tests::example;
    use crate::bench::results::Kind;

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
    fn long_names_are_cut_beside_plots() {
        assert_eq!(shortened("mimalloc-no-thp"), "mimalloc-no-thp");
        assert_eq!(shortened("hardened_malloc-light"), "hardened_malloc\u{2026}");
        assert_eq!(shortened("heapwright:purge=never"), "purge=never");
        assert_eq!(shortened("heapwright:cache=percpu,purge=0"), "\u{2026}=percpu,purge=0");
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
        let page = document(&results).page().expect("renders");
        assert!(!page.contains("<script>alert"), "not escaped");
        assert!(page.matches("&#60;script&#62;alert").count() >= 7);
    }

    #[test]
    fn a_race_without_heapwright_has_a_page_too() {
        let mut results = example(&[("a", Kind::Program)]);
        results.allocators[1].name = "other".to_owned();
        results.programs[0].results[1].allocator = "other".to_owned();
        results.summary = comparison::summary(&results, HEAPWRIGHT);
        let page = document(&results).page().expect("renders");
        assert!(page.contains("other") && !page.contains("is faster than"));
    }

    #[test]
    fn labels_do_not_stand_on_each_other() {
        let dot = |name: &str, x: f64, y: f64| ScatterDot {
            class: "peer",
            name: name.to_owned(),
            label_x: place(x),
            label_y: place(y),
            label_anchor: "start",
            ..ScatterDot::default()
        };
        let mut dots =
            [dot("jemalloc", 100.0, 50.0), dot("mimalloc", 110.0, 53.0), dot("far", 300.0, 52.0)];
        spread_labels(&mut dots);
        let of = |name: &str| {
            let found = dots.iter().find(|dot| dot.name == name).expect("is there");
            found.label_y.clone()
        };
        assert_eq!(
            (of("jemalloc"), of("mimalloc"), of("far")),
            ("41.0".to_owned(), "53.0".to_owned(), "52.0".to_owned())
        );
    }
}
