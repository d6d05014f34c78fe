//! Scopes assign threads, and so blocks and findings, to a check.
//!
//! ```text
//!   check   takes a scope: 50,000 + its number becomes the thread's mark (its timer slack)
//!   thread  started by a thread of the scope: inherits the mark, reports it at its first call
//!   block   made by thread 17 --> threads' entry 17 --> scope
//! ```
//!
//! A thread that enters a check gets a new number in each heap, so its earlier blocks do not belong
//! to the check. A scope that ends leaves its threads and blocks to the outer scope, or to none.
//!
//! Numbers are reused after some hundred checks. A thread that outlives so many checks, and then
//! enters a new heap, would be assigned to a later check. Called by `heap`, `report`, `check`,
//! `reach` and `symbols`.

use heapwright_record::debug::{Finding, FindingKind};

use crate::os;
use crate::sync::atomic::{AtomicU32, Ordering};

use super::HEAPS;
use super::threads::Threads;

pub(super) const MOST: u32 = 128;
/// The mark of scope 0 (no scope): the usual slack of timers in nanoseconds.
const UNMARKED: u64 = 50_000;
/// Checks that begin before the numbers of scopes repeat.
const ROUNDS: u32 = 400;

pub(super) struct Scope {
    /// The scope's number, or 0 if the place is free.
    id: AtomicU32,
    parent: AtomicU32,
    findings: AtomicU32,
    last: AtomicU32,
}

static SCOPES: [Scope; MOST as usize] = [const {
    Scope {
        id: AtomicU32::new(0),
        parent: AtomicU32::new(0),
        findings: AtomicU32::new(0),
        last: AtomicU32::new(0),
    }
}; MOST as usize];
static ROUND: AtomicU32 = AtomicU32::new(0);

fn get(id: u32) -> Option<&'static Scope> {
    let scope = &SCOPES[(id % MOST) as usize];
    (id != 0 && scope.id.load(Ordering::Acquire) == id).then_some(scope)
}

/// Returns the scope in the calling thread's mark, or 0.
pub(super) fn of_this_thread() -> u32 {
    match os::mark().checked_sub(UNMARKED) {
        Some(id @ 1..0x1_0000) if get(id as u32).is_some() => id as u32,
        _ => 0,
    }
}

#[cfg(feature = "symbols")]
pub(super) fn is_running(id: u32) -> bool {
    get(id).is_some()
}

pub(super) fn is_within(mut id: u32, outer: u32) -> bool {
    while id != outer {
        match get(id) {
            Some(scope) => id = scope.parent.load(Ordering::Relaxed),
            None => return false,
        }
    }
    true
}

/// Counts a finding for the failing thread's scope. If it has none, and for damage, counts for the
/// scope of the thread that made the block. Outer scopes count, too. Returns the scope, or 0.
pub(super) fn note(finding: &Finding, threads: &Threads) -> u32 {
    let owner = threads.scope_of(finding.allocated.thread);
    let finder = threads.scope_of(finding.here.thread);
    let is_damage = !finding.is_access()
        && matches!(
            finding.kind,
            FindingKind::Overflow | FindingKind::Underflow | FindingKind::WriteAfterFree
        );
    let about = if is_damage || finder == 0 { owner } else { finder };
    let mut id = about;
    while let Some(scope) = get(id) {
        scope.last.store(finding.kind as u32, Ordering::Relaxed);
        scope.findings.fetch_add(1, Ordering::Relaxed);
        id = scope.parent.load(Ordering::Relaxed);
    }
    about
}

/// A scope that the calling thread has entered, until this value is dropped.
pub(super) struct Entered {
    pub(super) id: u32,
    parent: u32,
    mark: u64,
}

impl Entered {
    /// Begins a scope in the calling thread. Returns `None` if too many checks run.
    pub(super) fn begin() -> Option<Self> {
        let round = ROUND.fetch_add(1, Ordering::Relaxed) % ROUNDS;
        let (mark, parent) = (os::mark(), of_this_thread());
        // Place 0 is not used, because its number might be 0.
        let id = (1..MOST).map(|place| round * MOST + place).find(|&id| {
            let scope = &SCOPES[(id % MOST) as usize];
            scope.id.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        let scope = get(id)?;
        scope.parent.store(parent, Ordering::Relaxed);
        scope.findings.store(0, Ordering::Relaxed);
        os::set_mark(UNMARKED + u64::from(id));
        HEAPS.all().for_each(|heap| heap.enter_scope(id));
        Some(Self { id, parent, mark })
    }

    pub(super) fn findings(&self) -> (u32, FindingKind) {
        get(self.id).map_or((0, FindingKind::Unknown), |scope| {
            let last = scope.last.load(Ordering::Relaxed) as u16;
            (scope.findings.load(Ordering::Relaxed), FindingKind::from_u16(last))
        })
    }

    pub(super) fn has_threads(&self) -> bool {
        let me = os::thread_id();
        let mut running = false;
        for heap in HEAPS.all() {
            heap.threads.each_of(self.id, |thread, _| {
                running |= thread != me && os::is_running(thread);
            });
        }
        running
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        os::set_mark(self.mark.max(1));
        if let Some(scope) = get(self.id) {
            scope.id.store(0, Ordering::Release);
        }
        for heap in HEAPS.all() {
            heap.threads.each_of(self.id, |_, scope| scope.store(self.parent, Ordering::Relaxed));
        }
    }
}
