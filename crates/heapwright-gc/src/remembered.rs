//! The remembered set: old objects that may lead to young ones.
//!
//! ```text
//!   a store into an old object --> stores ----> reported by the next minor collection, and by
//!                                               the one after it: `again`
//!   became old in this minor one -> survivors -> reported by the next one
//! ```
//!
//! A minor collection looks at no old object but these. It must know every old object
//! that leads to one which is not old yet. An object becomes old when it survives a second
//! time. So an object that was stored into an old one when it was new survives once as young, and
//! the old one is reported twice; and an object that becomes old may lead to others that are
//! younger than itself by one collection, and is reported once more. After that all they led to then
//! is old as well, or dead. After a major collection everything is old.
//!
//! An object is remembered once between two collections: the store that remembers it takes its
//! mark, and where there is no mark nothing is reported ([`Heap::remember`]). The collection that it is reported to
//! gives it back. While its page awaits the sweep the mark says that it lives, and stays; then
//! an object may be remembered more than once, which costs time and nothing else.
//!
//! Where there is no memory to remember with, all is forgotten, and the next collection is a major one.
//!
//! Called by `cycle`; filled by `tracer`, and by stores (`raw`).

use heapwright_substrate::address_map::MAP;

use super::bag::{self, Bag};
use super::cell::Num;
use super::find;
use super::gang::Chunk;
use super::heap::Heap;
use super::layout;
use super::mutator::Mutator;
use super::page::Page;
use super::phase::Phase;
use super::tracer::Tracer;

/// What is remembered for one minor collection.
struct Bags {
    /// A store was reported.
    stores: Bag,
    /// It was reported to the last minor collection, because of a store before.
    again: Bag,
    /// It has become old.
    survivors: Bag,
}

/// The remembered set of a heap. Zero is an empty one.
pub(super) struct Remembered {
    /// For the next minor collection.
    next: Bags,
    /// What is still to be reported to the one under way.
    now: Bags,
    /// Something was not remembered for want of memory.
    lost: Num,
}

impl Bags {
    fn all(&self) -> [&Bag; 3] {
        [&self.stores, &self.again, &self.survivors]
    }
}

impl Remembered {
    /// Where stores go.
    pub(super) fn stores(&self) -> &Bag {
        &self.next.stores
    }

    /// Where objects go that become old.
    pub(super) fn survivors(&self) -> &Bag {
        &self.next.survivors
    }

    /// A minor collection begins, which gets what was remembered until now.
    fn begin(&self) {
        self.now.all().into_iter().zip(self.next.all()).for_each(|(now, next)| now.take_all(next));
    }

    /// A chunk of what is still to be reported, and whether the next one is to get it as well.
    fn take(&self) -> Option<(*mut Chunk, bool)> {
        let stores = self.now.stores.take().map(|chunk| (chunk, true));
        stores.or_else(|| {
            let other = self.now.again.take().or_else(|| self.now.survivors.take());
            other.map(|chunk| (chunk, false))
        })
    }

    /// Something could not be remembered.
    pub(super) fn lose(&self) {
        self.lost.set(1);
    }

    /// Whether something was forgotten.
    pub(super) fn has_lost(&self) -> bool {
        self.lost.get() != 0
    }

    /// Changes each object's address. While the world stands still.
    pub(super) fn change(&self, mut with: impl FnMut(usize) -> usize) {
        self.each_bag(|bag| bag.change(&mut with));
    }

    fn each_bag(&self, with: impl FnMut(&Bag)) {
        self.now.all().into_iter().chain(self.next.all()).for_each(with);
    }

    /// Forgets all; the memory goes with the heap's.
    pub(super) fn end(&self) {
        self.each_bag(Bag::end);
        self.lost.set(0);
    }

    /// Holds the locks across a fork.
    pub(super) fn before_fork(&self) {
        self.each_bag(Bag::before_fork);
    }

    /// Gives them back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Remembered::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        self.each_bag(|bag| unsafe { bag.after_fork() });
    }
}

impl Heap {
    /// A reference to `child` was stored into `parent`, which has its mark, while marks say what is
    /// old.
    pub(super) fn remember(&self, me: &Mutator, parent: *mut u8, child: *mut u8) {
        let Some(head) = self.space.head_of(parent.addr()) else { return };
        let Some((unit, _)) = find::list_of(child.addr(), self.space.tag()) else { return };
        // A minor collection does not look at an old child.
        if !self.has_marks_that_stay(unit) || !self.space.is_marked(child) {
            self.remember_at(me, head, parent);
        }
    }

