//! Except in debug mode, a mistake ends the program with one line that describes the pointer.
mod support;
use heapwright_record::debug::{Entry, Reader};
use support::{How, Outcome, command, compile, run, scratch};

fn each(call: &str, pointer: &str, mut check: impl FnMut(Outcome)) {
    for how in [How::Preload, How::Archive] {
        let program = compile("misuse.c", how, &[]);
        check(run(command(&program, how).arg(call).arg(pointer)));
    }
}

fn refused(pointer: &str, words: &[&str]) {
    for call in ["free", "realloc"] {
        let name = format!("{call}(0x");
        let words = [&[name.as_str()], words].concat();
        each(call, pointer, |outcome| outcome.was_refused((call, pointer), &words));
    }
}

#[test]
fn interior_pointers() {
    refused("interior", &["12 bytes into a 48-byte block at 0x"]);
    refused("interior16", &["16 bytes into a 48-byte block at 0x"]);
    refused("odd", &["1 bytes into a 48-byte block at 0x"]);
    refused("end", &["40 bytes into a 48-byte block at 0x"]);
    refused("large-interior", &["4096 bytes into a 1048576-byte block at 0x"]);
    refused("large-far", &["7340032 bytes into a 10485760-byte block at 0x"]);
}

#[test]
fn stacks() {
    refused("stack", &["stack"]);
    refused("thread-stack", &["did not return it"]);
}

#[test]
fn the_programs_own_memory() {
    refused("data", &["the data of /", "misuse.c"]);
    refused("literal", &["the code or constants of /", "misuse.c"]);
    refused("function", &["the code or constants of /", "misuse.c"]);
    refused("libc-function", &["libc"]);
    refused("libc-data", &["libc"]);
    refused("environment", &["stack"]);
}

#[test]
fn other_mappings() {
    refused("mapped", &["mapped by the program or another allocator"]);
    refused("protected", &["mapped by the program or another allocator"]);
    refused("unmapped", &["nothing is mapped"]);
}

/// No forged block of the C library is passed on to it, with or without /proc.
#[test]
fn forged_blocks() {
    let forged = ["forged-chunk", "forged-mapping", "forged-data", "forged-break", "libc"];
    for how in [How::Preload, How::Archive] {
        let program = compile("misuse.c", how, &[]);
        for mode in ["fast", "hardened", "hardened:full", "debug"] {
            for (pointer, call) in forged
                .iter()
                .flat_map(|pointer| ["free", "realloc", "usable"].map(|call| (pointer, call)))
            {
                for blind in [&[][..], &["blind"]] {
                    let mut command = command(&program, how);
                    command.args([call, pointer]).args(blind);
                    let outcome = run(command.env("HEAPWRIGHT", format!("mode={mode}")));
                    let what = (how, mode, call, pointer, blind);
                    if mode != "debug" {
                        let name = if call == "usable" { "malloc_usable_size" } else { call };
                        let words = [&format!("{name}(0x"), "malloc did not return it"];
                        outcome.was_refused(what, &words);
                        continue;
                    }
                    // In debug mode the program continues, and no signal ends it.
                    let is_reported = outcome.stderr.contains("of a pointer");
                    assert!(is_reported && outcome.status.code().is_some(), "{what:?} {outcome:?}");
                }
            }
        }
    }
}

#[test]
fn garbage() {
    for number in [
        "1",
        "8",
        "16",
        "4096",
        "65536",
        "0x7fffffffffff",
        "0x7ffffffffff0",
        "0x800000000000",
        "0x4141414141414140",
        "0xdeadbeefdeadbee0",
        "0xfffffffffffffff0",
        "0xffffffffffffffff",
    ] {
        refused(number, &["nothing is mapped"]);
    }
}

#[test]
fn blocks_that_were_freed() {
    refused("large-freed", &["freed before"]);
    refused("freed-by-thread", &["freed before"]);
}

/// The fast path accepts a second free of a small block, but the block's slab does not.
#[test]
fn a_small_double_free_is_seen_late() {
    each("free", "twice-in-thread", |outcome| {
        outcome.was_refused("twice", &["free(0x", "48-byte block was freed before"]);
    });
}

