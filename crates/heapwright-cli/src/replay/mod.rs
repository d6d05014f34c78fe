//! The replay: repeats a story under any allocator.
//!
//! ```text
//! plan      a story -> what each thread does, in 16 bytes an operation
//! player    does it: this command, run again under a preload (hidden)
//! rounds    which allocators play, how often, in turns
//! results   what was measured: the structures of --format json
//! ```
//!
//! How it is kept fair, beyond what `bench` does:
//! - the player asks the allocator under test for nothing but what the story asks for:
//!   its plan is a mapped file, its places for blocks are mapped memory, its threads are
//!   the C library's own;
//! - each recorded thread is a real one, that begins and ends where it did;
//! - a block that one thread makes and another frees really goes from one to the other:
//!   a thread that frees it waits until it is there;
//! - threads drift apart by a bounded number of operations only, so that as much is
//!   live at a time as was;
//! - blocks are touched, and what was written is looked at again.

mod plan;
mod player;
pub(crate) mod results;
pub(crate) mod rounds;

pub(crate) use plan::{Touch, compile};
pub(crate) use player::{SUBCOMMAND, play};
