//! From a heap dump to its summary: a collected heap's objects, and the references that hold them.
//!
//! ```text
//! file --input--> entries --gather--> Graph, pages, types
//!                                       |--dominators--> retained sizes
//!                                       `--paths-------> shortest paths from roots
//!                          all of it --summary--> Summary --> output (text, JSON, HTML)
//! ```
//!
//! The file is read twice, first for the objects, then for their references, so that a reference is
//! a 32-bit number from the start. Objects stay in the order of the file, which in our dumps is
//! address order. Arrays hold 12 bytes for each object and 4 for each reference; the dominators
//! temporarily take some 40 and 4 more. Nothing recurses: a list of ten million objects is one
//! path. If a dump is cut or damaged, the summary has its readable part, and a note says so.
//!
//! `timeline` reads another file of a collected heap, which lists its collections in order.

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
