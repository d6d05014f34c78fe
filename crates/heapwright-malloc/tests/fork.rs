//! fork in threaded programs: no deadlock, no corruption, a child that works.
mod support;
use support::{EVERY_WAY, How, ON_HEAPWRIGHT, command, compile, fine, run};

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

fn fork_against(what: &str, ways: &[How]) {
    for &how in ways {
        let program = compile("fork_against.c", how, &[]);
        for options in ["", "mode=debug"] {
            if how == How::Plain && !options.is_empty() {
                continue;
            }
            let mut command = command(&program, how);
            command.arg(what);
            if !options.is_empty() {
                command.env("HEAPWRIGHT", options);
            }
            run(&mut command).is_fine((what, how, options));
        }
    }
}

#[test]
fn fork_takes_the_lock_of_streams_before_those_of_the_heap() {
    fork_against("stdio", &[How::Plain]);
    fork_against("stdio", &ON_HEAPWRIGHT[..3]);
}

#[test]
fn fork_beside_the_loader() {
    fork_against("dlopen", &[How::Plain, How::Preload]);
}

#[test]
fn fork_beside_name_services_and_locales() {
    fork_against("getaddrinfo", &[How::Plain, How::Preload]);
    fork_against("locale", &[How::Plain, How::Preload]);
}

#[test]
fn fork_beside_other_ways_to_start_a_process() {
    for what in ["popen", "system", "spawn"] {
        fork_against(what, &[How::Plain, How::Preload]);
    }
}
