//! A debug heap: blocks are allocated, freed, and checked.
//!
//! ```text
//!   this file     a heap and its start
//!     place       a request: a slot of the current bucket, or a place between guards
//!     deallocate  free, size: the slot of an address, and its record
//!     resize      realloc: in place, or to a new block
//!       judge     is the call right? are the bytes around the block unchanged?
//!     sweep       looks for damage without a free: one bucket at a time, all at exit
//!     walk        every live block
//!       bounds    arguments of the C library's functions, and the live blocks that hold them
//!       fresh     the uninitialised bytes of a block
//!       keep      blocks that the program declares as no leaks
//!       poison    bytes of blocks that must not be used for now
//!       enter     the per-thread state of the caller
//!       findings  about a block, or about an address outside of blocks
//!       late      findings that must wait for the store's lock
//!       counts    sums over states
//!       fork      locks, and other threads' states
//! ```
//!
//! The usual paths take only the store's lock, once for each bucket. If two threads free one block
//! at once, the exchange of the record's word fails for one of them. The thread that frees the last
//! block of a bucket owns the bucket.
//!
//! After a finding the program continues: the heap ignores a wrong free, corrects a mismatched
//! free, and repairs damaged bytes. Called by `debug`'s entry points.

pub(in crate::debug) mod bounds;
mod counts;
mod deallocate;
mod enter;
mod findings;
mod fork;
mod fresh;
mod judge;
pub(in crate::debug) mod keep;
mod late;
mod place;
mod poison;
mod resize;
mod sweep;
mod walk;

use core::ffi::c_void;
use core::ops::Range;
use core::{mem, ptr};

use heapwright_record::debug::{Call, Moment};

use crate::options::debug::{Config, Guard};
use crate::registry::thread_index::MOST_THREADS;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{self, Lock};

use super::budget::GuardBudget;
use super::flagged::FlaggedSites;
use super::module_advance::ModuleAdvances;
use super::report::{Ends, Reporter};
use super::sample::Sites;
use super::store::{Limits, Store, Units};
use super::table::Table;
use super::thread_state::ThreadState;
use super::threads::Threads;
use enter::EnteredState;
use fresh::Fresh;

pub(super) use findings::of_block;

const STACKS_LEAST: usize = 256 << 20;

pub(crate) struct Heap {
    id: AtomicU32,
    depth: AtomicUsize,
    config: Lock<Config>,
    rules: Rules,
    store: Lock<Store>,
    units: Units,
    states: [AtomicPtr<ThreadState>; MOST_THREADS],
    /// Threads with this index or a higher one have no state.
    indices_used: AtomicUsize,
    common: AtomicPtr<ThreadState>,
    common_order: Lock<()>,
    sequence: AtomicU32,
    /// Sampled pages, and bytes of buckets that have not retired, as the store last wrote them.
    pages: AtomicUsize,
    open_bytes: AtomicUsize,
    peak_live: AtomicU64,
    /// The time of the fork that made this process; 0 without a fork.
    forked_at: AtomicU64,
    /// The parent process, and the sequence number at the fork.
    forked_from: AtomicU32,
    forked_sequence: AtomicU32,
    sites: Sites,
    budget: GuardBudget,
    advances: ModuleAdvances,
    pub(super) flagged: FlaggedSites,
    fresh: Fresh,
    /// Blocks in another allocator's memory: see `checked`.
    pub(super) table: Lock<Table>,
    told: bounds::Told,
    pub(crate) threads: Threads,
    pub(crate) reporter: Reporter,
}

struct Rules {
    guard: AtomicU32,
    fill: AtomicBool,
    canary: AtomicBool,
    double_free: AtomicBool,
    mismatch: AtomicBool,
    size: AtomicBool,
    limit: AtomicUsize,
    /// Whether the heap serves fast mode's guarded blocks; see `guards`.
    is_for_guards: AtomicBool,
    is_process_heap: AtomicBool,
}

const GUARD_NEVER: u32 = 0;
const GUARD_SAMPLE: u32 = 1;
const GUARD_ALL: u32 = 2;

impl Heap {
    /// The bytes of `states`, which are null pointers before the heap begins.
    pub(in crate::debug) const STATES: Range<usize> = {
        let start = mem::offset_of!(Self, states);
        start..start + size_of::<[AtomicPtr<ThreadState>; MOST_THREADS]>()
    };

    pub(crate) const fn new() -> Self {
        Self {
            id: AtomicU32::new(0),
            depth: AtomicUsize::new(0),
            config: Lock::new(Config::DEFAULT),
            rules: Rules {
                guard: AtomicU32::new(GUARD_SAMPLE),
                fill: AtomicBool::new(true),
                canary: AtomicBool::new(true),
                double_free: AtomicBool::new(true),
                mismatch: AtomicBool::new(true),
                size: AtomicBool::new(true),
                limit: AtomicUsize::new(usize::MAX),
                is_for_guards: AtomicBool::new(false),
                is_process_heap: AtomicBool::new(false),
            },
            store: Lock::new(Store::new()),
            units: Units::new(),
            states: [const { AtomicPtr::new(ptr::null_mut()) }; MOST_THREADS],
            indices_used: AtomicUsize::new(0),
            common: AtomicPtr::new(ptr::null_mut()),
            common_order: Lock::new(()),
            sequence: AtomicU32::new(0),
            pages: AtomicUsize::new(0),
            open_bytes: AtomicUsize::new(0),
            peak_live: AtomicU64::new(0),
            forked_at: AtomicU64::new(0),
            forked_from: AtomicU32::new(0),
            forked_sequence: AtomicU32::new(0),
            sites: Sites::new(),
            budget: GuardBudget::new(),
            advances: ModuleAdvances::new(),
            flagged: FlaggedSites::new(),
            fresh: Fresh::new(),
            table: Lock::new(Table::new()),
            told: bounds::Told::new(),
            threads: Threads::new(),
            reporter: Reporter::new(),
        }
    }

