//! The race: programs run under every allocator, and the results are compared.
//!
//! ```text
//! allocators   that race: glibc, heapwright, found ones, named ones
//!   folders    that hold libraries
//!   probe      checks that the preload takes effect
//! program      a command with its surroundings
//!   workloads  the built-in ones      suite   those of a TOML file
//! launcher     one run, through a tiny parent
//! race         the rounds
//!   warm       memory made warm before each run
//!   progress   the current run and the remaining time
//! machine      its description, and its noise
//! results      the measurements: the structures of --format json
//! comparison   from runs to ratios
//!   statistics medians and intervals; pure
//! ```
//!
//! How the comparison is kept fair:
//! - An allocator is a shared library under `LD_PRELOAD`, as a probe checks first.
//! - A static launcher of some tens of KiB starts every program: a big parent's peak survives exec.
//! - Before each run, as much memory as it may need is touched. A host hands out the memory of its
//!   virtual machines at the first touch.
//! - Each round runs each program once under every allocator. The order rotates by one.
//! - First runs are not counted. They show whether the program works and prints the same output.
//! - Ratios are formed round by round, with an interval. An interval that contains 1 is a tie.
//!
//! `output` prints from `results`, `statistics` and `comparison`, which make no runs.

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

/// Returns why no library can be preloaded into a program, if its files say so.
pub(crate) fn refusal(program: &OsStr) -> Option<String> {
    let report = inspect::inspect(program, preload::target(preload::named().as_deref()));
    let reason = report.reason().filter(|_| report.verdict() == Verdict::No)?;
    Some(reason.text.clone())
}
