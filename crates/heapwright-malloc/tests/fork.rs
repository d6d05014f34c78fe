//! fork in threaded programs: no deadlock, no corruption, a child that works.
mod support;
use support::{EVERY_WAY, fine};

#[test]
fn children_of_a_busy_program_work() {
    fine("fork_storm.c", &EVERY_WAY);
}

#[test]
fn threads_may_fork_at_once() {
    fine("fork_from_threads.c", &EVERY_WAY);
}

#[test]
fn a_child_uses_the_memory_of_threads_it_does_not_have() {
    fine("fork_memory.c", &EVERY_WAY);
}

#[test]
fn fork_handlers_may_allocate() {
    fine("atfork_handlers.c", &EVERY_WAY);
}
