//! The data of a run's report.

use crate::process::Outcome;
use heapwright_record::Stats;
use std::ffi::OsString;

/// A program's run: its end and its measurements.
pub(crate) struct Run {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    pub(crate) outcome: Outcome,
    /// The program's own statistics, or why they are missing.
    pub(crate) stats: Result<Box<Stats>, String>,
    /// The statistics of other processes that it started, by pid.
    pub(crate) others: Vec<Stats>,
    /// Errors in reading the statistics of other processes.
    pub(crate) unreadable: Vec<String>,
}
