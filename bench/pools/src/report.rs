//! The tables, and what was asked, measured and found.
//!
//! Reads the lines that `ci/pools.sh` collects,
//! `SECTION;ROW;COLUMN;ROUND;NUMBER;WHAT ELSE THE RUN SAID`. A cell of a table is
//! the median over the rounds; in brackets stands heapwright's ratio to that
//! cell, the median of the rounds' ratios.
//!
//! A figure is such a ratio with its interval (`figures::verdict`). To be *ahead* the median itself
//! must be below 1. What is counted and not timed, and what differs by large factors and is run in
//! few rounds, is judged by its worst round.

use std::collections::BTreeMap;
use std::process::ExitCode;

use figures::statistics::{Estimate, median, of_rounds};
use figures::text::{number, table as markdown};
use figures::verdict::{Asked as Bound, Figure, Kind, Verdict, figures as table_of, hold};

use crate::plan::{
    ARENAS, ARTICLE_ROWS, ARTICLE_TOUCHED, ARTICLE_UNTOUCHED, CHURN, HANDED, PAIR_CONTENDERS,
    PAIRS, RESIDENT, SHARED,
};

/// A cell's numbers, by round.
type Rounds = BTreeMap<usize, f64>;

#[derive(Default)]
struct Results {
    /// Sections, rows and columns in the order in which they came.
    order: Vec<(String, String, String)>,
    numbers: BTreeMap<(String, String, String), Rounds>,
    said: BTreeMap<(String, String, String), String>,
}

impl Results {
    fn parse(text: &str) -> Option<Self> {
        let mut results = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(6, ';');
            let mut field = || fields.next().map(str::to_owned);
            let key = (field()?, field()?, field()?);
            let (round, number, said) = (field()?.parse().ok()?, field()?.parse().ok()?, field()?);
            if !results.numbers.contains_key(&key) {
                results.order.push(key.clone());
            }
            results.numbers.entry(key.clone()).or_default().insert(round, number);
            results.said.insert(key, said);
        }
        Some(results)
    }

    fn of(&self, section: &str, row: &str, column: &str) -> Option<&Rounds> {
        self.numbers.get(&(section.to_owned(), row.to_owned(), column.to_owned()))
    }

    fn said(&self, section: &str, row: &str, column: &str) -> &str {
        let key = (section.to_owned(), row.to_owned(), column.to_owned());
        self.said.get(&key).map_or("", String::as_str)
    }

    fn rows(&self, section: &str) -> Vec<&str> {
        distinct(self.order.iter().filter(|key| key.0 == section).map(|key| key.1.as_str()))
    }

    fn columns(&self, section: &str) -> Vec<&str> {
        distinct(self.order.iter().filter(|key| key.0 == section).map(|key| key.2.as_str()))
    }
}

fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut list = Vec::new();
    for one in all {
        if !list.contains(&one) {
            list.push(one);
        }
    }
    list
}

fn values(cell: &Rounds) -> Vec<f64> {
    cell.values().copied().collect()
}

/// The ratio in the rounds that both were part of.
fn ratio(one: &Rounds, other: &Rounds) -> Option<Estimate> {
    let ratios = one.iter().filter_map(|(round, ns)| Some(ns / other.get(round)?));
    of_rounds(&ratios.collect::<Vec<_>>())
}

/// A section's matrix; `base` says which cell is heapwright's for a cell.
fn table(
    results: &Results,
    section: &str,
    head: &str,
    base: impl Fn(&str, &str) -> Option<(String, String)>,
) -> String {
    let columns = results.columns(section);
    let cell = |row: &str, column: &str| {
        let Some(cell) = results.of(section, row, column) else { return String::new() };
        let middle = number(median(&values(cell)));
        let ours = base(row, column)
            .filter(|(r, c)| (r.as_str(), c.as_str()) != (row, column))
            .and_then(|(r, c)| results.of(section, &r, &c));
        match ours.and_then(|ours| ratio(ours, cell)) {
            Some(ratio) => format!("{middle} ({:.2})", ratio.value),
            None => middle,
        }
    };
    let line = |row: &&str| {
        let cells = columns.iter().map(|column| cell(row, column));
        std::iter::once((*row).to_owned()).chain(cells).collect()
    };
    let lines: Vec<Vec<String>> = results.rows(section).iter().map(line).collect();
    markdown(&[&[head], &columns[..]].concat(), &lines)
}

