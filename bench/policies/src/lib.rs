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
//!                                             events: future events and their times
//!                                                   |
//!                                                 study -> tables, all headed "simulated"
//! ```
//!
//! [`world`] simulates a lock and its precedence in one cache line. Threads spin, sleep and wake as
//! in the library's shared registry, and CPUs have queues and time slices. A thread may lose its
//! CPU while it holds a lock. The simulation leaves out the memory behind the caches, sockets,
//! hyperthreads, and the scheduler's finer rules. So ratios mean something, absolute times do not.
//! All numbers are integers from a seed: a command always prints the same text.
//!
//! `schedules`, a separate program, runs the library's registries on random schedules.

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

/// The names that the tests in the library's file expect in their crate.
#[cfg(all(test, not(loom)))]
mod testing {
    pub(crate) fn cases(number: u32) -> proptest::test_runner::Config {
        proptest::test_runner::Config::with_cases(number)
    }
}
