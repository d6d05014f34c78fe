//! The replay: repeats a trace's story under any allocator.
//!
//! ```text
//! plan      a story -> the operations of each thread, 16 bytes each
//! player    executes a plan: this command, under a preload (hidden)
//! rounds    the runs of each allocator, in turns
//! results   the measurements: the structures of --format json
//! ```
//!
//! Measures for fairness, beyond those of `bench`:
//! - The player calls the allocator under test only for the story's operations.
//! - Each recorded thread is a real one, with the recorded beginning and end.
//! - If one thread allocates a block and another frees it, the second waits for the block.
//! - Threads drift apart by a bounded number of operations, so about as much memory is live as
//!   in the story.
//! - Blocks are touched, and the written bytes are checked.

mod plan;
mod player;
pub(crate) mod results;
pub(crate) mod rounds;

pub(crate) use plan::{Touch, compile};
pub(crate) use player::{SUBCOMMAND, play};
