//! A shared pool as a whole: what is asked of all its magazines and its store together.
//!
//! ```text
//!   handed out once = in use + in magazines + in the store's sets
//! ```
//!
//! There are two kinds of it. What takes `&self` runs while other threads use the pool:
//! the store is asked under its lock and the magazines are counted beside it, so a number
//! may be of no one moment; it is never below zero. What takes `&mut self` has the pool to
//! itself: it empties every magazine ([`Slots::settle`]), and then the store alone knows
//! what is in use.
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
    /// Slots in use, give or take what other threads do meanwhile.
    pub(super) fn len(&self) -> usize {
        let Some(store) = self.store.made() else { return 0 };
        let out = store.lock().out();
        out.saturating_sub(self.in_magazines())
    }

    /// Free slots in all magazines, as far as it can be seen from here.
    fn in_magazines(&self) -> usize {
        self.magazines.all().map(Magazine::count).sum()
    }

    /// As [`Store::trim`], after the magazines that are the calling thread's, or shared,
    /// have given what they hold.
    pub(super) fn trim(&self) -> usize {
        let Some(store) = self.store.made() else { return 0 };
        self.magazines.visit(|magazine| {
            // SAFETY: `visit` makes it this thread's.
            store.lock().put(unsafe { magazine.take_all() });
        });
        store.lock().trim()
    }

    /// What there is, give or take what other threads do meanwhile.
    pub(super) fn stats(&self) -> Stats {
        let mut stats = match self.store.made() {
            Some(store) => store.lock().stats(),
            None => self.new_store().stats(),
        };
        stats.live = stats.live.saturating_sub(self.in_magazines());
        stats
    }

    /// Puts the slots in all magazines into the sets, so that what is not in a set is in
    /// use. Returns the store, if there is one.
    pub(super) fn settle(&mut self) -> Option<&'static Lock<Store>> {
        let lock = self.store.made()?;
        let mut store = lock.lock();
        store.close_frontier();
        for magazine in self.magazines.all() {
            // SAFETY: the pool is borrowed alone, so no thread uses a magazine.
            let twice = store.put_each(unsafe { magazine.take_all() });
            // The copies of two threads' magazines in a forked child may be of two
            // moments, and a slot in both.
            if let (Some(twice), false) = (twice, fork::has_forked()) {
                misuse::freed_twice_in_pool(store.name(), twice.addr());
            }
        }
        drop(store);
        Some(lock)
    }

    /// Takes all slots back, and keeps as much memory as `how` says. Nothing is in use.
    pub(super) fn take_all_back(&mut self, how: Reset) {
        if let Some(store) = self.settle() {
            store.lock().reset(how);
        }
        *self.live.get_mut() = 0;
    }
}

#[cfg(test)]
impl Slots {
    /// Objects as the limit counts them.
    pub(in crate::pool) fn live_now(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    /// Magazines with slots in them, and slots.
    pub(in crate::pool) fn magazines_now(&self) -> (usize, usize) {
        let all = self.magazines.all().map(Magazine::count).filter(|&count| count > 0);
        all.fold((0, 0), |(magazines, slots), count| (magazines + 1, slots + count))
    }

    /// Magazines that were made.
    #[cfg(not(feature = "checked"))]
    pub(in crate::pool) fn made_magazines(&self) -> usize {
        self.magazines.all().count()
    }

    /// A magazine for the calling thread, if there is one, until this is dropped.
    #[cfg(not(feature = "checked"))]
    pub(in crate::pool) fn enter_one(&self) -> Option<impl Sized> {
        self.magazines.enter()
    }
}
