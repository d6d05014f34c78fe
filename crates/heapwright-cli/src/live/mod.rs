//! Processes on heapwright while they run, seen from outside.
//!
//! ```text
//! the user's status memory --slots--> process ids, and their reported addresses
//! /proc/PID               --process-> resident size, page faults, command line, options, limit
//! /proc/PID/maps, pagemap --pagemap-> resident pages of the heap
//!                                          |
//!                                       parts: they add up to the resident size
//! the slot                <--orders-- sample, stop, write a profile, trim
//!
//! history     a series of looks: rates, and the course
//! limit       the memory limit of a process's control groups
//! maps        all mappings of a process, with addresses
//! mappings    mappings outside the heap
//! ```
//!
//! The command attaches to no process and sends no signal: see `heapwright_record::status`. A
//! process answers at a tick of one of its slow paths. A process that allocates nothing does not
//! renew its figures; `pagemap` still shows its resident memory. Processes in another pid namespace
//! (a container's) are visible only from inside it.

mod history;
mod limit;
mod mappings;
mod maps;
mod orders;
mod pagemap;
mod parts;
mod process;
mod slots;

pub(crate) use history::{History, Point, Watched};
pub(crate) use mappings::Mappings;
pub(crate) use orders::{Orders, Refusal};
pub(crate) use parts::{FRESH, Parts};
pub(crate) use process::{Process, page_size};
pub(crate) use slots::{Slot, Statuses};

use maps::Maps;
use slots::Claim;

use heapwright_record::Stats;
use heapwright_record::status::{CLASSES, Class, Facts};
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) process: Process,
    /// `None` if the process has not written a report yet.
    pub(crate) report: Option<Reported>,
}

#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) facts: Facts,
    pub(crate) stats: Stats,
    pub(crate) parts: Parts,
    pub(crate) classes: [Class; CLASSES],
    pub(crate) age: Duration,
}

impl Seen {
    /// Returns `None` if the slot's process has ended or executed another program.
    pub(crate) fn of(slot: &Slot) -> Option<Self> {
        let report = slot.read();
        let pid = slot.owner().process;
        let process = Process::of(pid)?;
        let maps = Maps::of(pid).ok();
        if slot.claim_by(maps.as_ref()) != Claim::Right {
            return None;
        }
        let report = report.map(|report| {
            let maps = maps.as_ref();
            let resident = maps.and_then(|maps| pagemap::resident(pid, &report.facts, maps));
            let now = slots::now_ns();
            let age = Duration::from_nanos(now.saturating_sub(report.facts.written_ns));
            let parts = Parts::of(
                &report.stats,
                &report.facts,
                process.resident,
                process.files,
                resident,
                age,
            );
            Reported {
                facts: report.facts,
                stats: report.stats,
                parts,
                classes: report.classes,
                age,
            }
        });
        Some(Self { process, report })
    }
}

/// Slots of processes that have ended become free.
pub(crate) fn look(statuses: &Statuses) -> Vec<Seen> {
    let mut seen = Vec::new();
    for slot in statuses.slots() {
        match Seen::of(&slot) {
            Some(process) => seen.push(process),
            None => slot.clear_if_past(),
        }
    }
    seen
}
