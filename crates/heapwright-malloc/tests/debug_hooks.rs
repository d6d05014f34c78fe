//! The events that the C layer reports to the debug heap, and the faults that it passes on. A
//! library with the feature `observe` calls the test programs back from the debug heap's hooks. The
//! same programs run on the plain C library, if their expectations hold there.
mod support;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use support::{How, Outcome, command_with, compile, compile_plugin, run};

fn observed(name: &str, flags: &[&str], arguments: &[&str]) -> Option<Outcome> {
    let Some(library) = support::observing_library() else {
        support::skip("no library with the feature observe");
        return None;
    };
    let program = compile(name, How::Preload, flags);
    Some(run(command_with(program, How::Preload, library).args(arguments)))
}

fn both(name: &str, flags: &[&str], argument: &str) -> Vec<(How, Outcome)> {
    let program = compile(name, How::Plain, flags);
    let plain = run(command_with(program, How::Plain, PathBuf::new()).arg(argument));
    let mut outcomes = vec![(How::Plain, plain)];
    outcomes.extend(observed(name, flags, &[argument]).map(|outcome| (How::Preload, outcome)));
    outcomes
}

#[test]
fn every_form_is_distinguished() {
    for way_out in ["return", "_exit", "quick_exit"] {
        let Some(outcome) = observed("observe_origins.cc", &["-ldl"], &[way_out]) else { return };
        outcome.is_fine(way_out);
        // The library makes the last check only once.
        assert_eq!(outcome.stdout, "end\n", "{way_out}");
    }
}

/// These programs behave as in fast mode while the library distinguishes the operators' forms. They
/// replace operators, throw in handlers, and load plug-ins.
#[test]
fn programs_run_as_before() {
    let Some(library) = support::observing_library() else {
        return support::skip("no library with the feature observe");
    };
    let begin = compile_plugin("observe_begin.c", &[]);
    let preload = PathBuf::from(format!("{}:{}", library.display(), begin.display()));
    for name in [
        "cxx_replaced.cc",
        "cxx_operators.cc",
        "cxx_bad_alloc.cc",
        "cxx_new_handler.cc",
        "cxx_handler_throws.cc",
        "cxx_overaligned.cc",
        "cxx_containers.cc",
        "cxx_thread_local.cc",
        "malloc_basic.c",
        "realloc_content.c",
        "calloc_zero.c",
        "posix_memalign.c",
        "alignment_sweep.c",
        "fork_from_threads.c",
        "thread_storm.c",
        "signals.c",
        "usable_size.c",
    ] {
        let program = compile(name, How::Preload, &[]);
        run(&mut command_with(program, How::Preload, preload.clone())).is_fine(name);
    }
    let plugin = compile_plugin("plugin.c", &[]);
    let host = compile("plugin_host.c", How::Preload, &["-rdynamic", "-ldl"]);
    let mut command = command_with(host, How::Preload, preload.clone());
    run(command.arg(&plugin).arg("0")).is_fine("plugin_host.c");
    let plugin = compile_plugin("cxx_plugin.cc", &[]);
    let host = compile("cxx_plugin_host.c", How::Preload, &["-rdynamic", "-ldl"]);
    run(command_with(host, How::Preload, preload).arg(&plugin)).is_fine("cxx_plugin_host.c");
}

#[test]
fn the_programs_handlers_are_called_as_the_kernel_would() {
    for what in ["handlers", "overflow", "bus", "children", "race", "inherited"] {
        for (how, outcome) in both("faults.c", &[], what) {
            outcome.is_fine((what, how));
        }
    }
}

#[test]
fn handlers_may_throw() {
    for (how, outcome) in both("cxx_fault_throws.cc", &["-fnon-call-exceptions"], "") {
        outcome.is_fine(how);
    }
}

#[test]
fn without_a_handler_a_fault_ends_the_program() {
    for what in ["default", "ignored", "sent", "no-address"] {
        for (how, outcome) in both("faults.c", &[], what) {
            assert_eq!(outcome.status.signal(), Some(libc::SIGSEGV), "{what} {how:?}: {outcome:?}");
            assert_eq!(outcome.stderr, "", "{what} {how:?}");
        }
    }
}

#[test]
fn the_debug_heap_decides_about_its_memory() {
    let Some(outcome) = observed("faults.c", &[], &["ours"]) else { return };
    outcome.is_fine("ours");
    for what in ["stop", "stop-ignored"] {
        let outcome = observed("faults.c", &[], &[what]).expect("it was there above");
        assert_eq!(outcome.status.signal(), Some(libc::SIGSEGV), "{what}: {outcome:?}");
    }
}
