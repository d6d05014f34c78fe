//! C++'s operators: every form, the new-handler, and exceptions.
mod support;
use support::{EVERY_WAY, How, command, compile, compile_plugin, fine, fine_with, run};

#[test]
fn every_form_allocates_and_frees() {
    fine("cxx_operators.cc", &EVERY_WAY);
}

#[test]
fn exhaustion_throws_bad_alloc() {
    fine("cxx_bad_alloc.cc", &EVERY_WAY);
}

#[test]
fn the_new_handler_is_called_until_there_is_memory() {
    fine("cxx_new_handler.cc", &EVERY_WAY);
}

#[test]
fn what_the_new_handler_throws_arrives() {
    fine("cxx_handler_throws.cc", &EVERY_WAY);
}

#[test]
fn overaligned_types_are_aligned() {
    fine("cxx_overaligned.cc", &EVERY_WAY);
}

#[test]
fn containers_keep_their_contents() {
    fine("cxx_containers.cc", &EVERY_WAY);
}

#[test]
fn thread_local_destructors_may_allocate() {
    fine("cxx_thread_local.cc", &EVERY_WAY);
}

/// Cargo's archive defines the operators strongly, so a program with its own would define them
/// twice. packaging/install.sh installs an archive that defines them weakly (tests/install.rs).
#[test]
fn a_program_may_replace_the_plain_forms() {
    fine("cxx_replaced.cc", &[How::Plain, How::Preload, How::Linked]);
}

#[test]
fn old_dialects_call_other_forms() {
    for flag in ["-fno-sized-deallocation", "-fno-aligned-new", "-std=c++20"] {
        fine_with("cxx_containers.cc", &[How::Preload], &[flag]);
    }
}

#[test]
fn a_private_plugin_in_a_c_program_throws() {
    let plugin = compile_plugin("cxx_plugin.cc", &[]);
    for how in [How::Plain, How::Preload, How::Linked, How::Archive] {
        let host = compile("cxx_plugin_host.c", how, &["-rdynamic", "-ldl"]);
        run(command(&host, how).arg(&plugin)).is_fine(how);
    }
}

/// Constructors of a library linked with a program run before those of a preloaded library.
#[test]
fn arrays_of_earlier_constructors_are_arrays() {
    let library = compile_plugin("cxx_global_arrays.cc", &[]);
    let library = library.to_str().expect("a path in ASCII");
    let host = compile("cxx_global_arrays_host.c", How::Plain, &[library]);
    for mode in ["fast", "debug", "hardened", "hardened:full"] {
        let mut program = command(&host, How::Preload);
        run(program.env("HEAPWRIGHT", format!("mode={mode}"))).is_fine(mode);
    }
}

#[test]
fn without_a_runtime_exhaustion_ends_the_program() {
    for how in [How::Linked, How::Archive, How::Static] {
        let program = compile("cxx_without_runtime.c", how, &[]);
        let outcome = run(&mut command(&program, how));
        outcome.was_refused(how, &["operator new", "out of memory"]);
    }
}
