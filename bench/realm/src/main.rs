//! The safe door of heapwright's collected heap (`heapwright::gc::Realm`) beside the other ways
//! in which safe Rust shares values: collectors that trace, counts of references, and plain
//! ownership, where a load allows it.
//!
//! ```text
//!   loads    what is done, and what a peer has to be able to do for it
//!   peers    each does it in its own words: node types, and the functions that a load calls
//!     |
//!   run      one load with one peer, in a process of its own: a line with what it took
//!     |
//!   turns    rounds: each runs every peer once, in an order that turns
//!     |
//!   report   tables of medians, then what is asked, measured, found
//! ```
//!
//! All peers have the system's allocator under them (heapwright's realm has its own pages), all
//! compute the same number from the same random keys, and no code is shared between
//! them but where it costs every one of them the same. `ci/gc.sh realm` builds and runs this.

mod loads;
mod options;
mod peers;
mod process;
mod report;
mod run;
mod turns;

use std::process::ExitCode;

use options::Words;

fn main() -> ExitCode {
    figures::options::main(|words: Words| match words.run {
        Some(run) => {
            println!("{}", run::here(&run.job()?));
            Ok(true)
        }
        None => Ok(report::of(&words.race)),
    })
}