    pub(crate) fn begin(&'static self, id: u32, config: &Config) {
        self.id.store(id, Ordering::Relaxed);
        self.depth.store(config.traces.min(64), Ordering::Relaxed);
        let detect = config.detect;
        // Without guards, the ends of blocks hold the pattern.
        let has_guards = detect.guard && crate::os::HAS_GUARDS;
        let guard = match config.guard {
            _ if !has_guards || config.never_unmap => GUARD_NEVER,
            Guard::Never => GUARD_NEVER,
            Guard::Sample => GUARD_SAMPLE,
            Guard::All => GUARD_ALL,
        };
        self.rules.guard.store(guard, Ordering::Relaxed);
        if guard == GUARD_SAMPLE {
            self.budget.begin();
        }
        self.rules.fill.store(detect.fill, Ordering::Relaxed);
        self.rules.canary.store(detect.canary, Ordering::Relaxed);
        self.rules.double_free.store(detect.double_free, Ordering::Relaxed);
        self.rules.mismatch.store(detect.mismatch, Ordering::Relaxed);
        self.rules.size.store(detect.size, Ordering::Relaxed);
        let limit = if config.limit == 0 { usize::MAX } else { config.limit };
        self.rules.limit.store(limit, Ordering::Relaxed);
        crate::stacks::limit(config.memory.max(STACKS_LEAST));
        *self.config.lock() = *config;
        self.reporter.begin(config);
        let limits = Limits {
            guard: match guard {
                GUARD_NEVER => Guard::Never,
                GUARD_ALL => Guard::All,
                _ => Guard::Sample,
            },
            memory: config.memory,
            touches: detect.fill || detect.canary,
            fills: detect.fill,
            ends: has_guards,
            slots: config.slots.clamp(1, 4096),
            retain: config.retain,
        };
        self.store.lock().begin(id, &self.units, limits);
    }

    /// Makes the new heap serve fast mode's guarded blocks. The table of stacks takes at most
    /// `stacks` bytes.
    pub(in crate::debug) fn begin_for_guards(&self, stacks: usize, ends: Ends) {
        self.rules.is_for_guards.store(true, Ordering::Relaxed);
        self.reporter.end_at(ends);
        crate::stacks::limit(stacks);
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    pub(in crate::debug) fn config(&self) -> Config {
        *self.config.lock()
    }

    pub(in crate::debug) fn is_in_use(&'static self) -> bool {
        self.made() > 0 || self.table.lock().handed_out > 0
    }

    /// Locks the store for a leak check, so that no span comes or goes.
    pub(in crate::debug) fn hold_store(&self) -> Option<sync::Guard<'_, Store>> {
        self.store.lock_soon()
    }

    /// The caller must hold none of the heap's locks.
    pub(in crate::debug) fn lock_store(&self) -> sync::Guard<'_, Store> {
        self.store.lock()
    }

    pub(in crate::debug) fn become_process_heap(&self) {
        self.rules.is_process_heap.store(true, Ordering::Relaxed);
    }

    pub(in crate::debug) fn is_process_heap(&self) -> bool {
        self.rules.is_process_heap.load(Ordering::Relaxed)
    }

    /// Returns the moment of an operation on another allocator's block, if there is memory.
    #[inline(always)]
    pub(in crate::debug) fn moment(&'static self) -> Option<Moment> {
        let mut entered = self.enter()?;
        let stack = entered.mine().stack(self.depth.load(Ordering::Relaxed));
        Some(self.moment_of(&mut entered, stack))
    }

    #[inline(always)]
    fn moment_of(&'static self, entered: &mut EnteredState, stack: u32) -> Moment {
        let mine = entered.mine();
        let sequence = u64::from(mine.sequence(&self.sequence));
        Moment { stack, thread: u32::from(mine.thread), sequence, ns: self.reporter.now() }
    }

    /// Returns the stack of code that a signal interrupted, its thread, and a sequence number.
    #[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
    pub(in crate::debug) fn moment_of_context(
        &'static self,
        context: *mut c_void,
    ) -> (u32, u32, u64) {
        let Some(mut entered) = self.enter() else { return (0, 0, 0) };
        let mine = entered.mine();
        let depth = self.depth.load(Ordering::Relaxed).max(1);
        let stack = if context.is_null() {
            0
        } else {
            // SAFETY: the caller has the context from a signal handler.
            unsafe { crate::stacks::of_context(&mut mine.scratch, depth, context) }.0
        };
        let sequence = mine.sequence(&self.sequence);
        (stack, u32::from(mine.thread), u64::from(sequence))
    }

    #[cold]
    pub(super) fn log(&self, call: Call, block: *mut u8, size: usize, stack: u32) {
        self.reporter.log(call, block.addr(), size, stack);
    }
}
