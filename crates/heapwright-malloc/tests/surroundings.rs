//! Little memory, locked memory, no environment, no files, core dumps.
mod support;
use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use support::{How, command, compile, fine, run};

fn limit(command: &mut Command, what: libc::__rlimit_resource_t, bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    let set = move || {
        // SAFETY: the call reads a struct of this function.
        match unsafe { libc::setrlimit(what, &raw const limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: setrlimit is a system call: allowed between fork and exec.
    unsafe { command.pre_exec(set) };
}

#[test]
fn an_address_space_limit_is_shared_with_the_program() {
    for how in [How::Plain, How::Preload, How::Archive, How::Static] {
        let program = compile("exhaustion.c", how, &[]);
        for limit_mib in [100, 300, 1500] {
            for size in ["100", "5000", "100000", "3000000"] {
                let mut command = command(&program, how);
                limit(command.arg(size), libc::RLIMIT_AS, limit_mib << 20);
                run(&mut command).is_fine((how, limit_mib, size));
            }
        }
    }
}

#[test]
fn a_program_runs_in_very_little_address_space() {
    for how in [How::Preload, How::Archive, How::Static] {
        let program = compile("allocates.c", how, &[]);
        for limit_mib in [40, 64, 200, 1 << 10, 64 << 10, 3 << 20] {
            let mut command = command(&program, how);
            limit(&mut command, libc::RLIMIT_AS, limit_mib << 20);
            let outcome = run(&mut command);
            outcome.is_fine((how, limit_mib));
        }
    }
}

#[test]
fn a_program_may_limit_itself() {
    for how in support::EVERY_WAY {
        let program = compile("rlimit_as_late.c", how, &[]);
        for by in ["setrlimit", "prlimit", "getpid"] {
            let mut command = command(&program, how);
            // The C library's own heap reserves up to 128 MiB for every thread that starts while
            // another one allocates. That would be all of the remaining limit.
            command.arg(by).env("MALLOC_ARENA_MAX", "1");
            run(&mut command).is_fine((how, by));
        }
    }
}

#[test]
fn memory_may_be_locked() {
    fine("locked_memory.c", &support::EVERY_WAY);
}

/// Without the privilege, the kernel compares the limit of locked memory with the address space.
#[test]
fn locked_memory_may_be_limited() {
    for how in [How::Plain, How::Preload, How::Archive, How::Static] {
        let program = compile("locked_memory.c", how, &[]);
        // The default of a distribution: no program may raise this limit.
        let mut command = command(&program, how);
        limit(&mut command, libc::RLIMIT_MEMLOCK, 8 << 20);
        // SAFETY: geteuid has no preconditions.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(65534).gid(65534);
        }
        run(&mut command).is_fine(how);
    }
}

#[test]
fn what_is_written_raises_no_signal() {
    fine("own_writes.c", &[How::Preload, How::Archive]);
    let program = compile("own_writes.c", How::Preload, &[]);
    let folder = std::env::temp_dir().join(format!("own-writes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    for option in ["mode=debug,quiet=yes,record", "stats_file", "trace", "sample=4k,profile"] {
        let options = format!("{option}={}", folder.join("file").display());
        let mut command = command(&program, How::Preload);
        let outcome = run(command.arg("limited").env("HEAPWRIGHT", &options));
        assert!(outcome.status.success(), "{options}: {outcome:?}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn nothing_is_needed_of_the_environment() {
    for how in [How::Plain, How::Linked, How::Archive, How::Static] {
        let program = compile("empty_world.c", how, &[]);
        let mut command = command(&program, how);
        command.env_clear().arg("again");
        assert!(run(&mut command).status.success(), "{how:?}");
    }
    // A preloaded program needs the one variable.
    let program = compile("empty_world.c", How::Preload, &[]);
    let mut command = Command::new(program);
    command.env_clear().env("LD_PRELOAD", support::shared_library());
    support::without_files(&mut command, &[0, 1, 2]);
    assert!(run(&mut command).status.success());
}

#[test]
fn core_dumps_stay_small() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') || pattern.contains('/') {
        return support::skip("core dumps do not go to a file in the working directory");
    }
    for how in [How::Preload, How::Archive] {
        let directory = support::scratch().join(format!("core-{how:?}"));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("the target directory can be written");
        let program = compile("dumps_core.c", how, &[]);
        let mut command = command(&program, how);
        command.current_dir(&directory);
        limit(&mut command, libc::RLIMIT_CORE, libc::RLIM_INFINITY);
        let outcome = run(&mut command);
        assert_eq!(outcome.status.signal(), Some(libc::SIGABRT), "{outcome:?}");
        let core = std::fs::read_dir(&directory)
            .expect("the directory can be read")
            .map(|entry| entry.expect("an entry").path())
            .next();
        let Some(core) = core else { return support::skip("no core file was written") };
        let size = std::fs::metadata(&core).expect("the file is there").len();
        let _ = std::fs::remove_dir_all(&directory);
        // The program holds 2 MB; glibc, stacks and code are some more.
        assert!(size > 2 << 20 && size < 12 << 20, "{how:?}: {size} bytes");
    }
}

#[test]
fn a_program_may_have_as_many_mappings_as_there_can_be() {
    fine("mapping_limit.c", &support::EVERY_WAY);
    for options in ["cache=shared:2", "cache=percpu", "mode=debug"] {
        let program = compile("mapping_limit.c", How::Preload, &[]);
        run(command(&program, How::Preload).env("HEAPWRIGHT", options)).is_fine(options);
    }
}

#[test]
fn the_kernel_may_move_a_block_in_part() {
    let program = compile("moved_in_part.c", How::Preload, &["-rdynamic"]);
    for count in ["0", "1", "2", "3"] {
        for what in ["back", "gone"] {
            let outcome = run(command(&program, How::Preload).args([count, what]));
            outcome.is_fine((count, what));
            // An emulator may not know how to move pages.
            let is_emulated = std::env::var_os("HEAPWRIGHT_TEST_RUNNER").is_some();
            assert!(is_emulated || outcome.stdout == "1\n", "{count}: {}", outcome.stdout);
        }
    }
}

/// The program exports its symbols, so it sees the library's calls of the kernel first.
#[test]
fn the_kernel_may_refuse_guards() {
    let program = compile("refused_guards.c", How::Preload, &["-rdynamic"]);
    for what in ["first", "removal", "some"] {
        let mut command = command(&program, How::Preload);
        command.arg(what).env("HEAPWRIGHT", "mode=debug,guard=all,memory=1m");
        run(&mut command).is_fine(what);
    }
}

fn modes() -> Vec<(std::path::PathBuf, &'static str)> {
    let plain = support::shared_library();
    let hardened = support::shipped("heapwright-hardened", "HEAPWRIGHT_HARDENED_SO");
    let check = support::shipped("heapwright-check", "HEAPWRIGHT_CHECK_SO");
    let mut modes: Vec<_> = [
        "",
        "cache=exclusive,purge=10",
        "cache=shared:2",
        "cache=percpu,purge=10",
        "limit=64m",
        "sample=64k",
        "stats=exit",
        "mode=hardened",
        "mode=hardened:full",
        "mode=hardened,stats=exit",
        "mode=debug",
        "mode=debug,guard=all",
        "mode=debug,leaks=exit,guard=never",
    ]
    .map(|options| (plain.clone(), options))
    .into();
    modes.push((hardened, "mode=hardened"));
    modes.push((check, "mode=debug"));
    modes
}

fn in_sandbox(arguments: [&str; 4], library: &std::path::Path, options: &str) -> support::Outcome {
    let program = compile("sandbox.c", How::Preload, &[]);
    let mut command = support::command_with(&program, How::Preload, library.to_path_buf());
    run(command.args(arguments).env("HEAPWRIGHT", options))
}

/// The heap reads facts from the kernel when it is loaded. A program with one thread may then set a
/// filter that kills for any other call. The program continues.
#[test]
fn a_sandbox_leaves_the_calls_for_memory_and_the_heap_makes_no_other() {
    for (library, options) in modes() {
        for when in ["cold", "warm"] {
            let outcome = in_sandbox([when, "kill", "prctl", "exit"], &library, options);
            if !outcome.status.success() {
                let said = in_sandbox([when, "say", "prctl", "exit"], &library, options);
                panic!("{} {options} {when}: {outcome:?}\n{}", library.display(), said.stderr);
            }
        }
        let other = in_sandbox(["cold", "kill", "seccomp", "_exit"], &library, options);
        assert!(other.status.success(), "{options}: {other:?}");
    }
    // Options that write files at the end write none.
    let library = support::shared_library();
    let files = std::env::temp_dir().join(format!("sandbox-files-{}", std::process::id()));
    for option in ["trace=", "record=", "profile=", "stats=exit,stats_file="] {
        let options = format!("mode=debug,{option}{}", files.display());
        let outcome = in_sandbox(["warm", "kill", "prctl", "exit"], &library, &options);
        assert!(outcome.status.success(), "{options}: {outcome:?}");
    }
}

#[test]
fn a_sandbox_leaves_the_line_about_a_mistake() {
    for options in ["", "mode=hardened", "mode=debug"] {
        let library = support::shared_library();
        let outcome = in_sandbox(["warm", "kill", "prctl", "wrong"], &library, options);
        assert!(outcome.stderr.contains("heapwright: "), "{options}: {outcome:?}");
        assert_eq!(outcome.status.success(), options == "mode=debug", "{options}: {outcome:?}");
    }
}

/// The kernel's strict mode leaves no call for memory. The heap serves requests from its memory at
/// hand, and refuses others.
#[test]
fn the_strict_sandbox_leaves_what_is_at_hand() {
    for (library, options) in modes() {
        for when in ["cold", "warm"] {
            let outcome = in_sandbox([when, "strict", "prctl", "exit"], &library, options);
            assert!(outcome.status.success(), "{options} {when}: {outcome:?}");
        }
    }
}

/// A coroutine's stack is small. A program's own tests may not meet a rare call that needs more.
#[test]
#[cfg(target_arch = "x86_64")]
fn each_entry_point_gets_by_with_a_small_stack() {
    // (Functions are bound first, because the loader saves the machine's registers on the stack.
    // The C++ library allocates before `main`.)
    let (bound, cxx) = ("-Wl,--no-as-needed,-z,now", "-lstdc++");
    for flags in [&["-pthread", bound, cxx][..], &["-pthread", bound]] {
        let program = compile("stack_need.c", How::Preload, flags);
        for (options, most) in [
            ("", "4096"),
            ("cache=exclusive,purge=10", "4096"),
            ("cache=shared:2,purge=10", "4096"),
            ("cache=percpu,purge=10", "4096"),
            ("sample=64k", "4096"),
            ("guard=sample", "4096"),
            ("mode=hardened", "4096"),
            ("mode=hardened:full", "4096"),
            ("mode=debug", "8192"),
            ("mode=debug,guard=all", "8192"),
        ] {
            let outcome = run(command(&program, How::Preload).arg(most).env("HEAPWRIGHT", options));
            outcome.is_fine((options, most, flags));
        }
    }
}

/// The words in back quotes of one row of a table in docs/preload.md, a set for each column.
/// `table` and `row` are the first cells of the table and of the row.
fn row(table: &str, row: &str) -> Vec<BTreeSet<String>> {
    let text = std::fs::read_to_string(support::root().join("docs/preload.md")).expect("the page");
    let (_, text) = text.split_once(&format!("| {table} |")).expect("the table");
    let line = text
        .lines()
        .take_while(|line| !line.is_empty() || !line.starts_with('#'))
        .find(|line| line.starts_with(&format!("| {row} |")));
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    line.expect("the row").trim_matches('|').split(" |").skip(1).map(words).collect()
}

/// The system calls, opened files and signals with a handler that `strace` sees in a program.
fn traced(program: &std::path::Path, options: Option<&str>) -> [BTreeSet<String>; 3] {
    let log = support::scratch().join("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log);
    if let Some(options) = options {
        strace.arg("-E").arg(format!("LD_PRELOAD={}", support::shared_library().display()));
        strace.arg("-E").arg(format!("HEAPWRIGHT={options}"));
    }
    let outcome = run(strace.arg(program).arg("1000000"));
    assert!(outcome.status.success(), "{options:?}: {outcome:?}");
    let (mut calls, mut files, mut signals) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in std::fs::read_to_string(&log).expect("the log").lines() {
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let Some((call, arguments)) = line.split_once('(') else { continue };
        let call = if call == "syscall_0x1ce" { "mseal" } else { call };
        if call.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            calls.insert(call.to_owned());
        }
        if call == "openat" {
            files.extend(arguments.split('"').nth(1).map(str::to_owned));
        }
        let sets = |how: &str| !how.contains("sa_handler=SIG_");
        if call == "rt_sigaction"
            && let Some((signal, how)) = arguments.split_once(", {")
            && how.split(',').next().is_some_and(sets)
        {
            signals.insert(signal.to_owned());
        }
    }
    [calls, files, signals]
}

/// docs/preload.md names each system call, file and signal that the library uses in a program's
/// process. Each call that it lists as always made is made.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_tables_of_what_is_used_say_what_strace_sees() {
    if Command::new("strace").arg("-V").output().is_err() {
        return support::skip("there is no strace");
    }
    let flags = ["-pthread", "-Wl,--no-as-needed,-z,now", "-lstdc++"];
    let program = compile("stack_need.c", How::Preload, &flags);
    let [plain_calls, plain_files, plain_signals] = traced(&program, None);
    let page = std::fs::read_to_string(support::root().join("docs/preload.md")).expect("the page");
    for (options, rows) in [
        ("publish=no", &[][..]),
        ("cache=percpu", &["`publish=yes`, the default"]),
        ("mode=hardened", &["`publish=yes`, the default", "`mode=hardened`"]),
        ("mode=debug", &["`publish=yes`, the default", "`mode=debug`"]),
        (
            "mode=debug,leaks=exit",
            &["`publish=yes`, the default", "`mode=debug`", "`mode=debug,leaks=exit`"],
        ),
        ("stats=exit", &["`publish=yes`, the default", "`stats=exit`"]),
    ] {
        let [calls, files, signals] = traced(&program, Some(options));
        let mut columns = row("system calls", "every mode");
        for of_mode in rows.iter().map(|name| row("system calls", name)) {
            for (all, more) in columns.iter_mut().zip(of_mode) {
                all.extend(more);
            }
        }
        let is_named = |call: &String| columns.iter().any(|column| column.contains(call));
        let unnamed: Vec<_> = calls.difference(&plain_calls).filter(|&c| !is_named(c)).collect();
        let missing: Vec<_> = columns[0].difference(&calls).collect();
        assert!(
            unnamed.is_empty() && missing.is_empty(),
            "{options}: {unnamed:?} are not in the table; {missing:?} are not made"
        );
        for file in files.difference(&plain_files).filter(|file| !file.contains("libheapwright")) {
            let runtime = std::env::var("XDG_RUNTIME_DIR").unwrap_or("none".to_owned());
            let file = file.replacen(&runtime, "/dev/shm", 1);
            let name = file.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(&file);
            let is_named =
                name.starts_with("/sys/fs/cgroup") || page.contains(&format!("`{name}`"));
            assert!(is_named, "{options}: {file} is not in the table");
        }
        for signal in signals.difference(&plain_signals) {
            // The table names the first and the last real-time signal.
            let is_real_time = signal.starts_with("SIGRT_") && signal != "SIGRT_1";
            let signal = if is_real_time { "SIGRT_32" } else { signal };
            assert!(page.contains(&format!("`{signal}`")), "{options}: {signal}");
        }
    }
}
