//! From a heap dump to a summary of it: what a collected heap holds, and what holds that.
//!
//! ```text
//! file --input--> entries --gather--> Graph, pages, types
//!                                       |--dominators--> what goes with what
//!                                       `--paths-------> how a root leads there
//!                          all of it --summary--> Summary --> output (text, JSON, HTML)
//! ```
//!
//! The file is read twice: once for the objects, once for what they refer to, so that a
//! reference is a number of 32 bits as soon as it is met. Objects stay in the order of the
//! file, which is that of their addresses in dumps of the collector's; everything that is
//! kept of one is in arrays, 12 bytes and 4 a reference. Working out the dominators takes
//! some 40 more an object and 4 a reference, which are given back. Nothing recurses: a
//! list of ten million objects is one path.
//!
//! `timeline` reads the other file of a collected heap: its collections, one after the other.
//!
//! A dump that is cut or damaged is summarised as far as it goes, and says so in its notes.

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
