//! JSON for machines: one module for each kind of report.
//!
//! Every object begins with `"format": 1`. A new field keeps the number; a new meaning of a field
//! raises it. Results of a race and of a replay, which other programs read, begin with the name of
//! their format instead (`bench::results`).
//!
//! [`object!`] declares an object in the expression that makes it, so each field is written once.
#![allow(non_camel_case_types, reason = "a field's type has the field's name in `object`")]

pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod heap;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;

use heapwright_record::is_hidden;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use std::io;

/// A JSON object: names and values, in the order of the output.
macro_rules! object {
    ($($(#[$attribute:meta])* $name:ident: $value:expr),* $(,)?) => {{
        #[derive(serde::Serialize)]
        struct Object<$($name),*> { $($(#[$attribute])* $name: $name),* }
        Object { $($name: $value),* }
    }};
}
use object;

/// The first field of every object, and the rest.
#[derive(Serialize)]
struct Formatted<T> {
    format: u32,
    #[serde(flatten)]
    object: T,
}

impl<T> Formatted<T> {
    fn of(object: T) -> Self {
        Self { format: 1, object }
    }
}

/// Writes an object with the format's number in front, as pretty JSON with a newline at the end.
fn write(out: &mut dyn io::Write, object: impl Serialize) -> io::Result<()> {
    write_value(out, &Formatted::of(object), PrettyFormatter::new())?;
    out.write_all(b"\n")
}

/// Returns an object with the format's number in front, as text.
fn formatted(object: impl Serialize) -> String {
    text(&Formatted::of(object))
}

/// Returns pretty JSON with a newline at the end.
pub(crate) fn text(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    // Serialising plain structs into memory cannot fail.
    let _ = write_value(&mut out, value, PrettyFormatter::new());
    String::from_utf8(out).unwrap_or_default() + "\n"
}

/// Returns the objects of a list.
fn list<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().collect()
}

/// Writes compact JSON.
pub(super) fn write_compact(out: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    write_value(out, value, CompactFormatter)
}

fn write_value(
    out: &mut dyn io::Write,
    value: &impl Serialize,
    layout: impl Formatter,
) -> io::Result<()> {
    let mut writer = serde_json::Serializer::with_formatter(out, Visible(layout));
    value.serialize(&mut writer).map_err(io::Error::from)
}

/// A layout that escapes characters that a screen does not show.
struct Visible<F>(F);

/// Passes calls on to the layout.
macro_rules! passed_on {
    ($($name:ident($($flag:ident)?)),* $(,)?) => {
        $(fn $name<W>(&mut self, out: &mut W $(, $flag: bool)?) -> io::Result<()>
        where
            W: ?Sized + io::Write,
        {
            self.0.$name(out $(, $flag)?)
        })*
    };
}

impl<F: Formatter> Formatter for Visible<F> {
    passed_on! {
        begin_array(), end_array(), begin_array_value(first), end_array_value(),
        begin_object(), end_object(), begin_object_key(first), end_object_key(),
        begin_object_value(), end_object_value(),
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut from = 0;
        for (at, letter) in text.char_indices().filter(|&(_, letter)| is_hidden(letter)) {
            out.write_all(&text.as_bytes()[from..at])?;
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            from = at + letter.len_utf8();
        }
        out.write_all(&text.as_bytes()[from..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_not_shown_are_escaped_and_read_back() {
        let name = "gnp.\u{202e}exe \u{9b}\u{e0001} é\n";
        let mut compact = Vec::new();
        write_compact(&mut compact, &[name]).expect("memory");
        assert_eq!(
            String::from_utf8(compact).expect("text"),
            r#"["gnp.\u202eexe \u009b\udb40\udc01 é\n"]"#
        );
        let pretty = text(&[name]);
        assert!(pretty.starts_with("[\n  \"gnp."));
        assert_eq!(serde_json::from_str::<Vec<String>>(&pretty).expect("JSON"), [name]);
    }
}
