//! Threads by the thousand, their ends, and what they leave behind.
mod support;
use support::{EVERY_WAY, fine};

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
fn threads_may_be_cancelled() {
    // Cancellation loads libgcc_s, which a static program cannot.
    fine("cancelled_threads.c", &EVERY_WAY[..4]);
}
