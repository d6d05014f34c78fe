//! Numbers, and the file that keeps them: one line for each number, with tabs between fields.
//!
//! ```text
//! SECTION  ROW  COLUMN  ROUND  METRIC  VALUE
//! ```
//!
//! [`run`](crate::run) writes the numbers of runs, and a script adds its own counts. Verdicts
//! compare numbers of the same round. Reports skip a row `-`, which holds remarks.

use std::collections::BTreeMap;
use std::path::Path;

use crate::statistics::{median, of_rounds};
use crate::text::table;

/// The place of a number: section, row, column.
pub type Cell = (String, String, String);
/// A borrowed cell, for queries.
pub type At<'a> = (&'a str, &'a str, &'a str);
/// The values of one metric of one cell, by round.
pub type Rounds = BTreeMap<usize, f64>;

/// The contents of the file.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    order: Vec<Cell>,
    numbers: BTreeMap<(Cell, String), Rounds>,
}

impl Cells {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
        Self::parse(&text).ok_or_else(|| format!("{name} does not hold results"))
    }

    /// Reads a file's text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut cells = Self::default();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let mut field = || fields.next().map(str::to_owned);
            let cell = (field()?, field()?, field()?);
            let (round, metric, value) = (field()?.parse().ok()?, field()?, field()?.parse().ok()?);
            cells.add(&cell, round, &metric, value);
        }
        Some(cells)
    }

    /// Adds a number.
    pub fn add(&mut self, cell: &Cell, round: usize, metric: &str, value: f64) {
        let mut from = self.numbers.range((cell.clone(), String::new())..);
        if from.next().is_none_or(|((of, _), _)| of != cell) {
            self.order.push(cell.clone());
        }
        let rounds = self.numbers.entry((cell.clone(), metric.to_owned())).or_default();
        rounds.insert(round, value);
    }

    /// Returns a line of the file.
    pub fn line((section, row, column): &Cell, round: usize, metric: &str, value: f64) -> String {
        format!("{section}\t{row}\t{column}\t{round}\t{metric}\t{value}\n")
    }

    /// Keeps the least value of each metric: other work on the machine makes values larger.
    pub fn keep_least(&mut self, of: impl Fn(&str) -> bool) {
        for (_, rounds) in self.numbers.iter_mut().filter(|((cell, _), _)| of(&cell.0)) {
            let least = rounds.values().copied().reduce(f64::min);
            *rounds = least.into_iter().map(|least| (1, least)).collect();
        }
    }

    /// Adds a row `ROW NUMBER` for each metric whose name is a number. The row has that metric's
    /// values under the name `metric`.
    pub fn split_rows(&mut self, of: impl Fn(&str) -> bool, metric: &str) {
        for cell in self.order.clone().into_iter().filter(|cell| of(&cell.0)) {
            let at = (cell.0.as_str(), cell.1.as_str(), cell.2.as_str());
            let names = self.metrics(at).into_iter().filter_map(|name| name.parse::<u64>().ok());
            let mut sizes: Vec<u64> = names.collect();
            sizes.sort_unstable();
            for size in sizes {
                let row = (cell.0.clone(), format!("{} {size}", cell.1), cell.2.clone());
                let at = (cell.0.as_str(), cell.1.as_str(), cell.2.as_str());
                for (round, value) in self.of(at, &size.to_string()).cloned().unwrap_or_default() {
                    self.add(&row, round, metric, value);
                }
            }
        }
    }

    /// Returns all cells, in the order of the file.
    pub fn cells(&self) -> &[Cell] {
        &self.order
    }

    /// Returns whether a section has cells.
    pub fn has(&self, section: &str) -> bool {
        self.order.iter().any(|cell| cell.0 == section)
    }

    /// Returns the sections.
    pub fn sections(&self) -> Vec<&str> {
        distinct(self.order.iter().map(|cell| cell.0.as_str()))
    }

    fn of_section(&self, section: &str) -> impl Iterator<Item = &Cell> {
        self.order.iter().filter(move |cell| cell.0 == section && cell.1 != "-")
    }

    /// Returns the rows of a section.
    pub fn rows(&self, section: &str) -> Vec<&str> {
        distinct(self.of_section(section).map(|cell| cell.1.as_str()))
    }

    /// Returns the columns of a section.
    pub fn columns(&self, section: &str) -> Vec<&str> {
        distinct(self.of_section(section).map(|cell| cell.2.as_str()))
    }

    /// Returns the metrics of a cell, by name.
    pub fn metrics(&self, (section, row, column): At<'_>) -> Vec<&str> {
        let cell = (section.to_owned(), row.to_owned(), column.to_owned());
        let from = (cell.clone(), String::new());
        let all = self.numbers.range(from..).take_while(|((of, _), _)| *of == cell);
        all.map(|((_, metric), _)| metric.as_str()).collect()
    }

    /// Returns a metric of a cell.
    pub fn of(&self, (section, row, column): At<'_>, metric: &str) -> Option<&Rounds> {
        let cell = (section.to_owned(), row.to_owned(), column.to_owned());
        self.numbers.get(&(cell, metric.to_owned()))
    }

    /// Returns the values of a metric, one for each round.
    pub fn values(&self, at: At<'_>, metric: &str) -> Vec<f64> {
        self.of(at, metric).map_or(Vec::new(), |rounds| rounds.values().copied().collect())
    }

    /// Returns the value of a metric in the last round.
    pub fn last(&self, at: At<'_>, metric: &str) -> Option<f64> {
        self.of(at, metric)?.values().next_back().copied()
    }

    /// Returns the median of a metric.
    pub fn middle(&self, at: At<'_>, metric: &str) -> Option<f64> {
        Some(self.values(at, metric)).filter(|values| !values.is_empty()).map(|all| median(&all))
    }

    /// Returns the ratios of one cell to another, in the rounds that both have.
    pub fn ratios(&self, one: At<'_>, other: At<'_>, metric: &str) -> Vec<f64> {
        let (Some(one), Some(other)) = (self.of(one, metric), self.of(other, metric)) else {
            return Vec::new();
        };
        ratios(one, other)
    }

    /// Returns the median of these ratios.
    pub fn ratio(&self, one: At<'_>, other: At<'_>, metric: &str) -> Option<f64> {
        of_rounds(&self.ratios(one, other, metric)).map(|estimate| estimate.value)
    }

    /// Returns the sum of a metric over cells and rounds.
    pub fn total(&self, metric: &str, of: impl Fn(&Cell) -> bool) -> f64 {
        let of_metric = self.numbers.iter().filter(|((cell, name), _)| name == metric && of(cell));
        of_metric.flat_map(|(_, rounds)| rounds.values()).fold(0.0, |sum, value| sum + value)
    }
}

