//! Programs on tight or strange machines: limits, other address layouts, hostile environments, no
//! overcommit, kernels that lack system calls.
//!
//! These tests take minutes and need tools (valgrind, perl, setarch), so `cargo test` leaves them
//! out; `ci/test.sh -p heapwright-malloc --test limits -- --ignored` runs them.
mod support;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{How, Outcome, command_with, compile, run, shared_library, shipped, skip};

/// Runs a row's text in a shell. `$PRE` preloads the library into the row's program alone, not into
/// the tools around it; `$A` is allocates.c, `$T` tight.c.
fn shell(text: &str, pre: &str) -> Outcome {
    let mut command = Command::new("bash");
    command.args(["-c", text]).env("PRE", pre).env_remove("LD_PRELOAD").env_remove("HEAPWRIGHT");
    command.env("A", compile("allocates.c", How::Preload, &[]));
    command.env("T", compile("tight.c", How::Preload, &[]));
    run(&mut command)
}

/// Tests that a row ends well under the preload. Skips a row that fails without the preload.
#[track_caller]
fn row(text: &str) {
    let plain = shell(text, "");
    if !plain.status.success() {
        return skip(&format!("fails without the preload, too: {text}: {}", plain.stderr));
    }
    let outcome = shell(text, &format!("env LD_PRELOAD={}", shared_library().display()));
    assert!(outcome.status.success(), "{text}: {outcome:?}");
}

#[track_caller]
fn rows(texts: &[&str]) {
    texts.iter().copied().for_each(row);
}

const PERL: &str =
    r#"perl -e 'my %h; push @{$h{$_ % 97}}, "x" x ($_ % 300) for 1 .. 20000; print %h + 0'"#;

/// glibc fits 290 to 305 MB into 300,000 KiB. In debug mode guards and records take a quarter.
#[test]
#[ignore = "long; the steps limits and kernels of .ci/run have it"]
fn address_space() {
    row(&format!("ulimit -v 65536; $PRE {PERL}"));
    row("ulimit -v 300000; PYTHONMALLOC=malloc $PRE python3 -c \
         'import json; print(len(json.dumps(list(range(100000)))))'");
    row("ulimit -v 300000; HEAPWRIGHT=mode=debug $PRE $T fill 200");
    for options in ["mode=fast", "cache=shared:2", "cache=percpu", "mode=debug"] {
        if options != "mode=debug" {
            row(&format!("ulimit -v 300000; HEAPWRIGHT={options} $PRE $T fill 281"));
        }
        row(&format!("ulimit -v 300000; HEAPWRIGHT={options} $PRE $T mixed"));
        row(&format!("HEAPWRIGHT={options} $PRE $T answers"));
        row(&format!("HEAPWRIGHT={options} $PRE $T more"));
    }
    for limit in ["-v", "-d"] {
        for options in ["mode=fast", "mode=hardened", "mode=debug"] {
            let limited = format!("ulimit {limit} 400000; HEAPWRIGHT={options}");
            row(&format!("{limited} $PRE $T longer 340"));
        }
    }
    // At least half of the limit above the first 12 MB is usable, and more under larger limits.
    let preload = format!("env HEAPWRIGHT=mode=debug LD_PRELOAD={}", shared_library().display());
    let mut last = 0;
    for megabytes in [20, 30, 40, 50, 60, 80, 100, 200, 400] {
        let said = shell(&format!("ulimit -v {megabytes}000; $PRE $T share"), &preload);
        let fits: u64 = said.stdout.trim().parse().unwrap_or(0);
        assert!(fits >= (megabytes - 12) / 2 && fits > last, "{megabytes}: {said:?} after {last}");
        last = fits;
    }
}

/// Also limits that the program sets itself, once the heap has reserved addresses.
#[test]
#[ignore = "long; the steps limits and kernels of .ci/run have it"]
fn a_heap_that_was_full_serves_all_sizes_again() {
    for options in ["mode=fast", "mode=hardened", "mode=hardened:full", "mode=debug"] {
        let pre = format!("HEAPWRIGHT={options} $PRE");
        for size in [1000, 100_000] {
            for (flag, megabytes) in [("v", 300), ("d", 200)] {
                row(&format!("{pre} $T recover {flag} {megabytes} {size}"));
            }
            row(&format!("ulimit -v 500000; {pre} $T recover v 0 {size}"));
            row(&format!("ulimit -d 300000; {pre} $T recover d 0 {size}"));
        }
        row(&format!("{pre} $T lock"));
        row(&format!("{pre} bash -c 'ulimit -v 8000000; x=$(seq 20000); echo ${{#x}} | cat'"));
        // (glibc needs 40 MB.)
        row(&format!("ulimit -d 65536; {pre} $A"));
    }
}

