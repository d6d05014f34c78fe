//! The document model: the contents of a report, apart from its form.
//!
//! ```text
//! Document   kind, title, verdict, facts, tiles, sections     text: the sections; page: all of it
//! Section    id, title, count, parts                          h2, and an entry of the page's menu
//! Part       Text, Heading, List, Fields                      lines; paragraphs and lists
//!            Table, Bars                                      both; bars are drawn on screens
//!            Card, Group, Stack, Legend, Heads, Drawing       of pages only
//! Words      runs of text, each with an element or a class    <code>..</code> <span class=..
//! ```
//!
//! A text's class states its purpose: `lead`, `left`, `none`, `help`. A drawing is markup from its
//! own template; everything else is escaped here. A page forbids itself the use of a network. It is
//! readable without scripts: cards are `details` and pictures are SVG.

pub(crate) use super::table::{Cell, Table, cells};
use super::{Look, bars};
use askama::Template;
use askama::filters::HtmlSafe;

/// A report on one subject.
#[derive(Default, Template)]
#[template(path = "document.html")]
pub(crate) struct Document {
    /// The subcommand that makes the report.
    pub(crate) kind: &'static str,
    /// A command line, or a file.
    pub(crate) title: String,
    /// The conclusion, and its class: `good`, `warn`, `bad` or none.
    pub(crate) verdict: Words,
    pub(crate) facts: Vec<String>,
    pub(crate) tiles: Vec<Tile>,
    /// The filter's properties, and the noun for the cards. Such a page has scripts.
    pub(crate) filter: Option<[&'static str; 2]>,
    pub(crate) sections: Vec<Section>,
}

/// A figure at the head of a page.
pub(crate) struct Tile {
    pub(crate) class: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) more: String,
}

/// A part of a document with a title.
#[derive(Default)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    /// The title. If it is empty, the section has no entry in the menu.
    pub(crate) title: &'static str,
    pub(crate) count: Option<String>,
    pub(crate) parts: Vec<Part>,
}

/// A piece of a document.
#[derive(Template)]
#[template(path = "part.html")]
pub(crate) enum Part {
    Text(Words),
    Heading(Words),
    List(&'static str, Vec<Words>),
    /// Labels and their texts; for a screen, the indentation and the width of the labels.
    Fields(&'static str, usize, Vec<(String, String)>),
    /// The widths of names and figures, the gap between them, and the lines of the chart.
    Bars([usize; 2], &'static str, Vec<Bar>),
    /// The meanings of the colours of a table's bars.
    Legend(Vec<Words>),
    Table(Table),
    Card(Card),
    /// Parts in a box of this class and with this id.
    Group(String, &'static str, Vec<Part>),
    Stack(super::stack::Stack),
    /// Titles of the columns in the summaries of cards.
    Heads(&'static str, Vec<&'static str>),
    Drawing(String),
}

impl HtmlSafe for Part {}

/// A line of a bar chart.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) figure: String,
    pub(crate) percent: String,
    /// The share of the full width.
    pub(crate) share: f64,
}

/// A summary in columns that opens to more.
#[derive(Default)]
pub(crate) struct Card {
    pub(crate) class: String,
    /// The value by which a reader can filter cards.
    pub(crate) fate: &'static str,
    pub(crate) open: bool,
    /// The class of the summary.
    pub(crate) row: &'static str,
    pub(crate) drawing: String,
    pub(crate) summary: Vec<Words>,
    pub(crate) body: Vec<Part>,
}

/// Runs of text, each with its element or class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Template)]
#[template(
    source = "{% for (kind, text) in spans %}{% if kind.is_empty() %}{{ text }}\
              {% else if *kind == \"width\" %}<i style=\"width:{{ text }}\"></i>\
              {% else if Self::TAGS.contains(kind) %}<{{ kind }}>{{ text }}</{{ kind }}>\
              {% else %}<span class=\"{{ kind }}\">{{ text }}</span>{% endif %}{% endfor %}",
    ext = "html"
)]
pub(crate) struct Words {
    pub(crate) class: &'static str,
    spans: Vec<(&'static str, String)>,
}

impl HtmlSafe for Words {}

impl Words {
    const TAGS: [&'static str; 4] = ["b", "code", "em", "small"];

    pub(crate) fn of(class: &'static str, text: impl Into<String>) -> Self {
        Self { class, ..Self::default() }.and("", text)
    }

    /// Adds text, in an element or of a class. Empty text adds nothing.
    pub(crate) fn and(mut self, kind: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.spans.push((kind, text));
        }
        self
    }

    /// Returns the text without its elements and classes.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }
}

impl<T: Into<String>> From<T> for Words {
    fn from(text: T) -> Self {
        Self::of("", text)
    }
}

impl Part {
    /// Makes a paragraph of a class.
    pub(crate) fn text_of(class: &'static str, text: impl Into<String>) -> Self {
        Self::Text(Words::of(class, text))
    }

    /// Makes a heading, with a blank line before it on a screen.
    pub(crate) fn heading(text: impl Into<String>) -> Self {
        Self::Heading(Words::of("", text))
    }

    pub(crate) fn listed(lines: impl IntoIterator<Item = String>) -> Self {
        Self::List("listed", lines.into_iter().map(Words::from).collect())
    }

    /// Returns the part's lines on a screen.
    fn lines(&self, look: Look) -> String {
        match self {
            Self::Text(words) if words.class != "lead" => words.text() + "\n",
            Self::Heading(words) => format!("\n{}\n", look.strong(&words.text())),
            Self::List(_, items) => {
                items.iter().map(|item| format!("  {}\n", item.text())).collect()
            }
            Self::Fields(indent, width, fields) => {
                let line =
                    |(label, text): &(String, String)| format!("{indent}{label:<width$} {text}\n");
                fields.iter().map(line).collect()
            }
            Self::Bars([names, figures], gap, bars) => {
                let line = |Bar { name, figure, percent, share }: &Bar| {
                    let bar = bars::bar(*share, look);
                    let line =
                        format!("  {name:<names$} {figure:>figures$}{gap}{percent:>7}{gap}{bar}");
                    line.trim_end().to_owned() + "\n"
                };
                bars.iter().map(line).collect()
            }
            Self::Table(table) => format!("\n{}", table.text(look)),
            _ => String::new(),
        }
    }
}

impl Document {
    pub(crate) fn page(&self) -> anyhow::Result<String> {
        Ok(self.render()?)
    }

    /// Returns the sections' text on a screen.
    pub(crate) fn text(&self, look: Look) -> String {
        let parts = self.sections.iter().flat_map(|section| &section.parts);
        on_screen(parts, look)
    }

    /// Adds a section if it has any parts.
    pub(crate) fn add(&mut self, id: &'static str, title: &'static str, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.sections.push(Section { id, title, count: None, parts });
        }
    }
}

/// Returns parts in the form for a screen, one below the other.
pub(crate) fn on_screen<'p>(parts: impl IntoIterator<Item = &'p Part>, look: Look) -> String {
    let lines: String = parts.into_iter().map(|part| part.lines(look)).collect();
    lines.trim_start_matches('\n').to_owned()
}
