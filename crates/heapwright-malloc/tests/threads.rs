//! Thousands of threads, their ends, and the memory that they leave behind.
mod support;
use support::{EVERY_WAY, How, command, compile, fine, run};

#[test]
fn short_threads_leave_no_memory_behind() {
    fine("thread_storm.c", &EVERY_WAY);
}

#[test]
fn blocks_freed_by_other_threads_come_back() {
    fine("thread_handover.c", &EVERY_WAY);
}

#[test]
fn destructors_of_keys_may_allocate() {
    fine("thread_keys.c", &EVERY_WAY);
}

#[test]
fn threads_that_nobody_waits_for_leave_nothing_to_write_to() {
    fine("thread_detached.c", &EVERY_WAY);
}

#[test]
fn threads_may_be_cancelled() {
    // Cancellation loads libgcc_s, which a static program cannot.
    fine("cancelled_threads.c", &EVERY_WAY[..4]);
}

#[test]
fn no_call_of_mallocs_is_a_cancellation_point() {
    // The program writes statistics on stderr, so the runs cannot use `fine`.
    let passes = |how, mode: &str, words: &[&str]| {
        let program = compile("not_cancelled.c", how, &[]);
        let mut command = command(&program, how);
        if !mode.is_empty() {
            command.env("HEAPWRIGHT", mode);
        }
        let outcome = run(command.args(words));
        assert!(outcome.status.success(), "{outcome:?}");
        outcome
    };
    for how in &EVERY_WAY[..4] {
        passes(*how, "", &[]);
    }
    for how in [How::Preload, How::Linked] {
        let outcome = passes(how, "mode=debug", &["twice"]);
        assert!(outcome.stderr.contains("heapwright: double-free"), "{outcome:?}");
    }
}
