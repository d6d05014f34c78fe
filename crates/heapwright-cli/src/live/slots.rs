//! Finds and attaches the status memory of processes, and reads its slots.
//!
//! ```text
//! /proc/sysvipc/shm --(size, mode, maker)--> segments --attach--> slots, each slot names a process
//! /proc/PID         --(mapped? which user?)--> the claim is right, past, or forged
//! ```
//!
//! Any process that has attached a segment can write to it, even one that gave up its rights. So a
//! claim counts only if, according to the kernel, the named process has the segment mapped. If the
//! kernel refuses this query, the process's user must have made the segment.

use super::maps::Maps;
use super::process::{self, Process};
use crate::output::printable_text;
use crate::wrong::wrong;
use heapwright_record::status::{BYTES, Owner, Report, SLOTS, Status};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::rc::Rc;

struct Attached {
    at: NonNull<Status>,
    id: i32,
    maker: u32,
}

impl Attached {
    /// Attaches the segment in a line of /proc/sysvipc/shm, if it is status memory that `user` may
    /// trust: the user's own, or, for the superuser, anyone's.
    fn of(line: &str, user: u32) -> Option<Self> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let (id, size) = (i32::try_from(number(1)?).ok()?, number(3)?);
        let mode = u32::from_str_radix(fields.get(2)?, 8).ok()?;
        let (owner, maker) = (number(7)?, number(9)?);
        // Only its user may attach the segment, and others no longer find it (`SHM_DEST`). Its
        // maker has not given the segment to another user.
        let is_private = mode == 0o1600 && owner == maker;
        let may_look = user == 0 || maker == u64::from(user);
        if !(size == BYTES as u64 && is_private && may_look) {
            return None;
        }
        // SAFETY: a new mapping replaces nothing.
        let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        if at.addr() == usize::MAX {
            return None;
        }
        let at = Self { at: NonNull::new(at.cast())?, id, maker: maker as u32 };
        // The number may belong to another segment by now.
        // SAFETY: all zeros is a valid value of this struct of numbers.
        let mut about = unsafe { std::mem::zeroed::<libc::shmid_ds>() };
        // SAFETY: the struct is writable.
        let is_known = unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut about) } == 0;
        let is_same = about.shm_segsz == BYTES && about.shm_perm.cuid == at.maker;
        (is_known && is_same && at.get().is_of_this_version()).then_some(at)
    }

    fn get(&self) -> &Status {
        // SAFETY: the segment stays attached while `self` lives, and no process can shrink it. Any
        // bytes are a valid status, whose words are atomics.
        unsafe { self.at.as_ref() }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: attached by `of`, and nothing refers to it any more.
        unsafe { libc::shmdt(self.at.as_ptr().cast()) };
    }
}

pub(crate) struct Statuses {
    all: Vec<Rc<Attached>>,
    namespace: u32,
}

#[derive(Clone)]
pub(crate) struct Slot {
    status: Rc<Attached>,
    index: usize,
    owner: Owner,
}

/// Whether a slot belongs to the process that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The slot is this process's.
    Right,
    /// The process has ended, or has executed another program.
    Past,
    /// The slot is not the process's; this user owns the process.
    Forged(u32),
}

