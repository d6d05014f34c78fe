//! Leak checks in mode=debug: by a call, by a signal, at the end.
mod support;
use support::{How, Outcome, command, compile, run};

/// Programs that have heapwright's functions.
const WAYS: [How; 3] = [How::Linked, How::Archive, How::Static];

fn ask(word: &str, options: &str, how: How) -> Outcome {
    let program = compile("leaks.c", how, &["-pthread", "-O1", "-fno-builtin"]);
    run(command(&program, how).arg(word).env("HEAPWRIGHT", format!("mode=debug,{options}")))
}

fn right(word: &str) {
    for how in WAYS {
        ask(word, "quiet=yes", how).is_fine((word, how));
    }
}

fn said(word: &str, options: &str) -> Vec<String> {
    said_by(word, options, How::Linked)
}

fn said_by(word: &str, options: &str, how: How) -> Vec<String> {
    let outcome = ask(word, options, how);
    assert!(outcome.status.success() && !outcome.timed_out, "{outcome:?}");
    let lines = outcome.stderr.lines().filter(|line| line.contains("heapwright: leak"));
    lines.map(|line| line.split_once("heapwright: ").expect("is in it").1.to_owned()).collect()
}

#[test]
fn a_call_tells_what_is_lost() {
    right("call");
}

#[test]
fn what_only_a_register_holds_is_not_lost() {
    right("registers");
}

#[test]
fn what_a_silent_thread_may_hold_is_in_doubt() {
    right("silent");
}

#[test]
fn an_ended_threads_stack_holds_nothing() {
    right("ended");
}

#[test]
fn the_program_does_not_see_the_copy() {
    right("unseen");
}

#[test]
fn a_thread_that_reads_goes_on_reading() {
    right("reading");
}

#[test]
fn checks_and_forks_do_not_wait_for_each_other() {
    right("crowd");
}

#[test]
fn memory_that_the_program_forbade_itself_is_read_all_the_same() {
    right("forbidden");
}

#[test]
fn memory_that_was_never_touched_is_not_read() {
    right("sparse");
}

#[test]
fn shared_memory_holds_blocks() {
    right("shared");
}

#[test]
fn memory_that_cannot_be_touched_holds_blocks() {
    right("hidden");
}

#[test]
fn destructors_of_threads_allocate_while_counts_are_made() {
    let record = support::scratch().join("counts");
    for how in WAYS {
        let options = format!("quiet=yes,growth=on,record={}", record.display());
        ask("keys", &options, how).is_fine(how);
    }
}

#[test]
fn a_signal_asks_for_a_check() {
    let lines = said("signal", "leak_signal=USR2");
    let [lost, summary] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(lost, "leak: 40 bytes in 1 block is definitely lost");
    assert!(summary.starts_with("leak check: definitely lost: 40 bytes in 1 block, "), "{summary}");
}

#[test]
fn what_mains_frame_held_is_lost_at_the_end() {
    // `How::Static` is left out: without unwind tables the check does not find the frame of `exit`,
    // and takes old words in it for pointers.
    for how in [How::Linked, How::Archive] {
        let lines = said_by("exit", "leaks=exit", how);
        assert_eq!(lines[0], "leak: 40 bytes in 1 block is definitely lost", "{how:?}");
    }
}

#[test]
fn a_forked_child_tells_of_its_own_blocks() {
    let mut lines = said("child", "leaks=exit");
    lines.retain(|line| line.starts_with("leak: "));
    let of = |bytes| format!("leak: {bytes} bytes in 1 block is definitely lost");
    assert_eq!(lines, [of(80), of(40)]);
}

#[test]
fn without_debug_mode_there_is_no_check() {
    let program = compile("leaks.c", How::Linked, &["-pthread", "-O1", "-fno-builtin"]);
    let outcome = run(command(&program, How::Linked).arg("call"));
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.stderr.contains("hw_check_leaks"), "{outcome:?}");
}

#[test]
fn a_process_that_a_signal_ends_is_looked_at() {
    use std::os::unix::process::ExitStatusExt;
    for how in [How::Preload, How::Archive, How::Static] {
        let program = compile("ending_signals.c", how, &["-O1", "-fno-builtin"]);
        let ends = |word: &str, options: &str| {
            run(command(&program, how).arg(word).env("HEAPWRIGHT", options))
        };
        ends("handlers", "mode=debug,leaks=exit,quiet=yes").is_fine(how);
        for word in ["raise", "again", "once", "once-with-info", "storm"] {
            let outcome = ends(word, "mode=debug,leaks=exit");
            assert_eq!(outcome.status.signal(), Some(libc::SIGTERM), "{how:?} {word}: {outcome:?}");
            let lost = "leak: 40 bytes in 1 block is definitely lost";
            assert_eq!(outcome.stderr.matches(lost).count(), 1, "{how:?} {word}: {outcome:?}");
            // Without an option or a call there is no check.
            let outcome = ends(word, "mode=debug");
            assert_eq!(outcome.status.signal(), Some(libc::SIGTERM), "{how:?} {word}: {outcome:?}");
            assert!(outcome.stderr.is_empty(), "{how:?} {word}: {outcome:?}");
        }
    }
}
