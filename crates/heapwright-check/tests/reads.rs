//! `libheapwright-check.so`: an access out of bounds by a function of the C library is a finding.
#[path = "../../heapwright-malloc/tests/support/mod.rs"]
mod support;
use heapwright_record::debug::Function;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use support::{How, Outcome, command_with, run};

/// The library as shipped: from a variable, or built once.
fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| support::shipped("heapwright-check", "HEAPWRIGHT_CHECK_SO")).clone()
}

/// With these flags the compiler neither replaces nor inlines a function.
fn compile(name: &'static str) -> PathBuf {
    let headers = support::root().join("crates/heapwright-malloc/tests/programs");
    let include = format!("-I{}", headers.display());
    let flags = [&*include, "-U_FORTIFY_SOURCE", "-fno-builtin", "-fno-inline"];
    support::compile(name, How::Plain, &flags)
}

fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("readers.c")).clone()
}

fn checked(options: &str, words: &[&str]) -> Outcome {
    run_on(&program(), options, words)
}

fn run_on(program: &PathBuf, options: &str, words: &[&str]) -> Outcome {
    let mut command = command_with(program, How::Preload, library());
    run(command.env("HEAPWRIGHT", options).args(words))
}

/// The functions, and whether each `reads` or `writes`.
fn listed() -> Vec<(String, String)> {
    let printed = run(support::command(program(), How::Plain).arg("list"));
    let lines = printed.stdout.lines().map(|line| line.split_once(' ').expect("two words"));
    lines.map(|(name, does)| (name.to_owned(), does.to_owned())).collect()
}

/// The name in a report: `printf` for `__printf_chk`.
fn plain(name: &str) -> &str {
    let name = name.strip_prefix("__").unwrap_or(name);
    let name = name.strip_prefix("isoc99_").or(name.strip_prefix("isoc23_")).unwrap_or(name);
    let name = name.strip_suffix("_chk").or(name.strip_suffix("_2")).unwrap_or(name);
    match name {
        "pread64" | "pwrite64" | "getdents64" => return name,
        "xstat" | "xstat64" => return "stat",
        "lxstat" | "lxstat64" => return "lstat",
        "fxstat" | "fxstat64" => return "fstat",
        "fxstatat" | "fxstatat64" => return "fstatat",
        "xmknod" => return "mknod",
        "xmknodat" => return "mknodat",
        _ => {}
    }
    name.strip_suffix("64").or(name.strip_suffix("64v2")).unwrap_or(name)
}

/// These results are shorter than the size that the call names, and fit the block.
const SHORT: [&str; 5] = ["epoll_wait", "getcwd", "getdents64", "gethostname", "readlink"];

/// There is one finding by this function, with this heading (`may-overflow` for a short result).
#[track_caller]
fn was_found(outcome: &Outcome, heading: &str, name: &str, does: &str) {
    let verb = if does == "reads" { "read" } else { "write" };
    let is_short = heading == "buffer-overflow" && SHORT.contains(&name);
    let (begins, by) = if is_short {
        let by = format!("{} may {verb} up to ", plain(name));
        ("ERROR: heapwright: may-overflow: ".to_owned(), by)
    } else {
        let begins = format!("ERROR: heapwright: {heading}: {verb} at offset ");
        (begins, format!(", by {} of ", plain(name)))
    };
    let errors: Vec<&str> =
        outcome.stderr.lines().filter(|line| line.contains("ERROR: heapwright: ")).collect();
    assert!(
        errors.len() == 1 && errors[0].contains(&begins) && errors[0].contains(&by),
        "{heading} by {name}: {outcome:?}"
    );
    for moment in ["    here, thread 1", "    allocated by thread 1"] {
        assert!(outcome.stderr.contains(moment), "{name}: {outcome:?}");
    }
}

#[test]
fn blocks_may_be_read_to_the_last_byte() {
    for options in ["mode=debug", "mode=debug,guard=all", "mode=fast", "mode=debug,detect=-bounds"]
    {
        checked(options, &["right"]).is_fine(options);
    }
}

#[test]
fn each_function_is_seen_in_each_way() {
    let all = listed();
    assert!(all.len() > 80, "{all:?}");
    for (name, does) in &all {
        for (how, heading) in [
            ("beyond", "buffer-overflow"),
            ("freed", "use-after-free"),
            ("before", "buffer-underflow"),
        ] {
            let outcome = checked("mode=debug,guard=never", &[how, name]);
            was_found(&outcome, heading, name, does);
        }
    }
}

