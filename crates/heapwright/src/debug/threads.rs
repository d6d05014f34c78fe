//! Threads: their numbers in findings, and their names.
//!
//! ```text
//!   number (1, 2, 3, ...) --> system's number | check | name
//! ```
//!
//! A block may outlive its thread, and the system reuses thread numbers. So threads are numbered in
//! order of arrival, with 16 bits. Threads beyond 65534 share the last number. The recorded name is
//! the name that the thread had at its first allocation.

use crate::os;
use crate::recorder::Recorder;
use crate::segments::{Segments, Zeroed};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const LAST: u32 = 65_534;

#[repr(C)]
struct Entry {
    system: AtomicU32,
    /// See `scope`.
    scope: AtomicU32,
    name: [AtomicU64; 2],
}

// SAFETY: all fields are numbers.
unsafe impl Zeroed for Entry {}

pub(crate) struct Threads {
    count: AtomicU32,
    entries: Segments<Entry, 64, 11>,
}

impl Threads {
    pub(crate) const fn new() -> Self {
        Self { count: AtomicU32::new(0), entries: Segments::new() }
    }

    fn entry(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    /// Assigns the next number to the calling thread, with the system's number and the check.
    pub(crate) fn number_of(&self, system: u32, scope: u32) -> u16 {
        let next = |n: u32| (n < LAST).then_some(n + 1);
        let number = match self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(before) => before + 1,
            Err(_) => LAST,
        };
        if let Some(entry) = self.entries.get_or_make(number as usize) {
            let name = os::process_name();
            let half = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&name[at..at + 8]);
                u64::from_ne_bytes(bytes)
            };
            entry.name[0].store(half(0), Ordering::Relaxed);
            entry.name[1].store(half(8), Ordering::Relaxed);
            entry.scope.store(scope, Ordering::Relaxed);
            entry.system.store(system, Ordering::Release);
        }
        number as u16
    }

    pub(crate) fn known(&self, system: u32) -> Option<u16> {
        const LATELY: u32 = 256;
        u16::try_from(self.last_of(system, LATELY)?).ok()
    }

    /// Returns the last number of the system's thread, or 0.
    #[cfg_attr(miri, allow(dead_code, reason = "for leak checks"))]
    pub(crate) fn number_of_system(&self, system: u32) -> u32 {
        self.last_of(system, LAST).unwrap_or(0)
    }

    fn last_of(&self, system: u32, within: u32) -> Option<u32> {
        let last = self.count();
        let is = |number: &u32| {
            let entry = self.entry(*number);
            entry.is_some_and(|entry| entry.system.load(Ordering::Acquire) == system)
        };
        (last.saturating_sub(within) + 1..=last).rev().find(is)
    }

    pub(crate) fn record(&self, number: u32, recorder: &mut Recorder) {
        if let Some((system, name)) = self.identity(number) {
            recorder.put_thread(number, system, &name);
        }
    }

    /// Returns the system's number of a thread, and its name with a zero at the end.
    pub(crate) fn identity(&self, number: u32) -> Option<(u32, [u8; 16])> {
        if number == 0 {
            return None;
        }
        let entry = self.entry(number)?;
        // This is read first, because the name was written before it.
        let system = entry.system.load(Ordering::Acquire);
        let mut name = [0; 16];
        name[..8].copy_from_slice(&entry.name[0].load(Ordering::Relaxed).to_ne_bytes());
        name[8..].copy_from_slice(&entry.name[1].load(Ordering::Relaxed).to_ne_bytes());
        (system != 0).then_some((system, name))
    }

    /// Returns the check of a thread, or 0.
    pub(super) fn scope_of(&self, number: u32) -> u32 {
        if number == 0 {
            return 0;
        }
        self.entry(number).map_or(0, |entry| entry.scope.load(Ordering::Relaxed))
    }

    /// Visits each thread of a check: the system's number, and the field that names the check.
    pub(super) fn each_of(&self, scope: u32, mut visit: impl FnMut(u32, &AtomicU32)) {
        for number in 1..=self.count() {
            if let Some(entry) = self.entry(number)
                && entry.scope.load(Ordering::Relaxed) == scope
            {
                visit(entry.system.load(Ordering::Relaxed), &entry.scope);
            }
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}
