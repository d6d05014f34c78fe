//! Orders to a process: sample, stop, write a profile.
//!
//! One command at a time gives orders to a process, which a lock on its part of the file sees to. Sampling
//! that was ordered ends by itself some seconds after the command has last said that it is still there, so a command that is
//! killed leaves nothing running.

use super::file::{Slot, now_ns};
use super::process::Process;
use heapwright_record::status::{Answer, Order, TEXT_BYTES};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long sampling goes on after the command was last heard of.
const GRACE: Duration = Duration::from_secs(10);
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
}

/// The right to give orders to a process.
pub(crate) struct Orders<'a> {
    slot: Slot<'a>,
}

impl<'a> Orders<'a> {
    /// `None`: another command gives orders.
    pub(crate) fn to(slot: Slot<'a>) -> Option<Self> {
        slot.lock().then_some(Self { slot })
    }

    /// Has a block sampled every `period` bytes, or go on with it.
    pub(crate) fn sample(&self, period: u64, patience: Duration) -> Result<(), Refusal> {
        let until_ns = now_ns() + patience.as_nanos() as u64 + GRACE.as_nanos() as u64;
        self.give(&Order::Sample { period, until_ns }, patience)
    }

    /// Has no block sampled any more.
    pub(crate) fn stop(&self, patience: Duration) -> Result<(), Refusal> {
        self.give(&Order::Stop, patience)
    }

    /// Has the profile written to a file, whose name is at most 255 bytes.
    pub(crate) fn write(&self, file: &Path, patience: Duration) -> Result<(), Refusal> {
        let name = file.as_os_str().as_bytes();
        let mut path = [0; TEXT_BYTES];
        match path.get_mut(..name.len()) {
            Some(place) if name.len() < TEXT_BYTES => place.copy_from_slice(name),
            _ => return Err(Refusal::Failed),
        }
        self.give(&Order::Write { path }, patience)
    }

    /// Gives an order and waits for the answer.
    fn give(&self, order: &Order, patience: Duration) -> Result<(), Refusal> {
        let slot = self.slot.get().ok_or(Refusal::Gone)?;
        let number = slot.ask(order);
        let began = Instant::now();
        loop {
            match slot.answer_to(number) {
                Some(Answer::Done) => return Ok(()),
                Some(Answer::Failed) => return Err(Refusal::Failed),
                Some(Answer::Busy) => return Err(Refusal::Busy),
                Some(Answer::Unknown) => return Err(Refusal::Unknown),
                None => {}
            }
            if Process::of(self.slot.owner().process).is_none() {
                return Err(Refusal::Gone);
            }
            if began.elapsed() >= patience {
                return Err(Refusal::Quiet);
            }
            thread::sleep(LOOK);
        }
    }
}
