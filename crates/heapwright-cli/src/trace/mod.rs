//! Traces: what programs did with memory, read from files and written to them.
//!
//! ```text
//! input    a file -> its stories: plain, gzip or zip; one of these:
//!   binary   the format of `heapwright_record::trace`, in both directions
//!   text     lines, as Android's memory_replay has them
//! names    what a trace calls blocks and threads -> numbers
//! story    what one process did, and its sums
//! ```
//!
//! Traces name blocks by addresses, which are used again. A [`Story`] has numbers: each
//! block its own, each thread its own, in the order in which they came.

pub(crate) mod binary;
mod input;
mod names;
mod story;
mod text;

pub(crate) use input::read;
pub(crate) use story::{Event, Facts, Story, What};
