//! The gang: the objects still to be traced, and the threads that trace them.
//!
//! ```text
//!   worker   | newest chunk | older chunks |      its own: pushes and pops at the end, no lock
//!                                   |  ^
//!                 give, when others |  | take, when its own are empty
//!                       are idle  v  |
//!   gang     | full chunks |  active workers, done |  empty chunks |       under one lock
//!
//!   chunk    | next | count | home | item | item | ...... |      8 KiB
//! ```
//!
//! Marking is not recursive. Objects still to be traced are items of chunks, which the heap owns.
//! Without memory for a chunk, `tracer` notes the object's page and scans the page later. So
//! marking never fails half-way.
//!
//! A chunk may have a *home*: the tracer of the mutator whose stack led to the items. Their objects
//! are probably in the cache of that mutator's processor.
//!
//! Work ends when no worker is active and no full chunk is left, or when a worker's time is up and
//! it calls `stop`. Mutators join when they stop, and helpers when they are called. Used by
//! `tracer`, `mark`, `help`, `mark_chunks` and `bag`. Loom-checked (`gang/loom_tests.rs`).

use core::ptr;

use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::waiting::{Then, WaitLimit, wait, wake};

const UNTIL_SIGNALLED: WaitLimit = WaitLimit { looks: 2000, then: Then::SleepFor(200_000) };

pub(crate) const ITEMS: usize = if cfg!(loom) { 2 } else { 1021 };

/// Some of the objects still to be traced.
#[repr(C)]
pub(crate) struct Chunk {
    pub(crate) next: *mut Chunk,
    /// The number of items. A worker's newest chunk has its number in the worker instead.
    pub(crate) count: usize,
    /// The address of the tracer whose mutator's stack led to the items, or 0.
    pub(crate) home: usize,
    pub(crate) items: [usize; ITEMS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Chunk>() == 8192);

/// A search for a chunk of one home inspects at most this many chunks.
const LOOKS: usize = 8;

/// A stack of chunks.
pub(crate) struct Chunks(*mut Chunk);

// SAFETY: a list owns the memory of its chunks.
unsafe impl Send for Chunks {}

impl Chunks {
    pub(crate) const fn none() -> Self {
        Self(ptr::null_mut())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    #[cfg(not(loom))]
    pub(crate) fn items(&self) -> usize {
        let (mut items, mut at) = (0, self.0);
        // SAFETY: the pointer is null, or leads to a chunk that only this list has.
        while let Some(chunk) = unsafe { at.as_ref() } {
            items += chunk.count;
            at = chunk.next;
        }
        items
    }

    /// Puts a chunk on top.
    ///
    /// # Safety
    ///
    /// The chunk is the caller's, and in no list.
    pub(crate) unsafe fn push(&mut self, chunk: *mut Chunk) {
        // SAFETY: by the contract the caller owns the chunk.
        let next = unsafe { &raw mut (*chunk).next };
        // SAFETY: by the contract the caller owns the chunk.
        unsafe { next.write(self.0) };
        self.0 = chunk;
    }

    pub(crate) fn pop(&mut self) -> Option<*mut Chunk> {
        // SAFETY: the pointer is null, or leads to a chunk that only this list has.
        let next = unsafe { self.0.as_ref() }?.next;
        Some(core::mem::replace(&mut self.0, next))
    }

    /// Takes a chunk of `home`, or else a chunk without a home, or else the top chunk.
    fn pop_for(&mut self, home: usize) -> Option<*mut Chunk> {
        self.pop_of(home).or_else(|| self.pop_of(0)).or_else(|| self.pop())
    }

    /// Takes the first chunk of `home` among the first [`LOOKS`] chunks.
    fn pop_of(&mut self, home: usize) -> Option<*mut Chunk> {
        let mut link = &mut self.0;
        for _ in 0..LOOKS {
            let chunk = *link;
            // SAFETY: the pointer is null, or leads to a chunk that only this list has.
            let of = unsafe { chunk.as_mut() }?;
            if of.home == home {
                *link = of.next;
                return Some(chunk);
            }
            link = &mut of.next;
        }
        None
    }
}

struct Inner {
    full: Chunks,
    empty: Chunks,
    /// Workers that may still push.
    active: usize,
    /// Workers that have joined, active or idle.
    present: usize,
    /// The most workers that may join.
    most: usize,
    done: bool,
}

/// The threads that mark one heap while its world is stopped.
pub(crate) struct Gang {
    inner: Lock<Inner>,
    /// Number of idle workers, to be read without the lock.
    idle: AtomicU32,
    /// Whether workers may join.
    open: AtomicU32,
    /// Whether a worker's time is up.
    stop: AtomicU32,
    /// Changes when there is work, all is done, or a worker leaves. Idle workers sleep on it. In
    /// `close`, the first worker sleeps on it until all others have left.
    work_signal: AtomicU32,
}

impl Gang {
    /// A gang without workers and work. Zeroed memory is such a gang.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        let inner = Inner {
            full: Chunks::none(),
            empty: Chunks::none(),
            active: 0,
            present: 0,
            most: 0,
            done: false,
        };
        Self {
            inner: Lock::new(inner),
            idle: AtomicU32::new(0),
            open: AtomicU32::new(0),
            stop: AtomicU32::new(0),
            work_signal: AtomicU32::new(0),
        }
    }

    /// Lets workers join, until there are `most`. The caller is the first.
    pub(crate) fn open(&self, most: usize) {
        let mut inner = self.inner.lock();
        inner.active = 1;
        inner.present = 1;
        inner.most = most;
        inner.done = false;
        self.stop.store(0, Ordering::Relaxed);
        self.open.store(1, Ordering::Relaxed);
    }

