//! Shared caches on machines that we do not have: a deterministic simulation of many
//! CPUs, whose threads find their caches by the library's own policy code.
//!
//! ```text
//!   measure ------> calibration.toml ----> calibration: costs in ns
//!   (2 CPUs, before the outcome is known)       |
//!                                               v
//!   policies::Policy::choose <----- scan --- world: threads, caches, CPUs
//!        (the library's file)                   ^   |
//!                                               |   v
//!                                             events: what happens next, and when
//!                                                   |
//!   crate::ALL (variants, review's seconds) -> study -> tables, all headed "simulated"
//! ```
//!
//! What is simulated is in [`world`]: a lock and its precedence in one cache line, which
//! one CPU has at a time; spinning, sleeping and waking as in the library's shared
//! registry; CPUs with queues and time slices, so that a thread may lose its CPU while it
//! holds a lock. What is not: the memory behind the caches (central lists and their
//! locks, page faults under contention), sockets and hyperthreads, the scheduler's finer
//! rules. So ratios between policies mean something, absolute times do not.
//!
//! Everything is whole numbers from a seed: the same command prints the same text
//! everywhere.

pub mod calibration;
pub mod events;
pub mod measure;
pub mod scan;
pub mod study;
pub mod world;