impl Statuses {
    /// Attaches this user's status memory; for the superuser, that of all users.
    pub(crate) fn open() -> Self {
        // SAFETY: no preconditions.
        let user = unsafe { libc::geteuid() };
        let list = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        let all = list.lines().skip(1).filter_map(|line| Attached::of(line, user));
        let all = all.map(Rc::new).collect();
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino() as u32);
        Self { all, namespace }
    }

    /// Returns the slots that processes of this namespace claim.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let here = self.namespace;
        self.all.iter().flat_map(move |status| {
            (0..SLOTS).filter_map(move |index| {
                let owner = status.get().owner(index)?;
                (owner.namespace == here).then(|| Slot { status: Rc::clone(status), index, owner })
            })
        })
    }

    /// Returns a line for each forged slot, and for each status memory without a free slot.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.slots().filter_map(|slot| slot.forged()).collect();
        lines.extend(self.all.iter().filter_map(|status| {
            let lives = |owner: Owner| process::user_of(owner.process).is_some();
            let is_full = (0..SLOTS).all(|index| status.get().owner(index).is_some_and(lives));
            let first = status.get().owner(0)?.process;
            is_full.then(|| {
                format!(
                    "the program of process {first} has {SLOTS} processes that show themselves; \
                     its others cannot be shown"
                )
            })
        }));
        lines.sort();
        lines.dedup();
        lines
    }

    /// The error says why there is none.
    pub(crate) fn slot_of(&self, process: u32) -> anyhow::Result<Slot> {
        let claims: Vec<Slot> = self.slots().filter(|slot| slot.owner.process == process).collect();
        if let Some(slot) = claims.iter().find(|slot| slot.claim() == Claim::Right) {
            return Ok(slot.clone());
        }
        if let Some(line) = claims.iter().find_map(Slot::forged) {
            return Err(wrong(line));
        }
        let user = process::user_of(process)
            .ok_or_else(|| wrong(format!("there is no process {process}")))?;
        let maps = Maps::of(process).map_err(|error| {
            wrong(format!("cannot look at process {process}, which user {user} runs: {error}"))
        })?;
        Err(wrong(if maps.has_library() {
            format!(
                "process {process} does not show itself: it has not allocated yet, has the option \
                 publish=no, is set-uid or in a container, or got no shared memory (ipcs -m)"
            )
        } else {
            format!("process {process} is not on heapwright: start it by `heapwright run`")
        }))
    }
}

impl Slot {
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Returns `None` if the owner has changed.
    pub(super) fn get(&self) -> Option<&heapwright_record::status::Slot> {
        let is_its = self.status.get().owner(self.index) == Some(self.owner);
        self.status.get().slot(self.index).filter(|_| is_its)
    }

    /// Reads the report, and marks the process as watched for the next seconds.
    pub(crate) fn read(&self) -> Option<Report> {
        const SECONDS: u64 = 5;
        let slot = self.get()?;
        slot.watch(now_ns() + SECONDS * 1_000_000_000);
        // A report that is being written is complete soon.
        (0..1000).find_map(|_| slot.read())
    }

    /// A hardened process shows no addresses, and follows no orders.
    pub(crate) fn is_hardened(&self) -> bool {
        self.read().is_some_and(|report| report.facts.window_at == 0)
    }

    pub(super) fn claim(&self) -> Claim {
        self.claim_by(Maps::of(self.owner.process).as_ref().ok())
    }

    /// Judges the claim by the process's mappings or, without `maps`, by its user.
    pub(super) fn claim_by(&self, maps: Option<&Maps>) -> Claim {
        let Some(user) = process::user_of(self.owner.process) else { return Claim::Past };
        match maps.map(|maps| maps.has_segment(self.status.id)) {
            Some(true) => Claim::Right,
            None if user == self.status.maker => Claim::Right,
            Some(false) if user == self.status.maker => Claim::Past,
            _ => Claim::Forged(user),
        }
    }

    fn forged(&self) -> Option<String> {
        let Claim::Forged(user) = self.claim() else { return None };
        let process = Process::of(self.owner.process);
        let name = process.map(|process| printable_text(process.name())).unwrap_or_default();
        Some(format!(
            "a process of user {} claims to be process {} ({name}), which user {user} runs: it is \
             not shown",
            self.status.maker, self.owner.process
        ))
    }

    /// Frees the slot if its process has ended or executed another program.
    pub(crate) fn clear_if_past(&self) {
        if self.claim() == Claim::Past {
            self.status.get().give_back(self.index, self.owner);
        }
    }
}

/// Returns the nanoseconds of the monotonic clock, which all processes share.
pub(super) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
