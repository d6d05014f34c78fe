//! `cargo heapwright ...`: cargo's way to call `heapwright cargo ...`, which lies beside this.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name("heapwright"));
    let command =
        beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("heapwright"));
    // Cargo's first word is the subcommand's own name.
    let mut words = std::env::args_os().skip(1).peekable();
    words.next_if(|word| word == "heapwright");
    let error = Command::new(&command).arg("cargo").args(words).exec();
    // SAFETY: SIG_IGN is a valid disposition. `exec` has set the default one, by which a closed
    // pipe would end this process.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // (`eprintln!` panics if standard error takes no text.)
    _ = writeln!(std::io::stderr(), "heapwright: cannot run {}: {error}", command.display());
    ExitCode::from(125)
}
