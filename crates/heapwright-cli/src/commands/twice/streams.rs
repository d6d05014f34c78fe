//! The input and output of a program's runs. Each run reads the same input.
//!
//! ```text
//! stdin     a file or device: opened again, at the same offset     a pipe: copied first
//! stdout    the program's pipe --> a thread --> a file; in the first run also the user's stdout
//! stderr    likewise
//! FILE      (--compare) copied after the run
//! ```
//!
//! Slightly more of an output is kept than the first run's length, enough to show a difference. If
//! a process keeps a pipe open after the program's end, the command stops reading as soon as the
//! pipe is empty.

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

/// The bytes of output that are kept beyond the length of the first run's.
const MORE: u64 = 1 << 16;

/// The time between two looks for the end, in milliseconds.
const STEP: i32 = 20;

/// The time after which the command says that it waits for the end of stdin.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Input {
    path: PathBuf,
    offset: u64,
}

impl Input {
    /// Makes the command's own stdin readable any number of times.
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
            // A device has no offset.
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

/// Prints a message if reading stdin takes long: a pipe may stay open.
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

pub(super) struct Outputs {
    /// The files of stdout and of stderr.
    pub(super) paths: [PathBuf; 2],
    pumps: Vec<JoinHandle<io::Result<Pumped>>>,
    has_ended: Arc<AtomicBool>,
}

#[derive(PartialEq, Eq)]
enum Pumped {
    /// All writers closed the stream, or the program ended and the pipe was empty.
    Ended,
    /// The user's own stream was closed.
    Refused,
}

impl Outputs {
    /// `first` is the length of each output of the first run; `None` in that run, whose output the
    /// user sees.
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

    /// Joins the threads. Returns whether the user closed a stream.
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
            // Loaded before reading, so that all bytes that are written before the end are read.
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
                // Returning closes the program's stream, too.
                return Ok(Pumped::Refused);
            }
        }
    }

    /// Waits up to `patience` milliseconds. Returns whether the pipe has bytes, or has ended.
    fn is_ready(&self, patience: i32) -> io::Result<bool> {
        let mut asked =
            libc::pollfd { fd: self.reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one live struct, as the count says.
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
