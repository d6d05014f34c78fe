//! The option string `HEAPWRIGHT`.
mod support;
use support::{How, Outcome, command, compile, run};

fn with(options: &str) -> Vec<Outcome> {
    [How::Preload, How::Linked, How::Archive, How::Static]
        .map(|how| {
            let program = compile("allocates.c", how, &[]);
            run(command(&program, how).env("HEAPWRIGHT", options))
        })
        .into()
}

#[test]
fn good_options_are_silent() {
    for options in [
        "",
        ",",
        "mode=fast",
        "cache=exclusive",
        "purge=0",
        "purge=100",
        "purge=20..3000",
        "purge=never",
        "window=1g",
        "stats=off",
        "mode=fast,purge=7,window=64g",
        "mode=hardened",
        "mode=hardened:light,cache=auto",
        "mode=hardened:full,purge=7,window=64g,huge_pages=never",
        "on_misuse=report,mode=hardened",
        "mode=hardened,on_misuse=abort,detect=-canary,detect=-fill,detect=+fill",
        "on_misuse=abort",
    ] {
        for outcome in with(options) {
            outcome.is_fine(options);
        }
    }
}

#[test]
fn a_bad_option_is_one_line_and_the_program_runs_on() {
    for (options, words) in [
        ("frobnicate=1", vec!["\"frobnicate=1\"", "unknown", "purge", "(ignored)"]),
        ("frobnicate", vec!["\"frobnicate\"", "unknown"]),
        // (The option exists only in the build for tests.)
        ("page=64k", vec!["\"page=64k\"", "unknown"]),
        ("purge=soon", vec!["\"purge=soon\"", "(ignored)"]),
        ("purge=3..2", vec!["\"purge=3..2\"", "250..5500", "(ignored)"]),
        ("purge=", vec!["\"purge=\"", "(ignored)"]),
        (
            "mode=hardened:medium",
            vec![
                "\"mode=hardened:medium\"",
                "hardened (or hardened:light)",
                "hardened:full",
                "(ignored)",
            ],
        ),
        // Options that the hardened heap ignores, with `mode` anywhere; and its own options.
        ("mode=hardened,cache=shared:2", vec!["\"cache\"", "has no effect with mode=hardened"]),
        ("cache=percpu,mode=hardened:full", vec!["\"cache\"", "has no effect with mode=hardened"]),
        ("mode=hardened,sample=512k", vec!["\"sample\"", "has no effect with mode=hardened"]),
        ("mode=hardened,guard=all", vec!["\"guard=all\"", "has no effect without mode=debug"]),
        ("mode=hardened,on_misuse=shout", vec!["\"on_misuse=shout\"", "must be abort or report"]),
        ("mode=hardened,detect=-everything", vec!["\"detect=-everything\"", "double-free"]),
        ("on_misuse=report", vec!["\"on_misuse\"", "has no effect without mode=hardened"]),
        (
            "mode=hardened,on_misuse=report,mode=fast",
            vec!["\"on_misuse\"", "without mode=hardened"],
        ),
        ("detect=-canary", vec!["\"detect=-canary\"", "without mode=debug or mode=hardened"]),
        ("mode=quick", vec!["\"mode=quick\"", "(ignored)"]),
        ("window=0", vec!["\"window=0\"", "(ignored)"]),
        ("stats=exit=1", vec!["\"stats=exit=1\"", "(ignored)"]),
        ("purge=5,frobnicate=1,mode=fast", vec!["\"frobnicate=1\""]),
        ("guard=all", vec!["\"guard=all\"", "has no effect without mode=debug", "(ignored)"]),
        (
            "leaks=exit,mode=fast",
            vec!["\"leaks=exit\"", "has no effect without mode=debug", "(ignored)"],
        ),
    ] {
        for outcome in with(options) {
            assert!(outcome.status.success(), "{options}: {outcome:?}");
            assert_eq!(outcome.stdout, "plain\n");
            outcome.said_one_line(options, &words);
        }
    }
}

#[test]
fn two_bad_options_are_two_lines() {
    for outcome in with("left=1,right=2") {
        assert!(outcome.status.success());
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("\"left=1\"") && lines[1].contains("\"right=2\""));
    }
}

#[test]
fn a_very_long_string_does_no_harm() {
    for outcome in with(&"x".repeat(100_000)) {
        assert!(outcome.status.success());
        assert!(outcome.stderr.starts_with("heapwright: ") || outcome.stderr.is_empty());
        assert!(outcome.stderr.len() < 2000);
    }
}

/// A set-uid program must not obey its caller's environment. (The dynamic linker ignores
/// `LD_PRELOAD` there, so the library is linked in.)
#[test]
fn set_uid_programs_ignore_the_options() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let program = compile("allocates.c", How::Archive, &[]);
    let copy = support::scratch().join("allocates-set-uid");
    let _ = std::fs::remove_file(&copy);
    std::fs::copy(&program, &copy).expect("the program can be copied");
    if let Err(error) = chown(&copy, Some(65534), Some(65534)) {
        return support::skip(&format!("only root can give a program another owner: {error}"));
    }
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o6755))
        .expect("the mode of an own file can be set");
    let outcome = run(
        command(&copy, How::Archive).env("HEAPWRIGHT", "nonsense,stats=exit,stats_file=/tmp/x")
    );
    if outcome.stdout != "secure\n" {
        return support::skip("this file system does not honour the set-uid bit");
    }
    outcome.is_fine("set-uid");
}

/// The output of a program that prints undefined bytes: bytes, and whether they are uninitialised.
fn bytes_with(options: &str) -> Vec<(u8, bool)> {
    let program = compile("undefined_bytes.c", How::Preload, &[]);
    let options = format!("mode=debug,{options}");
    let outcome = run(command(&program, How::Preload).env("HEAPWRIGHT", &options));
    outcome.is_fine(&options);
    let lines = outcome.stdout.lines().map(|line| line.split_once(' ').expect("two words"));
    let pairs = lines.flat_map(|(bytes, marks)| {
        let byte = |at: usize| u8::from_str_radix(&bytes[at..at + 2], 16).expect("is a number");
        let all = (0..bytes.len()).step_by(2);
        all.map(|at| (byte(at), &marks[at..at + 2] == "**")).collect::<Vec<_>>()
    });
    pairs.collect()
}

#[test]
fn what_nobody_has_written_holds_what_fill_says() {
    for guard in ["never", "sample", "all"] {
        let [zeros, one, same, two, three] =
            [0, 1, 1, 2, 3].map(|seed| bytes_with(&format!("guard={guard},fill={seed}")));
        assert!(zeros.iter().any(|(_, is_undefined)| !is_undefined));
        assert!(zeros.iter().all(|(byte, is_undefined)| !is_undefined || *byte == 0), "{zeros:?}");
        assert_eq!(one, same, "{guard}");
        for ((byte, is_undefined), (other, _)) in one.iter().zip(&two) {
            assert_eq!(*byte, if *is_undefined { !other } else { *other }, "{guard}");
        }
        assert_ne!(one, three, "{guard}");
        // Two blocks of one call site.
        assert_ne!(one[..43], one[43..86], "{guard}");
    }
}
