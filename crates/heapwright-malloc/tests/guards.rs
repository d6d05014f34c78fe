//! Guarded blocks of fast mode (`guard=sample`): their findings, with every block guarded; no
//! finding in correct programs; and programs that run as before.
mod support;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use support::{How, Outcome, command, compile, run};

const SIZES: [&str; 4] = ["8", "48", "4096", "262144"];

fn outcome(options: &str, what: &str, size: &str) -> Outcome {
    let program = compile("guards.c", How::Preload, &[]);
    let mut command = command(&program, How::Preload);
    run(command.env("HEAPWRIGHT", options).args([what, size]))
}

/// Mistakes, words of their reports, and the signal that ends the program (`None`: it continues).
const MISTAKES: [(&str, &str, Option<i32>); 12] = [
    ("overflow-read", "buffer-overflow: read at offset", Some(libc::SIGSEGV)),
    ("overflow-write", "buffer-overflow: write at offset", Some(libc::SIGSEGV)),
    ("underflow-read", "buffer-underflow: read at offset -1 of", Some(libc::SIGSEGV)),
    ("underflow-write", "buffer-underflow: write at offset -1 of", Some(libc::SIGSEGV)),
    ("read-after-free", "use-after-free: read at offset", Some(libc::SIGSEGV)),
    ("write-after-free", "use-after-free: write at offset", Some(libc::SIGSEGV)),
    ("freed-by-another-thread", "use-after-free: read at offset 0", Some(libc::SIGSEGV)),
    ("double-free", "double-free: free of a", Some(libc::SIGABRT)),
    ("interior-free", "interior-free: free of a pointer", Some(libc::SIGABRT)),
    ("realloc-after-free", "realloc-after-free: ", Some(libc::SIGABRT)),
    ("in-a-child", "use-after-free: read at offset 0", None),
    ("late", "buffer-overflow: write of 0x2 at offset 8", None),
];

