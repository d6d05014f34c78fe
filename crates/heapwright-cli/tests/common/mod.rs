//! For the command's tests: running the command, small C programs, and folders.
#![allow(dead_code, unused_imports, reason = "each test file uses a part of this")]

mod golden;
pub(crate) use golden::golden;

use heapwright_record::debug::{Encoder, Entry, HEADER};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the command, without the variables of this process that would change most results.
pub(crate) fn heapwright() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapwright"));
    for name in ["HEAPWRIGHT", "HEAPWRIGHT_LIBRARY", "LD_PRELOAD", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C");
    // If a shell runs the tests in the background, they ignore these signals, and so would the
    // command.
    let default_handlers = || {
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: SIG_DFL is a valid disposition of every signal.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec only `signal` is called, which is async-signal-safe.
    unsafe { command.pre_exec(default_handlers) };
    command
}

pub(crate) fn run(flags: &[&str], words: &[&str]) -> Command {
    let mut command = heapwright();
    command.arg("run").args(flags).arg("--").args(words);
    command
}

/// Both ways to run a program: the command becomes the program, or stands in for it.
pub(crate) const WAYS: [&[&str]; 2] = [&[], &["--stats"]];

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is text")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is text")
}

pub(crate) fn done(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns a status in the form of shells.
pub(crate) fn shell_status(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("ended")
}

pub(crate) fn bytes(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut buffer = [0; 4096];
    let mut bytes = HEADER.to_vec();
    for entry in entries {
        bytes.extend_from_slice(Encoder::new(&mut buffer).entry(entry));
    }
    bytes
}

/// A test's own folder, removed at the end. `new` avoids /tmp, which may be nosuid or noexec.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        Self::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    pub(crate) fn new_in(base: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cli-{}-{number}", std::process::id());
        let path = base.join(name);
        fs::create_dir_all(&path).expect("made");
        Self(path)
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.join(name.as_ref())
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("written");
        path
    }

    pub(crate) fn script(&self, name: &str, content: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(name, content);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("set");
        path
    }

    pub(crate) fn compile(&self, name: &str, flags: &[&str], source: &str) -> PathBuf {
        let code = self.file(&format!("{name}.c"), source);
        let path = self.path(name);
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output = done(Command::new(compiler).args(flags).arg("-o").arg(&path).arg(&code));
        assert!(output.status.success(), "cc {flags:?}: {}", stderr(&output));
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("is text")
}
