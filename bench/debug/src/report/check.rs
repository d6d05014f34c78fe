//! The figures of `heapwright check` (`ci/check.sh`): what it costs real programs, what of that is its guards' cost, what
//! it costs a build of many short processes, how it stands beside a sanitizer's build and memcheck, and how long a leak check
//! stops a program with a large heap.
//!
//! Time is judged twice, by the clock and by the processor's: a machine that others use makes the first say little.

use figures::statistics::{Estimate, estimate, median, of_rounds};
use figures::text::{mib, ms, number, table};
use figures::verdict::Asked;

use super::{OURS, Report};

const PROGRAMS: &str = "check-programs";
const SHORT: &str = "check-short";
const BUILT: &str = "check-asan";
const TOOLS: &str = "check-tools";
const SNAPSHOT: &str = "check-snapshot";

/// With every block guarded.
const GUARDED: &str = "heapwright guard=all";
/// Without guards.
const UNGUARDED: &str = "heapwright guard=never";
/// The short processes that are judged: a build's. (Those of a shell script do next to nothing but start and end.)
const BUILD: &str = "make -j2";

/// What is measured of programs, how it is called and shown.
const TIMES: [(&str, &str); 2] = [("wall_ns", "time"), ("cpu_us", "CPU time")];

impl Report<'_> {
    pub(super) fn check(&mut self) {
        if self.has(PROGRAMS) {
            self.check_programs();
        }
        if self.has(SHORT) {
            self.check_short();
        }
        if self.has(BUILT) {
            self.check_built();
        }
        if self.has(TOOLS) {
            self.check_tools();
        }
        if self.has(SNAPSHOT) {
            self.check_snapshot();
        }
    }

    fn check_programs(&mut self) {
        let count = self.results.rows(PROGRAMS).len();
        let times = TIMES.map(|(metric, what)| (metric, what, 1.8));
        for (metric, what, most) in times.into_iter().chain([("rss_kib", "peak RSS", 2.0)]) {
            let mean = self.of_programs(PROGRAMS, OURS, metric);
            let what = format!("{count} programs, checked: geomean of {what} to glibc");
            self.judge(what, Asked::AtMost(most), "x", mean);
        }
        let ratios: Vec<_> =
            self.results.rows(PROGRAMS).iter().map(|row| self.guards_cost(row)).collect();
        let what = format!("{count} programs, checked: geomean of CPU time to guard=never");
        self.judge(what, Asked::AtMost(1.03), "x", estimate(&ratios));
    }

    /// CPU time with guards to that without any, round by round.
    fn guards_cost(&self, row: &str) -> Vec<f64> {
        self.results.ratios((PROGRAMS, row), (OURS, UNGUARDED), "cpu_us")
    }

    fn check_short(&mut self) {
        let rows: Vec<String> =
            self.results.rows(SHORT).iter().map(|&row| row.to_owned()).collect();
        for row in rows {
            let asked = if row == BUILD { Asked::AtMost(1.5) } else { Asked::Nothing };
            for (metric, what) in TIMES {
                let ratios = self.results.ratios((SHORT, &row), (OURS, "glibc"), metric);
                let what = format!("{row}, 1,000 short processes: {what} to glibc");
                self.judge(what, asked, "x", of_rounds(&ratios));
            }
        }
    }

    fn check_built(&mut self) {
        let count = self.results.rows(BUILT).len();
        for (metric, what) in TIMES.into_iter().chain([("rss_kib", "peak RSS")]) {
            for column in self.results.columns(BUILT).into_iter().filter(|c| *c != "glibc") {
                let mean = self.of_programs(BUILT, column, metric);
                let what =
                    format!("{count} built programs, {column}: geomean of {what} to plain build");
                self.judge(what, Asked::Nothing, "x", mean);
            }
        }
        let lost = self.total(BUILT, OURS, "lost_blocks");
        let what = "built programs, which lose nothing: blocks called lost";
        self.judge(what, Asked::AtMost(0.0), "", Some(Estimate::single(lost)));
        self.broken |= lost > 0.0;
    }

    fn check_tools(&mut self) {
        for column in self.results.columns(TOOLS) {
            if column == "glibc" || column == "-" {
                continue;
            }
            let missed: Vec<&str> = self
                .results
                .rows(TOOLS)
                .into_iter()
                .filter(|row| self.last(TOOLS, row, column, "finds") == Some(0.0))
                .collect();
            let asked = if column == GUARDED { Asked::AtMost(0.0) } else { Asked::Nothing };
            let what = format!("programs with a bug that {column} does not find");
            self.judge(what, asked, "", Some(Estimate::single(missed.len() as f64)));
        }
    }

    fn check_snapshot(&mut self) {
        for row in self.results.rows(SNAPSHOT) {
            let worst = |metric: &str| -> Option<Estimate> {
                let rounds = self.results.of(SNAPSHOT, row, OURS, metric)?;
                rounds.values().copied().reduce(f64::max).map(Estimate::single)
            };
            let figures = [
                ("the program stopped, worst", Asked::AtMost(50.0), " ms", worst("stopped_ms")),
                ("the result is there, worst", Asked::AtMost(10.0), " s", worst("took_s")),
                ("the call that asked, worst", Asked::Nothing, " ms", worst("raised_ms")),
                ("another thread's gap, worst", Asked::Nothing, " ms", worst("gap_ms")),
                ("its gap while nothing was asked", Asked::Nothing, " ms", worst("quiet_gap_ms")),
                ("checks that tell another leak", Asked::AtMost(0.0), "", worst("findings")),
            ];
            for (what, asked, unit, value) in figures {
                self.judge(format!("{row} live: {what}"), asked, unit, value);
            }
        }
    }

    fn total(&self, section: &str, column: &str, metric: &str) -> f64 {
        let rows = self.results.rows(section);
        let rounds = rows.iter().filter_map(|row| self.results.of(section, row, column, metric));
        rounds.flat_map(|rounds| rounds.values()).fold(0.0, |sum, value| sum + value)
    }

    /// The number of the last round.
    fn last(&self, section: &str, row: &str, column: &str, metric: &str) -> Option<f64> {
        self.results.of(section, row, column, metric)?.values().next_back().copied()
    }

    /// What the checkers reported of each program; nothing of the plain run.
    fn reported_table(&self, section: &str) -> String {
        let columns: Vec<&str> =
            self.results.columns(section).into_iter().filter(|c| *c != "glibc").collect();
        let mut head = vec!["program"];
        head.extend(&columns);
        let cell = |row: &str, column: &str| -> String {
            if self.last(section, row, column, "failed").is_some() {
                return "fails".to_owned();
            }
            if self.last(section, row, column, "wall_ns").is_none() {
                return String::new();
            }
            let of = |metric| self.last(section, row, column, metric).unwrap_or(0.0);
            format!("{} / {}", of("errors"), of("lost_blocks"))
        };
        let line = |row: &&str| -> Vec<String> {
            let cells = columns.iter().map(|column| cell(row, column));
            std::iter::once((*row).to_owned()).chain(cells).collect()
        };
        let lines: Vec<_> = self.results.rows(section).iter().map(line).collect();
        format!(
            "Different errors / blocks definitely lost, as reported in the last run:\n\n{}",
            table(&head, &lines)
        )
    }

    fn guards_table(&self) -> String {
        let rows = self.results.rows(PROGRAMS);
        let lines: Vec<Vec<String>> = rows
            .iter()
            .map(|row| (row, self.guards_cost(row)))
            .filter(|(_, ratios)| !ratios.is_empty())
            .map(|(row, ratios)| vec![(*row).to_owned(), number(median(&ratios))])
            .collect();
        if lines.is_empty() {
            return String::new();
        }
        format!(
            "What guards cost: processor time with the default's to that with none:\n\n{}",
            table(&["program", "to guard=never"], &lines)
        )
    }

    fn tools_table(&self) -> String {
        let columns = self.results.columns(TOOLS);
        let mut head = vec!["program"];
        head.extend(&columns);
        let mut lines = Vec::new();
        for row in self.results.rows(TOOLS) {
            let mut line = vec![row.to_owned()];
            line.extend(columns.iter().map(|column| {
                let of = |metric| self.last(TOOLS, row, column, metric);
                let twin = of("findings").is_some_and(|found| found > 0.0);
                match of("finds") {
                    Some(finds) => {
                        let word = if finds > 0.0 { "yes" } else { "no" };
                        format!("{word}{}", if twin { ", and in its twin" } else { "" })
                    }
                    None => String::new(),
                }
            }));
            lines.push(line);
        }
        table(&head, &lines)
    }

    fn snapshot_table(&self) -> String {
        let metrics = [
            ("stopped_ms", "stopped, ms"),
            ("raised_ms", "the call that asked, ms"),
            ("gap_ms", "another thread's longest gap, ms"),
            ("took_s", "until the result, s"),
        ];
        let mut head = vec!["live heap", "check"];
        head.extend(metrics.map(|(_, title)| title));
        let mut lines = Vec::new();
        for row in self.results.rows(SNAPSHOT) {
            let Some(checks) = self.results.of(SNAPSHOT, row, OURS, "stopped_ms") else { continue };
            for check in checks.keys() {
                let mut line = vec![row.to_owned(), check.to_string()];
                line.extend(metrics.map(|(metric, _)| {
                    let of = self.results.of(SNAPSHOT, row, OURS, metric);
                    of.and_then(|rounds| rounds.get(check)).map_or(String::new(), |v| number(*v))
                }));
                lines.push(line);
            }
        }
        table(&head, &lines)
    }

    pub(super) fn check_tables(&self) -> String {
        let mut text = String::new();
        let sections = [
            (PROGRAMS, "Programs"),
            (SHORT, "Short processes"),
            (BUILT, "Beside a sanitizer's build"),
        ];
        for (section, title) in sections {
            if !self.has(section) {
                continue;
            }
            text += &format!("## {title}\n\n");
            let rows = self.results.rows(section);
            let rounds =
                rows.iter().filter_map(|row| self.results.of(section, row, "glibc", "wall_ns"));
            let of = match rounds.map(|rounds| rounds.len()).max() {
                Some(count @ 2..) => format!("medians of {count} rounds"),
                _ => "one round".to_owned(),
            };
            let wall = format!("Wall time, {of}: the plain run's, the others' ratios to it:");
            text += &self.programs_table(section, &wall, "wall_ns", ms);
            let cpu = "Processor time, all processes of a run:";
            text += &self.programs_table(section, cpu, "cpu_us", |us| ms(us * 1e3));
            let peak =
                "Peak RSS of the largest process: the plain run's, the others' ratios to it:";
            text += &self.programs_table(section, peak, "rss_kib", mib);
            text += &self.reported_table(section);
            if section == PROGRAMS {
                text += &self.guards_table();
            }
        }
        if self.has(TOOLS) {
            text += "## What each finds\n\n";
            text += &self.tools_table();
        }
        if self.has(SNAPSHOT) {
            text += "## A leak check of a large heap\n\n";
            text += &self.snapshot_table();
            let live = self.results.rows(SNAPSHOT).into_iter().filter_map(|row| {
                let of = |metric| self.last(SNAPSHOT, row, OURS, metric);
                let blocks = of("blocks")?;
                let quiet = of("quiet_gap_ms").map_or(String::new(), number);
                Some(format!(
                    "{row}: {blocks} blocks; the other thread's longest gap while nothing was asked: {quiet} ms.\n\n"
                ))
            });
            text.extend(live);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Results;

    fn figure(results: &str, what: &str) -> (String, String, bool, bool) {
        let results = Results::parse(results).unwrap();
        let report = Report::of(&results);
        let figure = report.figures.iter().find(|f| f.what.contains(what)).unwrap();
        let verdict = figure.verdict.text().to_owned();
        (figure.measured.clone(), verdict, report.holds(true), report.holds(false))
    }

    #[test]
    fn the_worst_check_is_judged() {
        let results = "check-snapshot\t1 GiB\theapwright\t1\tstopped_ms\t10\n\
                       check-snapshot\t1 GiB\theapwright\t2\tstopped_ms\t60\n\
                       check-snapshot\t1 GiB\theapwright\t1\ttook_s\t2.5\n";
        let (measured, verdict, quick, full) = figure(results, "stopped");
        assert_eq!((&*measured, &*verdict, quick, full), ("60 ms", "**MISSED**", true, false));
        assert_eq!(figure(results, "result is there").1, "met");
    }

    #[test]
    fn a_block_called_lost_in_a_program_that_loses_none_breaks_a_quick_run() {
        let results = "check-asan\ta\tglibc\t1\twall_ns\t10\n\
                       check-asan\ta\theapwright\t1\twall_ns\t15\n\
                       check-asan\ta\theapwright\t1\tlost_blocks\t1\n\
                       check-asan\ta\tasan\t1\twall_ns\t20\n";
        assert_eq!(figure(results, "called lost"), ("1".into(), "**MISSED**".into(), false, false));
        assert_eq!(figure(results, "asan: geomean of time").0, "2x");
    }

    #[test]
    fn guards_and_short_processes_are_judged_by_what_stands_beside_them() {
        let results = "check-programs\ta\tglibc\t1\tcpu_us\t10\n\
                       check-programs\ta\theapwright\t1\tcpu_us\t18\n\
                       check-programs\ta\theapwright guard=never\t1\tcpu_us\t16\n\
                       check-short\tmake -j2\tglibc\t1\tcpu_us\t10\n\
                       check-short\tmake -j2\theapwright\t1\tcpu_us\t15\n";
        assert_eq!(figure(results, "CPU time to guard=never").1, "**MISSED**");
        assert_eq!(figure(results, "geomean of CPU time to glibc").1, "met");
        let (measured, verdict, ..) = figure(results, "processes: CPU time");
        assert_eq!((&*measured, &*verdict), ("1.50x", "met"));
    }

    #[test]
    fn only_the_guarded_column_must_find_all() {
        let row = |column: &str, finds: u8, twin: u8| {
            format!(
                "check-tools\ta\t{column}\t1\tfinds\t{finds}\ncheck-tools\ta\t{column}\t1\tfindings\t{twin}\n"
            )
        };
        let all = row("heapwright", 0, 0) + &row(GUARDED, 1, 0) + &row("valgrind", 0, 1);
        assert_eq!(figure(&all, "heapwright does not").1, "");
        assert_eq!(figure(&all, "guard=all does not"), ("0".into(), "met".into(), true, true));
        // Our own words about a right program are an error even in a quick run.
        assert!(!figure(&row(GUARDED, 1, 1), "guard=all does not").2);
    }
}
