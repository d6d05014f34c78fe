//! Runs a plan: one row after the other, each column once in a round. The order of columns rotates
//! from round to round.
//!
//! ```text
//!   round 1   row: a b c d | row: a b c d | ...
//!   round 2   row: c d a b | ...
//! ```
//!
//! Each run goes through `heapwright-launcher` (bench/launcher). A shell opens the launcher's
//! report and exports the settings, then becomes the launcher. So neither this process nor the
//! shell is under the preload.
//!
//! Metrics of a run: `wall_ns`, `cpu_us`, `rss_kib`, `findings` (lines of the library on stderr),
//! and the program's lines `figure NAME NUMBER` or `result NAME=NUMBER ...`. A checker's report
//! adds `errors` and `lost_blocks`. `failed` marks a run that did not end well, `different` a run
//! with another output than the first column's.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cells::{Cell, Cells};
use crate::plan::Planned;
use crate::reported::Reported;

const SHELL: &str = r#"exec 3>"$1"; shift
while [ "$1" != -- ]; do export "$1"; shift; done
shift; exec "$@""#;

/// A line of stderr with this word is a finding: without options the library prints nothing but
/// findings. A reported leak is no finding: the program may really have it.
const FINDING: &str = "heapwright:";
const LEAK: &str = "LEAK: heapwright:";

/// The loader's message about a preload that it ignores: the run would measure glibc.
const IGNORED: &str = "ERROR: ld.so:";

/// The most memory that is touched before a run.
const MOST_WARMED: f64 = (3_u64 << 30) as f64;

/// The exit code of checkers here if they have findings.
const FOUND: u64 = 99;

/// Runs plans, and adds the results to a file of [`Cells`].
#[derive(Debug)]
pub struct Runner {
    launcher: PathBuf,
    limit_ms: String,
    results: File,
    folder: PathBuf,
    rows: BTreeMap<(String, String), Row>,
    said: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Row {
    peak_bytes: f64,
    output: Option<String>,
}

/// The result of one run.
#[derive(Debug)]
pub struct Ended {
    wall_ns: f64,
    cpu_us: f64,
    rss_kib: f64,
    /// Whether the exit code means findings, or the reason for a bad end.
    pub end: Result<bool, String>,
    /// The program's standard output.
    pub stdout: String,
    /// The program's standard error.
    pub stderr: String,
}

impl Ended {
    /// `wall_ns user_us system_us peak_rss_kib minor major code signal ended`
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
            (0, code @ (0 | FOUND), 0) => Ok(code == FOUND),
            (0, code, 0) => Err(format!("it ended with {code}")),
            (0, _, signal) => Err(format!("signal {signal} ended it")),
            _ => Err("its time was over".to_owned()),
        };
        let (stdout, stderr) = (String::new(), String::new());
        Ok(Self { wall_ns, cpu_us: user + system, rss_kib, end, stdout, stderr })
    }

    /// Returns the printed numbers, and the rest of the output.
    pub fn printed(&self) -> (Vec<(String, f64)>, String) {
        let (mut numbers, mut rest) = (Vec::new(), String::new());
        for line in self.stdout.lines() {
            let figure = line.strip_prefix("figure ").and_then(|rest| rest.split_once(' '));
            let figure = figure.and_then(|(name, value)| Some((name, value.parse().ok()?)));
            let result = line.strip_prefix("result ");
            let fields = result.into_iter().flat_map(str::split_whitespace);
            let fields: Option<Vec<_>> = fields.map(|word| word.split_once('=')).collect();
            match (figure, result, fields) {
                (Some((name, value)), ..) => numbers.push((name.to_owned(), value)),
                (_, Some(_), Some(fields)) => {
                    for (name, value) in fields {
                        // A checksum has more digits than a number keeps: its text is compared.
                        if name == "checksum" {
                            rest.push_str(&format!("checksum {value}\n"));
                        } else if let Ok(value) = value.parse() {
                            numbers.push((name.to_owned(), value));
                        }
                    }
                }
                _ => rest.extend([line, "\n"]),
            }
        }
        (numbers, rest)
    }
}

fn warm(peak: f64) {
    let bytes = (peak * 1.25).min(MOST_WARMED) as usize;
    let mut memory = Vec::<u8>::with_capacity(bytes);
    memory.resize(bytes, 1);
    std::hint::black_box(&memory);
}