#[test]
#[ignore = "long; the steps limits and kernels of .ci/run have it"]
fn other_limits_and_layouts() {
    rows(&[
        "ulimit -d 65536; $PRE $A",
        "ulimit -s unlimited; $PRE $A",
        "ulimit -n 4; $PRE $A",
        "ulimit -m 1024; $PRE $A",
        // A shell limits itself, and the programs that it starts have windows that fit.
        "$PRE bash -c 'ulimit -v 120000; x=$(seq 20000); echo ${#x} | cat; \
         for i in 1 2 3; do (echo $i); done; perl -e \"print 1\"; $A'",
        "setarch -R $PRE $A",
        "setarch -L $PRE $A",
        "setarch -X $PRE $A",
        "setarch -Z $PRE $A",
        "$PRE valgrind -q --tool=none $A",
        &format!("$PRE valgrind -q --tool=none {PERL}"),
    ]);
}

#[test]
#[ignore = "long; the steps limits and kernels of .ci/run have it"]
fn environments() {
    rows(&[
        "MALLOC_CHECK_=3 MALLOC_PERTURB_=170 MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=0 \
         GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.check=3:glibc.malloc.hugetlb=1 \
         $PRE $A",
        "export A1=$(head -c 100000 /dev/zero | tr '\\0' x); export A2=$A1 A3=$A1 A4=$A1; $PRE $A",
        "$PRE $A <&- 2>&-",
        "$PRE $A <&- >&- 2>&- || [ $? -eq 1 ]",
        "LD_BIND_NOW=1 $PRE $A",
        "$PRE $PRE $A",
    ]);
    // Options that mean nothing: the program runs on.
    let commas = ",".repeat(5000);
    for options in ["foo=bar", "purge=never-ever", "=,,=", "window=1", "mode=nonsense", &commas] {
        row(&format!("HEAPWRIGHT='{options}' $PRE $A"));
    }
    for window in ["16m", "64m", "1g", "64g", "100t", "99999999999999t"] {
        row(&format!("HEAPWRIGHT=window={window} $PRE $A"));
    }
}

/// The setting is for the whole machine. So this runs only on request, with a ratio that leaves
/// gigabytes above the memory in use. It takes seconds, and restores the setting.
#[test]
#[ignore = "long; the steps limits and kernels of .ci/run have it"]
fn memory_may_be_strictly_accounted() {
    let setting = |name: &str| PathBuf::from(format!("/proc/sys/vm/overcommit_{name}"));
    let set = |name: &str, value: &str| std::fs::write(setting(name), value).is_ok();
    let free = "awk '/^MemTotal/ { t = $2 } /^SwapTotal/ { s = $2 } /^Committed_AS/ { c = $2 } \
                END { exit !(t * 0.95 + s - c > 3 * 1024 * 1024) }' /proc/meminfo";
    if std::env::var_os("HEAPWRIGHT_TEST_OVERCOMMIT").is_none() {
        return skip("HEAPWRIGHT_TEST_OVERCOMMIT=1 allows this test to change the machine");
    }
    if !shell(free, "").status.success() {
        return skip("too much is committed on this machine");
    }
    let before = ["ratio", "memory"].map(|name| {
        (name, std::fs::read_to_string(setting(name)).expect("Linux has this setting"))
    });
    if !set("ratio", "95") || !set("memory", "2") {
        return skip("the machine's settings cannot be changed");
    }
    let result = std::panic::catch_unwind(|| {
        rows(&[
            "$PRE $A",
            &format!("$PRE {PERL}"),
            "$PRE bash -c 'for i in 1 2 3; do (seq 1000 | sort -n | tail -1); done'",
            "ulimit -v 512000; $PRE $T mixed",
            "$PRE $T more",
        ]);
        assert!(set("memory", "1"));
        rows(&["$PRE $T more", "HEAPWRIGHT=mode=debug $PRE $T more"]);
    });
    assert!(before.iter().all(|(name, value)| set(name, value)));
    result.expect("all rows hold");
}

