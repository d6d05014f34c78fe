//! What a run is made from.

use crate::process::Outcome;
use heapwright_record::Stats;
use std::ffi::OsString;

/// A program's run: how it ended, and what was measured.
pub(crate) struct Run {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    pub(crate) outcome: Outcome,
    /// The program's own statistics, or why there are none.
    pub(crate) stats: Result<Box<Stats>, String>,
    /// Those of other processes that it started, by pid.
    pub(crate) others: Vec<Stats>,
    /// What went wrong in reading those of other processes.
    pub(crate) unreadable: Vec<String>,
}
