//! A Rust program with heapwright as allocator. Std calls it before `main`, in destructors of a
//! dying thread, and while a panic unwinds.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an ordinary program may do all that this crate itself may not"
)]

mod common;

use std::thread;

use common::{pass_alone, programs};
use heapwright::{BlockState, Kind, describe, heap};

#[global_allocator]
static HEAP: heapwright::Heapwright = heapwright::Heapwright;

#[test]
fn collections_live_on_the_heap() {
    programs::collections(1, 20_000, 3000, |text| {
        if !text.is_empty() {
            assert_eq!(describe(text.as_ptr()).state, BlockState::InUse);
        }
    });
}

#[test]
fn over_aligned_values_are_aligned() {
    programs::over_aligned();
}

#[test]
fn panics_unwind_and_free_what_they_pass() {
    programs::panics(50);
    let failed = thread::spawn(|| -> () { panic!("in a thread: {}", "x".repeat(3000)) }).join();
    assert_eq!(failed.unwrap_err().downcast::<String>().unwrap().len(), 3013);
}

#[test]
fn thread_locals_free_and_allocate_while_their_thread_dies() {
    programs::dying_threads(100);
}

#[test]
fn messages_between_threads_arrive_whole() {
    programs::messages(2000);
}

#[test]
fn the_program_itself_is_on_the_heap() {
    let argument = std::env::args().next().unwrap();
    assert_eq!(describe(argument.as_ptr()).kind, Kind::Small);
    assert!(heap::owns(argument.as_ptr()));
    assert!(!heap::owns(b"a constant".as_ptr()));
    // The C library's own blocks are not heapwright's. They go back to the C library.
    // SAFETY: strdup copies a C string.
    let theirs = unsafe { libc::strdup(c"theirs".as_ptr()) };
    assert_eq!(describe(theirs.cast()).kind, Kind::Foreign);
    // SAFETY: the block is the C library's, it is in use, and this is the last use.
    unsafe { libc::free(theirs.cast()) };
}

#[test]
fn all_this_holds_where_every_call_is_counted() {
    if common::case().is_some() {
        return;
    }
    for test in [
        "collections_live_on_the_heap",
        "over_aligned_values_are_aligned",
        "thread_locals_free_and_allocate_while_their_thread_dies",
        "messages_between_threads_arrive_whole",
    ] {
        pass_alone(test, "counted", "stats_file=/tmp/never-written");
        pass_alone(test, "large pages", "page=64k,purge=0");
    }
}
