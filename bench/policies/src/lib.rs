//! Shared caches on machines that we do not have: a deterministic simulation of many CPUs, whose
//! threads find their caches by the library's own policy.
//!
//! ```text
//!   measure ------> calibration.toml ----> calibration: costs in ns
//!   (2 CPUs)                                    |
//!                                               v
//!   library::choose <------- scan -------- world: threads, caches, CPUs
//!   (registry/policy.rs, as it stands)          ^   |
//!                                               |   v
//!                                             events: what happens next, and when
//!                                                   |
//!                                                 study -> tables, all headed "simulated"
//! ```
//!
//! What is simulated is in [`world`]: a lock and its precedence in one cache line, which
//! one CPU has at a time; spinning, sleeping and waking as in the library's shared
//! registry; CPUs with queues and time slices, so that a thread may lose its CPU while it
//! holds a lock. What is not: the memory behind the caches (central lists and their
//! locks, page faults under contention), sockets and hyperthreads, the scheduler's finer
//! rules. So ratios mean something, absolute times do not. Everything is whole numbers from a
//! seed: the same command prints the same text everywhere.
//!
//! `schedules`, a program of its own, runs the library's registries on random schedules.
//! docs/decisions.md has the sixteen other policies that were raced and simulated.

#![forbid(unsafe_code)]

pub mod calibration;
pub mod events;
#[path = "../../../crates/heapwright-substrate/src/registry/policy.rs"]
mod library;
pub mod measure;
pub mod scan;
pub mod study;
pub mod world;

pub use library::{Caches, Choice, choose, strides};

/// What the tests in the library's file ask of their crate.
#[cfg(all(test, not(loom)))]
mod testing {
    pub(crate) fn cases(number: u32) -> proptest::test_runner::Config {
        proptest::test_runner::Config::with_cases(number)
    }
}