/// What is asked of a figure.
#[derive(Clone, Copy)]
enum Asked {
    /// A ratio below 1.
    Ahead,
    /// A ratio, timed in many rounds.
    AtMost(f64),
    /// The other over ours, each round.
    Times(f64),
    /// A count, each round.
    Count(f64),
}

struct Figures<'a> {
    results: &'a Results,
    all: Vec<Figure>,
}

impl Figures<'_> {
    fn judge(&mut self, what: &str, asked: Asked, estimate: Option<Estimate>, beside: &str) {
        let (bound, unit, kind) = match asked {
            Asked::Ahead => (Bound::AtMost(1.0), "", Kind::Timed),
            Asked::AtMost(bound) => (Bound::AtMost(bound), "", Kind::Timed),
            Asked::Times(bound) => (Bound::AtLeast(bound), "x", Kind::Worst),
            Asked::Count(bound) => (Bound::AtMost(bound), "", Kind::Worst),
        };
        let mut figure = Figure::new(what, bound, unit, kind, estimate);
        let behind = estimate.is_some_and(|ratio| ratio.value >= 1.0);
        if matches!(asked, Asked::Ahead) && behind && figure.verdict.holds() {
            figure.verdict = Verdict::Missed;
        }
        if !beside.is_empty() {
            figure.measured += &format!(", to {beside}");
        }
        self.all.push(figure);
    }

    fn hold(&self) -> bool {
        hold(&self.all) && self.all.iter().all(|one| one.verdict != Verdict::NotMeasured)
    }

    /// Ours to the fastest of some others, all of a section; cells are row and column.
    fn best(
        &mut self,
        what: &str,
        asked: Asked,
        section: &str,
        ours: (&str, &str),
        others: &[(&str, &str)],
    ) {
        let cell = |(row, column)| self.results.of(section, row, column);
        let fastest = others
            .iter()
            .filter_map(|&at| Some((at, median(&values(cell(at)?)))))
            .min_by(|one, other| one.1.total_cmp(&other.1));
        let Some(((row, column), _)) = fastest else { return self.judge(what, asked, None, "") };
        let (ours_cell, other) = (cell(ours), cell((row, column)));
        let estimate = ours_cell.zip(other).and_then(|(ours, other)| match asked {
            Asked::Times(_) => ratio(other, ours),
            _ => ratio(ours, other),
        });
        let beside = if row == ours.0 { column } else { row };
        self.judge(what, asked, estimate, beside);
    }

    fn count(&mut self, what: &str, bound: f64, section: &str, row: &str, column: &str) {
        let cell = self.results.of(section, row, column);
        let estimate = cell.and_then(|cell| of_rounds(&values(cell)));
        self.judge(what, Asked::Count(bound), estimate, "");
    }
}

/// The article's own counts: allocations, frees, peak.
const ARTICLE_COUNTS: [&str; 3] = ["1248859 1248731 154", "499709 499587 154", "12589 12464 146"];
const POOL: &str = "heapwright Pool";
const ZIG_POOLS: [&str; 2] = ["Zig MemoryPool", "Zig MemoryPool, smp"];

/// The counts beside the article's, and whether all columns had the same.
fn counts(results: &Results, failed: &mut bool) -> String {
    let mut lines = Vec::new();
    for ((row, ..), article) in ARTICLE_ROWS.into_iter().zip(ARTICLE_COUNTS) {
        let columns = [ARTICLE_UNTOUCHED, ARTICLE_TOUCHED].map(|section| {
            let columns = results.columns(section).into_iter();
            columns.map(|column| results.said(section, row, column)).collect::<Vec<_>>()
        });
        let seen = distinct(columns.into_iter().flatten().filter(|said| !said.is_empty()));
        *failed |= seen.len() > 1;
        let note = if seen.len() > 1 { " DIFFERENT" } else { "" };
        lines.push(vec![row.to_owned(), seen.join(" or ") + note, article.to_owned()]);
    }
    markdown(&["made, destroyed, peak", "all columns here", "the article"], &lines)
}

