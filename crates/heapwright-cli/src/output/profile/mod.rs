//! Memory held at the end, for tools that read profiles of memory.
//!
//! ```text
//! folded      outer;inner bytes: for flame graph tools
//! flamegraph  the folded stacks as a picture (SVG)
//! pprof       profile.proto, for pprof and readers of its files
//! dhat        JSON for the viewer of valgrind's DHAT
//! ```
//!
//! All formats contain the same data: [`super::held`]. The fate of blocks (definitely lost, still
//! reachable, ...) is the outermost level. Errors are not in these formats, but in text, JSON,
//! HTML, SARIF and JUnit.

pub(crate) mod dhat;
pub(crate) mod flamegraph;
pub(crate) mod folded;
pub(crate) mod pprof;
mod proto;

#[cfg(test)]
pub(super) use pprof::fields as pprof_fields;