/// A call that a kernel may refuse, or one operation of it: an argument, and its value.
type Refused = (&'static str, i64, Option<(u32, u32)>);

fn calls() -> Vec<Vec<Refused>> {
    let madvise = |name, advice| (name, libc::SYS_madvise, Some((2, advice)));
    // The numbers are the kernel's.
    let together = vec![
        ("rseq", libc::SYS_rseq, None),
        ("membarrier", libc::SYS_membarrier, None),
        ("mincore", libc::SYS_mincore, None),
        ("mseal", 462, None),
        madvise("MADV_HUGEPAGE", 14),
        madvise("MADV_NOHUGEPAGE", 15),
        madvise("MADV_DONTDUMP", 16),
        madvise("MADV_POPULATE_WRITE", 23),
        madvise("MADV_COLLAPSE", 25),
        madvise("MADV_GUARD_INSTALL", 102),
    ];
    let alone = [
        ("madvise", libc::SYS_madvise, None),
        madvise("MADV_DONTNEED", 4),
        ("mremap", libc::SYS_mremap, None),
        ("getrandom", libc::SYS_getrandom, None),
        ("sysinfo", libc::SYS_sysinfo, None),
        ("prctl", libc::SYS_prctl, None),
        ("prlimit64", libc::SYS_prlimit64, None),
        ("sched_getaffinity", libc::SYS_sched_getaffinity, None),
        ("sched_yield", libc::SYS_sched_yield, None),
        ("fstatfs", libc::SYS_fstatfs, None),
        ("fallocate", libc::SYS_fallocate, None),
        ("readlinkat", libc::SYS_readlinkat, None),
        #[cfg(target_arch = "x86_64")]
        ("readlink", libc::SYS_readlink, None),
        ("getcwd", libc::SYS_getcwd, None),
        ("sigaltstack", libc::SYS_sigaltstack, None),
        ("ppoll", libc::SYS_ppoll, None),
    ];
    // The kernel of a sandbox (gVisor) lacks all of the calls in `together`.
    let each = together.iter().copied().chain(alone).map(|call| vec![call]);
    each.chain([together.clone()]).collect()
}

fn refuse(command: &mut Command, calls: &[Refused], error: i32) {
    let filter = |&(_, number, which): &Refused| {
        let statement = |code, k| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
        let jump = |k, jf| libc::sock_filter { jf, ..statement(EQUALS, k) };
        const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        const EQUALS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let number = u32::try_from(number).expect("a small number");
        let (argument, value) = which.unwrap_or((0, 0));
        let is_any = which.is_none();
        vec![
            statement(LOAD, 0),
            jump(number, 3),
            statement(LOAD, 16 + 8 * argument),
            jump(value, u8::from(!is_any)),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | error as u32),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        ]
    };
    let mut filters: Vec<Vec<libc::sock_filter>> = calls.iter().map(filter).collect();
    let install = move || {
        // SAFETY: an operation with numbers alone.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        for filter in &mut filters {
            let len = filter.len() as libc::c_ushort;
            let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
            let mode = libc::SECCOMP_MODE_FILTER;
            // SAFETY: the kernel copies the program, which lies here.
            if unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: prctl is a system call: allowed between fork and exec.
    unsafe { command.pre_exec(install) };
}

/// An old kernel answers ENOSYS, a container EPERM, gVisor EINVAL. In each mode a program with
/// threads ends as it does without the library. The library may write at most one line.
#[test]
#[ignore = "long; the steps limits and kernels of .ci/run have it"]
fn kernels_may_lack_calls() {
    let plain = shared_library();
    let mut modes: Vec<(PathBuf, &str)> = [
        "mode=fast",
        "mode=debug,guard=all",
        "mode=debug,guard=never",
        "mode=hardened:full",
        "cache=shared:2",
        "cache=percpu",
    ]
    .map(|options| (plain.clone(), options))
    .into();
    modes.push((shipped("heapwright-hardened", "HEAPWRIGHT_HARDENED_SO"), ""));
    modes.push((shipped("heapwright-check", "HEAPWRIGHT_CHECK_SO"), ""));
    let program = compile("allocates.c", How::Preload, &[]);
    let under = |how, library: &Path, options: &str, calls: &[Refused], error| {
        let mut command = command_with(&program, how, library.to_path_buf());
        refuse(command.env("HEAPWRIGHT", options), calls, error);
        run(&mut command)
    };
    let mut held = 0;
    for calls in calls() {
        let name = calls.iter().map(|call| call.0).collect::<Vec<_>>().join("+");
        for error in [libc::ENOSYS, libc::EPERM, libc::EINVAL] {
            if !under(How::Plain, &plain, "", &calls, error).status.success() {
                skip(&format!("{name}: {error}: fails without the library, too"));
                continue;
            }
            for (library, options) in &modes {
                let outcome = under(How::Preload, library, options, &calls, error);
                let what = (name.as_str(), error, library.display(), options);
                assert!(outcome.status.success(), "{what:?}: {outcome:?}");
                assert!(outcome.stderr.lines().count() <= 1, "{what:?}: {outcome:?}");
                held += 1;
            }
        }
    }
    assert!(held > 0, "no row could be tried");
    // The filter itself must answer, or the rows prove nothing.
    let mut asks = Command::new("taskset");
    refuse(asks.args(["-p", "1"]), &[("", libc::SYS_sched_getaffinity, None)], libc::EPERM);
    assert!(!run(&mut asks).status.success(), "the filter did not take effect");
}
