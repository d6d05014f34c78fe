//! The library's registries, unchanged.
#![allow(dead_code, reason = "what is tested here is a part of them")]
#![allow(unreachable_pub, reason = "they are of another crate")]

pub(crate) use policies as policy;

#[path = "../../../../crates/heapwright-substrate/src/registry/shared.rs"]
pub(crate) mod shared;

#[path = "../../../../crates/heapwright-substrate/src/registry/common.rs"]
pub(crate) mod common;

#[path = "../../../../crates/heapwright-substrate/src/registry/thread_index.rs"]
pub(crate) mod thread_index;
