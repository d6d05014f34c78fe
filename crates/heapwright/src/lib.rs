#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(loom, allow(dead_code, reason = "loom builds the lock-free parts alone"))]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_types,
        clippy::disallowed_macros,
        reason = "tests run on std, whose allocator is not this one"
    )
)]

/// For the derive, whatever a program calls its `core`.
#[doc(hidden)]
pub use core::ops::Drop as __Drop;

pub mod gc;
mod registry;
mod remote;
mod sync;

#[cfg(not(loom))]
mod adapters;
#[cfg(not(loom))]
mod address_map;
#[cfg(not(loom))]
pub mod arena;
#[cfg(not(loom))]
mod cache;
#[cfg(not(loom))]
mod chunk;
#[cfg(all(feature = "debug", not(loom)))]
pub mod debug;
#[cfg(not(loom))]
mod describe;
#[cfg(not(loom))]
mod digits;
#[cfg(not(loom))]
mod files;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
pub mod heap;
#[cfg(not(loom))]
mod ids;
#[cfg(not(loom))]
mod libc_block;
#[cfg(not(loom))]
mod misuse;
#[cfg(not(loom))]
mod names;
#[cfg(not(loom))]
pub mod options;
#[cfg(not(loom))]
mod os;
#[cfg(not(loom))]
pub mod pool;
#[cfg(not(loom))]
mod refused;
#[cfg(not(loom))]
mod request;
#[cfg(not(loom))]
mod segments;
#[cfg(not(loom))]
mod size_class;
#[cfg(not(loom))]
mod slab;
#[cfg(all(feature = "debug", not(loom)))]
mod stacks;
#[cfg(not(loom))]
pub mod stats;
#[cfg(not(loom))]
mod substrate;
#[cfg(all(test, not(loom)))]
mod testing;
#[cfg(not(loom))]
mod text;
#[cfg(not(loom))]
mod unit_list;
#[cfg(not(loom))]
mod unit_record;
#[cfg(not(loom))]
mod verdict;

#[cfg(not(loom))]
pub mod process {
    //! What the C layer may ask of the process.

    /// Writes bytes to standard error with plain `write`: nothing is allocated,
    /// buffered or formatted.
    ///
    /// ```
    /// heapwright::process::write_stderr(b"heapwright: hello\n");
    /// ```
    pub fn write_stderr(bytes: &[u8]) {
        crate::os::write_stderr(bytes);
    }

    /// Sends the text of findings to `sink` instead of standard error: to a copy of
    /// it, say, that a program does not close.
    ///
    /// ```
    /// heapwright::process::write_findings_with(heapwright::process::write_stderr);
    /// ```
    #[cfg(feature = "debug")]
    pub fn write_findings_with(sink: fn(&[u8])) {
        crate::debug::write_with(sink);
    }

    /// Whether the caller runs in the process the heap knows of: false in a
    /// child of `vfork`, which borrows its parent's memory.
    #[must_use]
    pub fn is_original_process() -> bool {
        crate::substrate::is_original_process()
    }
}

#[cfg(not(loom))]
pub use adapters::Heapwright;
#[cfg(not(loom))]
pub use describe::{BlockState, Description, Kind, describe};
#[cfg(not(loom))]
pub use heapwright_record::Stats;

/// The project's README, whose Rust examples must compile and run.
#[cfg(all(doctest, not(loom)))]
#[doc = include_str!("../../../README.md")]
struct ProjectReadme;
