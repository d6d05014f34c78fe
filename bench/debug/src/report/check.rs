//! The figures of `heapwright check` (`ci/check.sh`): what it costs real programs, what of that is
//! its guards' cost, what it costs a build of many short processes, how it stands beside a
//! sanitizer's build and memcheck, and how long a leak check stops a program with a large heap.
//!
//! Time is judged twice, by the clock and by the processor's: a machine that others use makes the
//! first say little.

use figures::cells::matrix;
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
/// The short processes that are judged: a build's. (Those of a shell script do next to nothing but
/// start and end.)
const BUILD: &str = "make -j2";

/// What is measured of programs, and how it is called.
const COSTS: [(&str, &str); 3] =
    [("wall_ns", "time"), ("cpu_us", "CPU time"), ("rss_kib", "peak RSS")];

/// Of a leak check: the metric, what it is, what is asked, the unit.
const CHECKS: [(&str, &str, Asked, &str); 6] = [
    ("stopped_ms", "the program stopped, worst", Asked::AtMost(50.0), " ms"),
    ("took_s", "the result is there, worst", Asked::AtMost(10.0), " s"),
    ("raised_ms", "the call that asked, worst", Asked::Nothing, " ms"),
    ("gap_ms", "another thread's gap, worst", Asked::Nothing, " ms"),
    ("quiet_gap_ms", "its gap while nothing was asked", Asked::Nothing, " ms"),
    ("findings", "checks that tell another leak", Asked::AtMost(0.0), ""),
];

