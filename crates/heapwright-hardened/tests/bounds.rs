//! `libheapwright-hardened.so`: each function works up to the last byte, and is refused beyond it.
#[path = "../../heapwright-malloc/tests/support/mod.rs"]
mod support;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use support::{How, Outcome, command_with, run};

/// The library as shipped: from a variable, or built once.
fn hardened() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY
        .get_or_init(|| support::shipped("heapwright-hardened", "HEAPWRIGHT_HARDENED_SO"))
        .clone()
}

/// Compiles a program or library once, so that no test writes to a file that another one runs.
fn compile(name: &'static str, flags: &[&str]) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let made = compiled.entry(name).or_insert_with(|| {
        let headers = support::root().join("crates/heapwright-malloc/tests/programs");
        // The C library's own checks are off: tests of its checks call them by their names.
        let own = [&format!("-I{}", headers.display()), "-U_FORTIFY_SOURCE"];
        support::compile(name, How::Plain, &[&own, flags].concat())
    });
    made.clone()
}

fn program(name: &'static str) -> PathBuf {
    compile(name, &[])
}

fn hardened_run(program: &PathBuf, options: &str, words: &[&str]) -> Outcome {
    let mut command = command_with(program, How::Preload, hardened());
    if !options.is_empty() {
        command.env("HEAPWRIGHT", options);
    }
    run(command.args(words))
}

/// Only the checks of bounds make findings, and the program continues.
const DEBUG: &str = "mode=debug,guard=never";

/// The first line of the report contains all of the words.
#[track_caller]
fn was_found(outcome: &Outcome, words: &[&str]) {
    let first = outcome.stderr.lines().next().unwrap_or_default();
    assert!(first.contains("ERROR: heapwright: "), "{outcome:?}");
    for word in words {
        assert!(first.contains(word), "no {word:?} in {first:?}");
    }
}

/// The functions of a list that `writers` prints, and the bytes of a character.
fn listed(list: &str) -> Vec<(String, usize)> {
    let printed = run(support::command(program("writers.c"), How::Plain).arg(list));
    let lines =
        printed.stdout.lines().map(|line| line.split_once(' ').expect("a name and a number"));
    lines.map(|(name, unit)| (name.to_owned(), unit.parse().expect("a number"))).collect()
}

/// The name in a report: `memcpy` for `__memcpy_chk`.
fn plain(name: &str) -> &str {
    let name = name.strip_prefix("__").unwrap_or(name);
    name.strip_suffix("_chk").unwrap_or(name)
}