#[test]
fn sizes_of_what_is_no_block() {
    for (pointer, words) in [("interior", "12 bytes into"), ("stack", "stack"), ("8", "nothing")] {
        each("usable", pointer, |outcome| {
            outcome.was_refused(pointer, &["malloc_usable_size(0x", words]);
        });
    }
    each("usable", "0", |outcome| assert_eq!(outcome.status.code(), Some(8)));
}

#[test]
fn without_stderr_the_program_still_ends() {
    use std::os::unix::process::ExitStatusExt;
    for how in [How::Preload, How::Archive] {
        let program = compile("misuse.c", how, &[]);
        let mut command = command(&program, how);
        command.arg("free").arg("stack");
        support::without_files(&mut command, &[2]);
        let outcome = run(&mut command);
        assert_eq!(outcome.status.signal(), Some(libc::SIGABRT));
        assert_eq!(outcome.stderr, "");
    }
}

/// A daemon's caller waits for the end of a pipe, of which the daemon must keep no descriptor.
#[test]
fn no_descriptor_of_the_programs_is_kept() {
    let folder = scratch().join("kept");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for how in [How::Preload, How::Archive] {
        let program = compile("standard_error.c", how, &[]);
        for mode in ["fast", "hardened", "hardened:full", "debug"] {
            for option in ["", "trace=", "stats_file=", "profile=", "record=", "timeline="] {
                let file = folder.join("of");
                let file = if option.is_empty() { "" } else { file.to_str().expect("a path") };
                let options =
                    format!("mode={mode},stats=exit,limit=1g,guard=sample,{option}{file}");
                let outcome = run(command(&program, how).arg("held").env("HEAPWRIGHT", &options));
                assert!(outcome.status.success(), "{how:?} {options}: {outcome:?}");
            }
        }
    }
}

/// Text goes to the program's new standard error, not to a file that got the number 2 by chance.
#[test]
fn a_file_that_gets_the_number_of_standard_error_stays_as_it_is() {
    let file = scratch().join("standard-error");
    for (how, mode) in [
        (How::Preload, "fast"),
        (How::Preload, "debug"),
        (How::Preload, "hardened"),
        (How::Archive, "fast"),
        (How::Archive, "debug"),
    ] {
        let program = compile("standard_error.c", how, &[]);
        for act in ["chance", "meant"] {
            let mut command = command(&program, how);
            let options = format!("mode={mode},stats=exit");
            let outcome = run(command.arg(act).arg(&file).env("HEAPWRIGHT", options));
            assert_eq!(outcome.status.success(), mode == "debug", "{how:?} {mode} {act}");
            assert_eq!(outcome.stderr, "", "{how:?} {mode} {act}");
            let text = std::fs::read_to_string(&file).expect("the program's file");
            assert_eq!(text.is_empty(), act == "chance", "{how:?} {mode} {act}: {text}");
        }
    }
}

/// The record names each place that deserves guards in the next run, and names it once, also if the
/// first report ends the process.
#[test]
fn a_place_is_recorded_once_and_before_the_end() {
    let program = compile("sites.c", How::Preload, &[]);
    for (stop, succeeds) in [("never", true), ("first", false)] {
        let records = scratch().join(format!("sites-{stop}"));
        let _ = std::fs::remove_dir_all(&records);
        std::fs::create_dir_all(&records).expect("a folder");
        let options = format!("mode=debug,guard=all,stop={stop},record={}/of", records.display());
        let outcome = run(command(&program, How::Preload).env("HEAPWRIGHT", options));
        // A program continues after a fault on x86-64 only.
        let goes_on = succeeds && cfg!(target_arch = "x86_64");
        assert_eq!(outcome.status.success(), goes_on, "{outcome:?}");
        let record = std::fs::read_dir(&records).expect("it is read").next();
        let record = record.expect("a record").expect("a file").path();
        let bytes = std::fs::read(record).expect("it is read");
        let entries = Reader::new(&bytes).expect("a record");
        let sites = entries.filter(|entry| matches!(entry, Entry::Site(_)));
        assert_eq!(sites.count(), 1, "stop={stop}");
    }
}
