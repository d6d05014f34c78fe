//! Orders to a process: sample, stop, write a profile.
//!
//! One command at a time gives orders to a process, which a lock on its part of the file sees to. An order counts for a time:
//! sampling that was ordered ends by itself some seconds after the command has last said that it is still there, so a
//! command that is killed leaves nothing running; and what a process did not hear in time it does not do later.

use super::file::{Slot, now_ns};
use super::process::{Process, filters};
use heapwright_record::status::{Answer, Order};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How often the answer is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// Why an order was not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The process did not allocate in time.
    Quiet,
    /// It has ended.
    Gone,
    /// It could not.
    Failed,
    /// It samples already, for another reason.
    Busy,
    /// Its library is of another version.
    Unknown,
    /// It is in a sandbox, which may end it for what it is asked to do.
    Sandboxed,
}

/// The right to give orders to a process.
pub(crate) struct Orders {
    slot: Slot,
}

impl Orders {
    /// `None`: another command gives orders.
    pub(crate) fn to(slot: Slot) -> Option<Self> {
        slot.lock().then_some(Self { slot })
    }

    /// Has a block sampled every `period` bytes, on average, or go on with it, for so long.
    pub(crate) fn sample(
        &self,
        period: u64,
        time: Duration,
        patience: Duration,
    ) -> Result<(), Refusal> {
        self.give(Order::Sample(period), time, patience)
    }

    /// Has no block sampled any more.
    pub(crate) fn stop(&self, patience: Duration) -> Result<(), Refusal> {
        self.give(Order::Stop, patience, patience)
    }

    /// Has the profile written, and moves it to the file `to`.
    pub(crate) fn write(&self, to: &Path, patience: Duration) -> Result<(), Refusal> {
        let user = Process::of(self.slot.owner().process).ok_or(Refusal::Gone)?.user;
        self.give(Order::Write, patience, patience)?;
        take(&self.slot.profile_path(user), user, to).ok_or(Refusal::Failed)
    }

    /// Gives an order that counts for so long, and waits for the answer.
    fn give(&self, order: Order, time: Duration, patience: Duration) -> Result<(), Refusal> {
        if order != Order::Stop && filters(&self.slot.owner().process.to_string()) > filters("self")
        {
            return Err(Refusal::Sandboxed);
        }
        let slot = self.slot.get().ok_or(Refusal::Gone)?;
        let number = slot.ask(order, now_ns() + time.max(LOOK).as_nanos() as u64);
        let began = Instant::now();
        loop {
            // It may have ended, and the slot be another's.
            let slot = self.slot.get().ok_or(Refusal::Gone)?;
            match slot.answer_to(number) {
                Some(Answer::Done) => return Ok(()),
                Some(Answer::Failed) => return Err(Refusal::Failed),
                Some(Answer::Busy) => return Err(Refusal::Busy),
                Some(Answer::Unknown) => return Err(Refusal::Unknown),
                None if self.slot.is_stale() => return Err(Refusal::Gone),
                None if began.elapsed() >= patience => return Err(Refusal::Quiet),
                None => thread::sleep(LOOK),
            }
        }
    }
}

/// Moves a profile that a process of `user` has written.
fn take(from: &PathBuf, user: u32, to: &Path) -> Option<()> {
    let about = fs::symlink_metadata(from).ok()?;
    let is_its = about.is_file() && about.uid() == user;
    let copied = is_its.then(|| fs::copy(from, to).ok()).flatten();
    if is_its {
        let _ = fs::remove_file(from);
    }
    copied.map(drop)
}
