//! What was asked, what was measured, and the tables.
//!
//! A time or a size is compared within a round, where the runs stand side by
//! side; over programs the figure is the geometric mean of the medians of the ratios. Some
//! peers are so slow that rounds are few: then the median decides (`figures::verdict`).

mod check;

use figures::cells::{At, Cells, matrix};
use figures::statistics::{Estimate, estimate, of_rounds};
use figures::text::{mib, ms, number, table};
use figures::verdict::{self, Asked, Figure, Kind, Verdict, hold};

/// Whose figures these are. The other columns are peers.
const OURS: &str = "heapwright";
const PR: &str = "pr";
const FLAT: &str = "flat";
const CAPTURES: &str = "captures";
const PROGRAMS: &str = "programs";
/// The rows of the PR's program.
const STACKS: &str = "16 frames";
const NO_STACKS: &str = "no frames";

/// Operations in a round: 32 blocks made, 31 freed.
const OPERATIONS: f64 = 63.0;

/// The report of a file of results.
pub(crate) struct Report<'a> {
    results: &'a Cells,
    figures: Vec<Figure>,
    /// Runs of ours that failed, printed something else, or found something.
    broken: bool,
    /// They were not of the debug mode.
    no_mode: bool,
}

impl<'a> Report<'a> {
    pub(crate) fn of(results: &'a Cells) -> Self {
        let no_mode =
            results.sections().iter().any(|s| results.of((s, "-", "-"), "no_mode").is_some());
        let mut report = Self { results, figures: Vec::new(), broken: no_mode, no_mode };
        if results.has(PR) {
            report.pr();
        }
        if results.has(FLAT) {
            report.flat();
        }
        if results.has(CAPTURES) {
            report.captures();
        }
        if results.has(PROGRAMS) {
            let count = results.rows(PROGRAMS).len();
            for (metric, what, bound) in [("wall_ns", "time", 2.0), ("rss_kib", "peak RSS", 3.0)] {
                let mean = report.of_programs(PROGRAMS, OURS, metric);
                let what = format!("{count} programs, 16 frames: geomean of {what} to glibc");
                report.judge(what, Asked::AtMost(bound), "x", mean);
            }
        }
        report.check();
        report.sound();
        report
    }

    /// Whether all that must hold does.
    pub(crate) fn holds(&self, quick: bool) -> bool {
        let measured = |figure: &Figure| figure.verdict != Verdict::NotMeasured;
        !self.broken && (quick || hold(&self.figures) && self.figures.iter().all(measured))
    }

    fn judge(
        &mut self,
        what: impl Into<String>,
        asked: Asked,
        unit: &str,
        value: Option<Estimate>,
    ) {
        let mut figure = Figure::new(what, asked, unit, Kind::Middle, value);
        if self.no_mode {
            figure.verdict = Verdict::Elsewhere("no debug mode");
        }
        self.figures.push(figure);
    }

    /// The ratios within rounds of one column to another.
    fn ratios(&self, section: &str, row: &str, columns: (&str, &str), metric: &str) -> Vec<f64> {
        self.results.ratios((section, row, columns.0), (section, row, columns.1), metric)
    }

    fn pr(&mut self) {
        let (debug, safe, fast) = ("zig-debug", "zig-safe-16", "zig-fast");
        let ratio = |row, columns, metric| of_rounds(&self.ratios(PR, row, columns, metric));
        let wall: Vec<f64> = self.results.values((PR, STACKS, OURS), "wall_ns");
        let wall = of_rounds(&wall.iter().map(|ns| ns / 1e6).collect::<Vec<_>>());
        let least = Asked::AtMost(1.0);
        let all = [
            (
                "16 frames: faster than Zig Debug, 6 frames",
                Asked::AtLeast(20.0),
                "x",
                ratio(STACKS, (debug, OURS), "wall_ns"),
            ),
            (
                "16 frames: faster than Zig ReleaseSafe, 16 frames",
                Asked::AtLeast(5.0),
                "x",
                ratio(STACKS, (safe, OURS), "wall_ns"),
            ),
            ("16 frames: whole process", Asked::AtMost(100.0), " ms", wall),
            (
                "16 frames: peak RSS to Zig Debug",
                least,
                "",
                ratio(STACKS, (OURS, debug), "rss_kib"),
            ),
            (
                "16 frames: peak RSS to Zig ReleaseSafe",
                least,
                "",
                ratio(STACKS, (OURS, safe), "rss_kib"),
            ),
            (
                "no frames: time to Zig ReleaseFast, the rounds alone",
                least,
                "",
                ratio(NO_STACKS, (OURS, fast), "rounds_ns"),
            ),
            (
                "no frames: time to Zig ReleaseFast, whole process",
                least,
                "",
                ratio(NO_STACKS, (OURS, fast), "wall_ns"),
            ),
        ];
        for (what, asked, unit, value) in all {
            self.judge(format!("PR #17383, {what}"), asked, unit, value);
        }
    }

