//! Starts a program, stands in for it, and ends as it ended.
//!
//! There are two ways to run a program:
//!
//! - [`replace`]: this process becomes the program.
//! - [`watch`]: the program is a child, and its parent reports on it. The parent passes signals on
//!   ([`signals`]), and [`Exit`] ends it in the child's own way.
//!
//! The child stays in our process group: a group of its own would have to become the terminal's
//! foreground group, which breaks `heapwright run --stats -- program | less`. `bench` starts its
//! programs through a launcher (`bench::launcher`).

mod exit;
mod failure;
mod inherited;
pub(crate) mod interrupt;
mod limit;
pub(crate) mod orphans;
mod signals;
mod stack;

pub(crate) use exit::Exit;
pub(crate) use failure::{CANNOT_RUN, NOT_FOUND, explain};
pub(crate) use orphans::Orphans;
pub(crate) use signals::{name as signal_name, was_asked_to_end};
pub(crate) use stack::with_enough as with_enough_stack;

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Code(u8),
    Signal { number: i32, core_dumped: bool },
}

/// The kernel's figures for a program and the children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Page faults served from memory.
    pub(crate) minor_faults: u64,
    /// Page faults that had to read a disk.
    pub(crate) major_faults: u64,
    /// The peak resident bytes of the largest process. The count starts with the bytes that this
    /// command held at the fork.
    pub(crate) max_rss: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) pid: u32,
    pub(crate) end: End,
    pub(crate) wall: Duration,
    pub(crate) usage: Usage,
    /// Whether the program was killed at the time limit.
    pub(crate) was_late: bool,
}

/// Blocks all signals in the calling thread; other threads take them.
pub(crate) fn block_signals() {
    let _ = signals::block_all();
}

/// Becomes the program. Returns only if that fails.
pub(crate) fn replace(mut command: Command) -> io::Error {
    let signals = inherited::Ignored::now();
    // SAFETY: the closure makes only async-signal-safe calls; no threads exist.
    unsafe { command.pre_exec(move || signals.restore()) };
    let error = command.exec();
    // The failed attempt has restored these two in this process, which goes on.
    signals::ignore(libc::SIGPIPE);
    signals::ignore(libc::SIGXFSZ);
    error
}

/// Stands in for the program until it ends.
pub(crate) fn watch(command: Command) -> io::Result<Outcome> {
    watch_with(command, |pid| orphans::wait_without_reaping(libc::P_PID, pid, 0).map(|_| ()))
}

/// Like [`watch`], and notes processes that outlive the program.
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

/// `wait` returns when the child is dead, and leaves its pid taken.
fn watch_with(
    mut command: Command,
    wait: impl FnOnce(u32) -> io::Result<()>,
) -> io::Result<Outcome> {
    let ignored = inherited::Ignored::now();
    // With SIGCHLD ignored, the kernel would discard the child's status.
    signals::set_default(libc::SIGCHLD);
    // Until the parent knows the child's pid, signals are blocked, so that none is lost.
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
    // The pid stays the child's until the child is reaped, so forwarding stops before.
    signals::stop_forwarding();
    let (status, usage) = reap(pid)?;
    Ok(Outcome { pid, end: End::of(status), wall, usage, was_late: false })
}

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
    fn of(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal { number: libc::WTERMSIG(status), core_dumped: libc::WCOREDUMP(status) }
        } else {
            // The kernel keeps the low eight bits of an exit code.
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
