//! Held or allocated memory, for tools that read profiles of memory.
//!
//! ```text
//! folded      outer;inner bytes: for flame graph tools
//! flamegraph  the folded stacks as a picture (SVG)
//! pprof       profile.proto, for pprof and readers of its files
//! dhat        JSON for the viewer of valgrind's DHAT
//! ```
//!
//! All formats have the data of [`crate::report::held`]. The fate of blocks is a level of the
//! stacks, or in pprof a label. Errors are only in the other formats of reports.

pub(crate) mod dhat;
pub(crate) mod flamegraph;
pub(crate) mod folded;
pub(crate) mod pprof;
mod proto;

use std::collections::HashMap;
use std::hash::Hash;

/// Values with numbers, in the order of their first appearance.
#[derive(Default)]
struct Numbered<T> {
    all: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, value: T) -> usize {
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.all.push(value.clone());
            self.all.len() - 1
        })
    }
}

#[cfg(test)]
pub(super) use pprof::fields as pprof_fields;
