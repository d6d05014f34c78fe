//! `heapwright::debug::check` with the feature `symbols`: a failed check prints functions and
//! lines, and no block of the name lookup counts as the test's.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an ordinary program may do all that this crate itself may not"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::panic::catch_unwind;
use std::process::Command;
use std::thread;

use heapwright::debug::{Config, DebugHeap, check};

#[global_allocator]
static HEAP: DebugHeap = DebugHeap::new(Config::DEFAULT);

/// The line of the block that `loses` forgets.
const LOST_AT: u32 = line!() + 4;

#[inline(never)]
fn loses() {
    std::mem::forget(black_box(Box::new([7_u64; 5])));
}

/// This test must fail. Another test here runs it. The outer check sees what the inner one finds.
#[test]
#[ignore = "it fails; another test here runs it"]
fn a_failing_test() {
    check(|| assert!(catch_unwind(|| check(loses)).is_err()));
}

/// The number of threads, the checks of each thread, and the mistakes of each check.
const THREADS: usize = 2;
const ROUNDS: usize = 2;
const MISTAKES: usize = 3;

/// This test must fail. Another test here runs it.
#[test]
#[ignore = "it fails; another test here runs it"]
fn many_failing_checks() {
    fn frees_twice(size: usize) {
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: the size is not zero.
        let block = unsafe { HEAP.alloc(layout) };
        // SAFETY: the block is ours.
        unsafe { HEAP.dealloc(block, layout) };
        // SAFETY: the call is a mistake, which the debug heap reports and does not execute.
        unsafe { HEAP.dealloc(block, layout) };
    }
    let mistakes: [fn(); MISTAKES] = [|| frees_twice(72), || frees_twice(88), || frees_twice(104)];
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let all = || mistakes.iter().for_each(|mistake| black_box(mistake)());
                    assert!(catch_unwind(|| check(all)).is_err());
                }
            });
        }
    });
}

#[test]
fn checks_that_end_side_by_side_are_all_told() {
    let said = fails("many_failing_checks").1;
    let named = said.lines().filter(|line| line.starts_with("heapwright: double-free: "));
    assert_eq!(named.count(), THREADS * ROUNDS * MISTAKES, "{said}");
}

fn fails(test: &str) -> (bool, String) {
    let program = std::env::current_exe().expect("the test has a file");
    let run = Command::new(program)
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .expect("it runs");
    (run.status.success(), String::from_utf8_lossy(&run.stderr).into_owned())
}

#[test]
fn a_failed_check_names_functions_and_lines() {
    let (has_passed, said) = fails("a_failing_test");
    assert!(!has_passed, "{said}");
    // The library prints the finding at once, and with names after the check.
    let told: Vec<&str> =
        said.split("heapwright: leak: a 40-byte block was never freed\n").skip(1).collect();
    assert_eq!(told.len(), 2, "{said}");
    let end = format!("/tests/debug_symbols.rs:{LOST_AT}");
    let is_named = |line: &str| line.contains(" loses at ") && line.ends_with(&end);
    assert!(!told[0].lines().any(is_named) && told[1].lines().any(is_named), "{said}");
    assert!(said.contains("check: 1 mistake was found: leak\n"), "{said}");
}
