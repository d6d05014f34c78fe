//! A heap across a fork: locks are held, and the child forgets other threads' states.
//!
//! Called by `debug`'s fork handlers.

use crate::os;
use crate::registry::thread_index::{self, MOST_THREADS};
use crate::sync::atomic::Ordering;

use super::super::leaks;
use super::super::span::{Found, Span};
use super::Heap;

impl Heap {
    pub(crate) fn before_fork(&self) {
        // The usual order of the locks: a thread that reports may hold `common_order`.
        self.common_order.acquire();
        self.table.acquire();
        self.store.acquire();
        self.reporter.before_fork();
    }

    /// # Safety
    ///
    /// The call follows [`Heap::before_fork`] in the forking thread or its copy.
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: this thread, or the one that it is a copy of, took the locks before the fork.
        unsafe { self.reporter.after_fork() };
        // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
        unsafe { self.store.release() };
        // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
        unsafe { self.table.release() };
        // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
        unsafe { self.common_order.release() };
    }

    /// Forgets other threads' states in the child, because such a state may be half changed. The
    /// slots left in their current buckets are lost.
    pub(crate) fn in_child(&self, alone: bool) {
        self.reporter.in_child();
        if self.is_process_heap() {
            leaks::in_child();
        }
        self.forked_at.store(os::now_ns(), Ordering::Relaxed);
        // (Only a leak check needs the parent, and no leak check runs in a sandbox.)
        let parent = if os::is_filtered() { 0 } else { os::parent_id() };
        self.forked_from.store(parent, Ordering::Relaxed);
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
            // SAFETY: the state's thread does not exist in the child.
            unsafe { state.mine() }.forget_buckets();
        }
    }

    /// Returns the time of the fork, the parent's id, and the sequence number at the fork.
    pub(in crate::debug) fn fork_point(&self) -> Option<(u64, u32, u32)> {
        let at = self.forked_at.load(Ordering::Relaxed);
        let parent = self.forked_from.load(Ordering::Relaxed);
        (at != 0).then(|| (at, parent, self.forked_sequence.load(Ordering::Relaxed)))
    }

    /// Begins an epoch, which tells the child's own buckets from inherited ones. The child owns its
    /// current buckets with slots left, including the blocks in them. If a signal handler that
    /// interrupted the heap forks, the current buckets count as inherited. If the interrupted code
    /// also held the store's lock, no epoch begins: all blocks count as the child's own.
    fn begin_epoch(&self, index: usize) {
        let Some(mut store) = self.store.try_lock() else { return };
        store.epoch = store.epoch.saturating_add(1);
        let epoch = store.epoch;
        drop(store);
        let Some(state) = self.state_of(index).filter(|state| state.enter()) else { return };
        // SAFETY: the state is entered.
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
