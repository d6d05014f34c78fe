//! What was asked, what was measured, and the tables.
//!
//! A time or a size is compared within a round, where the runs stand side by
//! side; over programs the figure is the geometric mean of the medians of the ratios. Some
//! peers are so slow that rounds are few: then the median decides (`figures::verdict`).

mod check;

use figures::statistics::{Estimate, estimate, median, of_rounds};
use figures::text::{mib, ms, number, table};
use figures::verdict::{self, Asked, Figure, Kind, Verdict, hold};

use crate::results::Results;

/// Whose figures these are. The other columns are peers.
const OURS: &str = "heapwright";
const PR: &str = "pr";
const FLAT: &str = "flat";
const CAPTURES: &str = "captures";
const PROGRAMS: &str = "programs";
const SECTIONS: [&str; 4] = [PR, FLAT, CAPTURES, PROGRAMS];
/// The rows of the PR's program.
const STACKS: &str = "16 frames";
const NO_STACKS: &str = "no frames";

/// Operations in a round: 32 blocks made, 31 freed.
const OPERATIONS: f64 = 63.0;

/// The report of a file of results.
pub(crate) struct Report<'a> {
    results: &'a Results,
    figures: Vec<Figure>,
    /// Runs of ours that failed, printed something else, or found something.
    broken: bool,
    /// They were not of the debug mode.
    no_mode: bool,
}

