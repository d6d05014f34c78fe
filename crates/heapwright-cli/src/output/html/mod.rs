//! Pages for people: each is one complete file that uses no network. The templates (askama) escape
//! all contents.
//!
//! ```text
//! report    a report: its findings, flame graph, charts and tables
//! profile   a report of heap profiles alone
//! bench     a race: the contents of its page, and the places of its dots
//! pages     the pages of a heap dump
//! flame, chart, classes, scale     pictures of reports; a logarithmic axis
//! ../../../templates/   their markup and style
//! ```

pub(crate) mod bench;
mod chart;
mod classes;
mod flame;
pub(crate) mod pages;
mod profile;
pub(crate) mod report;
mod scale;

pub(crate) use report::left;
