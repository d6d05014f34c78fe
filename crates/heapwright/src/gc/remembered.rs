//! The remembered set: old objects that may lead to young ones.
//!
//! ```text
//!   a store into an old object --> stores ----> told by the next minor collection, and by
//!                                               the one after it: `again`
//!   became old in this minor one -> survivors -> told by the next one
//! ```
//!
//! A minor collection looks at no old object but these. It must be told of every old object
//! that leads to one which is not old yet. An object becomes old when it survives a second
//! time. So an object that was stored into an old one when it was new survives once as young, and
//! who leads to it is told twice; and an object that becomes old may lead to others that are
//! younger than itself by one collection, and is told once more. After that all they led to then
//! is old as well, or dead. After a major collection everything is old.
//!
//! An object is remembered once between two collections: the store that remembers it takes its
//! mark, and where there is no mark nothing is told ([`Heap::remember`]). The collection that it is told to
//! gives it back. While its page awaits the sweep the mark says that it lives, and stays; then
//! an object may be remembered more than once, which costs time and nothing else.
//!
//! What is remembered lies in chunks as marking's own, of each tracer, and, when they are full, here.
//! Where there is no memory for one, all is forgotten, and the next collection is a major one.
//!
//! Called by `cycle`; filled by `tracer`, and by stores (`raw`).

use core::ptr;

use crate::sync::Lock;

use super::cell::{Num, Ptr};
use super::gang::{Chunk, Chunks, ITEMS};
use super::heap::{Heap, Phase};
use super::mutator::Mutator;
use super::tracer::{self, Tracer};

/// What is remembered of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// A store was told.
    Stores = 0,
    /// It was told to the last minor collection, because of a store before.
    Again = 1,
    /// It has become old.
    Survivors = 2,
}

const WHYS: [Why; 3] = [Why::Stores, Why::Again, Why::Survivors];

/// The remembered set of a heap. Zero is an empty one.
pub(super) struct Remembered {
    lists: Lock<Lists>,
    /// Something was not remembered for want of memory.
    lost: Num,
}

struct Lists {
    /// For the next minor collection.
    next: [Chunks; 3],
    /// What is still to be told to the one under way.
    now: [Chunks; 3],
}

// SAFETY: chunks are the heap's memory, under the lock.
unsafe impl Send for Lists {}

/// What one tracer remembers, and has not given to the heap yet. Zero is empty.
pub(super) struct Buffer {
    chunk: Ptr<Chunk>,
    count: Num,
}

impl Buffer {
    fn items(chunk: *mut Chunk) -> *mut usize {
        // SAFETY: in bounds of the chunk, and nothing is read.
        unsafe { &raw mut (*chunk).items }.cast()
    }

    /// Remembers an object.
    pub(super) fn push(&self, heap: &Heap, why: Why, object: usize) {
        if self.chunk.get().is_null() || self.count.get() == ITEMS {
            self.give(heap, why);
            let Some(chunk) = heap.take_chunk() else {
                heap.remembered.lost.set(1);
                return;
            };
            self.chunk.set(chunk);
        }
        let place = Self::items(self.chunk.get()).wrapping_add(self.count.get());
        // SAFETY: the chunk is this buffer's, and has room.
        unsafe { place.write(object) };
        self.count.add(1);
    }

    /// The object that was remembered last, or 0.
    fn last(&self) -> usize {
        let Some(last) = self.count.get().checked_sub(1) else { return 0 };
        // SAFETY: so many were written.
        unsafe { Self::items(self.chunk.get()).wrapping_add(last).read() }
    }

    /// Gives what it has to the heap.
    pub(super) fn give(&self, heap: &Heap, why: Why) {
        let chunk = self.chunk.get();
        if chunk.is_null() {
            return;
        }
        // SAFETY: the chunk is this buffer's, and in no list.
        let place = unsafe { &raw mut (*chunk).count };
        // SAFETY: as above.
        unsafe { place.write(self.count.take()) };
        self.chunk.set(ptr::null_mut());
        let mut lists = heap.remembered.lists.lock();
        // SAFETY: as above.
        unsafe { lists.next[why as usize].push(chunk) };
    }
}

