//! `cargo heapwright` on tests that pass, lose memory, or start a program that loses memory.

mod common;

use common::{Folder, done, heapwright, stderr, stdout};
use std::path::Path;
use std::process::{Command, Output};

const LIBRARY: &str = r#"
pub fn lose(bytes: usize) {
    std::mem::forget(std::hint::black_box(vec![1_u8; bytes]));
}
pub fn lose_55() {
    lose(55);
}
#[cfg(test)]
mod tests {
    #[test]
    fn is_right() {
        assert_eq!(vec![1, 2].iter().sum::<i32>(), 3);
    }
    #[test]
    fn is_right_too() {}
    #[test]
    fn is_right_beside_others() {
        let leaky = std::env::var_os("LEAKY").unwrap();
        assert!(std::process::Command::new(leaky).status().unwrap().success());
    }
    #[test]
    fn loses() {
        super::lose(1234);
    }
    // No function of this test's is in the stack.
    #[test]
    fn loses_behind_a_pointer() {
        std::thread::spawn(super::lose_55).join().unwrap();
    }
    #[test]
    fn loses_in_a_thread() {
        std::thread::spawn(|| super::lose(77)).join().unwrap();
    }
}
"#;

const PROGRAM: &str = "fn main() { small::lose(std::env::args().count() * 55); }";

fn package(folder: &Folder) {
    let manifest =
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    folder.file("Cargo.toml", manifest);
    std::fs::create_dir(folder.path("src")).expect("made");
    std::fs::write(folder.path("src/lib.rs"), LIBRARY).expect("written");
    std::fs::write(folder.path("src/main.rs"), PROGRAM).expect("written");
    let leaky = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(99); p = 0; return p != 0; }";
    folder.compile("leaky", &["-O0"], leaky);
}

fn cargo(folder: &Folder, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-heapwright"));
    command.arg("heapwright").args(words).current_dir(folder.path(""));
    command.env("LEAKY", folder.path("leaky"));
    command.env("CARGO_TARGET_DIR", folder.path("target")).env("CARGO_NET_OFFLINE", "true");
    for name in
        ["HEAPWRIGHT", "HEAPWRIGHT_LIBRARY", "LD_PRELOAD", "RUSTFLAGS", "CARGO_BUILD_TARGET"]
    {
        command.env_remove(name);
    }
    done(&mut command)
}

#[test]
fn a_leak_is_its_tests_failure() {
    let folder = Folder::new();
    package(&folder);
    let output = cargo(&folder, &["test", "--lib", "--", "is_right"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("3 passed"), "{}", stdout(&output));
    assert!(!stderr(&output).contains("heapwright:"), "{}", stderr(&output));
    let output = cargo(&folder, &["test", "--lib"]);
    assert_eq!(output.status.code(), Some(101), "{}", stderr(&output));
    assert!(stdout(&output).contains("6 passed"), "{}", stdout(&output));
    let printed = stderr(&output);
    let (_, failures) = printed.split_once("failures, found by heapwright:\n").expect("is there");
    let failures: Vec<&str> = failures.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(
        failures,
        [
            "    tests::loses: 1.2 KiB in 1 block is definitely lost",
            "    tests::loses_behind_a_pointer: 55 B in 1 block is definitely lost",
            "    tests::loses_in_a_thread: 77 B in 1 block is definitely lost"
        ],
        "{printed}"
    );
    assert!(printed.matches(" start the ").count() >= 2, "{printed}");
    assert!(!printed.contains("__rust_begin_short_backtrace"), "{printed}");
    // Nextest calls a runner in this way.
    let binary = std::fs::read_dir(folder.path("target/debug/deps")).expect("there").flatten();
    let binary = binary.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("small-") && path.extension().is_none() && has_tests(path)
    });
    let binary = binary.expect("is built");
    let runner = |words: &[&str]| done(heapwright().arg("cargo-runner").arg(&binary).args(words));
    let list = runner(&["--list", "--format", "terse"]);
    assert_eq!((stdout(&list).lines().count(), &*stderr(&list)), (6, ""));
    assert_eq!(runner(&["--exact", "tests::is_right", "--nocapture"]).status.code(), Some(0));
    let output = runner(&["--exact", "tests::loses", "--nocapture"]);
    assert_eq!(output.status.code(), Some(101), "{}", stderr(&output));
    assert!(stderr(&output).contains("    tests::loses: 1.2 KiB"), "{}", stderr(&output));
}

fn has_tests(path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| {
        let mark = b"loses_in_a_thread";
        bytes.windows(mark.len()).any(|window| window == mark)
    })
}

#[test]
fn programs_and_mistakes_have_their_exit_codes() {
    let folder = Folder::new();
    package(&folder);
    let output = cargo(&folder, &["run", "--quiet"]);
    assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("definitely-lost: 55 bytes in 1 block"),
        "{}",
        stderr(&output)
    );
    let output = cargo(&folder, &["build"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert!(stdout(&cargo(&folder, &["--help"])).contains("test|run|bench"));
}