fn figures(results: &Results) -> Figures<'_> {
    let mut all = Figures { results, all: Vec::new() };
    for (section, variant) in [(ARTICLE_UNTOUCHED, "untouched"), (ARTICLE_TOUCHED, "touched")] {
        for (row, ..) in ARTICLE_ROWS {
            let what = format!("Pool to Zig's MemoryPool, {row}, {variant}");
            let others = ZIG_POOLS.map(|column| (row, column));
            all.best(&what, Asked::Ahead, section, (row, POOL), &others);
        }
    }
    for ((row, ..), times) in ARTICLE_ROWS.into_iter().zip([7.5, 20.0, 86.0]) {
        let what = format!("faster than Zig's DebugAllocator with traces, {row}, untouched");
        let others = [(row, "Zig debug, 6 frames")];
        all.best(&what, Asked::Times(times), ARTICLE_UNTOUCHED, (row, POOL), &others);
    }

    let kind = |kinds: &[&str]| -> Vec<(&str, &str)> {
        PAIR_CONTENDERS
            .iter()
            .map(|contender| contender.0)
            .filter(|name| kinds.iter().any(|kind| name.starts_with(kind)))
            .filter(|name| !name.contains("heapwright"))
            .map(|name| (name, "pair"))
            .collect()
    };
    let ours = ("owning: heapwright Pool", "pair");
    all.best("32 B, owning", Asked::AtMost(0.8), PAIRS, ours, &kind(&["owning"]));
    let ours = ("raw: heapwright Pool", "pair");
    all.best(
        "32 B, raw, to raw and keyed",
        Asked::AtMost(0.8),
        PAIRS,
        ours,
        &kind(&["raw", "keyed"]),
    );

    for row in ["1 thread", "2 threads", "8 threads"] {
        for (column, way) in
            [("plurality in a Mutex", "one pool"), ("plurality, each its own", "a pool each")]
        {
            let what = format!("SharedPool to plurality ({way}), {row}");
            let ours = (row, "heapwright SharedPool");
            all.best(&what, Asked::Ahead, SHARED, ours, &[(row, column)]);
        }
    }
    // The figure is of a list of boxes; the graph is mostly its own table's misses.
    let others = ["plurality Alloc", "plurality Box", "plurality Box on mimalloc"]
        .map(|column| ("list", column));
    let what = "a million boxes replaced at random, Pool to plurality";
    all.best(what, Asked::AtMost(0.8), CHURN, ("list", POOL), &others);
    for (row, bound) in [("u32", 10.0), ("layout", 12.0)] {
        let what = format!("Arena, {row}: instructions");
        all.count(&what, bound, "instructions", &format!("arena_{row}"), "path");
        let what = format!("Arena, {row}: conditional branches");
        all.count(&what, 1.0, "instructions", &format!("arena_{row}"), "branches");
    }
    for row in ["32 B", "200 B", "8 KiB"] {
        let what = format!("kept after trim, {row}, over pages with objects");
        all.count(&what, 1.1, RESIDENT, row, "random");
    }
    all
}

