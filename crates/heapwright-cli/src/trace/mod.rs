//! Traces: the allocations and frees of programs, read from files and written to them.
//!
//! ```text
//! input    a file -> its stories: plain, gzip or zip; one of these:
//!   binary   the format of `heapwright_record::trace`, in both directions
//!   text     lines, as Android's memory_replay has them
//! names    names of blocks and threads -> numbers
//! story    the operations of one process, and their sums
//! ```
//!
//! Traces name blocks by addresses, which are reused. A [`Story`] numbers each block and thread.

pub(crate) mod binary;
mod input;
mod names;
mod story;
mod text;

pub(crate) use input::read;
pub(crate) use story::{Event, Facts, Story, What};