    /// The sizes of a section's runs, and each with what a column has there.
    fn sizes_of(&self, column: &str, metric: &str) -> Vec<(f64, f64)> {
        let rows = self.results.rows(FLAT).into_iter();
        let of = |row: &str| {
            Some((row.parse().ok()?, self.results.middle((FLAT, row, column), metric)?))
        };
        rows.filter_map(of).collect()
    }

    fn flat(&mut self) {
        let columns = self.results.columns(FLAT);
        for column in columns.iter().filter(|column| column.starts_with("traces=")) {
            let counts = self.sizes_of(column, "instructions");
            let mut each: Vec<f64> = counts.iter().map(|(n, count)| count / n).collect();
            each.sort_by(f64::total_cmp);
            let spread = match each[..] {
                [least, .., most] => Some(Estimate::single((most / least - 1.0) * 100.0)),
                _ => None,
            };
            let what = format!("instructions a round, {column}: most above least");
            self.judge(what, Asked::AtMost(5.0), " %", spread);
        }
        for column in columns {
            let at_most = |metric| self.sizes_of(column, metric).last().copied();
            if let (Some((n, buckets)), Some((_, bytes))) =
                (at_most("buckets"), at_most("bucket_bytes"))
            {
                let what = format!("{column}, {n} survivors: buckets pinned");
                self.judge(what, Asked::Nothing, "", Some(Estimate::single(buckets)));
                let what = format!("{column}, {n} survivors: bytes of buckets a survivor");
                self.judge(what, Asked::Nothing, " B", Some(Estimate::single(bytes / n)));
            }
        }
    }

    fn captures(&mut self) {
        let asked = [("walk_16_ns", 400.0), ("memo_16_ns", 100.0)];
        let judged = asked.map(|(row, bound)| (row, Asked::AtMost(bound)));
        let rows = self.results.rows(CAPTURES).into_iter();
        let shown = rows.filter(|row| asked.iter().all(|(name, _)| name != row));
        for (row, asked) in judged.into_iter().chain(shown.map(|row| (row, Asked::Nothing))) {
            let value = self.results.last((CAPTURES, row, OURS), "value").map(Estimate::single);
            let unit = if row.ends_with("_ns") { " ns" } else { "" };
            let name = row.trim_end_matches("_ns").replace('_', " ");
            self.judge(format!("captures: {name}"), asked, unit, value);
        }
    }

    /// The ratios of a column to glibc, program by program; none if it lacks one
    /// that ours has.
    fn of_programs(&self, section: &str, column: &str, metric: &str) -> Option<Estimate> {
        let rows = self.results.rows(section).into_iter();
        let all = rows.map(|row| self.ratios(section, row, (column, "glibc"), metric));
        estimate(&all.collect::<Vec<_>>())
    }

    /// What must be 0 of our runs, all sections together.
    fn sound(&mut self) {
        if self.results.sections().iter().all(|section| *section == CAPTURES) {
            return;
        }
        for (metric, what) in [
            ("findings", "findings in sound programs"),
            ("failed", "runs that failed"),
            ("different", "runs with another output"),
        ] {
            let total = self.results.total(metric, |(_, _, column)| {
                column.starts_with(OURS) || column.starts_with("traces=")
            });
            self.broken |= total > 0.0;
            self.judge(what, Asked::AtMost(0.0), "", Some(Estimate::single(total)));
        }
    }

    fn cell(&self, at: At<'_>, metric: &str, show: impl Fn(f64) -> String) -> String {
        match self.results.middle(at, metric) {
            _ if self.results.of(at, "failed").is_some() => "fails".to_owned(),
            value => value.map_or(String::new(), show),
        }
    }

    fn pr_table(&self, row: &str) -> String {
        let rounds = self.cell((PR, row, OURS), "rounds", |n| format!("{n}"));
        let cells = self.results.cells().iter();
        let columns = cells.filter(|cell| cell.0 == PR && cell.1 == row).map(|cell| &*cell.2);
        let line = |column: &str| {
            let at = (PR, row, column);
            let count = self.results.last(at, "rounds");
            let each = |ns: f64| count.map_or(String::new(), |n| number(ns / n / OPERATIONS));
            let to_ours = self.results.ratio(at, (PR, row, OURS), "wall_ns");
            vec![
                column.to_owned(),
                self.cell(at, "wall_ns", ms),
                number(to_ours.unwrap_or(f64::NAN)),
                self.cell(at, "rounds_ns", each),
                self.cell(at, "rss_kib", mib),
            ]
        };
        let head =
            ["", "whole process", "to heapwright", "ns an operation, rounds alone", "peak RSS"];
        let lines: Vec<Vec<String>> = columns.map(line).collect();
        format!("## PR #17383, {row}, {rounds} rounds\n\n{}", table(&head, &lines))
    }