fn symbols(library: &PathBuf, arguments: &[&str]) -> BTreeSet<String> {
    let output =
        Command::new("nm").args(arguments).arg(library).output().expect("nm (of binutils)");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn destinations_may_be_filled_to_the_last_byte() {
    let writers = program("writers.c");
    run(support::command(&writers, How::Plain).arg("right")).is_fine("the C library alone");
    for options in [
        "",
        "mode=hardened:full",
        "mode=fast",
        "mode=debug",
        "mode=fast,cache=shared:2",
        "detect=-bounds",
    ] {
        hardened_run(&writers, options, &["right"]).is_fine(options);
    }
}

#[test]
fn one_character_more_is_refused() {
    let writers = program("writers.c");
    let all = listed("list");
    assert!(all.len() > 40, "{all:?}");
    for (name, _) in &all {
        let by = format!(", by {} of ", plain(name));
        let outcome = hardened_run(&writers, DEBUG, &["beyond", name]);
        // getcwd's result is shorter than the limit, so it writes nothing beyond the block.
        if plain(name) == "getcwd" {
            let by = format!("{} may write up to ", plain(name));
            was_found(&outcome, &[&by, "beyond the end of a 64-byte block"]);
        } else {
            was_found(&outcome, &["buffer-overflow: write at offset 64 of a 64-byte block", &by]);
        }
    }
    for options in ["", "mode=fast"] {
        for (name, _) in &all {
            let begins = format!("heapwright: {} writes ", plain(name));
            let outcome = hardened_run(&writers, options, &["beyond", name]);
            // Functions that append count their bytes from the first new byte.
            outcome.was_refused(name, &[&begins, " left (block of 64 bytes at 0x"]);
        }
    }
    let exact = "where the block has 64 left (block of 64 bytes at 0x";
    let outcome = hardened_run(&writers, "", &["beyond", "memcpy"]);
    outcome.was_refused("memcpy", &["memcpy writes 65 bytes to 0x", exact]);
    let outcome = hardened_run(&writers, "", &["beyond", "wcscpy"]);
    outcome.was_refused("wcscpy", &["wcscpy writes 68 bytes to 0x", exact]);
    let outcome = hardened_run(&writers, "", &["beyond", "strcat"]);
    outcome.was_refused("strcat", &["strcat writes 64 bytes to 0x", "has 63 left (block of 64"]);
}

#[test]
fn freed_blocks_are_not_written_to() {
    let writers = program("writers.c");
    for (name, _) in listed("list") {
        let begins = format!("heapwright: {} writes ", plain(&name));
        for mode in ["", "mode=fast"] {
            let large = hardened_run(&writers, mode, &["freed", &name]);
            large.was_refused(&name, &[&begins, "where the block was freed"]);
        }
        let small = hardened_run(&writers, "", &["small-freed", &name]);
        small.was_refused(&name, &[&begins, "in a block of ", " bytes at 0x", "that was freed"]);
        let by = format!(", by {} of ", plain(&name));
        let found = hardened_run(&writers, DEBUG, &["small-freed", &name]);
        was_found(&found, &["use-after-free: write at offset 0 of a 64-byte block", &by]);
    }
}

#[test]
fn a_block_ends_where_its_heap_says() {
    let sizes = program("sizes.c");
    for mode in ["", "mode=hardened:full", "mode=debug"] {
        hardened_run(&sizes, mode, &["exact"]).is_fine(mode);
    }
    for mode in ["mode=fast", "mode=fast,cache=shared:2", "mode=fast,cache=percpu"] {
        hardened_run(&sizes, mode, &["usable"]).is_fine(mode);
    }
}

#[test]
fn a_program_may_go_on() {
    let around = program("around.c");
    let outcome = hardened_run(&around, "on_misuse=report", &["signal"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("memset writes 49 bytes to 0x"), "{outcome:?}");
    assert!(outcome.stderr.contains("; detect=-bounds silences this\n"), "{outcome:?}");
    let outcome = hardened_run(&around, "detect=-bounds", &["signal"]);
    assert!(!outcome.stderr.contains("memset writes"), "{outcome:?}");
}

/// The second form of each function runs, from the same table: it checks reads, too.
#[test]
fn in_debug_mode_sources_are_looked_at_too() {
    let writers = program("writers.c");
    for (name, _) in listed("readers") {
        hardened_run(&writers, "mode=debug", &["read", &name]).is_fine(&name);
        let by = format!(", by {} of ", plain(&name));
        let outcome = hardened_run(&writers, DEBUG, &["read-beyond", &name]);
        was_found(&outcome, &["buffer-overflow: read at offset 64 of a 64-byte block", &by]);
    }
}

#[test]
fn threads_signals_and_children_are_checked() {
    let around = program("around.c");
    run(&mut support::command(&around, How::Plain)).is_fine("the C library alone");
    for options in ["", "mode=debug", "mode=fast,cache=shared:2", "mode=fast,cache=percpu"] {
        hardened_run(&around, options, &[]).is_fine(options);
    }
    for how in ["thread", "signal"] {
        hardened_run(&around, "", &[how]).was_refused(how, &["writes 49 bytes", "has 48 left"]);
    }
    for how in ["fork", "vfork"] {
        let outcome = hardened_run(&around, "", &[how]);
        assert!(outcome.status.success(), "{outcome:?}");
        outcome.said_one_line(how, &["memcpy writes 49 bytes", "has 48 left"]);
    }
}

/// A call before the constructor starts the search for the real functions.
#[test]
fn constructors_of_other_libraries_are_checked() {
    let early = compile("early.c", &["-shared", "-fPIC"]);
    let around = program("around.c");
    let both = PathBuf::from(format!("{}:{}", hardened().display(), early.display()));
    let mut command = command_with(&around, How::Preload, both);
    run(&mut command).is_fine("early");
    let outcome = run(command.env("EARLY", "beyond"));
    outcome.was_refused("early", &["memset writes 33 bytes", "has 32 left (block of 32 bytes"]);
}

/// A thread looks up the real functions while the constructor makes the slots read-only.
#[test]
fn a_thread_that_began_before_the_library_does_no_harm() {
    let early = compile("early_threads.c", &["-shared", "-fPIC", "-pthread"]);
    let both = PathBuf::from(format!("{}:{}", hardened().display(), early.display()));
    let mut command = command_with(program("around.c"), How::Preload, both);
    let outcome = run(command.env("HEAPWRIGHT", DEBUG));
    assert!(outcome.status.success(), "{outcome:?}");
    was_found(&outcome, &["read at offset 32 of a 32-byte block", ", by memcpy of "]);
}

#[test]
fn the_names_are_those_that_are_tested() {
    let shown = symbols(&hardened(), &["-D", "--defined-only"]);
    let base = symbols(&support::shared_library(), &["-D", "--defined-only"]);
    let missing: Vec<_> = base.difference(&shown).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let own: BTreeSet<String> = shown.difference(&base).cloned().collect();
    let tested: BTreeSet<String> = listed("list").into_iter().map(|(name, _)| name).collect();
    assert_eq!(own, tested);
    assert!(!base.contains("memcpy"), "libheapwright.so interposes none of them");
}

/// No call, and no word of the offset table, leads to an entry.
#[test]
#[cfg(target_arch = "x86_64")]
fn nothing_of_its_own_is_checked() {
    let read = |tool: &str, arguments: &[&str]| {
        let output = Command::new(tool).args(arguments).arg(hardened()).output().expect("binutils");
        String::from_utf8(output.stdout).expect("text")
    };
    let tested: BTreeSet<String> = listed("list").into_iter().map(|(name, _)| name).collect();
    let mut seen = 0;
    for line in read("readelf", &["-r", "-W"]).lines() {
        let Some(name) = line.split_whitespace().nth(4) else { continue };
        seen += 1;
        let name = name.split('@').next().expect("a word");
        assert!(!tested.contains(name), "{line}");
    }
    assert!(seen > 50, "only {seen} relocations");
    for line in read("objdump", &["-d", "--no-show-raw-insn", "-M", "intel"]).lines() {
        let Some((_, code)) = line.split_once(":\t") else { continue };
        if !code.starts_with("call") && !code.starts_with("jmp") {
            continue;
        }
        let Some(target) =
            code.split_once('<').and_then(|(_, rest)| rest.split(['>', '@', '+']).next())
        else {
            continue;
        };
        assert!(!tested.contains(target), "{line}");
    }
}

/// Returns the place where `packaging/install.sh` has installed the library.
fn installed() -> PathBuf {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    let prefix = PREFIX.get_or_init(|| {
        let folder = support::scratch().join("hardened-given");
        let prefix = support::scratch().join("hardened-prefix");
        for made in [&folder, &prefix] {
            let _ = std::fs::remove_dir_all(made);
        }
        std::fs::create_dir_all(&folder).expect("made");
        for name in ["libheapwright.so", "libheapwright.a"] {
            std::fs::copy(support::library().join(name), folder.join(name)).expect("copied");
        }
        std::fs::copy(hardened(), folder.join("libheapwright_hardened.so")).expect("copied");
        let output = Command::new(support::root().join("packaging/install.sh"))
            .arg(&prefix)
            .env("HEAPWRIGHT_LIBRARY_DIR", &folder)
            .env_remove("DESTDIR")
            .env_remove("LIBDIR")
            .output()
            .expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        prefix
    });
    prefix.join("lib/libheapwright-hardened.so")
}

/// The file's name has a hyphen, as the soname has.
#[test]
fn it_is_installed() {
    let mut command = command_with(program("sizes.c"), How::Preload, installed());
    run(command.arg("exact")).is_fine("installed");
}

/// The dynamic linker ignores `LD_PRELOAD` for set-uid programs, so the library is linked in.
#[test]
fn set_uid_programs_stay_hardened() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = installed().parent().expect("a folder").display().to_string();
    let path = [format!("-L{folder}"), format!("-Wl,-rpath,{folder}")];
    let flags = ["-Wl,--no-as-needed", &path[0], &path[1], "-l:libheapwright-hardened.so"];
    let copy = support::scratch().join("secure-set-uid");
    let _ = std::fs::remove_file(&copy);
    std::fs::copy(compile("secure.c", &flags), &copy).expect("copied");
    if let Err(error) = chown(&copy, Some(65534), Some(65534)) {
        return support::skip(&format!("only root can give a program another owner: {error}"));
    }
    let mode = std::fs::Permissions::from_mode(0o6755);
    std::fs::set_permissions(&copy, mode).expect("an own file");
    let mut command = support::command(&copy, How::Plain);
    let outcome = run(command.env("HEAPWRIGHT", "mode=fast,detect=-bounds,nonsense"));
    if outcome.stdout == "not secure\n" {
        return support::skip("this file system does not honour the set-uid bit");
    }
    outcome.was_refused("set-uid", &["memset writes 14 bytes", "has 13 left (block of 13 bytes"]);
}

/// The library is also bound when it is loaded, and never unloaded.
#[test]
fn it_needs_the_c_library_alone() {
    let output =
        Command::new("readelf").args(["-d", "-W"]).arg(hardened()).output().expect("readelf");
    let dynamic = String::from_utf8(output.stdout).expect("text");
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(needed.len() == 1 && needed[0].contains("[libc.so.6]"), "{needed:?}");
    assert!(dynamic.contains("Library soname: [libheapwright-hardened.so]"), "{dynamic}");
    for flag in ["NOW", "NODELETE"] {
        let is_set = |line: &str| line.contains("(FLAGS_1)") && line.contains(flag);
        assert!(dynamic.lines().any(is_set), "{flag} is not set:\n{dynamic}");
    }
}
