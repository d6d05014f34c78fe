//! For machines: one module for each thing that is reported.
//!
//! Every object begins with `"format": 1`. A field may be added under the same
//! number; a field that changes its meaning raises it. Results of a race and a replay, which other
//! programs read, begin with the name of their format instead (`bench::results`).
//!
//! Objects are written down where they are made, with [`object!`]: each field once.
#![allow(non_camel_case_types, reason = "a field's type has the field's name in `object`")]

pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod heap;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;

use serde::Serialize;
use std::io;

/// A JSON object: names and values, in the order in which they are written.
macro_rules! object {
    ($($(#[$attribute:meta])* $name:ident: $value:expr),* $(,)?) => {{
        #[derive(serde::Serialize)]
        struct Object<$($name),*> { $($(#[$attribute])* $name: $name),* }
        Object { $($name: $value),* }
    }};
}
use object;

/// What every object begins with, and the rest of it.
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

/// Writes pretty JSON with a newline behind it, which begins with the number of the format.
fn write(out: &mut dyn io::Write, object: impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Formatted::of(object))?;
    out.write_all(b"\n")
}

/// The same, as text.
fn formatted(object: impl Serialize) -> String {
    text(&Formatted::of(object))
}

/// Pretty JSON with a newline behind it.
pub(crate) fn text(value: &impl Serialize) -> String {
    // Serialising plain structs into memory does not fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// All of a list's objects.
fn list<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().collect()
}
