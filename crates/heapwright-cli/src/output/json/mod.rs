//! For machines: one module for each thing that is reported.
//!
//! Every object begins with `"format": 1`. A field may be added under the same
//! number; one that changes its meaning raises it. The race's, which other
//! programs read, begins with the name of its format instead.

pub(crate) mod bench;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod explain_record;
pub(crate) mod heap;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;
pub(crate) mod tune;

/// The value of every object's `format`.
const FORMAT: u32 = 1;

/// Pretty JSON with a newline behind it.
fn text(value: &impl serde::Serialize) -> String {
    // Serialising plain structs into memory does not fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