    pub(crate) fn come(&self) -> bool {
        // Avoids the lock in the common case.
        if self.open.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut inner = self.inner.lock();
        let comes = !inner.done && inner.present < inner.most;
        if comes {
            inner.active += 1;
            inner.present += 1;
        }
        comes
    }

    #[inline]
    pub(crate) fn has_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    /// Ends the work, because the caller's time is up: all workers give their chunks, and leave.
    pub(crate) fn stop(&self) {
        self.stop.store(1, Ordering::Relaxed);
        let mut inner = self.inner.lock();
        inner.done = true;
        self.announce();
    }

    fn announce(&self) {
        self.work_signal.fetch_add(1, Ordering::Release);
        if self.idle.load(Ordering::Relaxed) != 0 {
            wake(&self.work_signal);
        }
    }

    /// Gives a full chunk to any worker.
    ///
    /// # Safety
    ///
    /// The chunk is the caller's, in no list, and says how many items it has.
    pub(crate) unsafe fn give(&self, chunk: *mut Chunk) {
        let mut inner = self.inner.lock();
        // SAFETY: by the contract.
        unsafe { inner.full.push(chunk) };
        self.announce();
    }

    /// Takes a full chunk, or waits while another worker may still push. Returns `None` if no chunk
    /// will come, or work was stopped. The caller is an active worker at `home` without items.
    pub(crate) fn take(&self, home: usize) -> Option<*mut Chunk> {
        let mut waits = false;
        loop {
            let mut inner = self.inner.lock();
            let full = if inner.done { None } else { inner.full.pop_for(home) };
            if full.is_some() || inner.done {
                if waits {
                    self.idle.fetch_sub(1, Ordering::Relaxed);
                    inner.active += 1;
                }
                return full;
            }
            if !waits {
                waits = true;
                inner.active -= 1;
                self.idle.fetch_add(1, Ordering::Relaxed);
            }
            if inner.active == 0 {
                inner.done = true;
                self.announce();
                continue;
            }
            let seen = self.work_signal.load(Ordering::Relaxed);
            drop(inner);
            wait(&self.work_signal, seen, UNTIL_SIGNALLED);
        }
    }

    /// Takes a full chunk, if there is one, for a thread that works alone.
    pub(crate) fn take_now(&self) -> Option<*mut Chunk> {
        self.inner.lock().full.pop()
    }

    /// Leaves the gang. The caller is a worker without items.
    pub(crate) fn go(&self) {
        let mut inner = self.inner.lock();
        inner.active -= 1;
        inner.present -= 1;
        self.work_signal.fetch_add(1, Ordering::Release);
        wake(&self.work_signal);
    }

    /// Leaves the gang as its first worker, and waits until all others have left.
    pub(crate) fn close(&self) {
        self.open.store(0, Ordering::Relaxed);
        let mut inner = self.inner.lock();
        inner.active -= 1;
        inner.present -= 1;
        while inner.present > 0 {
            let seen = self.work_signal.load(Ordering::Relaxed);
            drop(inner);
            wait(&self.work_signal, seen, UNTIL_SIGNALLED);
            inner = self.inner.lock();
        }
    }

    /// Returns whether no full chunk is left. Call it while no worker is active.
    pub(crate) fn is_empty(&self) -> bool {
        self.inner.lock().full.is_empty()
    }

    pub(crate) fn take_empty(&self) -> Option<*mut Chunk> {
        self.inner.lock().empty.pop()
    }

    /// Keeps an empty chunk.
    ///
    /// # Safety
    ///
    /// The chunk is the caller's, and in no list.
    pub(crate) unsafe fn give_empty(&self, chunk: *mut Chunk) {
        // SAFETY: the chunk is the caller's, and in no list.
        unsafe { self.inner.lock().empty.push(chunk) };
    }

    /// Forgets all chunks; the caller frees their memory.
    #[cfg(not(loom))]
    pub(crate) fn forget(&self) {
        let mut inner = self.inner.lock();
        inner.full = Chunks::none();
        inner.empty = Chunks::none();
    }

    /// Forgets the workers, in a forked child, which has no other thread.
    #[cfg(not(loom))]
    pub(crate) fn forget_workers(&self) {
        self.open.store(0, Ordering::Relaxed);
        self.stop.store(0, Ordering::Relaxed);
        self.idle.store(0, Ordering::Relaxed);
        let mut inner = self.inner.lock();
        inner.active = 0;
        inner.present = 0;
        inner.done = true;
    }

    #[cfg(not(loom))]
    pub(crate) fn each_lock(&self, with: super::locks::With<'_>) {
        with(&self.inner);
    }
}

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    extern crate std;
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn ones_own_come_first_then_nobodys_then_the_others() {
        let mut chunks = Chunks::none();
        for home in [1, 2, 0, 2, 1, 0, 3] {
            // SAFETY: zero is a chunk without items.
            let mut chunk: Box<Chunk> = unsafe { Box::new(core::mem::zeroed()) };
            chunk.home = home;
            // SAFETY: the chunk was just made.
            unsafe { chunks.push(Box::into_raw(chunk)) };
        }
        let taken: Vec<usize> = core::iter::from_fn(|| chunks.pop_for(2))
            // SAFETY: the chunk was made above, and has left the list.
            .map(|chunk| unsafe { Box::from_raw(chunk) }.home)
            .collect();
        assert_eq!(taken, [2, 2, 0, 0, 3, 1, 1]);
    }
}
