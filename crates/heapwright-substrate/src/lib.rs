//! What heapwright's heaps, pools, arenas and collectors stand on: the system, locks, one window of
//! addresses with a map of it, runs of units, slabs, objects by number, and the calling thread's
//! own.
//!
//! **This crate is an implementation detail of [heapwright](https://crates.io/crates/heapwright),
//! in whose documentation the parts are described that are for programs. Nothing here is stable:
//! use heapwright.** Names, contracts and whole modules change with any version, and each version
//! of heapwright wants its own.
//!
//! Callers are heapwright's own crates. Many functions are safe because those keep what the module
//! says (whose a run of units is, which entries a record goes with, that a lock is taken before a
//! fork and given back after it), and not because any argument would do. What a module says of
//! itself is its contract.
//!
//! The words that each thread has (`os::tls`) are defined by the crate above, which knows what the
//! first one leads to at the start: `define_words`. A program without that does not link.
#![no_std]
#![allow(
    clippy::new_without_default,
    reason = "what `new` makes is for statics, or has its one way"
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
