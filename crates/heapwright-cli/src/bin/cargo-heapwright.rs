//! Cargo runs this program for `cargo heapwright`. The program becomes `heapwright cargo`.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name("heapwright"));
    let command =
        beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("heapwright"));
    // Cargo passes the subcommand's name as the first word.
    let mut words = std::env::args_os().skip(1).peekable();
    words.next_if(|word| word == "heapwright");
    let error = Command::new(&command).arg("cargo").args(words).exec();
    // SAFETY: SIG_IGN is a valid disposition. (`exec` set the default one, with which a closed pipe
    // ends this process.)
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // `eprintln!` would panic if standard error is closed.
    _ = writeln!(std::io::stderr(), "heapwright: cannot run {}: {error}", command.display());
    ExitCode::from(125)
}