impl Report<'_> {
    pub(super) fn check(&mut self) {
        let results = self.results;
        let others = |section| results.columns(section).into_iter().filter(|c| *c != "glibc");
        if results.has(PROGRAMS) {
            let rows = results.rows(PROGRAMS);
            let what = format!("{} programs, checked: geomean of", rows.len());
            for ((metric, name), most) in COSTS.into_iter().zip([1.8, 1.8, 2.0]) {
                let mean = self.of_programs(PROGRAMS, OURS, metric);
                self.judge(format!("{what} {name} to glibc"), Asked::AtMost(most), "x", mean);
            }
            let ratios: Vec<_> = rows.iter().map(|row| self.guards_cost(row)).collect();
            let what = format!("{what} CPU time to guard=never");
            self.judge(what, Asked::AtMost(1.03), "x", estimate(&ratios));
        }
        for row in results.rows(SHORT) {
            let asked = if row == BUILD { Asked::AtMost(1.5) } else { Asked::Nothing };
            for (metric, name) in &COSTS[..2] {
                let ratios = self.ratios(SHORT, row, (OURS, "glibc"), metric);
                let what = format!("{row}, 1,000 short processes: {name} to glibc");
                self.judge(what, asked, "x", of_rounds(&ratios));
            }
        }
        if results.has(BUILT) {
            let count = results.rows(BUILT).len();
            for (metric, name) in COSTS {
                for column in others(BUILT) {
                    let mean = self.of_programs(BUILT, column, metric);
                    let what = format!("geomean of {name} to plain build");
                    let what = format!("{count} built programs, {column}: {what}");
                    self.judge(what, Asked::Nothing, "x", mean);
                }
            }
            let lost = results.total("lost_blocks", |cell| cell.0 == BUILT && cell.2 == OURS);
            let what = "built programs, which lose nothing: blocks called lost";
            self.judge(what, Asked::AtMost(0.0), "", Some(Estimate::single(lost)));
            self.broken |= lost > 0.0;
        }
        for column in others(TOOLS) {
            let rows = results.rows(TOOLS).into_iter();
            let missed =
                rows.filter(|row| results.last((TOOLS, row, column), "finds") == Some(0.0));
            let missed = Estimate::single(missed.count() as f64);
            let asked = if column == GUARDED { Asked::AtMost(0.0) } else { Asked::Nothing };
            let what = format!("programs with a bug that {column} does not find");
            self.judge(what, asked, "", Some(missed));
        }
        for row in results.rows(SNAPSHOT) {
            for (metric, what, asked, unit) in CHECKS {
                let worst = results.values((SNAPSHOT, row, OURS), metric);
                let worst = worst.into_iter().reduce(f64::max).map(Estimate::single);
                self.judge(format!("{row} live: {what}"), asked, unit, worst);
            }
        }
    }

    /// CPU time with guards to that without any, round by round.
    fn guards_cost(&self, row: &str) -> Vec<f64> {
        self.ratios(PROGRAMS, row, (OURS, UNGUARDED), "cpu_us")
    }

    /// What the checkers reported of each program; nothing of the plain run.
    fn reported_table(&self, section: &str) -> String {
        let mut columns = self.results.columns(section);
        columns.retain(|column| *column != "glibc");
        let cell = |row: &str, column: &str| {
            let last = |metric| self.results.last((section, row, column), metric);
            let of = |metric| last(metric).unwrap_or(0.0);
            match (last("failed"), last("wall_ns")) {
                (Some(_), _) => "fails".to_owned(),
                (_, None) => String::new(),
                _ => format!("{} / {}", of("errors"), of("lost_blocks")),
            }
        };
        format!(
            "Different errors / blocks definitely lost, as reported in the last run:\n\n{}",
            matrix("program", &self.results.rows(section), &columns, cell)
        )
    }

    fn guards_table(&self) -> String {
        let rows = self.results.rows(PROGRAMS).into_iter();
        let costs = rows.map(|row| (row, self.guards_cost(row)));
        let lines: Vec<Vec<String>> = costs
            .filter(|(_, ratios)| !ratios.is_empty())
            .map(|(row, ratios)| vec![row.to_owned(), number(median(&ratios))])
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
        let cell = |row: &str, column: &str| {
            let of = |metric| self.results.last((TOOLS, row, column), metric);
            let twin = of("findings").is_some_and(|found| found > 0.0);
            let word = of("finds").map(|finds| if finds > 0.0 { "yes" } else { "no" });
            let twin = if twin { ", and in its twin" } else { "" };
            word.map_or(String::new(), |word| format!("{word}{twin}"))
        };
        matrix("program", &self.results.rows(TOOLS), &self.results.columns(TOOLS), cell)
    }

    fn snapshot_table(&self) -> String {
        let metrics = [
            ("stopped_ms", "stopped, ms"),
            ("raised_ms", "the call that asked, ms"),
            ("gap_ms", "another thread's longest gap, ms"),
            ("took_s", "until the result, s"),
        ];
        let head = [&["live heap", "check"][..], &metrics.map(|(_, title)| title)].concat();
        let (mut lines, mut text) = (Vec::new(), String::new());
        for row in self.results.rows(SNAPSHOT) {
            let at = (SNAPSHOT, row, OURS);
            for check in self.results.of(at, "stopped_ms").into_iter().flat_map(|all| all.keys()) {
                let of = |metric| self.results.of(at, metric)?.get(check).copied();
                let cells = metrics.map(|(metric, _)| of(metric).map_or(String::new(), number));
                lines.push([vec![row.to_owned(), check.to_string()], cells.into()].concat());
            }
            if let Some(blocks) = self.results.last(at, "blocks") {
                let quiet = self.results.last(at, "quiet_gap_ms").map_or(String::new(), number);
                text += &format!(
                    "{row}: {blocks} blocks; the other thread's longest gap while nothing was \
                     asked: {quiet} ms.\n\n"
                );
            }
        }
        table(&head, &lines) + &text
    }

    pub(super) fn check_tables(&self) -> String {
        let mut text = String::new();
        for (section, title) in [
            (PROGRAMS, "Programs"),
            (SHORT, "Short processes"),
            (BUILT, "Beside a sanitizer's build"),
        ] {
            if !self.results.has(section) {
                continue;
            }
            let rows = self.results.rows(section).into_iter();
            let rounds = rows.map(|row| self.results.values((section, row, "glibc"), "wall_ns"));
            let of = match rounds.map(|rounds| rounds.len()).max() {
                Some(count @ 2..) => format!("medians of {count} rounds"),
                _ => "one round".to_owned(),
            };
            let wall = format!("Wall time, {of}: the plain run's, the others' ratios to it:");
            let cpu = "Processor time, all processes of a run:";
            let peak =
                "Peak RSS of the largest process: the plain run's, the others' ratios to it:";
            text += &format!("## {title}\n\n");
            text += &self.programs_table(section, &wall, "wall_ns", ms);
            text += &self.programs_table(section, cpu, "cpu_us", |us| ms(us * 1e3));
            text += &self.programs_table(section, peak, "rss_kib", mib);
            text += &self.reported_table(section);
            if section == PROGRAMS {
                text += &self.guards_table();
            }
        }
        if self.results.has(TOOLS) {
            text += &format!("## What each finds\n\n{}", self.tools_table());
        }
        if self.results.has(SNAPSHOT) {
            text += &format!("## A leak check of a large heap\n\n{}", self.snapshot_table());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure;
    use super::GUARDED;

    #[test]
    fn the_worst_check_is_judged() {
        let results = "check-snapshot\t1 GiB\theapwright\t1\tstopped_ms\t10\n\
                       check-snapshot\t1 GiB\theapwright\t2\tstopped_ms\t60\n\
                       check-snapshot\t1 GiB\theapwright\t1\ttook_s\t2.5\n";
        assert_eq!(figure(results, "stopped"), ("60 ms".into(), "**MISSED**", true, false));
        assert_eq!(figure(results, "result is there").1, "met");
    }

    #[test]
    fn a_block_called_lost_in_a_program_that_loses_none_breaks_a_quick_run() {
        let results = "check-asan\ta\tglibc\t1\twall_ns\t10\n\
                       check-asan\ta\theapwright\t1\twall_ns\t15\n\
                       check-asan\ta\theapwright\t1\tlost_blocks\t1\n\
                       check-asan\ta\tasan\t1\twall_ns\t20\n";
        assert_eq!(figure(results, "called lost"), ("1".into(), "**MISSED**", false, false));
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
        assert_eq!((&*measured, verdict), ("1.50x", "met"));
    }

    #[test]
    fn only_the_guarded_column_must_find_all() {
        let row = |column: &str, finds: u8, twin: u8| {
            let cell = format!("check-tools\ta\t{column}\t1");
            format!("{cell}\tfinds\t{finds}\n{cell}\tfindings\t{twin}\n")
        };
        let all = row("heapwright", 0, 0) + &row(GUARDED, 1, 0) + &row("valgrind", 0, 1);
        assert_eq!(figure(&all, "heapwright does not").1, "");
        assert_eq!(figure(&all, "guard=all does not"), ("0".into(), "met", true, true));
        // Our own words about a right program are an error even in a quick run.
        assert!(!figure(&row(GUARDED, 1, 1), "guard=all does not").2);
    }
}
