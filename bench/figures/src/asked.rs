//! Reads a bench's file of figures, and makes the report of the measured numbers.
//!
//! Each line of the file is a word and fields, with `|` between them; `#` begins a comment:
//!
//! ```text
//! text    A paragraph, printed first
//! ours    COLUMNS                       columns whose failures and findings count as ours
//! let     NAME | SECTION | ROW | COLUMN | METRIC             a median, for later expressions
//! least   SECTIONS                      only the least round of each metric counts
//! cells   SECTIONS | METRIC             a metric whose name is a number is a row of its own
//! figure  WHAT | SECTIONS | ROWS | COLUMNS | EXPRESSION | OTHER | BOUND | KIND
//! table   TITLE | SECTIONS | EXPRESSION | BASE [| MEAN]
//! worst   TITLE | SECTIONS | COLUMN | EXPRESSION | OTHER | HOW MANY
//! ```
//!
//! - SECTIONS, ROWS and COLUMNS are names with commas; `*` stands for any characters, and `!`
//!   before the first name excludes all of them. WHAT may contain `{section}`, `{row}`, `{column}`,
//!   `{other}` and `{count}`, the number of rows.
//! - ROWS gives a figure for each row. `mean of ROWS` is the geometric mean, `worst of ROWS` the
//!   largest value. `spread of ROWS` is the percentage from the least to the largest value. `sum of
//!   ROWS` is the sum of all rounds. `certain of ROWS` counts the rows whose whole interval lies
//!   beyond the bound.
//! - OTHER is the column whose number of the same round is the divisor, or `-`. `best of COLUMNS`
//!   is the column with the least median. `least of COLUMNS` and `most of COLUMNS` are the least
//!   and the most in each round. `each of COLUMNS` gives a figure for each column.
//! - BOUND is `<= 0.97x`, `>= 20 %`, `< 1` (the median keeps it as well), or `-` and a unit.
//!   KIND is a kind of `verdict`, or `must`: `middle`, whose miss also fails a quick run.
//! - BASE is the column with numbers. Other columns have ratios to it, and a row MEAN may follow.
//!   With `+COLUMN` other columns have numbers and ratios, with `-` only numbers.

use std::borrow::Cow;
use std::path::Path;

use crate::cells::{At, Cells, Rounds, matrix, ratios};
use crate::expression::Expression;
use crate::machine::machine;
use crate::statistics::{Estimate, estimate, median, of_rounds};
use crate::text::{interval, number, table};
use crate::verdict::{Asked, Figure, Kind, Verdict, figures, hold};

/// Patterns of names, with `*` as a wildcard.
#[derive(Clone, Debug)]
struct Names(Vec<String>);

impl Names {
    fn of(text: &str) -> Self {
        Self(text.split(',').map(|name| name.trim().to_owned()).collect())
    }

    fn have(&self, name: &str) -> bool {
        let excludes = self.0[0].starts_with('!');
        let found = self.0.iter().any(|pattern| matches(pattern.trim_start_matches('!'), name));
        found != excludes
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| matches(after, rest)))
        }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Each,
    Mean,
    Worst,
    Spread,
    Sum,
    Certain,
}

#[derive(Clone, Debug)]
enum Other {
    Nothing,
    Column(String),
    Best(Names),
    Least(Names),
    Most(Names),
    Each(Names),
}

#[derive(Clone, Debug)]
struct Ratio {
    expression: Expression,
    other: Other,
}

#[derive(Clone, Debug)]
struct Bound {
    asked: Asked,
    unit: String,
    /// The median itself must be below the bound.
    strictly: bool,
    /// A quick run must keep the bound, too.
    always: bool,
}

#[derive(Debug)]
enum Line {
    Text(String),
    Ours(Names),
    Let {
        name: String,
        cell: [String; 3],
        metric: String,
    },
    Least(Names),
    Cells {
        sections: Names,
        metric: String,
    },
    Figure {
        what: String,
        sections: Names,
        over: Over,
        rows: Names,
        columns: Names,
        ratio: Ratio,
        bound: Bound,
        kind: Kind,
    },
    Table {
        title: String,
        sections: Names,
        expression: Expression,
        base: String,
        mean: String,
    },
    Worst {
        title: String,
        sections: Names,
        column: String,
        ratio: Ratio,
        count: usize,
    },
}