#[test]
fn the_switch_is_bounds() {
    for how in ["beyond", "freed", "before"] {
        let outcome = checked("mode=debug,guard=never,detect=-bounds", &[how, "write"]);
        outcome.is_fine(how);
    }
}

/// The function faults after its finding. The access is not reported again.
#[test]
fn a_fault_is_not_said_again() {
    let outcome = checked("mode=debug,guard=all", &["beyond", "memcmp"]);
    was_found(&outcome, "buffer-overflow", "memcmp", "reads");
    let outcome = checked("mode=debug,guard=all", &["freed", "memchr"]);
    was_found(&outcome, "use-after-free", "memchr", "reads");
    let outcome = checked("mode=debug,stop=first,guard=never", &["beyond", "memcmp"]);
    assert!(!outcome.status.success(), "{outcome:?}");
}

#[test]
fn annotations_are_kept_to() {
    let program = compile("annotated.c");
    let options = "mode=debug,leaks=exit";
    let lost = |outcome: &Outcome| {
        outcome.stderr.contains("1 block") && outcome.stderr.contains("definitely lost")
    };
    let outcome = run_on(&program, options, &[]);
    assert!(outcome.status.success() && !outcome.stderr.contains("ERROR"), "{outcome:?}");
    let outcome = run_on(&program, options, &["lost"]);
    assert!(outcome.status.success() && lost(&outcome), "{outcome:?}");
    let amount = "100 bytes in 1 block is definitely lost, and 200 bytes in 1 block with it";
    assert!(outcome.stderr.contains(amount), "{outcome:?}");
    let outcome = run_on(&program, "mode=debug", &["ask"]);
    assert!(outcome.status.success(), "{outcome:?}");
    let outcome = run_on(&program, "mode=debug", &["check"]);
    assert_eq!(outcome.status.code(), Some(23), "{outcome:?}");
    // There are no leak checks in other modes.
    run_on(&program, "mode=fast", &["lost"]).is_fine("mode=fast");
}

/// Poison is exact to the byte and ends with its block.
#[test]
fn poisoned_bytes_are_not_accessed() {
    let program = compile("poisoned.c");
    let options = ["mode=debug,guard=never", "mode=debug,guard=all", "mode=debug,traces=0"];
    for options in &options[..2] {
        run_on(&program, options, &[]).is_fine(options);
    }
    // In other modes nothing is poisoned.
    for options in ["mode=fast", "mode=hardened"] {
        run_on(&program, options, &["beyond"]).is_fine(options);
    }
    for options in options {
        for (how, what) in [
            (
                "beyond",
                "read at offset 20 of a 4000-byte block, which the program has poisoned there, by memcpy of 24 bytes",
            ),
            (
                "whole",
                "write at offset 24 of a 4000-byte block, which the program has poisoned there, by memset of 16 bytes",
            ),
            (
                "string",
                "read at offset 40 of a 4000-byte block, which the program has poisoned there, by strlen of 17 bytes",
            ),
            (
                "large",
                "read at offset 700000 of a 1048576-byte block, which the program has poisoned there, by write of 200000 bytes",
            ),
        ] {
            let outcome = run_on(&program, options, &[how]);
            let line = format!("ERROR: heapwright: use-after-poison: {what}\n");
            assert!(outcome.status.success() && outcome.stderr.contains(&line), "{outcome:?}");
            assert_eq!(outcome.stderr.matches("ERROR").count(), 1, "{outcome:?}");
        }
    }
    let outcome = run_on(&program, "mode=debug", &["describe"]);
    for what in [
        " is 8 bytes into the 4000-byte block at 0x",
        " is 21 bytes into the 4000-byte block at 0x",
        " is 1 byte into the 50-byte block at 0x",
        " is outside of heapwright's heaps\n",
    ] {
        assert!(outcome.stderr.contains(what), "{outcome:?}");
    }
    assert_eq!(outcome.stderr.matches(", which the program has poisoned there\n").count(), 1);
    assert_eq!(outcome.stderr.matches(", which is free\n").count(), 1);
}

/// libstdc++'s vectors, which its macros annotate.
#[test]
fn containers_that_are_annotated_end_where_their_elements_do() {
    let name = "sanitized.cc";
    let library = library();
    let flags = [library.to_str().expect("a path"), "-U_FORTIFY_SOURCE", "-O0"];
    let program = support::compile(name, How::Plain, &flags);
    run_on(&program, "mode=debug", &[]).is_fine(name);
    let outcome = run_on(&program, "mode=debug", &["beyond"]);
    let line = "use-after-poison: read at offset 90 of a 200-byte block, which the program has poisoned there, by memcpy of 91 bytes\n";
    assert!(outcome.status.success() && outcome.stderr.contains(line), "{outcome:?}");
}

