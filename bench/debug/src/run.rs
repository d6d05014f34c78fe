//! Runs the plan: one row after the other, each column once a round, in an order
//! that turns from round to round.
//!
//! Each run goes through `heapwright-launcher` (bench/launcher), which tells its
//! wall time, its processor time and the peak memory of its largest process. A
//! shell of one line opens the launcher's report and exports the settings, then
//! becomes the launcher: neither we nor the shell are under the preload.
//!
//! Before each run as much memory is touched and given back as the row was seen
//! to take, and a quarter more: the hosts of virtual machines take free memory
//! back, and whoever touches it first again pays for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use figures::process::warm;

use crate::plan::Planned;
use crate::reported::Reported;
use crate::results::Writer;

/// After so many milliseconds a run is ended: valgrind on a long program.
const LIMIT_MS: &str = "1200000";

const SHELL: &str = r#"exec 3>"$1"; shift
while [ "$1" != -- ]; do export "$1"; shift; done
shift; exec "$@""#;

/// A line of stderr with this word is a finding: the library says nothing else
/// unless it is asked to. A leak in a checker's report is not, if that ends well:
/// the program may really have it.
const FINDING: &str = "heapwright:";
const LEAK: &str = "LEAK: heapwright:";

/// What checkers that are run here end with if they found what they look for.
const FOUND: u64 = 99;

/// A line of stdout that begins with this is a number, not output.
const FIGURE: &str = "figure ";

pub(crate) struct Runner {
    launcher: PathBuf,
    results: Writer,
    /// For the report and the outputs of a run.
    folder: PathBuf,
    /// Peak memory of each row so far, and what its first column printed.
    rows: BTreeMap<(String, String), Row>,
    said: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Row {
    peak_kib: f64,
    output: Option<String>,
}

/// What the launcher reports.
#[derive(Debug, PartialEq)]
struct Cost {
    wall_ns: f64,
    cpu_us: f64,
    rss_kib: f64,
    end: Result<End, String>,
}

/// How a run came to a good end.
#[derive(Debug, PartialEq)]
enum End {
    Silent,
    /// It says that it found something.
    Found,
}

impl Cost {
    /// `wall_ns user_us system_us peak_rss_kib minor major code signal ended`.
    fn parse(report: &str) -> Result<Self, String> {
        if let Some(line) = report.lines().find(|line| line.starts_with("not-started")) {
            return Err(format!("it was {line} (errno)"));
        }
        let numbers: Vec<f64> =
            report.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [wall_ns, user, system, rss_kib, _, _, code, signal, ended] = numbers[..] else {
            return Err("the launcher reports nothing".to_owned());
        };
        let end = match (ended as u64, code as u64, signal as u64) {
            (0, 0, 0) => Ok(End::Silent),
            (0, FOUND, 0) => Ok(End::Found),
            (0, code, 0) => Err(format!("it ended with {code}")),
            (0, _, signal) => Err(format!("signal {signal} ended it")),
            _ => Err("its time was over".to_owned()),
        };
        Ok(Self { wall_ns, cpu_us: user + system, rss_kib, end })
    }
}

impl Runner {
    pub(crate) fn new(launcher: PathBuf, results: Writer) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("heapwright-debug.{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Self { launcher, results, folder, rows: BTreeMap::new(), said: BTreeMap::new() })
    }

