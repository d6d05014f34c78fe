//! Orders to a process: sample, stop, write a profile, give free memory back.
//!
//! One command at a time gives orders to a process, and locks /proc/PID/environ for that. A process
//! ignores an order that has expired. Ordered sampling ends some seconds after it was last renewed,
//! so a killed command leaves nothing running.

use super::process::{self, filters};
use super::slots::{Claim, Slot, now_ns};
use heapwright_record::status::{Answer, Order, PROFILE_FOLDER, PROFILE_NAME};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The interval between looks for the answer.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The process did not allocate in time.
    Quiet,
    /// The process has ended.
    Gone,
    /// The process tried and failed.
    Failed,
    /// The profile's file exists and belongs to another user.
    Taken { file: PathBuf, user: u32 },
    /// The process is hardened, and follows no orders.
    Hardened,
    /// The process samples already, for another reason.
    Busy,
    /// The process's library has another version.
    Unknown,
    /// The process is in a sandbox, which may end it for following the order.
    Sandboxed,
}

pub(crate) struct Orders {
    slot: Slot,
    /// Only the process's user and root can open the file.
    _lock: Option<File>,
}

impl Orders {
    /// Returns `None` if another command gives orders to this process.
    pub(crate) fn to(slot: Slot) -> Option<Self> {
        let lock = File::open(format!("/proc/{}/environ", slot.owner().process)).ok();
        let is_free = lock.as_ref().is_none_or(is_locked);
        is_free.then_some(Self { slot, _lock: lock })
    }

    /// Orders a sample every `period` bytes on average, for this time.
    pub(crate) fn sample(
        &self,
        period: u64,
        time: Duration,
        patience: Duration,
    ) -> Result<(), Refusal> {
        self.give(Order::Sample(period), time, patience)
    }

    pub(crate) fn stop(&self, patience: Duration) -> Result<(), Refusal> {
        self.give(Order::Stop, patience, patience)
    }

    pub(crate) fn trim(&self, patience: Duration) -> Result<(), Refusal> {
        self.give(Order::Trim, patience, patience)
    }

    /// Orders the process to write its profile, and moves the profile to the file `to`.
    pub(crate) fn write(&self, to: &Path, patience: Duration) -> Result<(), Refusal> {
        let pid = self.slot.owner().process;
        let user = process::user_of(pid).ok_or(Refusal::Gone)?;
        let files = profiles(pid, user);
        match self.give(Order::Write, patience, patience) {
            Ok(()) if files.iter().any(|file| take(file, user, to).is_some()) => Ok(()),
            Ok(()) | Err(Refusal::Failed) => Err(files
                .into_iter()
                .find_map(|file| {
                    let owner = file.symlink_metadata().ok()?.uid();
                    (owner != user).then_some(Refusal::Taken { file, user: owner })
                })
                .unwrap_or(Refusal::Failed)),
            Err(refusal) => Err(refusal),
        }
    }

    /// Gives an order that expires after `time`, and waits for the answer.
    fn give(&self, order: Order, time: Duration, patience: Duration) -> Result<(), Refusal> {
        let pid = self.slot.owner().process;
        if matches!(order, Order::Sample(_) | Order::Write)
            && filters(&pid.to_string()) > filters("self")
        {
            return Err(Refusal::Sandboxed);
        }
        let slot = self.slot.get().ok_or(Refusal::Gone)?;
        let number = slot.ask(order, now_ns() + time.max(LOOK).as_nanos() as u64);
        let began = Instant::now();
        loop {
            // The process may have ended, and another may have its slot.
            let slot = self.slot.get().ok_or(Refusal::Gone)?;
            match slot.answer_to(number) {
                Some(Answer::Done) => return Ok(()),
                Some(Answer::Failed) => return Err(Refusal::Failed),
                Some(Answer::Busy) => return Err(Refusal::Busy),
                Some(Answer::Unknown) => return Err(Refusal::Unknown),
                Some(Answer::Refused) => return Err(Refusal::Hardened),
                None if self.slot.claim() != Claim::Right => return Err(Refusal::Gone),
                None if began.elapsed() >= patience => return Err(Refusal::Quiet),
                None => thread::sleep(LOOK),
            }
        }
    }
}

/// Locks the file. Returns false if another command holds the lock.
fn is_locked(file: &File) -> bool {
    // SAFETY: the descriptor is open, and the call takes only numbers.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Returns the files to which a process of `user` may have written its profile.
fn profiles(pid: u32, user: u32) -> Vec<PathBuf> {
    let [before, between, behind] = PROFILE_NAME;
    let name = format!("{before}{user}{between}{pid}{behind}");
    let given = process::variable(pid, "XDG_RUNTIME_DIR").map(PathBuf::from);
    let folders = given.into_iter().chain([PathBuf::from(PROFILE_FOLDER)]);
    folders.map(|folder| folder.join(&name)).collect()
}

/// Moves a profile that a process of `user` has written.
fn take(from: &Path, user: u32, to: &Path) -> Option<()> {
    let how = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut file = File::options().read(true).custom_flags(how).open(from).ok()?;
    let about = file.metadata().ok()?;
    if !(about.is_file() && about.uid() == user && about.nlink() == 1) {
        return None;
    }
    let copied = File::create(to).and_then(|mut to| io::copy(&mut file, &mut to));
    let _ = std::fs::remove_file(from);
    copied.ok().map(drop)
}
