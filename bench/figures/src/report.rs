//! What is gathered while loads run, and printed at the end: figures, tables, and what went wrong.

use std::io::Write as _;
use std::path::Path;

use crate::machine::machine;
use crate::statistics::of_rounds;
use crate::verdict::{Asked, Figure, Kind, figures, hold};

/// Figures, tables, and what went wrong.
#[derive(Debug, Default)]
pub struct Report {
    tables: String,
    figures: Vec<Figure>,
    failures: Vec<String>,
    /// Rounds of peers that their limit did not let through.
    missed_rounds: Vec<String>,
}

impl Report {
    /// Something went wrong: said at once, and again at the end.
    pub fn failed(&mut self, why: String) {
        eprintln!("{why}");
        self.failures.push(why);
    }

    /// A peer ran out of memory under a limit: its row lacks that round.
    pub fn missed_round(&mut self, why: String) {
        eprintln!("{why}");
        self.missed_rounds.push(why);
    }

    /// A table, or other text below a heading.
    pub fn table(&mut self, title: &str, table: &str) {
        self.tables.push_str(&format!("### {title}\n\n{table}"));
    }

    /// Judges what was measured.
    pub fn figure(
        &mut self,
        what: impl Into<String>,
        asked: Asked,
        unit: &str,
        kind: Kind,
        rounds: &[f64],
    ) {
        self.add(Figure::new(what, asked, unit, kind, of_rounds(rounds)));
    }

    /// One that is judged already.
    pub fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Whether all ran, and checksums agree.
    pub fn is_sound(&self) -> bool {
        self.failures.is_empty()
    }

    /// Whether no figure is missed.
    pub fn holds(&self) -> bool {
        hold(&self.figures)
    }

    /// All of it, in Markdown.
    pub fn text(&self) -> String {
        let mut text = format!("{}.\n\n### figures\n\n{}", machine(), figures(&self.figures));
        text.push_str(&self.tables);
        for (title, lines) in [
            ("### rounds that a peer's limit did not let through", &self.missed_rounds),
            ("### what failed", &self.failures),
        ] {
            if !lines.is_empty() {
                text.push_str(&format!("{title}\n\n- {}\n", lines.join("\n- ")));
            }
        }
        text
    }

    /// Writes it into a folder, as tables.md.
    pub fn write(&self, out: &Path) -> Result<(), String> {
        write(&out.join("tables.md"), &self.text())
    }

    /// Prints it.
    pub fn print(&self) -> Result<(), String> {
        let text = self.text();
        std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("cannot print: {e}"))
    }
}

/// Makes a folder, before an hour's work and not after it.
pub fn folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|e| format!("cannot make {}: {e}", path.display()))
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_figure_and_a_failed_run_are_distinguished() {
        let mut report = Report::default();
        assert!(report.is_sound() && report.holds());
        report.figure("x", Asked::AtMost(1.0), "x", Kind::Counted, &[2.0]);
        report.missed_round("splay, bdwgc, round 1: out of memory".into());
        assert!(report.is_sound() && !report.holds());
        report.failed("pauses, steps, round 1: signal 11 ended it".into());
        assert!(!report.is_sound());
        assert!(report.text().contains("- pauses, steps, round 1: signal 11 ended it\n"));
    }
}
