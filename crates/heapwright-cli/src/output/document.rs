//! The document model: the contents of a report, apart from its form. A report makes one document,
//! which is rendered as text, as a page or as JSON.
//!
//! ```text
//! Document   kind, title, verdict, facts, tiles     the page's head
//!            sections                               text and page
//!            data                                   JSON: the figures, under names for programs
//! Section    id, title, count, parts                          h2, and an entry of the page's menu
//! Part       Text, Heading, List, Fields                      lines; paragraphs and lists
//!            Table, Bars                                      both; bars are drawn on screens
//!            Card, Group, Stack, Legend, Heads, Drawing       of pages only
//! Words      runs of text, each with an element or a class    <code>..</code> <span class=..
//! ```
//!
//! A text's class states its purpose: `left`, `none`, `help`. Parts of the classes `lead` and
//! `notes` are for pages only, those of the class `screen` for screens only. A drawing is markup
//! from its own template; everything else is escaped here. A page loads nothing from the network,
//! and is readable without scripts: cards are `details` and pictures are SVG.

pub(crate) use super::table::{Cell, Table, cells};
use super::{Look, WithPage, bars, json, units};
use askama::Template;
use askama::filters::HtmlSafe;
use serde::Serialize;
use std::fs::File;
use std::io;

#[derive(Default, Template)]
#[template(path = "document.html")]
pub(crate) struct Document<'a> {
    /// The subcommand that makes the report.
    pub(crate) kind: &'static str,
    /// A command line, or a file.
    pub(crate) title: String,
    /// The conclusion, and its class: `good`, `warn`, `bad` or none.
    pub(crate) verdict: Words,
    pub(crate) facts: Vec<String>,
    pub(crate) tiles: Vec<Tile>,
    /// The properties that the filter field looks at, and the noun for the cards.
    pub(crate) filter: Option<[&'static str; 2]>,
    pub(crate) sections: Vec<Section>,
    pub(crate) data: Option<Box<dyn Fn() -> String + 'a>>,
}

pub(crate) struct Tile {
    pub(crate) class: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) more: String,
}

#[derive(Default)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    /// The title. If it is empty, the section has no entry in the menu.
    pub(crate) title: &'static str,
    pub(crate) count: Option<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) only: Only,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Only {
    #[default]
    Everywhere,
    Page,
    Screen,
}

