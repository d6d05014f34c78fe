//! The base of heapwright's heaps, pools, arenas and collectors: the system, locks, one window of
//! addresses and its map, runs of units, slabs, objects by number, and each thread's object.
//!
//! **This crate is an implementation detail of [heapwright](https://crates.io/crates/heapwright).
//! heapwright documents the parts that are for programs. Nothing here is stable: use heapwright.**
//! Names, contracts and whole modules change with any version, and each version of heapwright needs
//! its own version of this crate.
//!
//! Callers are heapwright's own crates. Many functions are safe only because those crates keep the
//! contracts that each module states.
//!
//! The crate above knows the initial target of each thread's first word (`os::tls`). So it must
//! define the words by `define_words`. On Linux a program without the words does not link.
#![no_std]
#![allow(
    clippy::new_without_default,
    reason = "statics use `new`, or a type has a single constructor"
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    loom,
    allow(dead_code, unreachable_pub, reason = "loom builds the lock-free parts alone")
)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_types,
        clippy::disallowed_macros,
        reason = "tests run on std, whose allocator is not this one"
    )
)]

pub mod leases;
pub mod registry;
pub mod remote;
pub mod sync;

#[cfg(not(loom))]
pub mod address_map;
#[cfg(not(loom))]
pub mod chunk;
#[cfg(not(loom))]
pub mod describe;
#[cfg(not(loom))]
pub mod digits;
#[cfg(not(loom))]
pub mod files;
#[cfg(not(loom))]
pub mod fork;
#[cfg(not(loom))]
pub mod ids;
#[cfg(not(loom))]
pub mod memory_limit;
#[cfg(not(loom))]
pub mod misuse;
#[cfg(not(loom))]
pub mod names;
#[cfg(not(loom))]
pub mod options;
#[cfg(not(loom))]
pub mod os;
#[cfg(not(loom))]
pub mod poisson;
#[cfg(not(loom))]
pub mod purge_delay;
#[cfg(all(feature = "testing", not(loom)))]
pub mod refusals;
#[cfg(not(loom))]
pub mod refused;
#[cfg(not(loom))]
pub mod runs;
#[cfg(not(loom))]
pub mod segments;
#[cfg(not(loom))]
pub mod size_class;
#[cfg(not(loom))]
pub mod slab;
#[cfg(not(loom))]
pub mod substrate;
#[cfg(all(test, not(loom)))]
mod testing;
#[cfg(not(loom))]
pub mod text;
#[cfg(not(loom))]
pub mod ticks;
#[cfg(not(loom))]
pub mod unit_list;
#[cfg(not(loom))]
pub mod unit_record;
#[cfg(not(loom))]
pub mod unwinding;
#[cfg(not(loom))]
pub mod verdict;
