//! Right and wrong operations on debug heaps and checked allocators. A model knows what must be
//! found: see the included file.
#![no_main]

use heapwright::debug::{Checked, Config, DebugHeap, Finding, FindingKind, Guard, Leaks};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/heapwright/src/debug/model.rs"]
mod model;

fuzz_target!(|bytes: &[u8]| model::run(bytes));