impl<'a> Report<'a> {
    pub(crate) fn of(results: &'a Results) -> Self {
        let no_mode = SECTIONS.iter().any(|s| results.of(s, "-", "-", "no_mode").is_some());
        let mut report = Self { results, figures: Vec::new(), broken: no_mode, no_mode };
        if report.has(PR) {
            report.pr();
        }
        if report.has(FLAT) {
            report.flat();
        }
        if report.has(CAPTURES) {
            report.captures();
        }
        if report.has(PROGRAMS) {
            report.programs();
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

    fn has(&self, section: &str) -> bool {
        self.results.cells().iter().any(|cell| cell.0 == section)
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

    /// The ratio of `columns.0` to `columns.1`.
    fn ratio(&self, row: &str, columns: (&str, &str), metric: &str) -> Option<Estimate> {
        of_rounds(&self.results.ratios((PR, row), columns, metric))
    }

    fn pr(&mut self) {
        for (peer, name, times) in [
            ("zig-debug", "Zig Debug, 6 frames", 20.0),
            ("zig-safe-16", "Zig ReleaseSafe, 16 frames", 5.0),
        ] {
            let faster = self.ratio(STACKS, (peer, OURS), "wall_ns");
            self.judge(
                format!("PR #17383, 16 frames: faster than {name}"),
                Asked::AtLeast(times),
                "x",
                faster,
            );
        }
        let wall = self.results.of(PR, STACKS, OURS, "wall_ns");
        let wall = wall
            .and_then(|rounds| of_rounds(&rounds.values().map(|ns| ns / 1e6).collect::<Vec<_>>()));
        self.judge("PR #17383, 16 frames: whole process", Asked::AtMost(100.0), " ms", wall);
        for (peer, name) in [("zig-debug", "Zig Debug"), ("zig-safe-16", "Zig ReleaseSafe")] {
            let leaner = self.ratio(STACKS, (OURS, peer), "rss_kib");
            self.judge(
                format!("PR #17383, 16 frames: peak RSS to {name}"),
                Asked::AtMost(1.0),
                "",
                leaner,
            );
        }
        for (metric, name) in [("rounds_ns", "the rounds alone"), ("wall_ns", "whole process")] {
            let time = self.ratio(NO_STACKS, (OURS, "zig-fast"), metric);
            self.judge(
                format!("PR #17383, no frames: time to Zig ReleaseFast, {name}"),
                Asked::AtMost(1.0),
                "",
                time,
            );
        }
    }

    /// The sizes of a section's runs, and each with what a column has there.
    fn sizes_of(&self, section: &str, column: &str, metric: &str) -> Vec<(f64, f64)> {
        let of = |row: &&str| {
            let rounds = self.results.of(section, row, column, metric)?;
            let values: Vec<f64> = rounds.values().copied().collect();
            Some((row.parse().ok()?, median(&values)))
        };
        self.results.rows(section).iter().filter_map(of).collect()
    }

    fn flat(&mut self) {
        for column in self.results.columns(FLAT) {
            if !column.starts_with("traces=") {
                continue;
            }
            let mut each: Vec<f64> = self
                .sizes_of(FLAT, column, "instructions")
                .iter()
                .map(|(n, count)| count / n)
                .collect();
            each.sort_by(f64::total_cmp);
            let spread = match (&each[..], each.last()) {
                ([least, _, ..], Some(most)) => {
                    Some(Estimate::single((most / least - 1.0) * 100.0))
                }
                _ => None,
            };
            let what = format!("instructions a round, {column}: most above least");
            self.judge(what, Asked::AtMost(5.0), " %", spread);
        }
        for column in self.results.columns(FLAT) {
            let at_most = |metric| self.sizes_of(FLAT, column, metric).last().copied();
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
        let of = |row: &str| {
            let rounds = self.results.of(CAPTURES, row, OURS, "value")?;
            rounds.values().next().map(|&value| Estimate::single(value))
        };
        let asked = [("walk_16_ns", 400.0), ("memo_16_ns", 100.0)];
        let mut all: Vec<_> =
            asked.iter().map(|&(row, bound)| (row, Asked::AtMost(bound))).collect();
        for row in self.results.rows(CAPTURES) {
            if row != "-" && !asked.iter().any(|(name, _)| *name == row) {
                all.push((row, Asked::Nothing));
            }
        }
        let all: Vec<_> = all.into_iter().map(|(row, asked)| (row, asked, of(row))).collect();
        for (row, asked, value) in all {
            let unit = if row.ends_with("_ns") { " ns" } else { "" };
            let name = row.trim_end_matches("_ns").replace('_', " ");
            self.judge(format!("captures: {name}"), asked, unit, value);
        }
    }

    /// The ratios of a column to glibc, program by program; none if it lacks one
    /// that ours has.
    fn of_programs(&self, section: &str, column: &str, metric: &str) -> Option<Estimate> {
        let rows = self.results.rows(section);
        let all: Vec<_> = rows
            .iter()
            .map(|row| self.results.ratios((section, row), (column, "glibc"), metric))
            .collect();
        estimate(&all)
    }

    fn programs(&mut self) {
        let count = self.results.rows(PROGRAMS).len();
        for (metric, what, bound) in [("wall_ns", "time", 2.0), ("rss_kib", "peak RSS", 3.0)] {
            let mean = self.of_programs(PROGRAMS, OURS, metric);
            let what = format!("{count} programs, 16 frames: geomean of {what} to glibc");
            self.judge(what, Asked::AtMost(bound), "x", mean);
        }
    }

    /// What must be 0 of our runs, all sections together.
    fn sound(&mut self) {
        let total = |metric: &str| -> f64 {
            let cells = self.results.cells().iter();
            let ours = cells
                .filter(|(_, _, column)| column.starts_with(OURS) || column.starts_with("traces="));
            ours.filter_map(|(section, row, column)| self.results.of(section, row, column, metric))
                .flat_map(|rounds| rounds.values())
                .fold(0.0, |sum, value| sum + value)
        };
        let totals = ["findings", "failed", "different"].map(total);
        if self.results.cells().iter().all(|cell| cell.0 == CAPTURES) {
            return;
        }
        self.broken |= totals.iter().any(|&total| total > 0.0);
        let [findings, failed, different] = totals;
        self.judge(
            "findings in sound programs",
            Asked::AtMost(0.0),
            "",
            Some(Estimate::single(findings)),
        );
        self.judge("runs that failed", Asked::AtMost(0.0), "", Some(Estimate::single(failed)));
        self.judge(
            "runs with another output",
            Asked::AtMost(0.0),
            "",
            Some(Estimate::single(different)),
        );
    }

    fn cell(&self, cell: (&str, &str, &str), metric: &str, show: impl Fn(f64) -> String) -> String {
        let (section, row, column) = cell;
        if self.results.of(section, row, column, "failed").is_some() {
            return "fails".to_owned();
        }
        let Some(rounds) = self.results.of(section, row, column, metric) else {
            return String::new();
        };
        show(median(&rounds.values().copied().collect::<Vec<_>>()))
    }

    fn pr_table(&self, row: &str) -> String {
        let rounds = self.cell((PR, row, OURS), "rounds", |n| format!("{n}"));
        let lines: Vec<Vec<String>> = self
            .results
            .columns(PR)
            .iter()
            .filter(|column| {
                let cells = self.results.cells();
                cells.iter().any(|cell| (&*cell.0, &*cell.1, &*cell.2) == (PR, row, column))
            })
            .map(|column| {
                let cell = (PR, row, *column);
                let count = self.results.of(PR, row, column, "rounds");
                let count = count.and_then(|rounds| rounds.values().next()).copied();
                let each = |ns: f64| count.map_or(String::new(), |n| number(ns / n / OPERATIONS));
                let to_ours =
                    median_or_nan(&self.results.ratios((PR, row), (*column, OURS), "wall_ns"));
                vec![
                    (*column).to_owned(),
                    self.cell(cell, "wall_ns", ms),
                    number(to_ours),
                    self.cell(cell, "rounds_ns", each),
                    self.cell(cell, "rss_kib", mib),
                ]
            })
            .collect();
        let head =
            ["", "whole process", "to heapwright", "ns an operation, rounds alone", "peak RSS"];
        format!("## PR #17383, {row}, {rounds} rounds\n\n{}", table(&head, &lines))
    }

    /// A row for each column, from what it has at each size.
    fn sizes_table(
        &self,
        section: &str,
        title: &str,
        metric: &str,
        show: impl Fn(&[(f64, f64)], usize) -> Option<f64>,
    ) -> String {
        let rows = self.results.rows(section);
        let mut head = vec!["survivors"];
        head.extend(&rows);
        let mut lines = Vec::new();
        for column in self.results.columns(section) {
            let all = self.sizes_of(section, column, metric);
            if all.is_empty() {
                continue;
            }
            let mut line = vec![column.to_owned()];
            line.extend(rows.iter().map(|row| {
                let at = all.iter().position(|(n, _)| row.parse() == Ok(*n));
                at.and_then(|at| show(&all, at)).map_or(String::new(), number)
            }));
            lines.push(line);
        }
        if lines.is_empty() {
            String::new()
        } else {
            format!("{title}\n\n{}", table(&head, &lines))
        }
    }

    fn flat_tables(&self) -> String {
        let each = |all: &[(f64, f64)], at: usize| Some(all[at].1 / all[at].0);
        // KiB more than at the size before.
        let more = |all: &[(f64, f64)], at: usize| {
            let (before, after) = (all.get(at.checked_sub(1)?)?, all[at]);
            Some((after.1 - before.1) * 1024.0 / (after.0 - before.0))
        };
        [
            self.sizes_table(
                FLAT,
                "Instructions a round, its share of the last frees included:",
                "instructions",
                each,
            ),
            self.sizes_table(FLAT, "Nanoseconds a round:", "rounds_ns", each),
            self.sizes_table(
                FLAT,
                "Peak RSS of the whole process, bytes more for each survivor more than in the column before:",
                "rss_kib",
                more,
            ),
        ]
        .concat()
    }

    fn programs_table(
        &self,
        section: &str,
        title: &str,
        metric: &str,
        show: impl Fn(f64) -> String,
    ) -> String {
        let columns = self.results.columns(section);
        let mut head = vec!["program"];
        head.extend(&columns);
        let mut lines = Vec::new();
        for row in self.results.rows(section) {
            let mut line = vec![row.to_owned()];
            for column in &columns {
                line.push(if *column == "glibc" {
                    self.cell((section, row, column), metric, &show)
                } else if self.results.of(section, row, column, "failed").is_some() {
                    "fails".to_owned()
                } else {
                    let ratios = self.results.ratios((section, row), (*column, "glibc"), metric);
                    if ratios.is_empty() { String::new() } else { number(median(&ratios)) }
                });
            }
            lines.push(line);
        }
        let mean = |column: &&str| {
            let mean = self.of_programs(section, column, metric);
            mean.map_or(String::new(), |mean| format!("**{}**", number(mean.value)))
        };
        let mut last = vec!["**geomean**".to_owned()];
        last.extend(columns.iter().map(mean));
        lines.push(last);
        format!("{title}\n\n{}", table(&head, &lines))
    }

    /// Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("## Asked and measured\n\n{}", verdict::figures(&self.figures));
        for row in self.results.rows(PR) {
            text += &self.pr_table(row);
        }
        if self.has(FLAT) {
            text += "## Flatness\n\n";
            text += &self.flat_tables();
        }
        if self.has(PROGRAMS) {
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

fn median_or_nan(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { median(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(results: &str, what: &str) -> (String, Verdict, bool) {
        let results = Results::parse(results).unwrap();
        let report = Report::of(&results);
        let figure = report.figures.iter().find(|f| f.what.contains(what)).unwrap();
        (figure.measured.clone(), figure.verdict, report.holds(true))
    }

    #[test]
    fn flatness_is_of_instructions_a_round() {
        let results = "flat\t10\ttraces=0\t1\tinstructions\t1000\nflat\t20\ttraces=0\t1\tinstructions\t2060\n";
        assert_eq!(figure(results, "most above least"), ("3.00 %".to_owned(), Verdict::Met, true));
        let alone = "flat\t10\ttraces=0\t1\tinstructions\t1000\n";
        assert_eq!(figure(alone, "most above least").1, Verdict::NotMeasured);
    }

    #[test]
    fn a_finding_breaks_even_a_quick_run() {
        let results = "pr\t16 frames\theapwright\t1\tfindings\t2\n";
        assert_eq!(figure(results, "findings"), ("2".to_owned(), Verdict::Missed, false));
        // A peer's does not.
        let results = "pr\t16 frames\tzig-debug\t1\tfindings\t2\n";
        assert!(figure(results, "findings").2);
    }

    #[test]
    fn programs_that_a_peer_lacks_leave_it_without_a_mean() {
        let results = "programs\ta\tglibc\t1\twall_ns\t10\nprograms\ta\theapwright\t1\twall_ns\t15\n\
                       programs\tb\tglibc\t1\twall_ns\t10\n";
        assert_eq!(figure(results, "geomean of time").1, Verdict::NotMeasured);
    }
}