impl Remembered {
    /// A minor collection begins, which is to be told of what was remembered until now.
    fn begin(&self) {
        let mut lists = self.lists.lock();
        lists.now = core::mem::replace(&mut lists.next, [const { Chunks::none() }; 3]);
    }

    /// A chunk of what is still to be told.
    fn take(&self) -> Option<(Why, *mut Chunk)> {
        let mut lists = self.lists.lock();
        WHYS.into_iter().find_map(|why| Some((why, lists.now[why as usize].pop()?)))
    }

    /// The next minor collection is to be told of a chunk as well.
    ///
    /// # Safety
    ///
    /// The chunk is the caller's, and in no list.
    unsafe fn keep(&self, chunk: *mut Chunk) {
        let mut lists = self.lists.lock();
        // SAFETY: by the contract.
        unsafe { lists.next[Why::Again as usize].push(chunk) };
    }

    /// Whether something was forgotten.
    pub(super) fn has_lost(&self) -> bool {
        self.lost.get() != 0
    }

    /// Forgets all; the memory goes with the heap's.
    pub(super) fn end(&self) {
        let mut lists = self.lists.lock();
        lists.next = [const { Chunks::none() }; 3];
        lists.now = [const { Chunks::none() }; 3];
        self.lost.set(0);
    }

    /// Holds the lock across a fork.
    pub(super) fn before_fork(&self) {
        self.lists.acquire();
    }

    /// Gives it back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Remembered::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: the same contract.
        unsafe { self.lists.release() };
    }
}

impl Heap {
    /// A reference to `child` was stored into `parent`, which has its mark, while marks say who is
    /// old.
    pub(super) fn remember(&self, me: &Mutator, parent: *mut u8, child: *mut u8) {
        let Some(head) = self.head_of(parent.addr()) else { return };
        let Some((unit, _)) = tracer::shelf_of(child.addr(), self.tag()) else { return };
        let stays = |head| self.pages.at_unit(head).is_some_and(|page| !self.is_unswept(page));
        let marking = self.phase() == Phase::Marking;
        // An old child is nothing to tell a minor collection of.
        if !marking && stays(unit) && self.is_marked(child) {
            return;
        }
        let stores = &me.tracer.stores;
        if !marking && stays(head) {
            if !self.take_mark(parent) {
                return;
            }
        } else if stores.last() == parent.addr() {
            return;
        }
        stores.push(self, Why::Stores, parent.addr());
    }

    /// A minor collection begins: it is to be told of what was remembered until now.
    pub(super) fn begin_telling(&self) {
        self.each_mutator(|mutator| mutator.tracer.give_remembered());
        self.remembered.begin();
    }

    /// Tells some of what is remembered. False: nothing is left.
    pub(super) fn tell_remembered(&self, tracer: &Tracer) -> bool {
        let Some((why, chunk)) = self.remembered.take() else { return false };
        // SAFETY: taken from the list just now.
        let count = unsafe { (*chunk).count };
        for n in 0..count {
            // SAFETY: so many were written.
            let object = unsafe { Buffer::items(chunk).wrapping_add(n).read() };
            tracer.look_again(object);
        }
        if why == Why::Stores {
            // SAFETY: the chunk is ours.
            unsafe { self.remembered.keep(chunk) };
        } else {
            self.give_back(chunk);
        }
        true
    }

    /// Forgets what is remembered: everything becomes old, or is looked at anyway. While the world
    /// stands still.
    pub(super) fn forget_remembered(&self) {
        self.begin_telling();
        while let Some((_, chunk)) = self.remembered.take() {
            self.give_back(chunk);
        }
        self.remembered.lost.set(0);
    }

    fn give_back(&self, chunk: *mut Chunk) {
        // SAFETY: taken from a list, and in none.
        unsafe { self.gang.give_empty(chunk) };
    }
}
