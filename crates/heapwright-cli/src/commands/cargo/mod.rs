//! `cargo heapwright test|run|bench` checks the programs that cargo builds and runs.
//!
//! ```text
//! cargo heapwright test ARGS          cargo test ARGS, with a runner that is this command
//!   heapwright cargo-runner BINARY    runs each binary once, in debug mode, in one process
//!     no findings                     the binary's exit code, after this single run
//!     findings in tests               a report; then the names of the tests ([`tests`]); 101
//!     findings elsewhere              a report; 99
//! ```
//!
//! Findings in programs that a test starts count only if cargo built these programs beside it.
//!
//! nextest, which starts a process for each test, can use the same runner:
//! `CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="heapwright cargo-runner"`. A run that only lists
//! tests is not checked.

mod halves;
mod tests;

use super::checked::{How, Prints, cannot_be_checked, checked, keep};
use crate::inspect;
use crate::output::{self, Format, Look};
use crate::preload;
use crate::process::{self, Exit};
use crate::report::model::{Leak, Report, Wanted};
use crate::report::point::Point;
use crate::report::{self, MOST_ERRORS};
use anyhow::{Context, bail};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Many frames lie between an allocation and the test's own function.
const FRAMES: &str = "traces=32";

/// The exit code for failed tests, as libtest's.
const FAILED: u8 = 101;

/// Run cargo's tests, programs or benchmarks in debug mode, and fail on errors and definite leaks.
///
/// A test with an error or a definite leak fails, and the command prints the test's name.
/// HEAPWRIGHT_SUPPRESS names a file of suppressions. The command cargo heapwright does the same.
#[derive(clap::Args)]
#[command(verbatim_doc_comment, disable_help_flag = true)]
#[command(override_usage = "cargo heapwright test|run|bench [CARGO'S OPTIONS]")]
pub(crate) struct Args {
    /// test, run or bench, and cargo's options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

/// Run a program that cargo built, and fail if it has an error or a definite leak.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct RunnerArgs {
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

const HELP: &str = "\
Run cargo's tests, programs or benchmarks in debug mode, and fail on errors and definite leaks

usage: cargo heapwright test|run|bench [CARGO'S OPTIONS]

Environment:
  HEAPWRIGHT_SUPPRESS  a file of suppressions
  HEAPWRIGHT           options for the library

Under nextest: CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=\"heapwright cargo-runner\"
";

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let Some((what, rest)) = args.words.split_first() else {
        return Err(refused("no subcommand is named"));
    };
    match what.to_str() {
        Some("test" | "t" | "run" | "r" | "bench") => {}
        Some("-h" | "--help") => {
            output::to_stdout(|out| out.write_all(HELP.as_bytes()))?;
            return Ok(Exit::Code(0));
        }
        _ => return Err(refused(&format!("'{}' is not one of test, run, bench", what.display()))),
    }
    let this = std::env::current_exe().context("this command's own path is not known")?;
    let this = this.to_str().context("this command's own path is not valid UTF-8")?;
    let triple = match target(rest) {
        Some(triple) => triple,
        None => host()?,
    };
    // A list, because a path may have blanks. TOML escapes strings as JSON does.
    let runner = serde_json::to_string(&[this, "cargo-runner"])?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.arg("--config").arg(format!("target.{triple}.runner={runner}")).args(&args.words);
    let error = process::replace(cargo);
    bail!("cannot run cargo: {error}")
}

fn refused(what: &str) -> anyhow::Error {
    crate::wrong::wrong(format!("cargo: {what}; see 'cargo heapwright --help'"))
}

/// `--target` must come before cargo's `--`.
fn target(words: &[OsString]) -> Option<String> {
    let mut words = words.iter().map(|word| word.to_str().unwrap_or_default());
    let mut words = words.by_ref().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        match word.strip_prefix("--target") {
            Some("") => return words.next().map(str::to_owned),
            Some(value) if value.starts_with('=') => return Some(value[1..].to_owned()),
            _ => {}
        }
    }
    None
}

fn host() -> anyhow::Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it builds for")
}

