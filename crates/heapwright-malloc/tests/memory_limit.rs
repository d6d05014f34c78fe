//! Memory limits: near one free memory goes back sooner, and one line says that it is near.
mod support;
use std::os::unix::fs::PermissionsExt;
use support::{How, Outcome, command, compile, run};

fn under(options: &str, words: &[&str]) -> Outcome {
    let program = compile("near_limit.c", How::Preload, &["-ldl"]);
    run(command(&program, How::Preload).args(words).env("HEAPWRIGHT", options))
}

/// Megabytes in memory in the end.
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
    // Far from one, as asked.
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
    // Without a name of the user's, others can neither guess the file's name nor read it.
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
