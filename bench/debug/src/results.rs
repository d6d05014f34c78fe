//! The results: one line a number,
//! `SECTION  ROW  COLUMN  ROUND  METRIC  VALUE`, separated by tabs. Whoever
//! counts something writes such lines; the report reads them.
//!
//! Metrics of a run: `wall_ns`, `cpu_us`, `rss_kib`, `findings` (lines of the
//! library on stderr), what the program itself says in lines `figure NAME
//! NUMBER`; `errors` and `lost_blocks` where a checker tells them; `failed` and
//! `different` where a run did not end well or printed
//! something else than the first column.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write as _;

use crate::plan::Cell;

/// One metric of one cell, by round.
pub(crate) type Rounds = BTreeMap<usize, f64>;

/// Adds lines to the file.
pub(crate) struct Writer(File);

impl Writer {
    pub(crate) fn append(path: &str) -> Result<Self, String> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(Self).map_err(|e| format!("cannot write {path}: {e}"))
    }

    pub(crate) fn number(
        &mut self,
        cell: &Cell,
        round: usize,
        metric: &str,
        value: f64,
    ) -> Result<(), String> {
        let (section, row, column) = cell;
        writeln!(self.0, "{section}\t{row}\t{column}\t{round}\t{metric}\t{value}")
            .map_err(|e| format!("cannot write the results: {e}"))
    }
}

/// The file in memory.
#[derive(Default)]
pub(crate) struct Results {
    order: Vec<Cell>,
    numbers: BTreeMap<(Cell, String), Rounds>,
}

impl Results {
    pub(crate) fn read(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
        Self::parse(&text).ok_or_else(|| format!("{path} does not hold results"))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut results = Self::default();
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let mut field = || fields.next().map(str::to_owned);
            let cell = (field()?, field()?, field()?);
            let (round, metric, value) = (field()?.parse().ok()?, field()?, field()?.parse().ok()?);
            // A row or a column `-` holds remarks, not measurements.
            if seen.insert(cell.clone()) {
                results.order.push(cell.clone());
            }
            results.numbers.entry((cell, metric)).or_default().insert(round, value);
        }
        Some(results)
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.order
    }

    fn of_section(&self, section: &str) -> impl Iterator<Item = &Cell> {
        self.order.iter().filter(move |cell| cell.0 == section && cell.1 != "-")
    }

    pub(crate) fn rows(&self, section: &str) -> Vec<&str> {
        distinct(self.of_section(section).map(|cell| cell.1.as_str()))
    }

    pub(crate) fn columns(&self, section: &str) -> Vec<&str> {
        distinct(self.of_section(section).map(|cell| cell.2.as_str()))
    }

    pub(crate) fn of(
        &self,
        section: &str,
        row: &str,
        column: &str,
        metric: &str,
    ) -> Option<&Rounds> {
        let cell = (section.to_owned(), row.to_owned(), column.to_owned());
        self.numbers.get(&(cell, metric.to_owned()))
    }

    /// The ratios of one column to another, in the rounds that both have.
    pub(crate) fn ratios(
        &self,
        (section, row): (&str, &str),
        (column, base): (&str, &str),
        metric: &str,
    ) -> Vec<f64> {
        let of = |column| self.of(section, row, column, metric);
        let (Some(one), Some(other)) = (of(column), of(base)) else { return Vec::new() };
        one.iter().filter_map(|(round, value)| Some(value / other.get(round)?)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_rounds_that_both_have() {
        let text = "s\tr\ta\t1\tm\t2\ns\tr\ta\t2\tm\t9\ns\tr\tb\t2\tm\t3\ns\tq\tb\t1\tm\t1\n";
        let results = Results::parse(text).unwrap();
        assert_eq!(results.ratios(("s", "r"), ("a", "b"), "m"), [3.0]);
        assert!(results.ratios(("s", "q"), ("a", "b"), "m").is_empty());
        assert_eq!((results.rows("s"), results.columns("s")), (vec!["r", "q"], vec!["a", "b"]));
        assert!(Results::parse("s\tr\ta\tone\tm\t2\n").is_none());
    }
}
