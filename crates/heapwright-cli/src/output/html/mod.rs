//! Pages for people: each one file, complete in itself, that asks nothing of
//! any network. What they are made of is escaped by the templates (askama).
//!
//! ```text
//! bench     a race: what its page says, and where its dots go
//! heap/     a heap dump: its pages as a picture, its tables, what retains most
//! report/   a report: its findings, flame graph, charts and tables
//! scale     values to places on a logarithmic axis
//! ../../../templates/   the pages themselves
//! ```

pub(crate) mod bench;
pub(crate) mod heap;
pub(crate) mod report;
mod scale;

/// A figure at the head of a page.
struct Tile {
    class: &'static str,
    label: &'static str,
    value: String,
    more: String,
}
