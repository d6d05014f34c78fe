//! The per-thread state of a debug heap, found by the thread's index.
//!
//! ```text
//!   thread index --> state | busy | current buckets of each class | sequence numbers
//!                          | recent stacks | counts
//! ```
//!
//! Only a state's own thread uses it, so no lock is needed. A signal handler that interrupted its
//! thread inside the heap finds the state *busy*. Such a handler, or a thread without an index,
//! uses the *common state*, under a lock.
//!
//! A thread that ends leaves its state to the next holder of its index, which continues in the same
//! buckets.

use core::cell::UnsafeCell;
use core::ptr;

use crate::os;
use crate::size_class::CLASSES;
use crate::stacks::{Scratch, Stack};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::lifetime::{LIFETIMES, LifetimePredictor};
use super::slot::Slot;
use super::span::{BucketRef, Found, Span};

const SEQUENCE_STEP: u32 = 256;

pub(crate) struct Current {
    /// The next slot, or the end of the last slot if none is left.
    pub(crate) at: *mut u8,
    pub(crate) record: *const Slot,
    pub(crate) left: u32,
    pub(crate) size: u32,
    pub(crate) zero: bool,
    /// Whether the bytes behind a block still need the pattern.
    pub(crate) lacks_pattern: bool,
    /// Whether the bucket has more free slots behind used slots; see `sparse`.
    pub(crate) has_more: bool,
}

impl Current {
    /// Continues with the next free slots of the bucket, from slot `first` on.
    pub(crate) fn go_on(&mut self, bucket: BucketRef, first: usize) {
        let mut slots =
            bucket.slots().skip(first).skip_while(|place| !place.is_unused()).peekable();
        let Some(place) = slots.peek() else { return self.has_more = false };
        (self.at, self.record) = (place.slot_start(), place.records());
        self.left = 0;
        while slots.next_if(|place| place.is_unused()).is_some() {
            self.left += 1;
        }
        self.has_more = slots.any(|place| place.is_unused());
    }

    /// Continues with free slots behind the used ones. Returns false if the bucket has none.
    pub(crate) fn has_gone_on(&mut self) -> bool {
        if !self.has_more {
            return false;
        }
        // Slots that were not handed out count as live, so the bucket is still the thread's.
        let last = self.at.addr() - 1;
        if let Some(span) = Span::of(last)
            && let Found::Slot(place) = span.locate(last)
        {
            self.go_on(place.bucket, place.slot + 1);
        }
        self.left > 0
    }
}

pub(crate) struct Mine {
    pub(crate) current: [[Current; LIFETIMES]; CLASSES],
    pub(crate) lifetimes: LifetimePredictor,
    next: u32,
    last: u32,
    pub(crate) thread: u16,
    holder: u32,
    /// The number of the thread's open requests to keep its blocks; see `heap::keep`.
    pub(crate) keeps: u32,
    pub(crate) scratch: Scratch,
}

/// A thread's part of a heap. The zero value is unused.
pub(crate) struct ThreadState {
    busy: AtomicBool,
    /// The lock to release when the common state is left.
    owed: AtomicPtr<Lock<()>>,
    pub(crate) made: AtomicU64,
    pub(crate) freed: AtomicU64,
    pub(crate) made_bytes: AtomicU64,
    pub(crate) freed_bytes: AtomicU64,
    mine: UnsafeCell<Mine>,
}

// SAFETY: only the thread that made the state busy touches `mine`.
unsafe impl Sync for ThreadState {}

impl ThreadState {
    pub(crate) fn owe(&self, lock: &'static Lock<()>) {
        self.owed.store(ptr::from_ref(lock).cast_mut(), Ordering::Relaxed);
    }

    /// Enters the state. Returns false in a signal handler that interrupted a use of the state.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        // Only one thread uses the state, so no exchange is needed.
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        self.busy.store(true, Ordering::Relaxed);
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        true
    }

    pub(crate) fn is_entered(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn leave(&self) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
        if !self.owed.load(Ordering::Relaxed).is_null() {
            self.pay();
        }
    }

    #[cold]
    fn pay(&self) {
        let lock = self.owed.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the pointer is null or the lock from `owe`, which lives for ever.
        if let Some(lock) = unsafe { lock.as_ref() } {
            // SAFETY: the lock from `owe` is held, and is released once.
            unsafe { lock.release() };
        }
    }

    /// Returns the part that only the state's thread uses.
    ///
    /// # Safety
    ///
    /// The caller entered the state, and has no other reference from here.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the thread that entered has it alone")]
    pub(crate) unsafe fn mine(&self) -> &mut Mine {
        // SAFETY: the caller promises that the state is entered and no other reference exists.
        unsafe { &mut *self.mine.get() }
    }

    pub(crate) fn is_of(&self, mine: &Mine) -> bool {
        ptr::eq(self.mine.get(), mine)
    }

    #[inline]
    pub(crate) fn count_made(&self, bytes: usize) {
        bump(&self.made, 1);
        bump(&self.made_bytes, bytes as u64);
    }

    pub(crate) fn count_more(&self, bytes: usize) {
        bump(&self.made_bytes, bytes as u64);
    }

    pub(crate) fn count_one_less(&self) {
        for counter in [&self.made, &self.freed] {
            counter.store(counter.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }
    }

    pub(crate) fn count_nothing(&self) {
        for counter in [&self.made, &self.freed, &self.made_bytes, &self.freed_bytes] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn count_freed(&self, bytes: usize) {
        bump(&self.freed, 1);
        bump(&self.freed_bytes, bytes as u64);
    }
}

/// Adds to a counter that only one thread writes.
#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl Mine {
    #[inline]
    pub(crate) fn is_new(&self, holder: u32) -> bool {
        self.holder != holder || self.thread == 0
    }

    pub(crate) fn assign(&mut self, holder: u32, thread: u16) {
        self.holder = holder;
        self.thread = thread;
        self.keeps = 0;
        // The scratch holds addresses of the previous thread's stack.
        self.scratch = Scratch::new();
    }

    pub(crate) fn forget_buckets(&mut self) {
        for current in self.current.as_flattened_mut() {
            (current.left, current.has_more) = (0, false);
        }
    }

    pub(crate) fn forget_numbers(&mut self) {
        self.last = self.next;
    }

    #[inline]
    pub(crate) fn sequence(&mut self, all: &AtomicU32) -> u32 {
        if self.next == self.last {
            self.next = all.fetch_add(SEQUENCE_STEP, Ordering::Relaxed);
            self.last = self.next.wrapping_add(SEQUENCE_STEP);
        }
        self.next = self.next.wrapping_add(1);
        self.next
    }

    #[inline(always)]
    pub(crate) fn stack(&mut self, depth: usize) -> u32 {
        if depth == 0 {
            return Stack::NONE.0;
        }
        crate::stacks::here(&mut self.scratch, depth).0
    }
}

pub(crate) fn system_thread() -> u32 {
    os::thread_id()
}
