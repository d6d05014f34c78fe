//! JSON for programs: the figures of documents, under the names in `docs/book/reference/json.md`.
//!
//! Every object begins with `"format": 1`. A new field keeps the number; a new meaning of a field
//! raises it. Results of a race and of a replay begin with the name of their format
//! (`bench::results`).
//!
//! [`object!`] declares an object in the expression that makes it, so each field is written once.

pub(super) mod report;

use heapwright_record::{SIZE_BUCKETS, Stats, is_hidden};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use std::io;

/// A JSON object: names and values, in the order of the output. A name without a value is a field
/// of the value before the arrow: `object! { class => slot, live, of: class.buckets }`.
macro_rules! object {
    ($of:ident => $($(#[$attribute:meta])* $name:ident $(: $value:expr)?),* $(,)?) => {
        $crate::output::json::object! {
            $($(#[$attribute])* $name: $crate::output::json::object!(@ $of.$name $(, $value)?)),*
        }
    };
    (@ $field:expr) => { &$field };
    (@ $field:expr, $value:expr) => { $value };
    ($($(#[$attribute:meta])* $name:ident: $value:expr),* $(,)?) => {{
        #[derive(serde::Serialize)]
        struct Object<$($name),*> { $($(#[$attribute])* $name: $name),* }
        Object { $($name: $value),* }
    }};
}
pub(super) use object;

/// The format's number, and the object's own fields after it.
#[derive(Serialize)]
pub(super) struct Formatted<T> {
    format: u32,
    #[serde(flatten)]
    object: T,
}

impl<T> Formatted<T> {
    pub(super) fn of(object: T) -> Self {
        Self { format: 1, object }
    }
}

pub(super) fn formatted(object: impl Serialize) -> String {
    text(&Formatted::of(object))
}

pub(super) fn text(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    // Serialising plain structs into memory cannot fail.
    let _ = write_value(&mut out, value, PrettyFormatter::new());
    String::from_utf8(out).unwrap_or_default() + "\n"
}

pub(super) fn list<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().collect()
}

/// Returns an address as text, because a JSON number cannot hold every address.
pub(super) fn address(value: u64) -> String {
    format!("{value:#x}")
}

/// A process's figures. A new field of the struct appears in the JSON, under its name.
pub(super) struct Figures<'a>(pub(super) &'a Stats);

impl Serialize for Figures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.fields() {
            map.serialize_entry(name, &value)?;
        }
        let name = self.0.name();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        map.serialize_entry("name", &String::from_utf8_lossy(name))?;
        // The largest size in a row; null in the last row, for all greater sizes.
        let up_to = |bucket| (bucket + 1 < SIZE_BUCKETS).then(|| 1_u64 << bucket);
        let sizes = self.0.sizes.iter().enumerate().filter(|(_, count)| **count != 0);
        let sizes = sizes.map(|(bucket, count)| object! { up_to: up_to(bucket), count: count });
        map.serialize_entry("sizes", &list(sizes))?;
        map.end()
    }
}

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
