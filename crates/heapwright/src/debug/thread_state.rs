//! The per-thread state of a debug heap, found by the thread's index.
//!
//! ```text
//!   thread index --> state | busy | current buckets of each class | sequence numbers
//!                          | stacks seen lately | counts
//! ```
//!
//! A state is its thread's alone while it is busy there; so nothing here is locked.
//! A call that finds its thread's state busy (a signal handler that interrupted its own
//! thread inside the heap), or a thread without an index, uses the *common state*, under a lock.
//!
//! A thread that ends leaves its state with its index: the index's next holder goes
//! on in the same buckets. Holders are distinguished by the index's count of them.

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

/// Sequence numbers that a state takes at a time.
const SEQUENCE_STEP: u32 = 256;

/// Where a state's next slot of a class is.
pub(crate) struct Current {
    /// The slot, or whatever if none is left.
    pub(crate) at: *mut u8,
    /// Its record.
    pub(crate) record: *const Slot,
    /// Slots left, one after the other.
    pub(crate) left: u32,
    /// Bytes in a slot.
    pub(crate) size: u32,
    /// Whether slots read as zero.
    pub(crate) zero: bool,
    /// Whether what is behind a block must be given the pattern.
    pub(crate) lacks_pattern: bool,
    /// Whether the bucket has further slots to hand out, behind others: see `sparse`.
    pub(crate) has_more: bool,
}

impl Current {
    /// Goes on with the first slots of the bucket, from slot `first` on, that can be handed out.
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

    /// The same, where the last of those slots was handed out. False: there are no others.
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

/// What only the state's thread touches.
pub(crate) struct Mine {
    pub(crate) current: [[Current; LIFETIMES]; CLASSES],
    pub(crate) lifetimes: LifetimePredictor,
    next: u32,
    last: u32,
    /// The thread's number in findings.
    pub(crate) thread: u16,
    holder: u32,
    /// How often more the thread has said that it makes no leaks than that it does again.
    pub(crate) keeps: u32,
    pub(crate) scratch: Scratch,
}

/// One thread's part of a heap. Zero is one that no thread has used.
pub(crate) struct ThreadState {
    busy: AtomicBool,
    /// The lock to give back when the state is left: the common state's.
    owed: AtomicPtr<Lock<()>>,
    /// Blocks allocated and freed, and bytes asked for and freed.
    pub(crate) made: AtomicU64,
    pub(crate) freed: AtomicU64,
    pub(crate) made_bytes: AtomicU64,
    pub(crate) freed_bytes: AtomicU64,
    mine: UnsafeCell<Mine>,
}

// SAFETY: `mine` is touched by the thread that made the state busy, and by no other.
unsafe impl Sync for ThreadState {}

impl ThreadState {
    /// Owes a lock, which was taken and is to be given back when the state is left.
    pub(crate) fn owe(&self, lock: &'static Lock<()>) {
        self.owed.store(ptr::from_ref(lock).cast_mut(), Ordering::Relaxed);
    }

    /// Makes the state the caller's until [`ThreadState::leave`]; false if it is entered:
    /// by the caller's own thread, further down its stack.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        // One thread only, which is interrupted or is not: no exchange is needed.
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        self.busy.store(true, Ordering::Relaxed);
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        true
    }

    /// Whether it is entered.
    pub(crate) fn is_entered(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Ends [`ThreadState::enter`].
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
        // SAFETY: null, or the lock that `owe` was given, which lives for ever.
        if let Some(lock) = unsafe { lock.as_ref() } {
            // SAFETY: `owe` was given a lock that is taken; it is given back once.
            unsafe { lock.release() };
        }
    }

    /// What is the thread's alone.
    ///
    /// # Safety
    ///
    /// The caller entered the state, and has no other reference from here.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the thread that entered has it alone")]
    pub(crate) unsafe fn mine(&self) -> &mut Mine {
        // SAFETY: the state is entered, and there is no other reference from it, as the caller
        // promises.
        unsafe { &mut *self.mine.get() }
    }

    /// Whether `mine` is this state's.
    pub(crate) fn is_of(&self, mine: &Mine) -> bool {
        ptr::eq(self.mine.get(), mine)
    }

    /// Counts a block.
    #[inline]
    pub(crate) fn count_made(&self, bytes: usize) {
        bump(&self.made, 1);
        bump(&self.made_bytes, bytes as u64);
    }

    /// Counts bytes that a block has more than when it was made.
    pub(crate) fn count_more(&self, bytes: usize) {
        bump(&self.made_bytes, bytes as u64);
    }

    /// Begins to count anew.
    pub(crate) fn count_nothing(&self) {
        for counter in [&self.made, &self.freed, &self.made_bytes, &self.freed_bytes] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a block that came back.
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
    /// Whether the state has another holder than the last time.
    #[inline]
    pub(crate) fn is_new(&self, holder: u32) -> bool {
        self.holder != holder || self.thread == 0
    }

    /// The state belongs to thread number `thread` from now on.
    pub(crate) fn assign(&mut self, holder: u32, thread: u16) {
        self.holder = holder;
        self.thread = thread;
        self.keeps = 0;
        // Another thread's stack lies elsewhere.
        self.scratch = Scratch::new();
    }

    /// Forgets the current buckets: their slots may be the copies of others.
    pub(crate) fn forget_buckets(&mut self) {
        for current in self.current.as_flattened_mut() {
            (current.left, current.has_more) = (0, false);
        }
    }

    /// Takes new sequence numbers, the next time one is needed.
    pub(crate) fn forget_numbers(&mut self) {
        self.last = self.next;
    }

    /// The next sequence number.
    #[inline]
    pub(crate) fn sequence(&mut self, all: &AtomicU32) -> u32 {
        if self.next == self.last {
            self.next = all.fetch_add(SEQUENCE_STEP, Ordering::Relaxed);
            self.last = self.next.wrapping_add(SEQUENCE_STEP);
        }
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// The caller's stack.
    #[inline(always)]
    pub(crate) fn stack(&mut self, depth: usize) -> u32 {
        if depth == 0 {
            return Stack::NONE.0;
        }
        crate::stacks::here(&mut self.scratch, depth).0
    }
}

/// The system's number of the calling thread.
pub(crate) fn system_thread() -> u32 {
    os::thread_id()
}