#[test]
fn every_mistake_with_a_guarded_block_is_named() {
    for (what, words, signal) in MISTAKES {
        for size in SIZES {
            if what == "late" && size != "8" {
                // The other blocks have no byte between their end and the guard.
                continue;
            }
            let outcome = outcome("guard=sample:1", what, size);
            assert_eq!(outcome.status.signal(), signal, "{what} {size}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(words), "{what} {size}: {}", outcome.stderr);
            // The report names the call that made the block, and the call that freed it.
            let frees = usize::from(what.contains("free") || what == "in-a-child");
            let frees = if what == "interior-free" { 0 } else { frees };
            let is_there = |title: &str| outcome.stderr.matches(title).count();
            assert!(is_there("    allocated ") >= 1, "{what} {size}: {}", outcome.stderr);
            assert!(is_there("    freed ") >= frees, "{what} {size}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("guards.c"), "{what} {size}: {}", outcome.stderr);
            // Each mistake gives one report. A late mistake gives two, the second at the end.
            let reports = if what == "late" { 2 } else { 1 };
            assert_eq!(is_there("ERROR: heapwright"), reports, "{what} {size}: {}", outcome.stderr);
        }
    }
}

/// In hardened mode the first block of each stack of a small program stands between guards. Each
/// finding ends the process. With `on_misuse=report` only a fault ends it.
#[test]
fn hardened_mode_guards_first_blocks() {
    for mode in ["hardened", "hardened:full"] {
        // (A first block stands at the end of its page, so a read before it meets no guard.)
        for (what, words, signal) in MISTAKES.iter().filter(|it| !it.0.starts_with("underflow")) {
            for size in SIZES {
                // Large blocks have their own guards. Their late finding is an overflow of 8 bytes.
                if size == "262144" || *what == "late" && size != "8" {
                    continue;
                }
                let outcome = outcome(&format!("mode={mode}"), what, size);
                let signal = if *what == "late" { Some(libc::SIGABRT) } else { *signal };
                assert_eq!(outcome.status.signal(), signal, "{what} {size}: {}", outcome.stderr);
                assert!(outcome.stderr.contains(words), "{what} {size}: {}", outcome.stderr);
            }
        }
        for (what, words) in [("late", "buffer-overflow"), ("double-free", "double-free")] {
            let options = format!("mode={mode},on_misuse=report,guard=sample:1");
            let outcome = outcome(&options, what, "8");
            assert!(outcome.status.success(), "{what}: {:?} {}", outcome.status, outcome.stderr);
            assert!(outcome.stderr.contains(words), "{what}: {}", outcome.stderr);
        }
    }
}

#[test]
fn what_is_right_is_not_remarked() {
    for options in ["guard=sample:1", "guard=sample:2", "guard=sample", "guard=sample:1,memory=64k"]
    {
        for size in SIZES {
            for (what, ..) in MISTAKES {
                outcome(options, &format!("right-{what}"), size).is_fine((options, what, size));
            }
        }
    }
    for size in SIZES {
        outcome("guard=sample:1", "everything", size).is_fine(("everything", size));
    }
}

/// One block in 100 is guarded. Two kinds of calls alternate, and each refill has blocks for
/// equally many calls of both. Each kind must get half of the guarded blocks.
#[test]
fn each_call_has_its_share() {
    for model in ["exclusive", "percpu"] {
        let outcome =
            outcome(&format!("guard=sample:100,memory=64m,cache={model}"), "shares", "40");
        outcome.is_fine(model);
        let shares = outcome.stdout.lines().next().unwrap_or_default().split(' ');
        let shares: Vec<f64> = shares.map(|n| n.parse().expect("a number")).collect();
        // 1000 guarded blocks are expected (deviation 32), 500 of each kind of call (deviation 22).
        // With shared caches a guarded call stands for a whole refill.
        let (least, most) = if model == "exclusive" { (850.0, 1150.0) } else { (250.0, 1150.0) };
        let sum = shares[0] + shares[1];
        assert!((least..=most).contains(&sum), "{model}: {shares:?}");
        let part = shares[0] / sum;
        assert!(model != "exclusive" || (0.4..=0.6).contains(&part), "{model}: {shares:?}");
    }
}

#[test]
fn without_the_option_there_is_none() {
    for what in ["overflow-read", "underflow-read", "read-after-free"] {
        outcome("", what, "48").is_fine(what);
    }
}

#[test]
fn handlers_of_the_program_are_called_after_the_report() {
    for what in ["handled", "right-handled"] {
        let outcome = outcome("guard=sample:1", what, "48");
        assert_eq!(outcome.status.code(), Some(7), "{what}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.contains("use-after-free"), what == "handled");
    }
}

#[test]
fn programs_run_as_before() {
    for name in [
        "malloc_basic.c",
        "realloc_content.c",
        "calloc_zero.c",
        "posix_memalign.c",
        "alignment_sweep.c",
        "aligned_alloc.c",
        "huge_sizes.c",
        "free_errno.c",
        "introspection.c",
        "thread_storm.c",
        "cancelled_threads.c",
        "fork_from_threads.c",
        "atfork_handlers.c",
        "signals.c",
        "cxx_operators.cc",
        "cxx_containers.cc",
        "cxx_overaligned.cc",
    ] {
        let program = compile(name, How::Preload, &[]);
        for model in ["auto", "shared:2", "percpu"] {
            let options = format!("guard=sample:1,cache={model}");
            let mut command = command(&program, How::Preload);
            run(command.env("HEAPWRIGHT", &options)).is_fine((name, options));
        }
    }
}

/// Threads, forks, signals, and a sandbox: with every block guarded, and at the default rate.
#[test]
fn storms_are_survived() {
    // If threads have caches of their own, a handler must not interrupt malloc.
    for (name, model, arguments) in [
        ("thread_handover.c", "auto", &[][..]),
        ("caches_fork.c", "auto", &["4"]),
        ("caches_fork.c", "percpu", &["4"]),
        ("caches_signals.c", "percpu", &["all", "2"]),
        ("caches_fork_signals.c", "shared:2", &["2"]),
        ("caches_sandbox.c", "percpu", &["300"]),
    ] {
        let program = compile(name, How::Preload, &[]);
        for guards in ["guard=sample:1", "guard=sample"] {
            let options = format!("{guards},cache={model}");
            let mut command = command(&program, How::Preload);
            run(command.env("HEAPWRIGHT", &options).args(arguments)).is_fine((name, options));
        }
    }
}

#[test]
fn profiles_traces_and_statistics_go_on() {
    let folder = support::scratch().join("guards");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).display().to_string();
    for (options, file) in [
        (format!("profile={},sample=1k", path("profile")), "profile"),
        (format!("trace={}", path("trace")), "trace"),
        (format!("stats_file={}", path("stats")), "stats"),
    ] {
        let program = compile("thread_storm.c", How::Preload, &[]);
        let mut command = command(&program, How::Preload);
        let options = format!("guard=sample:3,{options}");
        run(command.env("HEAPWRIGHT", &options)).is_fine(&options);
        let files = std::fs::read_dir(&folder).expect("a folder").flatten();
        let written = files.filter(|f| f.file_name().to_string_lossy().starts_with(file));
        assert!(written.count() > 0, "{options}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

/// A program of the system, with all kinds of blocks.
#[test]
fn a_shell_runs_on_guarded_blocks() {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "for i in 1 2 3; do echo $(echo $i | tr 1-3 a-c); done"]);
    shell.env("LD_PRELOAD", support::shared_library()).env("HEAPWRIGHT", "guard=sample:1");
    let outcome = run(&mut shell);
    outcome.is_fine("sh");
    assert_eq!(outcome.stdout, "a\nb\nc\n");
}
