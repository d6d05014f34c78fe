//! The tables, and what was asked, measured and found.
//!
//! Reads the numbers that `figures run` gathered for `ci/pools.sh`. A cell of a table is the median
//! over the rounds; in brackets stands heapwright's ratio to that cell, the median of the rounds'
//! ratios.
//!
//! A figure is such a ratio with its interval (`figures::verdict`). To be *ahead* the median itself
//! must be below 1. What is counted and not timed, and what differs by large factors and is run in
//! few rounds, is judged by its worst round.

use std::path::Path;

use figures::cells::{At, Cells, matrix};
use figures::statistics::{Estimate, of_rounds};
use figures::text::{number, table as markdown};
use figures::verdict::{Asked as Bound, Figure, Kind, Verdict, figures as table_of, hold};

use crate::plan::{
    ARENAS, ARTICLE_ROWS, ARTICLE_TOUCHED, ARTICLE_UNTOUCHED, CHURN, HANDED, PAIRS, RESIDENT,
    SHARED,
};

/// What most cells hold.
const NS: &str = "ns";
const POOL: &str = "heapwright Pool";
const SHARED_POOL: &str = "heapwright SharedPool";
const ZIG_POOLS: [&str; 2] = ["Zig MemoryPool", "Zig MemoryPool, smp"];

/// The median, and the ratio of `ours` to it.
fn shown(cells: &Cells, at: At<'_>, ours: Option<At<'_>>) -> String {
    let Some(middle) = cells.middle(at, NS) else { return String::new() };
    let ratio = ours.filter(|ours| *ours != at).and_then(|ours| cells.ratio(ours, at, NS));
    let ratio = ratio.map_or(String::new(), |ratio| format!(" ({ratio:.2})"));
    number(middle) + &ratio
}

/// A section's matrix, with ratios of the column `ours`.
fn table(cells: &Cells, section: &str, head: &str, ours: Option<&str>) -> String {
    matrix(head, &cells.rows(section), &cells.columns(section), |row, column| {
        shown(cells, (section, row, column), ours.map(|ours| (section, row, ours)))
    })
}

/// The pairs: contenders below each other, with ratios of heapwright's of the same kind.
fn pairs_table(cells: &Cells) -> String {
    matrix("a pair", &cells.columns(PAIRS), &cells.rows(PAIRS), |contender, shape| {
        let ours = contender.split_once(':').map(|(kind, _)| format!("{kind}: heapwright Pool"));
        let ours = ours.as_deref().map(|ours| (PAIRS, shape, ours));
        shown(cells, (PAIRS, shape, contender), ours)
    })
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
    cells: &'a Cells,
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

    /// Ours to the fastest of some other columns of a row.
    fn best(&mut self, what: &str, asked: Asked, ours: At<'_>, others: &[&str]) {
        let at = |column| (ours.0, ours.1, column);
        let times = others.iter().filter_map(|&one| Some((one, self.cells.middle(at(one), NS)?)));
        let fastest = times.min_by(|one, other| one.1.total_cmp(&other.1));
        let Some((fastest, _)) = fastest else { return self.judge(what, asked, None, "") };
        let ratios = match asked {
            Asked::Times(_) => self.cells.ratios(at(fastest), ours, NS),
            _ => self.cells.ratios(ours, at(fastest), NS),
        };
        self.judge(what, asked, of_rounds(&ratios), fastest);
    }

    fn count(&mut self, what: &str, bound: f64, at: At<'_>) {
        let rounds = self.cells.values(at, NS);
        self.judge(what, Asked::Count(bound), of_rounds(&rounds), "");
    }
}

/// The article's own counts: allocations, frees, peak.
const ARTICLE_COUNTS: [&str; 3] = ["1248859 1248731 154", "499709 499587 154", "12589 12464 146"];

/// The counts beside the article's, and whether all columns had the same.
fn counts(cells: &Cells, failed: &mut bool) -> String {
    let mut lines = Vec::new();
    for ((row, ..), article) in ARTICLE_ROWS.into_iter().zip(ARTICLE_COUNTS) {
        let mut seen: Vec<String> = Vec::new();
        for section in [ARTICLE_UNTOUCHED, ARTICLE_TOUCHED] {
            for column in cells.columns(section) {
                let of = |metric| cells.last((section, row, column), metric);
                if let (Some(made), Some(destroyed), Some(peak)) =
                    (of("made"), of("destroyed"), of("peak"))
                {
                    seen.push(format!("{made} {destroyed} {peak}"));
                }
            }
        }
        seen.sort();
        seen.dedup();
        *failed |= seen.len() > 1;
        let note = if seen.len() > 1 { " DIFFERENT" } else { "" };
        lines.push(vec![row.to_owned(), seen.join(" or ") + note, article.to_owned()]);
    }
    markdown(&["made, destroyed, peak", "all columns here", "the article"], &lines)
}

