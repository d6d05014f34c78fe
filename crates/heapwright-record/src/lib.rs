//! The files heapwright's library writes and its command reads.
//!
//! This is the lowest floor of the house: `no_std`, no dependencies, no `unsafe`. The library fills
//! a [`Stats`]; the command decodes one. Both sides share this one definition, so a field cannot
//! mean two things. The other kinds of file are described where they are: [`debug`], in which the
//! debug allocator reports mistakes, [`trace`], which has every call of a run, [`heap`], which
//! describes a collected heap, and [`timeline`], which has its collections. What both find out of
//! the kernel's files stands here too: [`control_group`].
//!
//! ```text
//! a stats file (little endian)
//! +----------+-----------+-------------+-----------------------------+
//! | magic 8  | version 4 | length 4    | length / 8 words of `Stats` |
//! | HWSTATS\0|           | (of words)  | in the order of the struct  |
//! +----------+-----------+-------------+-----------------------------+
//! ```
//!
//! A newer writer may append words; an older reader ignores them. An older
//! writer wrote fewer; a newer reader sees zeros there.
#![no_std]
#![forbid(unsafe_code)]

mod checksum;
pub mod control_group;
#[cfg(test)]
mod damage;
pub mod debug;
mod escape;
mod frame;
pub mod heap;
mod leb;
mod problem;
mod stats;
pub mod status;
pub mod timeline;
pub mod trace;

pub use escape::{escaped, is_hidden};
pub use problem::{Fault, Problem};
pub use stats::{DecodeError, HEADER_BYTES, SIZE_BUCKETS, Stats};
