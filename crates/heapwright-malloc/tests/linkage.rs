//! More ways to link `libheapwright.a`: static-pie, link-time optimisation.
mod support;
use std::process::Command;
use support::{How, command, compile, run};

#[test]
fn programs_are_linked_with_the_archive_in_every_way() {
    for flags in [&["-static-pie", "-fPIE"][..], &["-flto"], &["-flto", "-static"]] {
        let program = compile("thread_storm.c", How::Archive, flags);
        for options in ["mode=fast", "mode=debug", "cache=percpu"] {
            let mut command = command(&program, How::Archive);
            run(command.env("HEAPWRIGHT", options)).is_fine((flags, options));
        }
        let outcome = run(command(&program, How::Archive).env("HEAPWRIGHT", "stats=exit"));
        assert_eq!(outcome.stderr.matches("live blocks").count(), 1, "{flags:?}: {outcome:?}");
    }
}

/// gcc requests the table for unwinders in all programs but static ones.
#[test]
fn static_programs_have_stack_traces() {
    let plain = ["-fPIE", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    for how in [&["-static", "-Wl,--eh-frame-hdr"][..], &["-static-pie"]] {
        let program = compile("frees_twice.c", How::Archive, &[&plain, how].concat());
        let outcome = run(command(&program, How::Archive).env("HEAPWRIGHT", "mode=debug"));
        assert!(outcome.stderr.contains("double-free"), "{outcome:?}");
        let offsets = outcome.stderr.split('+').filter_map(|rest| rest.split_once(')'));
        let mut ask = Command::new("addr2line");
        ask.args(["-f", "-e"]).arg(&program).args(offsets.map(|(offset, _)| offset));
        let names = run(&mut ask).stdout;
        for name in ["make_it", "end_it", "main"] {
            assert!(names.lines().any(|line| line == name), "{how:?}: no {name} in {outcome:?}");
        }
    }
}
