//! `heapwright::debug::check` with the feature `symbols`: what a failed check says has functions and lines.
//!
//! What only this finds: a name that is looked up where the heap is locked; blocks of the look-up's that a check takes
//! for the test's.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an ordinary program may do all that this crate itself may not"
)]

use std::hint::black_box;
use std::panic::catch_unwind;
use std::process::Command;

use heapwright::debug::{Config, DebugHeap, check};

#[global_allocator]
static HEAP: DebugHeap = DebugHeap::new(Config::DEFAULT);

#[inline(never)]
fn loses() {
    std::mem::forget(black_box(Box::new([7_u64; 5])));
}

/// Fails by itself: run by the test below. The outer check sees the mistake that the inner one finds, and nothing of what is
/// allocated to name it.
#[test]
#[ignore = "it fails, to be looked at"]
fn a_failing_test() {
    check(|| assert!(catch_unwind(|| check(loses)).is_err()));
}

#[test]
fn a_failed_check_names_functions_and_lines() {
    let program = std::env::current_exe().expect("the test has a file");
    let run = Command::new(program)
        .args(["a_failing_test", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success(), "{said}");
    // It is said at once, and with names when the check has ended.
    let told: Vec<&str> =
        said.split("heapwright: leak: a 40-byte block was never freed\n").skip(1).collect();
    assert_eq!(told.len(), 2, "{said}");
    let is_named =
        |line: &str| line.contains(" loses at ") && line.ends_with("/tests/debug_symbols.rs:23");
    assert!(!told[0].lines().any(is_named) && told[1].lines().any(is_named), "{said}");
    assert!(said.contains("check: 1 mistake was found: leak\n"), "{said}");
}
