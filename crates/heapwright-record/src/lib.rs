//! The files that heapwright's library writes and its command reads.
//!
//! The lowest floor: `no_std`, no dependencies, no `unsafe`. Each kind of file has a module, and
//! library and command share its definition. [`control_group`] finds memory limits for both.
//!
//! ```text
//! a stats file (little endian)
//! +----------+-----------+-------------+-----------------------------+
//! | magic 8  | version 4 | length 4    | length / 8 words of `Stats` |
//! | HWSTATS\0|           | (in bytes)  | in the order of the struct  |
//! +----------+-----------+-------------+-----------------------------+
//! ```
//!
//! A newer writer may append words, which an older reader ignores. An older writer wrote fewer
//! words; a newer reader sees zeros instead.
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
pub mod spill;
mod stats;
pub mod status;
pub mod timeline;
pub mod trace;

pub use escape::{escaped, is_hidden};
pub use problem::{Fault, Problem};
pub use stats::{DecodeError, HEADER_BYTES, SIZE_BUCKETS, Stats};