fn call(how: How, options: &str, words: &[&str]) -> Outcome {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| compile("calls.c"));
    let folder = support::scratch().join(format!("calls-{:?}", std::thread::current().id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut command = command_with(program, how, library());
    run(command.env("HEAPWRIGHT", options).args(words).current_dir(folder))
}

/// A mistake is one finding, with or without guard.
#[test]
fn calls_of_the_kernel_go_through() {
    let list = call(How::Plain, "", &["list"]).stdout;
    assert!(list.lines().count() > 100, "{list}");
    for line in list.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, function, does] = words[..] else { panic!("{line}") };
        for (how, alone, heading) in [
            ("right", "still", None),
            ("beyond", "still", Some("buffer-overflow")),
            ("freed", "zeros", Some("use-after-free")),
        ] {
            let expected = call(How::Plain, "", &[alone, name]);
            for options in ["mode=debug,guard=all", "mode=debug,guard=never"] {
                let outcome = call(How::Preload, options, &[how, name]);
                assert_eq!(outcome.stdout, expected.stdout, "{how} {name}: {outcome:?}");
                match heading {
                    Some(heading) => was_found(&outcome, heading, function, does),
                    None => assert_eq!(outcome.stderr, "", "{how} {name}"),
                }
            }
        }
    }
}

/// The kernel refuses invalid addresses. A freed block passed to `syscall` is a finding.
#[test]
fn the_kernel_refuses_what_it_refused() {
    for options in ["mode=debug", "mode=fast", "mode=debug,detect=-bounds"] {
        call(How::Preload, options, &["nowhere"]).is_fine(options);
    }
    let outcome = call(How::Preload, "mode=debug,guard=all", &["raw"]);
    let line = "use-after-free: access at offset 0 of a 64-byte block after it was freed, \
                by syscall of 1 byte\n";
    assert!(outcome.status.success() && outcome.stderr.contains(line), "{outcome:?}");
    assert_eq!(outcome.stderr.matches("ERROR").count(), 1, "{outcome:?}");
}

/// `readlink` reads an unterminated path from a block and writes its answer over the path. Only the
/// read is a finding.
#[test]
fn a_path_may_be_overwritten_by_the_answer() {
    for options in ["mode=debug,guard=all", "mode=debug,guard=never"] {
        let outcome = call(How::Preload, options, &["in-place"]);
        assert!(outcome.status.success(), "{options}: {outcome:?}");
        assert_eq!(outcome.stderr.matches("ERROR").count(), 1, "{outcome:?}");
    }
}

/// The names that the library exports.
fn exported() -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output()
        .expect("nm (of binutils)");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

/// A finding can name each function that is checked. The record has a number for it.
#[test]
fn each_function_has_a_name_in_findings() {
    let lists = [
        include_str!("../../heapwright-entry/src/lib.rs"),
        include_str!("../../heapwright-entry-reads/src/lib.rs"),
    ];
    let exported = exported();
    let mut found = 0;
    for list in lists {
        let (_, functions) = list.split_once("\n    plain:").expect("a list of functions");
        let (functions, _) = functions.split_once("\n}").expect("its end");
        for name in functions.split([' ', '\n', ';']).filter(|name| exported.contains(*name)) {
            let known = plain(name);
            assert_ne!(Function::named(known), Function::Unknown, "{name}: {known}");
            found += 1;
        }
    }
    assert!(found > 400, "{found}");
}

#[test]
fn the_names_are_those_that_are_tested() {
    let shown = exported();
    for (name, _) in listed() {
        assert!(shown.contains(&name), "{name}");
    }
    let undefined = Command::new("nm").args(["-D", "-u"]).arg(library()).output().expect("nm");
    let text = String::from_utf8(undefined.stdout).expect("text");
    let needed = text
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(|name| name.split('@').next().expect("a word").to_owned());
    let own: Vec<String> = needed.filter(|name| shown.contains(name)).collect();
    assert!(own.is_empty(), "calls of its own are checked: {own:?}");
}

/// A checked program gets the answers of its C library for every alignment.
#[test]
fn wrong_alignments_are_answered_as_without_the_library() {
    let program = compile("alignments.c");
    let plain = run(support::command(program.clone(), How::Plain).env("LC_ALL", "C"));
    let checked = run_on(&program, "mode=debug,quiet=yes", &[]);
    assert!(plain.stdout.lines().count() > 200, "{}", plain.stdout);
    assert_eq!(checked.stdout, plain.stdout, "{}", checked.stderr);
}
