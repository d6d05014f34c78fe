//! The option string in a program that links heapwright as its global allocator.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "an ordinary program")]

use std::process::Command;

#[global_allocator]
static HEAP: heapwright::Heapwright = heapwright::Heapwright;

fn said(options: &str) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.arg("--list").env("HEAPWRIGHT", options).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn what_it_cannot_honour_is_told_and_what_it_can_is_not() {
    let line = |option| {
        format!(
            "heapwright: option \"{option}\": has no effect without the preloaded library: start \
             the program by `heapwright run -- PROGRAM`"
        )
    };
    assert_eq!(said("stats=exit"), [line("stats=exit")]);
    assert_eq!(
        said("purge=7,stats_file=/dev/null/x,trace=/dev/null/x"),
        [line("stats_file"), line("trace")]
    );
    assert!(said("purge=7,cache=shared:2,stats=off,huge_pages=never").is_empty());
    if cfg!(feature = "debug") {
        let debugs = "mode=debug,quiet=yes,leaks=exit,leak_signal=USR2,growth=on";
        assert_eq!(said(debugs), ["leaks=exit", "leak_signal", "growth=on"].map(line));
        assert_eq!(
            said("guard=all"),
            ["heapwright: option \"guard=all\": has no effect without mode=debug (ignored)"]
        );
    }
}
