//! A heap around a fork: its locks are held, and other threads' states forgotten.
//!
//! Called by `debug`'s fork handlers.

use crate::os;
use crate::registry::thread_index::{self, MOST_THREADS};
use crate::sync::atomic::Ordering;

use super::super::leaks;
use super::super::span::{Found, Span};
use super::Heap;

impl Heap {
    /// Takes the locks. See `fork`.
    pub(crate) fn before_fork(&self) {
        // In the order in which they are taken otherwise: a thread that reports may be in the
        // common state.
        self.common_order.acquire();
        self.table.acquire();
        self.store.acquire();
        self.reporter.before_fork();
    }

    /// Gives them back.
    ///
    /// # Safety
    ///
    /// Follows [`Heap::before_fork`] in the forking thread or its copy.
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.reporter.after_fork() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.store.release() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.table.release() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.common_order.release() };
    }

    /// In the child: other threads' states are forgotten, for they may have been
    /// in the middle of something. What is left in their current buckets is lost.
    /// The child of a process of one thread goes on in all of it.
    pub(crate) fn in_child(&self, alone: bool) {
        self.reporter.in_child();
        if self.is_process_heap() {
            leaks::in_child();
        }
        self.forked_at.store(os::now_ns(), Ordering::Relaxed);
        self.forked_from.store(os::parent_id(), Ordering::Relaxed);
        self.forked_sequence.store(self.sequence_now(), Ordering::Relaxed);
        let mine = thread_index::mine();
        self.begin_epoch(mine);
        if alone {
            return;
        }
        for state in (0..MOST_THREADS)
            .filter(|&index| index != mine)
            .filter_map(|index| self.state_of(index))
        {
            state.leave();
            // SAFETY: its thread does not exist here.
            unsafe { state.mine() }.forget_buckets();
        }
    }

    /// Of a forked child: when it was forked, from which process, and the first of the
    /// sequence numbers that it did not get with its parent's blocks.
    pub(in crate::debug) fn fork_point(&self) -> Option<(u64, u32, u32)> {
        let at = self.forked_at.load(Ordering::Relaxed);
        let parent = self.forked_from.load(Ordering::Relaxed);
        (at != 0).then(|| (at, parent, self.forked_sequence.load(Ordering::Relaxed)))
    }

    /// In the child: what it opens from now on is its own, and what its current
    /// buckets have left. Not where it was forked by a signal handler that interrupted
    /// the heap: then all counts as its own, as before.
    fn begin_epoch(&self, index: usize) {
        let Some(mut store) = self.store.try_lock() else { return };
        store.epoch = store.epoch.saturating_add(1);
        let epoch = store.epoch;
        drop(store);
        let Some(state) = self.state_of(index).filter(|state| state.enter()) else { return };
        // SAFETY: entered.
        let mine = unsafe { state.mine() };
        mine.forget_numbers();
        for current in mine.current.as_flattened() {
            if (current.left > 0 || current.has_more)
                && let Some(span) = Span::of(current.at.addr())
                && let Found::Slot(place) = span.locate(current.at.addr())
            {
                place.bucket.record().epoch.store(epoch, Ordering::Relaxed);
            }
        }
        state.leave();
    }
}