    /// A row for each column that has something, from what it has at each size.
    fn sizes_table(
        &self,
        title: &str,
        metric: &str,
        show: impl Fn(&[(f64, f64)], usize) -> Option<f64>,
    ) -> String {
        let (mut columns, rows) = (self.results.columns(FLAT), self.results.rows(FLAT));
        columns.retain(|column| !self.sizes_of(column, metric).is_empty());
        let cell = |column: &str, row: &str| {
            let all = self.sizes_of(column, metric);
            let at = all.iter().position(|(n, _)| row.parse() == Ok(*n));
            at.and_then(|at| show(&all, at)).map_or(String::new(), number)
        };
        match columns[..] {
            [] => String::new(),
            _ => format!("{title}\n\n{}", matrix("survivors", &columns, &rows, cell)),
        }
    }

    fn flat_tables(&self) -> String {
        let each = |all: &[(f64, f64)], at: usize| Some(all[at].1 / all[at].0);
        // KiB more than at the size before.
        let more = |all: &[(f64, f64)], at: usize| {
            let (before, after) = (all.get(at.checked_sub(1)?)?, all[at]);
            Some((after.1 - before.1) * 1024.0 / (after.0 - before.0))
        };
        let counts = "Instructions a round, its share of the last frees included:";
        let memory = "Peak RSS of the whole process, bytes more for each survivor more than in \
                      the column before:";
        self.sizes_table(counts, "instructions", each)
            + &self.sizes_table("Nanoseconds a round:", "rounds_ns", each)
            + &self.sizes_table(memory, "rss_kib", more)
    }

    fn programs_table(
        &self,
        section: &str,
        title: &str,
        metric: &str,
        show: impl Fn(f64) -> String,
    ) -> String {
        const MEAN: &str = "**geomean**";
        let columns = self.results.columns(section);
        let rows = [self.results.rows(section), vec![MEAN]].concat();
        let cell = |row: &str, column: &str| match (row, column) {
            (MEAN, _) => {
                let mean = self.of_programs(section, column, metric);
                mean.map_or(String::new(), |mean| format!("**{}**", number(mean.value)))
            }
            (_, "glibc") => self.cell((section, row, column), metric, &show),
            _ if self.results.of((section, row, column), "failed").is_some() => "fails".to_owned(),
            _ => {
                let at = (section, row, column);
                let ratio = self.results.ratio(at, (section, row, "glibc"), metric);
                ratio.map_or(String::new(), number)
            }
        };
        format!("{title}\n\n{}", matrix("program", &rows, &columns, cell))
    }

    /// Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("## Asked and measured\n\n{}", verdict::figures(&self.figures));
        for row in self.results.rows(PR) {
            text += &self.pr_table(row);
        }
        if self.results.has(FLAT) {
            text += "## Flatness\n\n";
            text += &self.flat_tables();
        }
        if self.results.has(PROGRAMS) {
            text += "## Programs\n\n";
            let title = "Wall time: glibc's, the others' ratios to it:";
            text += &self.programs_table(PROGRAMS, title, "wall_ns", ms);
            let title = "Peak RSS: glibc's, the others' ratios to it:";
            text += &self.programs_table(PROGRAMS, title, "rss_kib", mib);
        }
        text + &self.check_tables()
    }

    /// The figures, one a line: what, asked, measured, verdict.
    pub(crate) fn tsv(&self) -> String {
        self.figures.iter().map(|figure| figure.cells().join("\t") + "\n").collect()
    }
}

/// The figure of some results whose name contains these words: measured, verdict; whether a quick
/// run is well with it, and a full one.
#[cfg(test)]
fn figure(results: &str, what: &str) -> (String, &'static str, bool, bool) {
    let results = Cells::parse(results).unwrap();
    let report = Report::of(&results);
    let figure = report.figures.iter().find(|f| f.what.contains(what)).unwrap();
    (figure.measured.clone(), figure.verdict.text(), report.holds(true), report.holds(false))
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn flatness_is_of_instructions_a_round() {
        let alone = "flat\t10\ttraces=0\t1\tinstructions\t1000\n";
        let two = alone.to_owned() + "flat\t20\ttraces=0\t1\tinstructions\t2060\n";
        assert_eq!(figure(&two, "above least"), ("3.00 %".into(), "met", true, true));
        assert_eq!(figure(alone, "above least").1, "not measured");
    }

    #[test]
    fn a_finding_breaks_even_a_quick_run() {
        let of = |column: &str| format!("pr\t16 frames\t{column}\t1\tfindings\t2\n");
        assert_eq!(figure(&of("heapwright"), "findings"), ("2".into(), "**MISSED**", false, false));
        // A peer's does not.
        assert!(figure(&of("zig-debug"), "findings").2);
    }

    #[test]
    fn programs_that_a_peer_lacks_leave_it_without_a_mean() {
        let results = "programs\ta\tglibc\t1\twall_ns\t10\nprograms\ta\theapwright\t1\twall_ns\t15\n\
                       programs\tb\tglibc\t1\twall_ns\t10\n";
        assert_eq!(figure(results, "geomean of time").1, "not measured");
    }
}
