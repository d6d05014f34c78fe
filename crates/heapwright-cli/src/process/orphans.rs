//! Processes that outlive the program: daemons, and others that it leaves running.
//!
//! ```text
//! this process, a "subreaper" -- program --- daemon --- ...       the program ends:
//!      \______________________________________/                   its children are ours
//! ```
//!
//! The kernel gives an orphan to its nearest ancestor that is a subreaper. So all processes that
//! the program leaves behind descend from this process, which can read their exit statuses. The
//! command finds them in `/proc`, because a process has no list of its grandchildren.

use super::{End, signals};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::PathBuf;

/// The ends of the descendants that this process reaped.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    ended: HashMap<u32, End>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) exe: PathBuf,
}

impl Orphans {
    /// Makes this process the parent of orphans among its descendants.
    pub(crate) fn adopt() -> Self {
        // SAFETY: no pointers are involved. If an old kernel refuses, another process adopts the
        // orphans.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        Self::default()
    }

    /// Waits until the child `pid` is dead, but leaves its pid taken. Reaps other children.
    pub(super) fn wait_for(&mut self, pid: u32) -> io::Result<()> {
        loop {
            let ended = wait_without_reaping(libc::P_ALL, 0, 0)?;
            if ended == pid {
                return Ok(());
            }
            self.take(ended);
        }
    }

    /// Reaps the children that have ended. Returns all descendants that have not. Without children
    /// the search is skipped.
    pub(crate) fn reap(&mut self) -> Vec<Running> {
        loop {
            match wait_without_reaping(libc::P_ALL, 0, libc::WNOHANG) {
                Ok(pid @ 1..) => self.take(pid),
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Vec::new(),
                _ => return running(),
            }
        }
    }

    fn take(&mut self, pid: u32) {
        if let Ok((status, _)) = super::reap(pid) {
            self.ended.insert(pid, End::of(status));
        }
    }

    pub(crate) fn end(&self, pid: u32) -> Option<End> {
        self.ended.get(&pid).copied()
    }
}

fn running() -> Vec<Running> {
    let mut parents: HashMap<u32, u32> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = pid
            && let Some(parent) = parent_of_running(pid)
        {
            parents.insert(pid, parent);
        }
    }
    let own = std::process::id();
    let descends = |mut pid: u32| {
        // At most as many steps as there are processes: pids are reused, and a list read in pieces
        // may contain a cycle.
        for _ in 0..=parents.len() {
            match parents.get(&pid) {
                Some(&parent) if parent == own => return true,
                Some(&parent) => pid = parent,
                None => return false,
            }
        }
        false
    };
    let mut running: Vec<Running> = parents
        .keys()
        .filter(|pid| descends(**pid))
        .map(|&pid| Running {
            pid,
            exe: fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default(),
        })
        .collect();
    running.sort_by_key(|running| running.pid);
    running
}

/// Returns `None` if the process has ended, reaped or not.
fn parent_of_running(pid: u32) -> Option<u32> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = line.rsplit_once(") ")?.1.split(' ');
    let state = words.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    words.next()?.parse().ok()
}

pub(crate) fn kill_all() {
    for running in running() {
        // SAFETY: no pointers are involved.
        unsafe { libc::kill(running.pid.cast_signed(), libc::SIGKILL) };
    }
}

/// From now on, signals to this process go to these processes.
pub(crate) fn pass_signals_to(pids: &[u32]) {
    signals::follow(pids);
}

pub(crate) fn asked_to_end() -> u32 {
    signals::asked_to_end()
}

/// Returns the id of a child that has ended, which stays taken; 0: none has yet (`WNOHANG`).
pub(super) fn wait_without_reaping(
    which: libc::idtype_t,
    pid: u32,
    how: libc::c_int,
) -> io::Result<u32> {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `info` is writable and as large as the kernel expects.
        let result = unsafe {
            libc::waitid(which, pid, info.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT | how)
        };
        if result == 0 {
            // SAFETY: all zeros is a valid siginfo, which the call may have filled.
            let info = unsafe { info.assume_init() };
            // SAFETY: the field is the child's pid, or zero if none ended.
            return Ok(unsafe { info.si_pid() }.unsigned_abs());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
