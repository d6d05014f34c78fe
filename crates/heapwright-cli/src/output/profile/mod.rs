//! What is held at the end, for the tools that read profiles of memory.
//!
//! ```text
//! folded      outer;inner bytes: what flame graph tools read
//! flamegraph  that as a picture (SVG)
//! pprof       profile.proto, for pprof and what reads its files
//! dhat        JSON for the viewer of valgrind's DHAT
//! ```
//!
//! All of them contain the same: [`super::held`]. What became of blocks (definitely lost,
//! still reachable, ...) is the outermost thing they are divided by. None of them knows
//! of errors: for those there are text, JSON, HTML, SARIF and JUnit.

pub(crate) mod dhat;
pub(crate) mod flamegraph;
pub(crate) mod folded;
pub(crate) mod pprof;
mod proto;

#[cfg(test)]
pub(super) use pprof::fields as pprof_fields;