/// Returns the ratios in the rounds that both have, except where `other` is 0.
pub fn ratios(one: &Rounds, other: &Rounds) -> Vec<f64> {
    let pairs = one.iter().filter_map(|(round, value)| Some((value, *other.get(round)?)));
    pairs.filter(|&(_, other)| other != 0.0).map(|(value, other)| value / other).collect()
}

/// Makes a table. `cell` returns the text for a row and a column.
pub fn matrix(
    head: &str,
    rows: &[&str],
    columns: &[&str],
    cell: impl Fn(&str, &str) -> String,
) -> String {
    let line = |row: &&str| -> Vec<String> {
        let cells = columns.iter().map(|column| cell(row, column));
        std::iter::once((*row).to_owned()).chain(cells).collect()
    };
    table(&[&[head], columns].concat(), &rows.iter().map(line).collect::<Vec<_>>())
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
        let cells = Cells::parse(text).unwrap();
        assert_eq!(cells.ratios(("s", "r", "a"), ("s", "r", "b"), "m"), [3.0]);
        assert!(cells.ratios(("s", "q", "a"), ("s", "q", "b"), "m").is_empty());
        assert_eq!((cells.rows("s"), cells.columns("s")), (vec!["r", "q"], vec!["a", "b"]));
        assert_eq!(
            (cells.total("m", |cell| cell.2 == "a"), cells.metrics(("s", "r", "b"))),
            (11.0, vec!["m"])
        );
        assert!(Cells::parse("s\tr\ta\tone\tm\t2\n").is_none());
        let cell = |row: &str, column: &str| {
            cells.middle(("s", row, column), "m").map_or(String::new(), |value| value.to_string())
        };
        assert_eq!(
            matrix("h", &cells.rows("s"), &cells.columns("s"), cell),
            "| h | a | b |\n|---|---:|---:|\n| r | 5.5 | 3 |\n| q |  | 1 |\n\n"
        );
    }
}
