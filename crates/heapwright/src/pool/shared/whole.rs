//! Operations on a shared pool as a whole: on all its magazines and its store together.
//!
//! ```text
//!   handed out once = in use + in magazines + in the store's sets
//! ```
//!
//! Methods with `&self` run while other threads use the pool. Their numbers may mix different
//! moments, but are never below zero. Methods with `&mut self` have the pool to themselves, and
//! empty every magazine ([`Slots::settle`]). Afterwards the store knows which slots are in use.
//!
//! Invariants: after a settle, and until the pool is shared again, no magazine holds a slot.
//! A store ends only after all its slots were taken back.
//!
//! Called by [`SharedPool`](super::SharedPool) and by `walk`.

use super::super::store::Store;
use super::super::{Reset, Stats, fork};
use super::magazine::Magazine;
use super::slots::Slots;
use crate::misuse;
use crate::sync::Lock;
#[cfg(test)]
use crate::sync::atomic::Ordering;

impl Slots {
    pub(super) fn len(&self) -> usize {
        let Some(store) = self.store.made() else { return 0 };
        let out = store.lock().out();
        out.saturating_sub(self.in_magazines())
    }

    /// Returns the number of free slots in all magazines, read without their locks.
    fn in_magazines(&self) -> usize {
        self.magazines.all().map(Magazine::count).sum()
    }

    /// Empties the thread's magazine and the shared ones, then trims like [`Store::trim`].
    pub(super) fn trim(&self) -> usize {
        let Some(store) = self.store.made() else { return 0 };
        self.magazines.visit(|magazine| {
            // SAFETY: `visit` makes the magazine this thread's.
            store.lock().put(unsafe { magazine.take_all() });
        });
        store.lock().trim()
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = match self.store.made() {
            Some(store) => store.lock().stats(),
            None => self.new_store().stats(),
        };
        stats.live = stats.live.saturating_sub(self.in_magazines());
        stats
    }

    /// Moves the slots of all magazines into the sets. Afterwards a slot in no set is in use.
    pub(super) fn settle(&mut self) -> Option<&'static Lock<Store>> {
        let lock = self.store.made()?;
        let mut store = lock.lock();
        store.close_frontier();
        for magazine in self.magazines.all() {
            // SAFETY: the pool is borrowed mutably, so no thread uses a magazine.
            let twice = store.put_each(unsafe { magazine.take_all() });
            // In a forked child two magazines may hold the same slot: copies of different moments.
            if let (Some(twice), false) = (twice, fork::has_forked()) {
                misuse::freed_twice_in_pool(store.name(), twice.addr());
            }
        }
        drop(store);
        Some(lock)
    }

    /// Takes all slots back and keeps as much memory as `how` says. No slot may be in use.
    pub(super) fn take_all_back(&mut self, how: Reset) {
        if let Some(store) = self.settle() {
            store.lock().reset(how);
        }
        *self.live.get_mut() = 0;
    }
}

#[cfg(test)]
impl Slots {
    pub(in crate::pool) fn live_now(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    pub(in crate::pool) fn magazines_now(&self) -> (usize, usize) {
        let all = self.magazines.all().map(Magazine::count).filter(|&count| count > 0);
        all.fold((0, 0), |(magazines, slots), count| (magazines + 1, slots + count))
    }

    #[cfg(not(feature = "checked"))]
    pub(in crate::pool) fn made_magazines(&self) -> usize {
        self.magazines.all().count()
    }

    /// Holds a magazine for the calling thread, if there is one, until the result is dropped.
    #[cfg(not(feature = "checked"))]
    pub(in crate::pool) fn enter_one(&self) -> Option<impl Sized> {
        self.magazines.enter()
    }
}