impl Runner {
    /// Makes a runner that adds to a file. It ends runs that take longer than `seconds`.
    pub fn new(launcher: &Path, seconds: u64, results: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("heapwright-runs.{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let file = OpenOptions::new().create(true).append(true).open(results);
        Ok(Self {
            launcher: launcher.to_owned(),
            limit_ms: (seconds * 1000).to_string(),
            results: file.map_err(|e| format!("cannot write {}: {e}", results.display()))?,
            folder,
            rows: BTreeMap::new(),
            said: BTreeMap::new(),
        })
    }

    /// Runs a whole plan, `rounds` times. In the plan, lines of one row stand together.
    pub fn all(&mut self, plan: &[Planned], rounds: usize) -> Result<(), String> {
        for round in 1..=rounds {
            eprintln!("round {round} of {rounds}");
            for row in plan.chunk_by(Planned::same_row) {
                // The first column runs first in round 1: its output is the expected one.
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

    /// Adds a number that does not come from a run.
    pub fn note(&mut self, cell: &Cell, round: usize, metric: &str, n: f64) -> Result<(), String> {
        let line = Cells::line(cell, round, metric, n);
        self.results.write_all(line.as_bytes()).map_err(|e| format!("cannot write results: {e}"))
    }

    fn one(&mut self, planned: &Planned, round: usize) -> Result<(), String> {
        let (section, row, column) = &planned.cell;
        let name = format!("{section}, {row}, {column}");
        let key = (section.clone(), row.clone());
        let state = self.rows.entry(key.clone()).or_insert(Row { peak_bytes: 16e6, output: None });
        warm(state.peak_bytes);
        let ended = self.once(planned)?;

        let found = |line: &&str| line.contains(FINDING) && !line.contains(LEAK);
        let mut findings = ended.stderr.lines().filter(found).count();
        if findings == 0 && ended.end == Ok(true) {
            findings = 1;
        }
        if findings > 0 {
            let first = ended.stderr.lines().find(found).unwrap_or("exit code 99, without a line");
            let times = self.said.entry(first.to_owned()).or_default();
            *times += 1;
            if *times == 1 {
                eprintln!("{name} finds: {first}");
            }
        }
        let (mut numbers, output) = ended.printed();
        numbers.push(("findings".to_owned(), findings as f64));
        if let Some(reported) = Reported::of(&ended.stderr) {
            numbers.push(("errors".to_owned(), reported.errors));
            numbers.push(("lost_blocks".to_owned(), reported.lost_blocks));
        }
        match &ended.end {
            Err(reason) => {
                let last = ended.stderr.lines().rev().find(|line| !line.trim().is_empty());
                eprintln!("{name} failed: {reason}; {}", last.unwrap_or_default());
                numbers.push(("failed".to_owned(), 1.0));
            }
            Ok(_) => {
                // The program's own measurements have precedence.
                for (metric, value) in [
                    ("wall_ns", ended.wall_ns),
                    ("cpu_us", ended.cpu_us),
                    ("rss_kib", ended.rss_kib),
                ] {
                    if !numbers.iter().any(|(name, _)| name == metric) {
                        numbers.push((metric.to_owned(), value));
                    }
                }
                let state = self.rows.entry(key).or_insert(Row { peak_bytes: 0.0, output: None });
                state.peak_bytes = state.peak_bytes.max(ended.rss_kib * 1024.0);
                let first = state.output.get_or_insert_with(|| output.clone());
                if *first != output {
                    let differs = first.lines().zip(output.lines()).find(|(a, b)| a != b);
                    match differs {
                        Some((a, b)) => eprintln!("{name} prints '{b}' in place of '{a}'"),
                        None => eprintln!("{name} prints another number of lines than expected"),
                    }
                    numbers.push(("different".to_owned(), 1.0));
                }
            }
        }
        for (metric, value) in numbers {
            self.note(&planned.cell, round, &metric, value)?;
        }
        Ok(())
    }

    /// Runs a line once, and adds nothing.
    pub fn once(&self, planned: &Planned) -> Result<Ended, String> {
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
            .args(["3", &self.limit_ms, &std::process::id().to_string()])
            .args(&planned.command)
            .env_remove("LD_PRELOAD")
            .env_remove("HEAPWRIGHT")
            .stdin(stdin)
            .stdout(create("stdout")?)
            .stderr(create("stderr")?)
            .status()
            .map_err(|e| format!("cannot start the launcher: {e}"))?;
        let read = |name: &str| {
            let bytes = std::fs::read(place(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (stdout, stderr) = (read("stdout"), read("stderr"));
        let ended = Ended::parse(&read("report"))
            .map_err(|e| format!("{:?}: {e}; {status}; {stderr}", planned.command))?;
        let end = match stderr.lines().find(|line| line.contains(IGNORED)) {
            Some(line) => Err(line.to_owned()),
            None => ended.end,
        };
        Ok(Ended { end, stdout, stderr, ..ended })
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports() {
        let cost = Ended::parse("1000 20 3 4096 5 6 0 0 0\n").unwrap();
        assert_eq!((cost.wall_ns, cost.cpu_us, cost.rss_kib), (1000.0, 23.0, 4096.0));
        assert_eq!(cost.end, Ok(false));
        assert_eq!(Ended::parse("1 2 3 4 5 6 99 0 0").unwrap().end, Ok(true));
        let end = |line| Ended::parse(line).unwrap().end.unwrap_err();
        assert_eq!(end("1 2 3 4 5 6 7 0 0"), "it ended with 7");
        assert_eq!(end("1 2 3 4 5 6 0 11 0"), "signal 11 ended it");
        assert_eq!(end("1 2 3 4 5 6 0 9 1"), "its time was over");
        assert!(Ended::parse("not-started 2\n1 2 3 4 5 6 127 0 0\n").is_err());
        assert!(Ended::parse("").is_err());
    }

    #[test]
    fn numbers_are_told_from_what_is_printed() {
        let stdout = "a\nfigure x 1.5\nfigure none\nresult b=2 c=word checksum=7\n".to_owned();
        let ended = Ended { stdout, ..Ended::parse("1 2 3 4 5 6 0 0 0").unwrap() };
        let (numbers, rest) = ended.printed();
        assert_eq!(numbers, [("x".to_owned(), 1.5), ("b".to_owned(), 2.0)]);
        assert_eq!(rest, "a\nfigure none\nchecksum 7\n");
    }
}
