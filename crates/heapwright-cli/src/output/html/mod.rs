//! Pages for people: each one file, complete in itself, that asks nothing of
//! any network. What they are made of is escaped by the templates (askama).
//!
//! ```text
//! report    a report: its findings, flame graph, charts and tables
//! profile   a report of heap profiles alone
//! bench     a race: what its page says, and where its dots go
//! pages     the pages of a heap dump
//! flame, chart, classes, scale     pictures of reports; a logarithmic axis
//! ../../../templates/   how they look
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