fn figures(cells: &Cells) -> Figures<'_> {
    let mut all = Figures { cells, all: Vec::new() };
    for (section, variant) in [(ARTICLE_UNTOUCHED, "untouched"), (ARTICLE_TOUCHED, "touched")] {
        for (row, ..) in ARTICLE_ROWS {
            let what = format!("Pool to Zig's MemoryPool, {row}, {variant}");
            all.best(&what, Asked::Ahead, (section, row, POOL), &ZIG_POOLS);
        }
    }
    for ((row, ..), times) in ARTICLE_ROWS.into_iter().zip([7.5, 20.0, 86.0]) {
        let what = format!("faster than Zig's DebugAllocator with traces, {row}, untouched");
        let ours = (ARTICLE_UNTOUCHED, row, POOL);
        all.best(&what, Asked::Times(times), ours, &["Zig debug, 6 frames"]);
    }
    let contenders = cells.columns(PAIRS).into_iter().filter(|name| !name.contains("heapwright"));
    let (owning, others): (Vec<&str>, Vec<&str>) =
        contenders.partition(|name| name.starts_with("owning"));
    for (what, ours, others) in [
        ("32 B, owning", "owning: heapwright Pool", owning),
        ("32 B, raw, to raw and keyed", "raw: heapwright Pool", others),
    ] {
        all.best(what, Asked::AtMost(0.8), (PAIRS, "pair", ours), &others);
    }
    for row in ["1 thread", "2 threads", "8 threads"] {
        for (column, way) in
            [("plurality in a Mutex", "one pool"), ("plurality, each its own", "a pool each")]
        {
            let what = format!("SharedPool to plurality ({way}), {row}");
            all.best(&what, Asked::Ahead, (SHARED, row, SHARED_POOL), &[column]);
        }
    }
    // The figure is of a list of boxes; the graph is mostly its own table's misses.
    let others = ["plurality Alloc", "plurality Box", "plurality Box on mimalloc"];
    let what = "a million boxes replaced at random, Pool to plurality";
    all.best(what, Asked::AtMost(0.8), (CHURN, "list", POOL), &others);
    for (row, bound) in [("u32", 10.0), ("layout", 12.0)] {
        let call = format!("arena_{row}");
        let what = format!("Arena, {row}: instructions");
        all.count(&what, bound, ("instructions", &call, "path"));
        let what = format!("Arena, {row}: conditional branches");
        all.count(&what, 1.0, ("instructions", &call, "branches"));
    }
    for row in ["32 B", "200 B", "8 KiB"] {
        let what = format!("kept after trim, {row}, over pages with objects");
        all.count(&what, 1.1, (RESIDENT, row, "random"));
    }
    all
}

/// Prints all of it; false if a figure is missed or something failed.
pub fn print(file: &Path) -> Result<bool, String> {
    let cells = &Cells::read(file)?;
    let mut failed = cells.total("failed", |_| true) > 0.0;
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
    println!("{}", table(cells, ARTICLE_UNTOUCHED, "untouched", Some(POOL)));
    println!("{}", table(cells, ARTICLE_TOUCHED, "touched", Some(POOL)));
    println!("{}", counts(cells, &mut failed));
    println!("## Warm pairs of 32 bytes\n\n{}", pairs_table(cells));
    let shared = Some(SHARED_POOL);
    println!("## Several threads\n\n{}", table(cells, SHARED, "a pair in each thread", shared));
    println!("{}", table(cells, HANDED, "ended in another", shared));
    println!("## A million nodes\n\n{}", table(cells, CHURN, "a node", Some(POOL)));
    println!("## Arenas\n\n{}", table(cells, ARENAS, "a piece", Some("heapwright Arena")));
    println!("{}", table(cells, "instructions", "instructions of a call, with the ret", None));
    let head = "resident over pages with objects";
    println!("## Kept after a trim\n\n{}", table(cells, RESIDENT, head, None));
    for row in cells.rows(RESIDENT) {
        for shape in cells.columns(RESIDENT) {
            let of = |metric| cells.last((RESIDENT, row, shape), metric).unwrap_or_default();
            println!(
                "- {row}, {shape}: {:.1} MiB full, {:.1} said to be given back, {:.1} kept, \
                 {:.1} in pages with objects",
                of("full"),
                of("given_back"),
                of("kept"),
                of("pages")
            );
        }
    }
    let figures = figures(cells);
    println!("\n## Asked and measured\n\n{}", table_of(&figures.all));
    Ok(!failed && figures.hold())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(asked: Asked, values: &[f64]) -> &'static str {
        let mut all = Figures { cells: &Cells::default(), all: Vec::new() };
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
        assert_eq!(verdict(Asked::Ahead, &[1.0; 9]), "**MISSED**");
        assert_eq!(verdict(Asked::AtMost(0.65), &mixed), "**MISSED**");
        assert_eq!(verdict(Asked::Times(7.5), &[9.0, 7.0]), "**MISSED**");
        assert_eq!(verdict(Asked::Count(10.0), &[10.0]), "met");
        assert_eq!(verdict(Asked::Count(10.0), &[]), "not measured");
    }

    #[test]
    fn a_table_has_a_hole_where_nothing_was_run() {
        let text = "s\tr\ta\t1\tns\t10\ns\tr\tb\t1\tns\t20\ns\tq\tb\t1\tns\t5\n";
        assert_eq!(
            table(&Cells::parse(text).unwrap(), "s", "h", Some("a")),
            "| h | a | b |\n|---|---:|---:|\n| r | 10.0 | 20.0 (0.50) |\n| q |  | 5.00 |\n\n"
        );
    }
}
