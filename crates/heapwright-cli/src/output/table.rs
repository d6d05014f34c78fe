//! Tables, defined once for a screen and a page.
//!
//! ```text
//! Table::new("allocator|>time:9|%fill share")      titles of columns, with their kinds in front:
//!               words     numbers  a bar, of class `fill`; `*` long names; `:9` the least width
//! text      one blank between columns, two before words; no bars
//! render    <table> in a box that scrolls: templates/table.html
//! ```
//!
//! On a screen a column is as wide as its widest cell. A row without cells is a line across.

use super::document::left_out;
use super::{Look, units};
use askama::Template;
use askama::filters::HtmlSafe;

/// The most letters of a name on a screen.
const NAME: usize = 40;

#[derive(Template)]
#[template(path = "table.html")]
pub(crate) struct Table {
    caption: String,
    class: &'static str,
    /// The blanks before each row on a screen.
    indent: usize,
    columns: Vec<Column>,
    rows: Vec<(&'static str, Vec<Cell>)>,
    /// The noun for a row, and the most rows on a screen and on a page.
    thing: &'static str,
    most: [usize; 2],
}

impl HtmlSafe for Table {}

struct Column {
    title: String,
    /// The class on a page: `n` for numbers, `wide` for long names, another class for bars.
    class: String,
    is_bar: bool,
    least: usize,
}

/// The contents of one row in one column.
pub(crate) enum Cell {
    Text(String),
    Code(String),
    /// A bar of this class. Each part has a class, a width in CSS, and a description.
    Bar(&'static str, Vec<(&'static str, String, String)>),
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl Cell {
    /// Makes a bar of one part of a whole.
    pub(crate) fn share(class: &'static str, part: u64, whole: u64) -> Self {
        Self::Bar(class, vec![("", units::css(part, whole), String::new())])
    }

    /// Makes a bar of parts, each with a class and a description. Empty parts are left out.
    pub(crate) fn shares(
        class: &'static str,
        whole: u64,
        parts: impl IntoIterator<Item = (&'static str, u64, String)>,
    ) -> Self {
        let part = |(kind, bytes, what): (_, u64, String)| {
            let share = units::percent(bytes, whole);
            (kind, units::css(bytes, whole), format!("{what}: {} ({share})", units::bytes(bytes)))
        };
        let parts = parts.into_iter().map(part);
        Self::Bar(class, parts.filter(|(_, width, _)| width != "0.000%").collect())
    }
}

macro_rules! cells {
    ($($cell:expr),* $(,)?) => {
        vec![$($crate::output::table::Cell::from($cell)),*]
    };
}
pub(crate) use cells;

impl Column {
    fn new(spec: &str) -> Self {
        let (spec, least) = spec.rsplit_once(':').unwrap_or((spec, "0"));
        let (class, title) = match spec.split_at_checked(1) {
            Some((">", title)) => ("n", title),
            Some(("*", title)) => ("wide", title),
            Some(("%", bar)) => bar.split_once(' ').unwrap_or_default(),
            _ => ("", spec),
        };
        Self {
            title: title.to_owned(),
            class: class.to_owned(),
            is_bar: spec.starts_with('%'),
            least: least.parse().unwrap_or_default(),
        }
    }
}

impl Table {
    pub(crate) fn new(columns: &str) -> Self {
        let columns = columns.split('|').map(Column::new).collect();
        let (caption, rows, most) = (String::new(), Vec::new(), [usize::MAX; 2]);
        Self { caption, class: "", indent: 0, columns, rows, thing: "", most }
    }

    pub(crate) fn titled(self, caption: &str, class: &'static str) -> Self {
        Self { caption: caption.to_owned(), class, ..self }
    }

    pub(crate) fn indented(self) -> Self {
        Self { indent: 2, ..self }
    }

    /// Limits the rows. A line then says how many more there are.
    pub(crate) fn limited(self, thing: &'static str, screen: usize, page: usize) -> Self {
        Self { thing, most: [screen, page], ..self }
    }

    fn on_page(&self) -> &[(&'static str, Vec<Cell>)] {
        &self.rows[..self.rows.len().min(self.most[1])]
    }

    fn left_out(&self) -> Option<String> {
        left_out(self.rows.len(), self.most[1], self.thing)
    }

    /// The last cell spans the columns without a cell.
    pub(crate) fn row(&mut self, class: &'static str, cells: Vec<Cell>) {
        self.rows.push((class, cells));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn text(&self, look: Look) -> String {
        let texts = |cells: &[Cell]| {
            cells.iter().enumerate().map(|(at, cell)| self.shown(at, cell)).collect::<Vec<_>>()
        };
        let shown = self.rows.iter().take(self.most[0]);
        let rows: Vec<Vec<String>> = shown.map(|(_, cells)| texts(cells)).collect();
        let all = self.columns.len();
        let width = |(at, column): (usize, &Column)| {
            // A cell that spans other columns does not widen its own.
            let fit = rows.iter().filter(|row| at + 1 < row.len() || row.len() == all);
            let longest = fit.map(|row| row[at].chars().count()).max().unwrap_or(0);
            longest.max(column.title.chars().count()).max(column.least)
        };
        let widths: Vec<usize> = self.columns.iter().enumerate().map(width).collect();
        let titles: Vec<_> = self.columns.iter().map(|column| column.title.clone()).collect();
        let titles = self.line(&titles, &widths);
        let mut out = String::new();
        for heading in [&self.caption, &titles].into_iter().filter(|heading| !heading.is_empty()) {
            out += &(look.strong(heading) + "\n");
        }
        for row in &rows {
            out += &match row.is_empty() {
                true => "-".repeat(titles.chars().count()),
                false => self.line(row, &widths),
            };
            out.push('\n');
        }
        if let Some(more @ 1..) = self.rows.len().checked_sub(self.most[0]) {
            let more = units::counted(more as u64, &format!("more {}", self.thing));
            out += &format!("  and {more} (--top 0 shows all)\n");
        }
        out
    }

    fn shown(&self, at: usize, cell: &Cell) -> String {
        let text = match cell {
            Cell::Text(text) => text.clone(),
            Cell::Code(name) => clipped(name),
            Cell::Bar(..) => String::new(),
        };
        if at == 0 { " ".repeat(self.indent) + &text } else { text }
    }

    fn line(&self, texts: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        let shown = self.columns.iter().zip(widths).zip(texts);
        for (at, ((column, width), text)) in shown.enumerate() {
            let is_words = at + 1 == texts.len() && texts.len() < widths.len();
            line += &match &*column.class {
                _ if is_words => format!(" {text}"),
                _ if column.is_bar => continue,
                "n" if at > 0 => format!(" {text:>width$}"),
                "n" => format!("{text:>width$}"),
                _ if at > 0 => format!("  {text:<width$}"),
                _ => format!("{text:<width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Cuts a name to [`NAME`] letters.
pub(super) fn clipped(name: &str) -> String {
    units::clipped(name, NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table = Table::new("name:6|%fill share|>bytes:9|of <what>").titled("A & B", "wide");
        let bar = Cell::Bar("use", vec![("asked", "5%".to_owned(), "\"5\"".to_owned())]);
        table.row("ours", cells![Cell::Code("a<b>".to_owned()), bar, "12", "x"]);
        table.row("", cells!["longer-name", "crashed"]);
        table
    }

    #[test]
    fn a_screen_has_aligned_columns_without_bars() {
        let expected = "\
A & B
name            bytes  of <what>
a<b>               12  x
longer-name crashed
";
        assert_eq!(example().text(Look::PLAIN), expected);
        let indented = "\n  a<b>               12  x\n  longer-name crashed\n";
        assert!(example().indented().text(Look::PLAIN).ends_with(indented));
        assert_eq!(
            (example().is_empty(), clipped(&"N".repeat(41))),
            (false, "N".repeat(37) + "...")
        );
    }

    #[test]
    fn a_page_has_bars_and_nothing_breaks_out_of_a_cell() {
        let page = example().render().expect("is rendered");
        for part in [
            "<table class=\"wide\">\n<caption>A &#38; B</caption>",
            "<th scope=\"col\" class=\"n\">bytes</th><th scope=\"col\">of &#60;what&#62;</th>",
            "<tr class=\"ours\"><td><code>a&#60;b&#62;</code></td>",
            "<td class=\"fill\"><div class=\"use\"><i class=\"asked\" style=\"width:5%\" \
             title=\"&#34;5&#34;\"></i></div></td><td class=\"n\">12</td>",
            "<tr><td>longer-name</td><td class=\"words\" colspan=\"3\">crashed</td></tr>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
