//! Traces: the calls of programs for memory, read from files and written to them.
//!
//! ```text
//! input    a file -> its stories: plain, gzip or zip; one of these:
//!   binary   the format of `heapwright_record::trace`, in both directions
//!   text     lines, as Android's memory_replay has them
//! names    what a trace calls blocks and threads -> numbers
//! story    what one process did, and its sums
//! ```
//!
//! Traces name blocks by addresses, which are reused. A [`Story`] numbers each block and each
//! thread, in the order of their first events.

pub(crate) mod binary;
mod input;
mod names;
mod story;
mod text;

pub(crate) use input::read;
pub(crate) use story::{Event, Facts, Story, What};