#[derive(Template)]
#[template(path = "part.html")]
pub(crate) enum Part {
    Text(Words),
    Heading(Words),
    List(&'static str, Vec<Words>),
    /// Labels and their texts. For a screen: the indentation, and the labels' width. With width 0,
    /// labels are not padded, and end in a colon.
    Fields(&'static str, usize, Vec<(String, String)>),
    /// The widths of names and figures, the gap between them, and the lines of the chart.
    Bars([usize; 2], &'static str, Vec<Bar>),
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

pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) figure: String,
    pub(crate) percent: String,
    /// The share of the full width.
    pub(crate) share: f64,
}

impl Bar {
    pub(crate) fn of(name: impl Into<String>, figure: String, part: u64, whole: u64) -> Self {
        let (percent, share) = (units::percent(part, whole), units::share(part, whole));
        Self { name: name.into(), figure, percent, share }
    }
}

#[derive(Default)]
pub(crate) struct Card {
    pub(crate) class: String,
    /// The value by which cards are filtered.
    pub(crate) fate: &'static str,
    pub(crate) open: bool,
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

    /// Makes a blank line on a screen.
    pub(crate) fn gap() -> Self {
        Self::text_of("screen", "")
    }

    /// Makes a heading for a screen, where a page has the section's title.
    pub(crate) fn screen_heading(text: impl Into<String>) -> Self {
        Self::Heading(Words::of("screen", text))
    }

    pub(crate) fn notes<'n>(notes: impl IntoIterator<Item = &'n String>) -> Option<Self> {
        let notes: Vec<Words> = notes.into_iter().map(|note| note.as_str().into()).collect();
        (!notes.is_empty()).then_some(Self::List("notes", notes))
    }

    /// Makes fields; `width` is the labels' width on a screen.
    pub(crate) fn fields(
        indent: &'static str,
        width: usize,
        fields: Vec<(&'static str, String)>,
    ) -> Self {
        Self::Fields(
            indent,
            width,
            fields.into_iter().map(|(label, text)| (label.into(), text)).collect(),
        )
    }

    fn is_on_page(&self) -> bool {
        !matches!(self, Self::Text(words) | Self::Heading(words) if words.class == "screen")
    }

    fn lines(&self, look: Look) -> String {
        match self {
            Self::Text(words) if words.class != "lead" => words.text() + "\n",
            Self::List("notes", _) => String::new(),
            Self::Heading(words) => format!("\n{}\n", look.strong(&words.text())),
            Self::List(_, items) => {
                items.iter().map(|item| format!("  {}\n", item.text())).collect()
            }
            Self::Fields(indent, width, fields) => {
                let colon = if *width == 0 { ":" } else { "" };
                let line = |(label, text): &(String, String)| {
                    format!("{indent}{label:<width$}{colon} {text}\n")
                };
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

impl<'a> Document<'a> {
    pub(crate) fn plain<T: Serialize>(parts: Vec<Part>, data: impl Fn() -> T + 'a) -> Self {
        let mut document = Self::default().with(data);
        document.add("", "", parts);
        document
    }

    pub(crate) fn written<T: Serialize>(mut text: String, data: impl Fn() -> T + 'a) -> Self {
        // A part ends its last line itself.
        text.truncate(text.strip_suffix('\n').unwrap_or(&text).len());
        Self::plain(vec![Part::text_of("", text)], data)
    }

    pub(crate) fn with<T: Serialize>(self, data: impl Fn() -> T + 'a) -> Self {
        Self { data: Some(Box::new(move || json::formatted(data()))), ..self }
    }

    pub(crate) fn rendered(
        &self,
        format: impl Into<WithPage>,
        look: Look,
    ) -> anyhow::Result<String> {
        Ok(match format.into() {
            WithPage::Text => self.text(look),
            WithPage::Json => self.data.as_ref().map(|data| data()).unwrap_or_default(),
            WithPage::Html => self.render()?,
        })
    }

    pub(crate) fn write(
        &self,
        format: impl Into<WithPage>,
        file: Option<File>,
    ) -> anyhow::Result<()> {
        let look = file.as_ref().map_or_else(|| Look::of(&io::stdout()), Look::of);
        Ok(super::write(file, &self.rendered(format, look)?)?)
    }

    /// Returns the sections' text on a screen.
    pub(crate) fn text(&self, look: Look) -> String {
        let sections = self.sections.iter().filter(|section| section.only != Only::Page);
        let lines = sections.flat_map(|section| &section.parts).map(|part| part.lines(look));
        lines.collect::<String>().trim_start_matches('\n').to_owned()
    }

    fn on_page(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| section.only != Only::Screen)
    }

    /// Adds a section if it has any parts.
    pub(crate) fn add(&mut self, id: &'static str, title: &'static str, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.sections.push(Section { id, title, parts, ..Section::default() });
        }
    }

    pub(crate) fn add_to_page(&mut self, id: &'static str, title: &'static str, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.sections.push(Section { id, title, parts, count: None, only: Only::Page });
        }
    }

    pub(crate) fn add_to_screen(&mut self, parts: Vec<Part>) {
        self.sections.push(Section { parts, only: Only::Screen, ..Section::default() });
    }
}

/// Returns a remark on things that are left out of a page, if there are more than fit.
pub(crate) fn left(all: usize, most: usize, thing: &str) -> Option<Part> {
    left_out(all, most, thing).map(|text| Part::text_of("left", text))
}

/// Returns `12 more errors are left out of this page. The JSON has them all.`
pub(super) fn left_out(all: usize, most: usize, thing: &str) -> Option<String> {
    let left = all.checked_sub(most).filter(|left| *left != 0)?;
    let (left, are) = (
        units::counted(left as u64, &format!("more {thing}")),
        if left == 1 { "is" } else { "are" },
    );
    Some(format!("{left} {are} left out of this page. The JSON has them all."))
}
