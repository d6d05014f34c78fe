//! Memory limits: near a limit, free memory goes back sooner, and one line reports it.
mod support;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, process, thread};

use support::{How, Outcome, command, compile, run};

fn under(options: &str, words: &[&str]) -> Outcome {
    let program = compile("near_limit.c", How::Preload, &["-ldl"]);
    run(command(&program, How::Preload).args(words).env("HEAPWRIGHT", options))
}

fn left(outcome: &Outcome) -> u32 {
    outcome.stdout.trim().parse().unwrap_or_else(|_| panic!("{outcome:?}"))
}

const LINE: &str = "is at its memory limit: ";

#[test]
fn near_a_limit_free_memory_goes_back_at_once() {
    for (options, words) in [("limit=64m,purge=60000", &[][..]), ("purge=60000", &["set"])] {
        let outcome = under(options, words);
        assert!(left(&outcome) < 45, "{options}: {outcome:?}");
        assert_eq!(outcome.stderr.matches(LINE).count(), 1, "{options}: {outcome:?}");
    }
    // Far from a limit, the delays are the requested ones.
    for options in ["limit=1g,purge=60000", "limit=off,purge=60000"] {
        let outcome = under(options, &["far"]);
        assert!(left(&outcome) > 55, "{options}: {outcome:?}");
        assert!(outcome.stderr.is_empty(), "{options}: {outcome:?}");
    }
}

#[test]
fn at_the_limit_the_heap_profile_is_saved() {
    let folder = std::env::temp_dir().join(format!("near-limit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    let profile = folder.join("p");
    let options = format!("limit=64m,sample=64k,profile={}", profile.display());
    let outcome = under(&options, &[]);
    assert!(outcome.stderr.contains("the heap profile is saved"), "{outcome:?}");
    let files = std::fs::read_dir(&folder).expect("read").count();
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(files, 1);
    // If the user names no file, other users can neither guess its name nor read it.
    let outcome = under("limit=64m,sample=64k", &[]);
    let (_, path) = outcome.stderr.trim().split_once("is saved in ").expect("says where");
    let about = std::fs::symlink_metadata(path).expect("is there");
    std::fs::remove_file(path).expect("removed");
    assert!(about.is_file() && about.permissions().mode() & 0o777 == 0o600, "{about:?}");
    let name = path.strip_prefix("/tmp/heapwright-profile-").expect("among temporary files");
    assert!(name.split_once('.').is_some_and(|(random, _)| random.len() >= 10), "{name}");
}

#[test]
fn in_a_sandbox_no_file_is_opened_and_residency_not_asked_for() {
    let program = compile("kills_for_open.c", How::Preload, &[]);
    for options in
        ["limit=auto", "limit=100m", "publish=no", "mode=debug", "mode=debug,guard=never"]
    {
        let outcome = run(command(&program, How::Preload).env("HEAPWRIGHT", options));
        assert!(outcome.status.success() && outcome.stderr.is_empty(), "{options}: {outcome:?}");
    }
}

fn growing(words: &[&str]) -> Command {
    let program = compile("growing.c", How::Preload, &[]);
    let mut command = command(&program, How::Preload);
    command.args(words);
    command
}

/// A buffer's old memory serves the next buffer, or goes back before that is filled.
#[test]
fn a_buffer_that_grows_is_in_memory_once() {
    for how in [
        "alone",
        "apart",
        "one-by-one",
        "shrinking",
        "calloc",
        "memalign",
        "realloc",
        "alternating",
        "beside-small",
        "threads",
        "beside-stashes",
    ] {
        // On a busy machine a thread may be interrupted while it gives its old buffer back. Meanwhile
        // the others fill new buffers. So the least of three runs counts.
        let runs = if how == "threads" { 3 } else { 1 };
        let least = (0..runs).map(|_| left(&run(&mut growing(&[how])))).min();
        assert!(least.is_some_and(|least| least <= 115), "{how}: {least:?}");
    }
    let outcome = run(&mut growing(&["bursts"]));
    assert!(outcome.status.success(), "{outcome:?}");
}

/// Huge pages lie only under slabs whose slots are touched as a whole.
#[test]
fn a_buffer_takes_only_the_pages_that_are_touched() {
    let outcome = run(&mut growing(&["sparse"]));
    assert!(left(&outcome) <= 150, "{outcome:?}");
}

#[test]
fn a_buffer_that_grows_fits_where_it_is_limited() {
    // (The C library's own allocator needs 135 MB of either limit.)
    for limit in ["data", "as"] {
        for how in ["alone", "apart", "calloc", "memalign"] {
            let outcome = run(&mut growing(&[how, limit, "150"]));
            assert!(outcome.status.success(), "{limit}, {how}: {outcome:?}");
        }
    }
}

/// A control group below this process's own group. Dropping it removes it.
struct Group(PathBuf);

impl Group {
    /// Makes a group below `parent`, perhaps with a limit. Returns `None` if that is impossible.
    fn new(parent: &Path, limit: Option<usize>) -> Option<Self> {
        let group = Self(parent.join(format!("heapwright-test-{}", process::id())));
        fs::create_dir(&group.0).ok()?;
        let is_first = group.0.join("memory.limit_in_bytes").exists();
        let file = if is_first { "memory.limit_in_bytes" } else { "memory.max" };
        match limit {
            Some(limit) => fs::write(group.0.join(file), limit.to_string()).ok().map(|()| group),
            None => Some(group),
        }
    }

    fn run(&self, command: &Command) -> Outcome {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ > $0/cgroup.procs && exec \"$@\""]).arg(&self.0);
        inside.arg("env");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.arg(format!("{}={}", name.display(), value.display())),
                None => inside.arg("-u").arg(name),
            };
        }
        inside.arg(command.get_program()).args(command.get_args());
        run(&mut inside)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // (The kernel may still work on the ended process.)
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The control group has room for one buffer and not for two, by its own limit or its parent's.
#[test]
fn a_buffer_that_grows_fits_into_its_control_group() {
    const LIMIT: usize = 130 << 20;
    let roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
    let Some(group) = roots.iter().find_map(|root| Group::new(root, Some(LIMIT))) else {
        eprintln!("no control group can be made here: nothing was tested");
        return;
    };
    for how in ["alone", "apart", "calloc", "realloc", "beside-small", "threads"] {
        let outcome = group.run(&growing(&[how]));
        assert!(outcome.status.success(), "{how}: {outcome:?}");
    }
    // (In the second version a group has the files only if its parent hands them down.)
    let inner = Group::new(&group.0, None).expect("a group in a group");
    let outcome = inner.run(&growing(&["apart"]));
    assert!(outcome.status.success(), "{outcome:?}");
}
