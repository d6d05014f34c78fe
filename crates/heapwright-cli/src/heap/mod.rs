//! From a heap dump to its summary: a collected heap's objects, and the references that hold them.
//!
//! ```text
//! file --input--> entries --gather--> Graph, pages, types
//!                                       |--dominators--> retained sizes
//!                                       `--paths-------> shortest paths from roots
//!                          all of it --summary--> Summary --> output (text, JSON, HTML)
//! ```
//!
//! The file is read twice: first for the objects, then for the references, so that each reference
//! is stored as a 32-bit number at once. Objects stay in the order of the file: in our dumps, by
//! address. Arrays hold 16 bytes for each object and 4 for each reference. The dominators take some
//! 40 and 4 more. Nothing recurses: a list of ten million objects is one path. If a dump is cut or
//! damaged, the summary has its readable part, and a note says so.
//!
//! `timeline` reads another file, which lists the collections of a heap in order.

mod dominators;
mod gather;
mod graph;
mod input;
mod pages;
mod paths;
mod summary;
pub(crate) mod timeline;

pub(crate) use pages::{PageRow, SEGMENTS};
pub(crate) use summary::{Asked, Line, OfType, Path, Retainer, RootLine, Summary, Wanted, make};
#[cfg(test)]
pub(crate) use summary::{TypeRow, Unreachable};