fn print(results: &Results) -> bool {
    let mut failed = false;
    let column =
        |name: &'static str| move |row: &str, _: &str| Some((row.to_owned(), name.to_owned()));
    let none = |_: &str, _: &str| None;
    println!(
        "Medians in nanoseconds, if nothing else is said; in brackets heapwright's\n\
         ratio to it.\n\n\
         ## The article\n\n\
         An operation is a creation or a destruction; all hold the loop's own time.\n\
         Zig 0.17, the DebugAllocator built ReleaseSafe, where every new object is\n\
         filled with 0xaa, touched or not; the pools ReleaseFast. Ratios are those of\n\
         heapwright's Pool. In the touched article the arena is reset after each\n\
         256 MiB.\n"
    );
    for (section, head) in [(ARTICLE_UNTOUCHED, "untouched"), (ARTICLE_TOUCHED, "touched")] {
        println!("{}", table(results, section, head, column(POOL)));
    }
    println!("{}", counts(results, &mut failed));
    println!("## Warm pairs of 32 bytes\n");
    let of_kind = |row: &str, column: &str| {
        let kind = row.split(':').next()?;
        Some((format!("{kind}: heapwright Pool"), column.to_owned()))
    };
    println!("{}", table(results, PAIRS, "a pair", of_kind));
    println!("## Several threads\n");
    let shared = "heapwright SharedPool";
    println!("{}", table(results, SHARED, "a pair in each thread", column(shared)));
    println!("{}", table(results, HANDED, "ended in another", column(shared)));
    println!("## A million nodes\n");
    println!("{}", table(results, CHURN, "a node", column(POOL)));
    println!("## Arenas\n");
    println!("{}", table(results, ARENAS, "a piece", column("heapwright Arena")));
    println!("{}", table(results, "instructions", "instructions of a call, with the ret", none));
    println!("## Kept after a trim\n");
    println!("{}", table(results, RESIDENT, "resident over pages with objects", none));
    for row in results.rows(RESIDENT) {
        for shape in results.columns(RESIDENT) {
            println!("- {row}, {shape}: {}", results.said(RESIDENT, row, shape));
        }
    }
    let figures = figures(results);
    println!("\n## Asked and measured\n\n{}", table_of(&figures.all));
    failed || !figures.hold()
}

/// Reads and prints; fails if a figure was missed.
pub fn run(file: &str) -> ExitCode {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("pools: cannot read {file}: {error}");
            return ExitCode::from(2);
        }
    };
    let Some(results) = Results::parse(&text) else {
        eprintln!("pools: {file} is not what ci/pools.sh collects");
        return ExitCode::from(2);
    };
    if print(&results) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_of_the_rounds_that_both_have() {
        let one = Rounds::from([(1, 1.0), (2, 4.0), (3, 9.0)]);
        let other = Rounds::from([(1, 1.0), (2, 2.0)]);
        let ratio = ratio(&one, &other).unwrap();
        assert_eq!((ratio.rounds, ratio.value), (2, 1.5));
    }

    fn verdict(asked: Asked, values: &[f64]) -> &'static str {
        let results = Results::default();
        let mut all = Figures { results: &results, all: Vec::new() };
        all.judge("", asked, of_rounds(values), "");
        let verdict = all.all[0].verdict;
        assert_eq!(all.hold(), !matches!(verdict, Verdict::Missed | Verdict::NotMeasured));
        verdict.text()
    }

    #[test]
    fn verdicts() {
        let mixed = [0.7, 0.79, 0.9, 0.9, 0.9, 1.1, 1.1, 1.1, 1.2];
        assert_eq!(verdict(Asked::Ahead, &mixed), "met");
        assert_eq!(verdict(Asked::Ahead, &mixed[..5]), "too few rounds");
        assert_eq!(verdict(Asked::Ahead, &[0.9; 9]), "met, certainly");
        assert_eq!(verdict(Asked::Ahead, &[1.0; 9]), "**MISSED**");
        assert_eq!(verdict(Asked::AtMost(0.8), &mixed), "met");
        assert_eq!(verdict(Asked::AtMost(0.65), &mixed), "**MISSED**");
        assert_eq!(verdict(Asked::Times(7.5), &[9.0, 7.0]), "**MISSED**");
        assert_eq!(verdict(Asked::Count(10.0), &[10.0]), "met");
        assert_eq!(verdict(Asked::Count(10.0), &[]), "not measured");
    }

    #[test]
    fn a_table_has_a_hole_where_nothing_was_run() {
        let results = Results::parse("s;r;a;1;10;\ns;r;b;1;20;\ns;q;b;1;5;x\n").unwrap();
        let base = |row: &str, _: &str| Some((row.to_owned(), "a".to_owned()));
        assert_eq!(
            table(&results, "s", "h", base),
            "| h | a | b |\n|---|---:|---:|\n| r | 10.0 | 20.0 (0.50) |\n| q |  | 5.00 |\n\n"
        );
        assert_eq!(results.said("s", "q", "b"), "x");
    }
}
