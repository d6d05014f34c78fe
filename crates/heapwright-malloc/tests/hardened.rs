//! The hardened heap: the words of its reports, and correct programs. No slot is handed out twice,
//! whatever interrupts a thread.
mod support;
use support::{How, Outcome, command, compile, run};

const MODES: [&str; 2] = ["hardened", "hardened:full"];
/// A short slot, a slot that the fast path does not clear, and a large block.
const SIZES: [&str; 3] = ["40", "4000", "300000"];

fn hardened(program: &str, options: &str, words: &[&str]) -> Outcome {
    let compiled = compile(program, How::Preload, &["-pthread"]);
    run(command(compiled, How::Preload).args(words).env("HEAPWRIGHT", options))
}

/// The misuse ends the program, in each mode and size, with one line that contains these words.
fn refused(what: &str, sizes: &[&str], words: &[&str]) {
    for mode in MODES {
        for &size in sizes {
            let outcome =
                hardened("hardened.c", &format!("mode={mode},guard=never"), &[what, size]);
            outcome.was_refused((mode, what, size), words);
        }
    }
}

#[test]
fn overflows() {
    let words = ["was written past its end", "detect=-canary silences this"];
    refused("overflow", &SIZES, &[words.as_slice(), &["free(0x"]].concat());
    refused("overflow-realloc", &SIZES, &[words.as_slice(), &["realloc(0x"]].concat());
}

#[test]
fn second_frees() {
    // (Large blocks and slots have records that show the second free.)
    let words = ["was freed before", "detect=-double-free silences this"];
    refused("double", &SIZES, &words);
    refused("freed-realloc", &SIZES[..2], &words);
}

#[test]
fn pointers_into_blocks() {
    refused("interior", &SIZES, &["8 bytes into a", "pass the address malloc returned"]);
}

#[test]
fn writes_after_free() {
    let words = ["was written to after it was freed", "detect=-fill silences this"];
    refused("after-free", &SIZES[..2], &words);
}

#[test]
fn a_report_goes_on() {
    for mode in MODES {
        let options = format!("mode={mode},guard=never,on_misuse=report");
        for what in ["overflow", "double", "interior", "freed-realloc", "after-free"] {
            for size in &SIZES[..2] {
                let outcome = hardened("hardened.c", &options, &[what, size]);
                assert!(outcome.status.success(), "{mode} {what} {size}: {}", outcome.stderr);
                assert_eq!(outcome.stdout, "went on\n", "{mode} {what} {size}");
                outcome.said_one_line((mode, what, size), &["block"]);
            }
        }
    }
}

#[test]
fn what_is_not_looked_for_is_not_said() {
    for mode in MODES {
        let options =
            format!("mode={mode},guard=never,detect=-canary,detect=-double-free,detect=-fill");
        for what in ["overflow", "double", "after-free"] {
            hardened("hardened.c", &options, &[what, "40"]).is_fine((mode, what));
        }
    }
}

#[test]
fn right_programs() {
    for mode in MODES {
        for what in [
            "sizes",
            "in-place",
            "moves",
            "goes-back",
            "no-bytes",
            "walk",
            "huge",
            "large-again",
            "consumers",
            "forks",
            "handlers",
        ] {
            hardened("hardened.c", &format!("mode={mode},guard=never"), &[what, "0"])
                .is_fine((mode, what));
        }
    }
}

/// A freed block comes back only after many other blocks were freed, and never if no other block is
/// freed. (With `full`, at least 1984 other blocks come first, minus the effect of its exchange
/// with one of the 256 newest.)
#[test]
fn freed_blocks_wait() {
    let modes = [
        ("hardened", [("16", "256"), ("48", "256"), ("200", "256"), ("1000", "40"), ("4000", "8")]),
        (
            "hardened:full",
            [("16", "1000"), ("48", "1000"), ("200", "1000"), ("1000", "150"), ("4000", "20")],
        ),
    ];
    for (mode, sizes) in modes {
        for (size, calls) in sizes {
            let options = format!("mode={mode},guard=never");
            hardened("hardened.c", &options, &["waits", size, calls]).is_fine((mode, size));
        }
    }
}

/// clang's -fsanitize=alloc-token: four groups with `hardened:full`, plain calls in other modes.
#[test]
fn tokens_lie_apart() {
    for (options, how) in [
        ("mode=hardened:full,guard=never", "apart"),
        ("mode=hardened:full", "together"),
        ("mode=hardened", "together"),
        ("mode=fast", "together"),
        ("mode=debug", "together"),
    ] {
        let compiled = compile("alloc_token.cc", How::Preload, &["-std=c++17"]);
        run(command(compiled, How::Preload).arg(how).env("HEAPWRIGHT", options)).is_fine(options);
    }
}

#[test]
fn threads_signals_and_children() {
    for mode in MODES {
        for what in ["s", "cst", "cf"] {
            let options = format!("mode={mode}");
            hardened("hardened_storm.c", &options, &["2", what]).is_fine((mode, what));
        }
    }
}
