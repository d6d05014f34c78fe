//! The input and output of a program's runs: the same input for each, and its output in files, for
//! comparing.
//!
//! ```text
//! stdin     a file or a device: opened anew, at its place       a pipe: copied to its end first, then read from the copy
//! stdout    the program's pipe --> a thread --> a file, and in the first run the user's stdout, at once
//! stderr    the same
//! FILE      (--compare) copied when the run has ended
//! ```
//!
//! The command keeps slightly more of an output than the first run's length, enough to show a
//! difference. If a process keeps a pipe open after the program's end, the command waits only as
//! long as it writes.

use crate::process;
use crate::wrong::wrong;
use anyhow::Context;
use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes beyond those of the first run that are kept of others.
const MORE: u64 = 1 << 16;

/// How often a pipe is asked whether it is time to end, in milliseconds.
const STEP: i32 = 20;

/// How long a pipe's end is waited for before that is said.
const PATIENCE: Duration = Duration::from_secs(2);

/// What each run reads.
pub(super) struct Input {
    path: PathBuf,
    offset: u64,
}

impl Input {
    /// Our own stdin, for as many readers as come.
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        let mut own = io::stdin();
        if own.is_terminal() {
            let text = "--twice runs the program several times, and cannot repeat what is typed: \
                        redirect its input (< FILE, or < /dev/null)";
            return Err(wrong(text.to_owned()));
        }
        let path = PathBuf::from("/proc/self/fd/0");
        let mut file = File::from(own.as_fd().try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        if (kind.is_file() || kind.is_char_device()) && File::open(&path).is_ok() {
            // A device has no place in it.
            let offset = file.stream_position().unwrap_or_default();
            return Ok(Self { path, offset });
        }
        let path = folder.join("stdin");
        let is_read = Arc::new(AtomicBool::new(false));
        say_if_slow(Arc::clone(&is_read));
        let copied = File::create(&path).and_then(|mut copy| io::copy(&mut own, &mut copy));
        is_read.store(true, Ordering::Relaxed);
        copied.context("cannot copy what is on stdin")?;
        Ok(Self { path, offset: 0 })
    }

    fn open(&self) -> io::Result<File> {
        let mut file = File::open(&self.path)?;
        if self.offset != 0 {
            file.seek(SeekFrom::Start(self.offset))?;
        }
        Ok(file)
    }
}

/// A pipe that nobody closes would be waited for in silence.
fn say_if_slow(is_read: Arc<AtomicBool>) {
    thread::spawn(move || {
        thread::sleep(PATIENCE);
        if !is_read.load(Ordering::Relaxed) {
            eprintln!(
                "heapwright: reading stdin to its end, to repeat it in each run (< /dev/null: nothing)"
            );
        }
    });
}

/// Where a run's output goes.
pub(super) struct Outputs {
    /// The files, stdout's first.
    pub(super) paths: [PathBuf; 2],
    pumps: Vec<JoinHandle<io::Result<Pumped>>>,
    has_ended: Arc<AtomicBool>,
}

/// How a stream ended.
#[derive(PartialEq, Eq)]
enum Pumped {
    /// Nobody had it open any more, or nothing came.
    Ended,
    /// The user's own stream was closed, and so was this.
    Refused,
}

impl Outputs {
    /// Gives a program its streams. `first`: how long the first run's output was; `None`: this is
    /// the first run, which the user sees.
    pub(super) fn new(
        command: &mut Command,
        input: &Input,
        folder: &Path,
        first: Option<[u64; 2]>,
    ) -> io::Result<Self> {
        command.stdin(input.open()?);
        let paths = ["stdout", "stderr"].map(|name| folder.join(name));
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut pumps = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let (reader, writer) = io::pipe()?;
            if number == 0 {
                command.stdout(Stdio::from(writer));
            } else {
                command.stderr(Stdio::from(writer));
            }
            let pump = Pump {
                reader,
                file: File::create(path)?,
                room: first.map_or(u64::MAX, |first| first[number] + MORE),
                user: first.is_none().then(|| user(number)),
                has_ended: Arc::clone(&has_ended),
            };
            pumps.push(thread::spawn(move || pump.run()));
        }
        Ok(Self { paths, pumps, has_ended })
    }

    /// The program has ended. Returns whether the user's own stream was closed before.
    pub(super) fn end(self) -> io::Result<bool> {
        self.has_ended.store(true, Ordering::Relaxed);
        let mut was_refused = false;
        for pump in self.pumps {
            let pumped = pump.join().map_err(|_| io::Error::other("a thread panicked"))??;
            was_refused |= pumped == Pumped::Refused;
        }
        Ok(was_refused)
    }
}

fn user(number: usize) -> Box<dyn Write + Send> {
    if number == 0 { Box::new(io::stdout()) } else { Box::new(io::stderr()) }
}

/// Reads one stream.
struct Pump {
    reader: PipeReader,
    file: File,
    room: u64,
    user: Option<Box<dyn Write + Send>>,
    has_ended: Arc<AtomicBool>,
}

impl Pump {
    fn run(mut self) -> io::Result<Pumped> {
        process::block_signals();
        let mut bytes = vec![0; 1 << 16];
        loop {
            // First: what is written until then is read below.
            let is_last = self.has_ended.load(Ordering::Relaxed);
            if !self.is_ready(if is_last { 0 } else { STEP })? {
                if is_last {
                    return Ok(Pumped::Ended);
                }
                continue;
            }
            let count = match self.reader.read(&mut bytes) {
                Ok(0) => return Ok(Pumped::Ended),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let kept = count.min(usize::try_from(self.room).unwrap_or(usize::MAX));
            self.file.write_all(&bytes[..kept])?;
            self.room -= kept as u64;
            if let Some(user) = &mut self.user
                && user.write_all(&bytes[..count]).and_then(|()| user.flush()).is_err()
            {
                // The program finds its own closed, then, too.
                return Ok(Pumped::Refused);
            }
        }
    }

    /// Whether there is something to read, or the end.
    fn is_ready(&self, patience: i32) -> io::Result<bool> {
        let mut asked =
            libc::pollfd { fd: self.reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor is asked about, in a live struct.
        match unsafe { libc::poll(&raw mut asked, 1, patience) } {
            0 => Ok(false),
            1.. => Ok(true),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }
}