fn parse_other(text: &str) -> Other {
    let names = |word: &str| text.strip_prefix(word).map(Names::of);
    if text == "-" {
        return Other::Nothing;
    }
    names("best of ")
        .map(Other::Best)
        .or_else(|| names("least of ").map(Other::Least))
        .or_else(|| names("most of ").map(Other::Most))
        .or_else(|| names("each of ").map(Other::Each))
        .unwrap_or_else(|| Other::Column(text.to_owned()))
}

fn parse_rows(text: &str) -> (Over, Names) {
    let over = [
        ("mean of ", Over::Mean),
        ("worst of ", Over::Worst),
        ("spread of ", Over::Spread),
        ("sum of ", Over::Sum),
        ("certain of ", Over::Certain),
    ];
    let found = over.into_iter().find_map(|(word, over)| Some((over, text.strip_prefix(word)?)));
    let (over, rows) = found.unwrap_or((Over::Each, text));
    (over, Names::of(rows))
}

fn parse_bound(text: &str) -> Result<Bound, String> {
    let wrong = || format!("'{text}' is no bound");
    let (sign, rest) = text.split_once(' ').unwrap_or((text, ""));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (digits, unit) = if sign == "-" { ("0", rest) } else { rest.split_at(end) };
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    let asked = match sign {
        "<=" | "<" => Asked::AtMost(value),
        ">=" => Asked::AtLeast(value),
        "-" => Asked::Nothing,
        _ => return Err(wrong()),
    };
    let unit = if sign == "-" && unit.len() > 1 { format!(" {unit}") } else { unit.to_owned() };
    Ok(Bound { asked, unit, strictly: sign == "<", always: false })
}

fn parse_kind(word: &str) -> Result<Kind, String> {
    Ok(match word {
        "timed" => Kind::Timed,
        "middle" | "must" => Kind::Middle,
        "counted" => Kind::Counted,
        "worst" => Kind::Worst,
        _ => return Err(format!("'{word}' is no kind")),
    })
}

fn parse_line(line: &str) -> Result<Option<Line>, String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let fields: Vec<&str> = rest.split('|').map(str::trim).collect();
    let ratio = |expression, other| {
        Ok::<_, String>(Ratio {
            expression: Expression::parse(expression)?,
            other: parse_other(other),
        })
    };
    Ok(Some(match (word, &fields[..]) {
        ("" | "#", _) => return Ok(None),
        ("text", _) => Line::Text(rest.trim().to_owned()),
        ("ours", [columns]) => Line::Ours(Names::of(columns)),
        ("let", [name, section, row, column, metric]) => Line::Let {
            name: (*name).to_owned(),
            cell: [section, row, column].map(|word| (*word).to_owned()),
            metric: (*metric).to_owned(),
        },
        ("least", [sections]) => Line::Least(Names::of(sections)),
        ("cells", [sections, metric]) => {
            Line::Cells { sections: Names::of(sections), metric: (*metric).to_owned() }
        }
        ("figure", [what, sections, rows, columns, expression, other, bound, kind]) => {
            let (over, rows) = parse_rows(rows);
            Line::Figure {
                what: (*what).to_owned(),
                sections: Names::of(sections),
                over,
                rows,
                columns: Names::of(columns),
                ratio: ratio(expression, other)?,
                bound: Bound { always: *kind == "must", ..parse_bound(bound)? },
                kind: parse_kind(kind)?,
            }
        }
        ("table", [title, sections, expression, base, mean @ ..]) if mean.len() < 2 => {
            Line::Table {
                title: (*title).to_owned(),
                sections: Names::of(sections),
                expression: Expression::parse(expression)?,
                base: (*base).to_owned(),
                mean: (*mean.first().unwrap_or(&"**geomean**")).to_owned(),
            }
        }
        ("worst", [title, sections, column, expression, other, count]) => Line::Worst {
            title: (*title).to_owned(),
            sections: Names::of(sections),
            column: (*column).to_owned(),
            ratio: ratio(expression, other)?,
            count: count.parse().map_err(|_| format!("'{count}' is no number"))?,
        },
        _ => return Err(format!("'{line}' is no line of figures")),
    }))
}