    /// Whether the marks of a page say what is old, and not only what is live.
    fn has_marks_that_stay(&self, head: usize) -> bool {
        let swept = |page: &Page| page.held.is_swept(self.space.cycle.number());
        self.space.cycle.phase() != Phase::Marking
            && self.space.pages.at_unit(head).is_some_and(swept)
    }

    fn remember_at(&self, me: &Mutator, head: usize, parent: *mut u8) {
        let stores = &me.tracer.stores;
        let known = if self.has_marks_that_stay(head) {
            !self.space.take_mark(parent)
        } else {
            stores.has(parent.addr(), 0)
        };
        if !known && !stores.push(self, self.generations.remembered.stores(), parent.addr()) {
            self.generations.remembered.lose();
            self.space.give_mark(parent);
        }
    }

    /// Something was stored into `parent`, or will be before the next safepoint: it is remembered if it
    /// is old.
    pub(super) fn touch(&self, me: &Mutator, parent: *mut u8) {
        let Some((head, page_list)) = find::list_of(parent.addr(), self.space.tag()) else {
            return;
        };
        if layout::is_traced(page_list) && self.space.is_marked(parent) {
            self.remember_at(me, head, parent);
        }
    }

    /// A minor collection begins: it gets what was remembered until now.
    pub(super) fn begin_remembered(&self) {
        self.each_mutator(|mutator| mutator.tracer.give_notes());
        self.generations.remembered.begin();
    }

    /// Reports some of what is remembered. False: nothing is left.
    pub(super) fn trace_remembered(&self, tracer: &Tracer) -> bool {
        let Some((chunk, again)) = self.generations.remembered.take() else { return false };
        // What is there twice is looked at once: it has no mark the first time.
        bag::each(chunk, |object: usize| _ = self.space.take_mark(MAP.base().with_addr(object)));
        bag::each(chunk, |object: usize| tracer.look_again(object));
        if again {
            // SAFETY: taken just now.
            unsafe { self.generations.remembered.next.again.give(chunk) };
        } else {
            self.give_back(chunk);
        }
        true
    }

    /// Forgets what is remembered: everything becomes old, or is looked at anyway. While the world
    /// stands still.
    pub(super) fn forget_remembered(&self) {
        self.begin_remembered();
        while let Some((chunk, _)) = self.generations.remembered.take() {
            self.give_back(chunk);
        }
        self.generations.remembered.lost.set(0);
    }

    /// Calls `with` while objects have their marks that are remembered, and so are old. While the
    /// world stands still.
    pub(super) fn with_marks_of_remembered<R>(&self, with: impl FnOnce() -> R) -> R {
        /// Set in the word of an object that has a mark which was taken. (Addresses of objects
        /// are multiples of 8.)
        const GIVEN: usize = 1;
        /// The marks are taken again, also if `with` unwinds.
        struct Given<'a>(&'a Heap);
        impl Drop for Given<'_> {
            fn drop(&mut self) {
                self.0.generations.remembered.change(|word| {
                    if word & GIVEN != 0 {
                        self.0.space.take_mark(MAP.base().with_addr(word & !GIVEN));
                    }
                    word & !GIVEN
                });
            }
        }
        if !self.generations.has_ages() {
            return with();
        }
        self.each_mutator(|mutator| mutator.tracer.give_notes());
        let _given = Given(self);
        self.generations.remembered.change(|word| {
            let object = MAP.base().with_addr(word);
            // What has moved has its mark where it is now.
            if self.space.is_marked(object) || self.space.forwarded(object).is_some() {
                return word;
            }
            self.space.give_mark(object);
            word | GIVEN
        });
        with()
    }

    /// Keeps a chunk that was taken from a bag, whose words were looked at.
    pub(super) fn give_back(&self, chunk: *mut Chunk) {
        // A tracer that takes it relies on its count.
        // SAFETY: taken from a bag, and in no list.
        let count = unsafe { &raw mut (*chunk).count };
        // SAFETY: the count of a chunk that was taken from a bag.
        unsafe { count.write(0) };
        // SAFETY: taken from a bag, in no list, and of no items now.
        unsafe { self.marking.gang.give_empty(chunk) };
    }
}