    pub(crate) fn all(mut self, rows: &[Vec<Planned>], rounds: usize) -> Result<(), String> {
        for round in 1..=rounds {
            eprintln!("round {round} of {rounds}");
            for row in rows {
                // The first column speaks first, once: the others are compared
                // with what it printed.
                let turn = if round == 1 { 0 } else { round % row.len() };
                for at in 0..row.len() {
                    let planned = &row[(turn + at) % row.len()];
                    if planned.takes_part(round) {
                        self.one(planned, round)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn one(&mut self, planned: &Planned, round: usize) -> Result<(), String> {
        let (section, row, column) = &planned.cell;
        let key = (section.clone(), row.clone());
        let peak = self.rows.entry(key.clone()).or_default().peak_kib;
        warm(peak.max(16.0 * 1024.0) * 1024.0);
        let (cost, stdout, stderr) = self.launch(planned)?;
        let name = format!("{section}, {row}, {column}");
        let state = self.rows.entry(key).or_default();
        state.peak_kib = state.peak_kib.max(cost.rss_kib);

        let found = |line: &&str| line.contains(FINDING) && !line.contains(LEAK);
        let mut findings = stderr.lines().filter(found).count();
        if findings == 0 && cost.end == Ok(End::Found) {
            findings = 1;
        }
        if findings > 0 {
            let first = stderr.lines().find(found).unwrap_or("what it ended with 99 for");
            // Once, not for each run.
            let times = self.said.entry(first.to_owned()).or_default();
            *times += 1;
            if *times == 1 {
                eprintln!("{name} finds: {first}");
            }
        }
        let mut number =
            |metric: &str, value| self.results.number(&planned.cell, round, metric, value);
        number("findings", findings as f64)?;
        if let Some(reported) = Reported::of(&stderr) {
            number("errors", reported.errors)?;
            number("lost_blocks", reported.lost_blocks)?;
        }
        if let Err(reason) = &cost.end {
            let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
            eprintln!("{name} failed: {reason}; {}", last.unwrap_or_default());
            return number("failed", 1.0);
        }
        number("wall_ns", cost.wall_ns)?;
        number("cpu_us", cost.cpu_us)?;
        number("rss_kib", cost.rss_kib)?;
        let mut output = String::new();
        for line in stdout.lines() {
            let figure = line.strip_prefix(FIGURE).and_then(|rest| rest.split_once(' '));
            match figure.and_then(|(metric, value)| Some((metric, value.parse().ok()?))) {
                Some((metric, value)) => number(metric, value)?,
                None => output.extend([line, "\n"]),
            }
        }
        match &state.output {
            None => state.output = Some(output),
            Some(first) if *first == output => {}
            Some(first) => {
                let differs = first.lines().zip(output.lines()).find(|(a, b)| a != b);
                let (a, b) = differs.unwrap_or(("", "less or more lines"));
                eprintln!("{name} prints something else: '{b}' where '{a}' was expected");
                number("different", 1.0)?;
            }
        }
        Ok(())
    }

    fn launch(&self, planned: &Planned) -> Result<(Cost, String, String), String> {
        let place = |name: &str| self.folder.join(name);
        let create = |name| File::create(place(name)).map_err(|e| format!("{name}: {e}"));
        let stdin = match &planned.stdin {
            Some(path) => File::open(path).map_err(|e| format!("{}: {e}", path.display()))?.into(),
            None => Stdio::null(),
        };
        let status = Command::new("/bin/sh")
            .args(["-c", SHELL, "sh"])
            .arg(place("report"))
            .args(&planned.environment)
            .arg("--")
            .arg(&self.launcher)
            .args(["3", LIMIT_MS, &std::process::id().to_string()])
            .args(&planned.command)
            .stdin(stdin)
            .stdout(create("stdout")?)
            .stderr(create("stderr")?)
            .status()
            .map_err(|e| format!("cannot start the launcher: {e}"))?;
        let read = |name: &str| {
            let bytes = std::fs::read(place(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let report = read("report");
        let cost = Cost::parse(&report)
            .map_err(|e| format!("{:?}: {e}; {status}; {}", planned.command, read("stderr")))?;
        Ok((cost, read("stdout"), read("stderr")))
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // What stays behind is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports() {
        let cost = Cost::parse("1000 20 3 4096 5 6 0 0 0\n").unwrap();
        assert_eq!((cost.wall_ns, cost.cpu_us, cost.rss_kib), (1000.0, 23.0, 4096.0));
        assert_eq!(cost.end, Ok(End::Silent));
        assert_eq!(Cost::parse("1 2 3 4 5 6 99 0 0").unwrap().end, Ok(End::Found));
        let end = |line| Cost::parse(line).unwrap().end.unwrap_err();
        assert_eq!(end("1 2 3 4 5 6 7 0 0"), "it ended with 7");
        assert_eq!(end("1 2 3 4 5 6 0 11 0"), "signal 11 ended it");
        assert_eq!(end("1 2 3 4 5 6 0 9 1"), "its time was over");
        assert!(Cost::parse("not-started 2\n1 2 3 4 5 6 127 0 0\n").is_err());
        assert!(Cost::parse("").is_err());
    }
}