pub(crate) fn runner(args: &RunnerArgs) -> anyhow::Result<Exit> {
    let (program, words) = args.command.split_first().context("no program")?;
    if words.iter().any(|word| word == "--list") {
        let mut plain = Command::new(program);
        let error = process::replace({
            plain.args(words);
            plain
        });
        return Ok(super::run::not_started(program, &error));
    }
    if let Some(reason) =
        cannot_be_checked(&inspect::inspect(program, preload::target(preload::named().as_deref())))
    {
        bail!("{} cannot be checked: {reason}", program.display());
    }
    let how = how();
    report::check(&how).map_err(|error| crate::wrong::is_wrong(&error))?;
    let (report, end) = match one(&args.command, &how, Prints::Everything)? {
        Ok(seen) => seen,
        Err(exit) => return Ok(exit),
    };
    if !has_failed(&report) {
        return Ok(end);
    }
    let mut text = b"\n".to_vec();
    output::render(&report, Format::Text, &mut text, Look::of(&io::stderr()))?;
    // An error here does not change the exit code.
    _ = io::stderr().write_all(&text);
    if !tests::has_tests(Path::new(program)) {
        return Ok(Exit::Code(99));
    }
    let again = |command: &[OsString]| -> anyhow::Result<Report> {
        let (report, _) = one(command, &how, Prints::Nothing)?
            .map_err(|_| anyhow::anyhow!("{} cannot be run again", program.display()))?;
        Ok(report)
    };
    tests::name(&report, program, words, &again)?;
    Ok(Exit::Code(FAILED))
}

fn how() -> report::Options {
    let file = std::env::var_os("HEAPWRIGHT_SUPPRESS").filter(|path| !path.is_empty());
    report::Options {
        suppress: file.map(PathBuf::from).into_iter().collect(),
        limit: Some(MOST_ERRORS),
        wanted: Wanted { folder: std::env::current_dir().unwrap_or_default(), ..Wanted::default() },
        quiet: true,
        at: Point::End,
        is_of_run: true,
        ..report::Options::default()
    }
}

/// Returns the report and exit code, or only an exit code if the program cannot be run.
fn one(
    command: &[OsString],
    how: &report::Options,
    prints: Prints,
) -> anyhow::Result<Result<(Report, Exit), Exit>> {
    let options = ["leaks=exit".to_owned(), FRAMES.to_owned()];
    let checked = match checked(command, &options, prints)? {
        Ok(checked) => checked,
        Err(exit) => return Ok(Err(exit)),
    };
    let mut report = if report::any_in(checked.records()) {
        report::make(&[checked.records().to_owned()], how)?.report
    } else {
        Report { wanted: how.wanted.clone(), ..Report::default() }
    };
    // A compiler's leaks are not the test's failure.
    let own = own_folder(&command[0]);
    let (pid, own) = (checked.end.outcome.pid, own.as_deref());
    keep(&mut report, |process| {
        // A process without a known program is probably a fork of the test.
        process.pid == pid
            || process.exe.is_empty()
            || own.is_some_and(|own| Path::new(&process.exe).starts_with(own))
    });
    report.processes.iter_mut().for_each(|process| process.started.clear());
    checked.end.note_in(&mut report, &How::PLAIN);
    for line in report.unseen.iter().filter(|_| prints == Prints::Everything) {
        eprintln!("heapwright: {line}");
    }
    let end = checked.end.exit(&report);
    Ok(Ok((report, end)))
}

/// Returns the folder of cargo's programs: `target/debug` for `target/debug/deps/shop-1a2b`.
fn own_folder(program: &OsStr) -> Option<PathBuf> {
    let program = std::fs::canonicalize(program).ok()?;
    let folder = program.parent()?;
    let is_inner = ["deps", "examples"].iter().any(|name| folder.ends_with(name));
    Some(if is_inner { folder.parent()? } else { folder }.to_owned())
}

fn has_failed(report: &Report) -> bool {
    !report.errors.is_empty()
        || report.unreported.errors != 0
        || report.unwritten != 0
        || report.leaks.iter().any(Leak::is_definite)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn targets_are_found_before_the_programs_own_words() {
        let of = |words: &[&str]| target(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of(&["--target", "a-b", "x"]).as_deref(), Some("a-b"));
        assert_eq!(of(&["x", "--target=a-b"]).as_deref(), Some("a-b"));
        assert_eq!(of(&["--target-dir", "t", "--", "--target=a-b"]), None);
    }
}
