//! The race: programs run under every allocator, and what that shows.
//!
//! ```text
//! allocators   what races: glibc, heapwright, found ones, named ones
//!   folders    where libraries lie
//!   probe      does the preload take effect at all?
//! program      what is raced: a command with its surroundings
//!   workloads  the built-in ones      suite   those of a TOML file
//! launcher     one run, through a tiny parent
//! race         the rounds
//!   warm       memory made warm before each run
//!   progress   what is being run and how long it will take
//! machine      where it is run, and what is noisy there
//! results      what was measured: the structures of --format json
//! comparison   from runs to ratios
//!   statistics medians and intervals; pure
//! ```
//!
//! How the comparison is kept fair:
//! - an allocator is a shared library under `LD_PRELOAD`, and nothing stands
//!   between the program and its malloc; a probe checks first that it is so;
//! - every program is started by a static launcher of some tens of KiB, because
//!   a peak resident size survives exec from a big parent;
//! - the memory that a run will take is touched immediately before it, because a
//!   host hands out the memory of its virtual machines at the first touch;
//! - runs are interleaved: in each round each program is run once under every
//!   allocator, the order turning by one, so that a busy minute falls on all;
//! - a first run of each is not counted, and shows whether the program works
//!   and prints the same;
//! - ratios are formed round by round, and come with an interval; what the
//!   interval does not decide is called a tie.
//!
//! Floors: `results`, `statistics` and `comparison` are what `output` prints
//! from; they know nothing of how a run is made.

pub(crate) mod allocators;
pub(crate) mod comparison;
mod folders;
mod launcher;
pub(crate) mod machine;
mod probe;
mod program;
mod progress;
pub(crate) mod race;
pub(crate) mod results;
pub(crate) mod statistics;
pub(crate) mod suite;
mod warm;
pub(crate) mod workloads;

pub(crate) use launcher::{Attempt, End, Launcher, Ran};
pub(crate) use probe::{Known, answer as answer_probe, probe_all};
pub(crate) use program::{Comparing, Program};
pub(crate) use progress::{Progress, Showing};
pub(crate) use warm::warm;

use crate::inspect::{self, Verdict};
use crate::preload;
use std::ffi::OsStr;

/// Why no library can be preloaded into a program, if its files say so.
pub(crate) fn refusal(program: &OsStr) -> Option<String> {
    let report = inspect::inspect(program, preload::target(preload::named().as_deref()));
    let reason = report.reason().filter(|_| report.verdict() == Verdict::No)?;
    Some(reason.text.clone())
}