/// The report of a file of results.
#[derive(Debug)]
pub struct Report {
    cells: Cells,
    constants: Vec<(String, f64)>,
    ours: Names,
    texts: String,
    tables: String,
    figures: Vec<Figure>,
    failures: Vec<String>,
    /// A run of ours failed, differed or had a finding, or a `must` figure was missed.
    broken: bool,
}

impl Report {
    /// Judges results by a file of figures.
    pub fn read(asked: &Path, results: &Path) -> Result<Self, String> {
        let name = asked.display();
        let text =
            std::fs::read_to_string(asked).map_err(|e| format!("cannot read {name}: {e}"))?;
        Self::of(&text, Cells::read(results)?).map_err(|e| format!("{name}: {e}"))
    }

    /// Judges numbers by the text of such a file.
    pub fn of(text: &str, cells: Cells) -> Result<Self, String> {
        let mut report = Self {
            cells,
            constants: Vec::new(),
            ours: Names::of("heapwright*"),
            texts: String::new(),
            tables: String::new(),
            figures: Vec::new(),
            failures: Vec::new(),
            broken: false,
        };
        for line in text.lines() {
            if let Some(line) = parse_line(line)? {
                report.take(line);
            }
        }
        report.sound();
        Ok(report)
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Text(text) => self.texts += &format!("{text}\n\n"),
            Line::Ours(columns) => self.ours = columns,
            Line::Let { name, cell: [section, row, column], metric } => {
                let value = self.cells.middle((&section, &row, &column), &metric);
                self.constants.extend(value.map(|value| (name, value)));
            }
            Line::Least(sections) => self.cells.keep_least(|section| sections.have(section)),
            Line::Cells { sections, metric } => {
                self.cells.split_rows(|section| sections.have(section), &metric);
            }
            Line::Figure { what, sections, over, rows, columns, ratio, bound, kind } => {
                for section in self.sections(&sections) {
                    let columns_of = |names: &Names| -> Vec<String> {
                        let all = self.cells.columns(&section).into_iter();
                        all.filter(|column| names.have(column)).map(str::to_owned).collect()
                    };
                    let others = match &ratio.other {
                        Other::Each(names) => {
                            columns_of(names).into_iter().map(Other::Column).collect()
                        }
                        other => vec![other.clone()],
                    };
                    for column in columns_of(&columns) {
                        for other in &others {
                            let named = if let Other::Column(name) = other { name } else { "" };
                            let what = what.replace("{other}", named);
                            let ratio = Ratio { other: other.clone(), ..ratio.clone() };
                            let at = (section.as_str(), column.as_str());
                            self.figure(&what, at, (over, &rows), &ratio, (&bound, kind));
                        }
                    }
                }
            }
            Line::Table { title, sections, expression, base, mean } => {
                for section in self.sections(&sections) {
                    let table = self.table(&section, &expression, &base, &mean);
                    self.add_table(&title, &section, table);
                }
            }
            Line::Worst { title, sections, column, ratio, count } => {
                for section in self.sections(&sections) {
                    let mut all = self.rows(&section, &column, &Names::of("*"), &ratio);
                    all.sort_by(|one, other| other.1.value.total_cmp(&one.1.value));
                    let row = |(row, estimate, other, _): (String, Estimate, String, Vec<f64>)| {
                        vec![row, format!("{:.2}", estimate.value), other]
                    };
                    let rows: Vec<_> = all.into_iter().take(count).map(row).collect();
                    let table = if rows.is_empty() {
                        String::new()
                    } else {
                        table(&["", &column, "to"], &rows)
                    };
                    self.add_table(&title, &section, table);
                }
            }
        }
    }

    fn sections(&self, names: &Names) -> Vec<String> {
        let all = self.cells.sections().into_iter().filter(|section| names.have(section));
        all.map(str::to_owned).collect()
    }

    fn add_table(&mut self, title: &str, section: &str, table: String) {
        if !table.is_empty() {
            self.tables += &format!("### {}\n\n{table}", title.replace("{section}", section));
        }
    }

    fn values(&self, at: At<'_>, expression: &Expression) -> Rounds {
        let constant =
            |name: &str| self.constants.iter().find(|one| one.0 == name).map(|one| one.1);
        let first = expression.names().find_map(|name| self.cells.of(at, name));
        let value = |round: &usize| {
            let of = |name: &str| self.cells.of(at, name).and_then(|all| all.get(round).copied());
            Some((*round, expression.value(&|name| of(name).or_else(|| constant(name)))?))
        };
        first.into_iter().flat_map(|rounds| rounds.keys()).filter_map(value).collect()
    }

    /// Returns the numbers or ratios of a cell, and the name of the best other column.
    fn rounds(&self, at: At<'_>, ratio: &Ratio) -> Option<(Vec<f64>, String)> {
        let ours = self.values(at, &ratio.expression);
        let others = |names: &Names| {
            let columns = self.cells.columns(at.0).into_iter();
            let all = columns.filter(|column| *column != at.2 && names.have(column));
            let all =
                all.map(|column| (column, self.values((at.0, at.1, column), &ratio.expression)));
            all.filter(|(_, rounds)| !rounds.is_empty()).collect::<Vec<_>>()
        };
        let middle = |rounds: &Rounds| median(&rounds.values().copied().collect::<Vec<_>>());
        let of_all = |names: &Names, better: fn(f64, f64) -> f64| {
            let all = others(names);
            let round = |round: &usize| {
                let each = all.iter().map(|(_, rounds)| rounds.get(round).copied());
                Some((*round, each.collect::<Option<Vec<f64>>>()?.into_iter().reduce(better)?))
            };
            ours.keys().filter_map(round).collect::<Rounds>()
        };
        let (other, name) = match &ratio.other {
            Other::Nothing => return Some((ours.into_values().collect(), String::new())),
            Other::Column(column) => {
                (self.values((at.0, at.1, column), &ratio.expression), String::new())
            }
            Other::Best(names) => {
                let best = others(names).into_iter();
                let (name, rounds) =
                    best.min_by(|one, other| middle(&one.1).total_cmp(&middle(&other.1)))?;
                (rounds, name.to_owned())
            }
            Other::Least(names) => (of_all(names, f64::min), String::new()),
            Other::Most(names) => (of_all(names, f64::max), String::new()),
            Other::Each(_) => return None,
        };
        Some((ratios(&ours, &other), name))
    }

    fn rows(
        &self,
        section: &str,
        column: &str,
        rows: &Names,
        ratio: &Ratio,
    ) -> Vec<(String, Estimate, String, Vec<f64>)> {
        let all = self.cells.rows(section).into_iter().filter(|row| rows.have(row));
        let of = |row: &str| {
            let (rounds, other) = self.rounds((section, row, column), ratio)?;
            Some((row.to_owned(), of_rounds(&rounds)?, other, rounds))
        };
        all.filter_map(of).collect()
    }

    fn figure(
        &mut self,
        what: &str,
        (section, column): (&str, &str),
        (over, names): (Over, &Names),
        ratio: &Ratio,
        (bound, kind): (&Bound, Kind),
    ) {
        let found = self.rows(section, column, names, ratio);
        let is_measured = |row: &&str| {
            let mut columns = self.cells.columns(section).into_iter();
            columns.any(|one| !self.values((section, row, one), &ratio.expression).is_empty())
        };
        let rows = self.cells.rows(section).into_iter().filter(|row| names.have(row));
        let count = rows.filter(is_measured).count();
        let what = what.replace("{section}", section).replace("{column}", column);
        let what = what.replace("{count}", &count.to_string());
        let mut add = |row: &str, value: Option<Estimate>, more: &str| {
            let what = what.replace("{row}", row);
            let mut figure = Figure::new(what, bound.asked, &bound.unit, kind, value);
            let is_behind =
                |value: Estimate| !matches!(bound.asked, Asked::AtMost(most) if value.value < most);
            if bound.strictly && figure.verdict.holds() && value.is_some_and(is_behind) {
                figure.verdict = Verdict::Missed;
            }
            figure.measured += more;
            self.broken |= bound.always && figure.verdict == Verdict::Missed;
            self.figures.push(figure);
        };
        let values = || found.iter().map(|one| one.1.value);
        let to =
            |other: &str| if other.is_empty() { String::new() } else { format!(", to {other}") };
        match over {
            Over::Each => {
                found.iter().for_each(|(row, value, other, _)| add(row, Some(*value), &to(other)));
            }
            Over::Worst => {
                let worst = found.iter().max_by(|one, other| one.1.value.total_cmp(&other.1.value));
                worst
                    .into_iter()
                    .for_each(|(row, value, other, _)| add(row, Some(*value), &to(other)));
            }
            Over::Mean => {
                // A row on which one of the two columns failed is left out.
                let programs: Vec<Vec<f64>> = found.iter().map(|one| one.3.clone()).collect();
                let part = format!(" over {} of {count}", found.len());
                let part = if found.len() < count { part.as_str() } else { "" };
                add("", estimate(&programs).filter(|_| !found.is_empty()), part);
            }
            Over::Spread => {
                let ends = values().reduce(f64::min).zip(values().reduce(f64::max));
                let spread = ends.filter(|_| found.len() > 1);
                let percent = |(least, most): (f64, f64)| (most / least - 1.0) * 100.0;
                add("", spread.map(|ends| Estimate::single(percent(ends))), "");
            }
            Over::Sum => {
                let all: Vec<f64> = found.iter().flat_map(|one| one.3.clone()).collect();
                add("", (!all.is_empty()).then(|| Estimate::single(all.iter().sum())), "");
            }
            Over::Certain => {
                let Asked::AtMost(most) = bound.asked else { return };
                let trusted = found.iter().filter(|one| one.1.is_trusted()).count();
                let beyond = found.iter().filter(|one| one.1.is_trusted() && one.1.low > most);
                let beyond: Vec<String> = beyond
                    .map(|(row, value, other, _)| {
                        format!("{row} {}{}", interval(*value), to(other))
                    })
                    .collect();
                let verdict = match (found.len(), trusted) {
                    (0, _) => Verdict::NotMeasured,
                    _ if !beyond.is_empty() => Verdict::Missed,
                    (all, trusted) if trusted < all => Verdict::TooFew,
                    _ => Verdict::Certainly,
                };
                let shown = if beyond.is_empty() {
                    String::new()
                } else {
                    format!(": {}", beyond.join("; "))
                };
                let measured = format!("{} of {trusted}{shown}", beyond.len());
                self.figures.push(Figure { what, asked: "none".to_owned(), measured, verdict });
            }
        }
    }

    fn table(&self, section: &str, expression: &Expression, base: &str, mean: &str) -> String {
        let (base, both) = base.strip_prefix('+').map_or((base, false), |base| (base, true));
        let is_empty = |row: &str, column: &str| {
            let at = (section, row, column);
            self.values(at, expression).is_empty() && self.cells.of(at, "failed").is_none()
        };
        let (mut rows, mut columns) = (self.cells.rows(section), self.cells.columns(section));
        let all = columns.clone();
        rows.retain(|row| all.iter().any(|column| !is_empty(row, column)));
        columns.retain(|column| rows.iter().any(|row| !is_empty(row, column)));
        if rows.is_empty() {
            return String::new();
        }
        let ratio = Ratio { expression: expression.clone(), other: Other::Column(base.to_owned()) };
        let to_base = |row: &str, column: &str| {
            self.rounds((section, row, column), &ratio)
                .map(|(rounds, _)| rounds)
                .unwrap_or_default()
        };
        let has_mean = base != "-" && !both && rows.len() > 1 && columns.contains(&base);
        let programs = rows.clone();
        rows.extend(has_mean.then_some(mean));
        let cell = |row: &str, column: &str| -> String {
            if row == mean {
                let all = programs.iter().map(|row| to_base(row, column));
                let mean = estimate(&all.filter(|rounds| !rounds.is_empty()).collect::<Vec<_>>());
                return mean.map_or(String::new(), |mean| format!("**{}**", number(mean.value)));
            }
            let at = (section, row, column);
            let values: Vec<f64> = self.values(at, expression).into_values().collect();
            if values.is_empty() {
                let failed = self.cells.of(at, "failed").is_some();
                return if failed { "fails" } else { "" }.to_owned();
            }
            let middle = median(&values);
            let is_count = middle.fract() == 0.0 && middle < 1e4;
            let shown = if is_count { middle.to_string() } else { number(middle) };
            match of_rounds(&to_base(row, column)).filter(|_| column != base) {
                Some(ratio) if both => format!("{shown} ({})", number(ratio.value)),
                Some(ratio) if self.ours.have(column) => interval(ratio),
                Some(ratio) => number(ratio.value),
                None => shown,
            }
        };
        matrix("", &rows, &columns, cell)
    }

    /// Adds figures of findings and failures in our runs, which must be 0, and lists failed runs.
    fn sound(&mut self) {
        for (metric, what) in [
            ("findings", "findings in sound programs"),
            ("failed", "runs that failed"),
            ("different", "runs with another output"),
        ] {
            let total = self.cells.total(metric, |cell| self.ours.have(&cell.2));
            if total > 0.0 {
                self.broken = true;
                let value = Some(Estimate::single(total));
                self.figures.push(Figure::new(what, Asked::AtMost(0.0), "", Kind::Middle, value));
            }
        }
        for (section, row, column) in self.cells.cells() {
            let times = self.cells.values((section, row, column), "failed").len();
            if times > 0 {
                self.failures.push(format!("{section}, {row}, {column}: {times} runs failed"));
            }
        }
    }

    /// Returns whether none of our runs failed and no bound is missed. In a quick run only failures
    /// and `must` figures count.
    pub fn holds(&self, quick: bool) -> bool {
        !self.broken && (quick || hold(&self.figures))
    }

    /// Returns the report as Markdown.
    pub fn text(&self) -> String {
        let failures: Cow<'_, str> = match &self.failures[..] {
            [] => "".into(),
            failures => format!("### What failed\n\n- {}\n", failures.join("\n- ")).into(),
        };
        let judged = figures(&self.figures);
        format!(
            "{}.\n\n{}### Asked and measured\n\n{judged}{}{failures}",
            machine(),
            self.texts,
            self.tables
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: &str = "s\ta\tours\t1\tm\t2\ns\ta\tours\t2\tm\t3\ns\ta\tp\t1\tm\t1\ns\ta\tp\t2\tm\t2\n\
                          s\tb\tours\t1\tm\t8\ns\tb\tp\t1\tm\t4\ns\tb\tq\t1\tm\t2\ns\tb\tq\t1\tn\t7\n";

    fn report(asked: &str, results: &str) -> Report {
        Report::of(&format!("ours ours\n{asked}"), Cells::parse(results).unwrap()).unwrap()
    }

    fn rows(asked: &str) -> Vec<[String; 4]> {
        let report = report(asked, ROUNDS);
        report.figures.iter().map(|figure| figure.cells().map(str::to_owned)).collect()
    }

    #[test]
    fn a_figure_is_of_each_row_or_of_all() {
        let of = |rows: &str, other: &str, bound: &str| {
            let line = format!(
                "figure {{row}}: {{column}} | s | {rows} | ours | m | {other} | {bound} | middle"
            );
            let found = self::rows(&line);
            found.into_iter().map(|row| row[2..].join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(of("*", "-", "<= 3"), ["2.50 (2.00 to 3.00) met", "8 **MISSED**"]);
        assert_eq!(of("a", "p", ">= 2x"), ["1.75 (1.50 to 2.00)x **MISSED**"]);
        assert_eq!(of("*", "best of !ours", "- x"), ["1.75 (1.50 to 2.00)x, to p ", "4x, to q "]);
        assert_eq!(of("b", "most of p,q", "<= 2x"), ["2x met"]);
        assert_eq!(of("b", "least of p,q", "< 4x"), ["4x **MISSED**"]);
        assert_eq!(of("worst of *", "p", "<= 2x"), ["2x met"]);
        assert_eq!(of("sum of *", "-", "<= 0"), ["13 **MISSED**"]);
        assert_eq!(of("spread of *", "-", "<= 5 %"), ["220 % **MISSED**"]);
        assert_eq!(of("mean of *", "q", "<= 2x"), ["4x over 1 of 2 **MISSED**"]);
        let each = rows("figure {column} to {other} | s | b | ours | m | each of p,q | - | middle");
        assert_eq!((&*each[0][0], &*each[1][0], &*each[1][2]), ("ours to p", "ours to q", "4"));
        assert_eq!(of("certain of *", "p", "<= 1x"), ["0 of 0 too few rounds"]);
    }

    #[test]
    fn a_table_has_numbers_of_the_base_and_ratios_of_others() {
        let table = |base: &str| {
            let report = report(&format!("table t, {{section}} | s | m * 10 | {base}"), ROUNDS);
            report.tables
        };
        let head = "### t, s\n\n|  | ours | p | q |\n|---|---:|---:|---:|\n";
        assert_eq!(
            table("ours"),
            format!(
                "{head}| a | 25 | 0.583 |  |\n| b | 80 | 0.500 | 0.250 |\n| **geomean** | **1.00** | **0.540** | **0.250** |\n\n"
            )
        );
        assert_eq!(
            table("+p"),
            format!("{head}| a | 25 (1.75) | 15 |  |\n| b | 80 (2.00) | 40 | 20 (0.500) |\n\n")
        );
    }

    #[test]
    fn cells_of_a_sweep_are_rows_and_the_least_counts() {
        let text = "1\tnew\tours\t1\t16\t5\n1\tnew\tours\t2\t16\t4\n1\tnew\tp\t1\t16\t2\n1\tnew\tp\t1\twall_ns\t9\n";
        let report = report("least *\ncells 1 | ns\nworst w | 1 | ours | ns | best of p | 9", text);
        assert!(report.tables.contains("| new 16 | 2.00 | p |\n"), "{}", report.tables);
    }

    #[test]
    fn a_failure_of_ours_breaks_even_a_quick_run_and_a_peers_is_shown() {
        let kept = |kind: &str| {
            let line = format!("figure f | s | a | ours | m | - | <= 1 | {kind}");
            report(&line, ROUNDS).holds(true)
        };
        assert!(kept("middle") && !kept("must"));
        let failed = |column: &str| format!("s\ta\t{column}\t1\tfailed\t1\n");
        assert!(!report("", &failed("ours")).holds(true));
        let peer = report("table t | s | m | -", &(failed("q") + ROUNDS));
        assert!(peer.holds(false) && peer.tables.contains("fails"));
        assert!(peer.text().ends_with("### What failed\n\n- s, a, q: 1 runs failed\n"));
    }

    #[test]
    fn constants_and_mistakes() {
        let found = rows("let x | s | b | q | n\nfigure f | s | b | p | m + x | - | - | middle");
        assert_eq!(found[0][2], "11");
        for wrong in [
            "figure a | b",
            "table t | s | m + | -",
            "figure f | s | b | p | m | - | << 3 | timed",
            "tab",
        ] {
            assert!(parse_line(wrong).is_err(), "{wrong}");
        }
    }
}
