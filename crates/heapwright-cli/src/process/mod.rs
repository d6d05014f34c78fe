//! Starting a program, standing in for it, and ending as it ended.
//!
//! There are two ways to run a program:
//!
//! - [`replace`]: this process becomes the program. Nothing of heapwright is
//!   left, so signals, job control and the exit status need no care at all.
//! - [`watch`]: the program is a child, because a process has to be there after
//!   it to report what it did. The parent stands in for it: it passes signals on
//!   ([`signals`]), and [`Exit`] then ends it in the child's own way.
//!
//! The child stays in our process group. A group of its own would have to be
//! made the terminal's foreground group, and that breaks `heapwright run --stats
//! -- program | less`.
//!
//! `bench` starts its programs otherwise, through a launcher (see
//! `bench::launcher`); of here it uses [`interrupt`], [`explain`] and [`Exit`].

mod exit;
mod failure;
mod inherited;
pub(crate) mod interrupt;
mod limit;
pub(crate) mod orphans;
mod signals;

pub(crate) use exit::Exit;
pub(crate) use failure::{CANNOT_RUN, NOT_FOUND, explain};
pub(crate) use orphans::Orphans;
pub(crate) use signals::{name as signal_name, was_asked_to_end};

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It returned this code.
    Code(u8),
    /// This signal ended it.
    Signal { number: i32, core_dumped: bool },
}

/// What the kernel counted for a program and the children it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Processor time in the program.
    pub(crate) user: Duration,
    /// Processor time in the kernel on its behalf.
    pub(crate) system: Duration,
    /// Page faults served from memory.
    pub(crate) minor_faults: u64,
    /// Page faults that had to read a disk.
    pub(crate) major_faults: u64,
    /// Most resident bytes of the largest of the processes. The kernel starts
    /// the count at what this command itself held when it forked.
    pub(crate) max_rss: u64,
}

/// A program's end, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) pid: u32,
    pub(crate) end: End,
    pub(crate) wall: Duration,
    pub(crate) usage: Usage,
    /// It was killed because it took too long.
    pub(crate) was_late: bool,
}

/// Holds all signals back from the calling thread: others take them.
pub(crate) fn block_signals() {
    let _ = signals::block_all();
}

/// Becomes the program. Returns only if that fails.
pub(crate) fn replace(mut command: Command) -> io::Error {
    let signals = inherited::Ignored::now();
    // SAFETY: the closure makes only async-signal-safe calls; no threads exist.
    unsafe { command.pre_exec(move || signals.restore()) };
    let error = command.exec();
    // The closure has given both their default actions, but this process goes on.
    signals::ignore(libc::SIGPIPE);
    signals::ignore(libc::SIGXFSZ);
    error
}

/// Runs the program as a child and stands in for it until it ends.
pub(crate) fn watch(command: Command) -> io::Result<Outcome> {
    watch_with(command, |pid| orphans::wait_without_reaping(libc::P_PID, pid, 0).map(|_| ()))
}

/// The same, and takes note of processes that it leaves behind. After `limit` it is killed.
pub(crate) fn watch_all(
    command: Command,
    orphans: &mut Orphans,
    limit: Option<Duration>,
) -> io::Result<Outcome> {
    let mut was_late = false;
    let outcome = watch_with(command, |pid| match limit {
        None => orphans.wait_for(pid),
        Some(limit) => limit::within(limit, || orphans.wait_for(pid)).map(|late| was_late = late),
    })?;
    Ok(Outcome { was_late, ..outcome })
}

/// The same; `wait` returns when the child is dead, and leaves its pid taken.
fn watch_with(
    mut command: Command,
    wait: impl FnOnce(u32) -> io::Result<()>,
) -> io::Result<Outcome> {
    let ignored = inherited::Ignored::now();
    // An ignored SIGCHLD makes the kernel throw the child's status away.
    signals::set_default(libc::SIGCHLD);
    // No signal may arrive between the fork and the moment the parent knows
    // what to pass them to: they wait, blocked, and none is lost.
    let mask = signals::block_all();
    // SAFETY: the closure makes only async-signal-safe calls.
    unsafe {
        command.pre_exec(move || {
            ignored.restore()?;
            mask.restore();
            Ok(())
        });
    }
    let started = Instant::now();
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            mask.restore();
            return Err(error);
        }
    };
    let pid = child.id();
    signals::forward_to(pid.cast_signed());
    mask.restore();
    wait(pid)?;
    let wall = started.elapsed();
    // The pid is ours until the child is reaped: forwarding stops before.
    signals::stop_forwarding();
    let (status, usage) = reap(pid)?;
    Ok(Outcome { pid, end: End::of(status), wall, usage, was_late: false })
}

/// Takes the dead child's status and what it used.
fn reap(pid: u32) -> io::Result<(i32, Usage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live, writable storage of their types.
        let result =
            unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, usage.as_mut_ptr()) };
        if result >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: zeroed is a valid rusage, and wait4 has filled it since.
    let usage = unsafe { usage.assume_init() };
    Ok((status, Usage::from(usage)))
}

impl End {
    /// Reads a status of `wait`.
    fn of(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal { number: libc::WTERMSIG(status), core_dumped: libc::WCOREDUMP(status) }
        } else {
            // The kernel keeps eight bits of an exit code.
            Self::Code(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
        }
    }
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        let time = |t: libc::timeval| {
            Duration::from_secs(t.tv_sec.unsigned_abs())
                + Duration::from_micros(t.tv_usec.unsigned_abs())
        };
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            minor_faults: usage.ru_minflt.unsigned_abs(),
            major_faults: usage.ru_majflt.unsigned_abs(),
            max_rss: usage.ru_maxrss.unsigned_abs() * 1024,
        }
    }
}
