//! What is gathered while the loads run, and printed at the end.

use std::io::Write as _;
use std::path::Path;

use ::figures::machine::machine;
use ::figures::record::Record;
use ::figures::statistics::of_rounds;
use ::figures::verdict::{Asked, Figure, Kind, figures, hold};

/// Tables, figures, and what went wrong.
pub(crate) struct Report {
    tables: String,
    figures: Vec<Figure>,
    failures: Vec<String>,
    /// Rounds of peers that their limit did not let through.
    missed_rounds: Vec<String>,
    /// Every run, as it was printed.
    runs: String,
    /// Memory over time.
    rss: String,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            tables: String::new(),
            figures: Vec::new(),
            failures: Vec::new(),
            missed_rounds: Vec::new(),
            runs: String::new(),
            rss: "load,variant,round,request,ns,bytes\n".to_owned(),
        }
    }

    /// Keeps what a run printed.
    pub(crate) fn ran(&mut self, load: &str, variant: &str, round: usize, run: &Record) {
        let last = run.text.lines().last().unwrap_or_default();
        self.runs.push_str(&format!("{load}, {variant}, round {}: {last}\n", round + 1));
        for sample in Record::series(&run.text, "rss") {
            let of = |name: &str| sample.word(name).unwrap_or_default();
            let (request, ns, bytes) = (of("request"), of("ns"), of("bytes"));
            let row = format!("{load},{variant},{},{request},{ns},{bytes}\n", round + 1);
            self.rss.push_str(&row);
        }
    }

    /// Something went wrong: said at once, and again at the end.
    pub(crate) fn failed(&mut self, why: String) {
        eprintln!("gc: {why}");
        self.failures.push(why);
    }

    /// A peer ran out of memory under a limit: its row lacks that round.
    pub(crate) fn missed_round(&mut self, why: String) {
        eprintln!("gc: {why}");
        self.missed_rounds.push(why);
    }

    pub(crate) fn table(&mut self, title: &str, table: &str) {
        self.tables.push_str(&format!("### {title}\n\n{table}"));
    }

    /// Judges what was measured.
    pub(crate) fn figure(
        &mut self,
        what: impl Into<String>,
        asked: Asked,
        unit: &str,
        kind: Kind,
        rounds: &[f64],
    ) {
        self.add(Figure::new(what, asked, unit, kind, of_rounds(rounds)));
    }

    pub(crate) fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Whether all ran, and checksums agree.
    pub(crate) fn is_sound(&self) -> bool {
        self.failures.is_empty()
    }

    /// Whether no figure is missed.
    pub(crate) fn holds(&self) -> bool {
        hold(&self.figures)
    }

    fn text(&self) -> String {
        let mut text = format!("{}.\n\n### figures\n\n{}", machine(), figures(&self.figures));
        text.push_str(&self.tables);
        for (title, lines) in [
            ("### rounds that a peer's limit did not let through", &self.missed_rounds),
            ("### what failed", &self.failures),
        ] {
            if !lines.is_empty() {
                text.push_str(&format!("{title}\n\n"));
            }
            for line in lines {
                text.push_str(&format!("- {line}\n"));
            }
        }
        text
    }

    /// Writes what there is into a folder: after each load, so that an hour is not lost with
    /// the last of them.
    pub(crate) fn write(&self, out: &Path) -> Result<(), String> {
        let text = self.text();
        for (name, text) in [("tables.md", &text), ("runs.txt", &self.runs), ("rss.csv", &self.rss)]
        {
            let path = out.join(name);
            std::fs::write(&path, text)
                .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        }
        Ok(())
    }

    pub(crate) fn print(&self) -> Result<(), String> {
        let text = self.text();
        std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("cannot print: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_figure_and_a_failed_run_are_distinguished() {
        let mut report = Report::new();
        assert!(report.is_sound() && report.holds());
        report.figure("x", Asked::AtMost(1.0), "x", Kind::Counted, &[2.0]);
        report.missed_round("splay, bdwgc, round 1: out of memory".into());
        assert!(report.is_sound() && !report.holds());
        report.failed("boot, fine, round 1: signal 11 ended it".into());
        assert!(!report.is_sound());
        assert!(report.text().contains("- boot, fine, round 1: signal 11 ended it\n"));
    }

    #[test]
    fn memory_over_time_is_kept() {
        let mut report = Report::new();
        let mut run = Record::default();
        run.text = "rss request=7 ns=8 bytes=9\nresult".into();
        report.ran("request", "fine", 0, &run);
        assert_eq!(report.rss.lines().last(), Some("request,fine,1,7,8,9"));
        assert_eq!(report.runs, "request, fine, round 1: result\n");
    }
}
