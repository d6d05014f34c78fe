//! The mark stack: chunks of items. The newest is open.
//!
//! ```text
//!   older --> chunk --> chunk           chunk  | item | item | ... | next ...... end |
//!                                                             pops ^
//!   publish, share: chunks go to the gang, for tracers that have nothing
//! ```
//!
//! Without memory for another chunk, the tracer marks the items of the newest chunk, and notes
//! their pages for a later look (`draining`). A chunk belongs to one tracer, or is in one list: the
//! tracer's, the gang's, or a bag.
//!
//! Called by the other files of `tracer`, and by callers that publish a tracer's items: `cycle`,
//! `mark`, `help`, `moving`, `attach`, `dump`, `verify`.

use core::ptr::{self, NonNull};

use heapwright_substrate::address_map::MAP;

use super::super::gang::{Chunk, ITEMS};
use super::{Marks, RANGE, REST, TAGS, Tracer, mark_word, prefetch};

/// How many pops ahead the mark of an edge is fetched.
const AHEAD: usize = 6;

impl Tracer {
    #[inline]
    pub(super) fn push(&self, item: *mut u8) {
        if self.next.get() == self.end.get() {
            self.make_room();
        }
        let next = self.next.get();
        // SAFETY: `make_room` leaves room for at least one item.
        unsafe { next.write(item) };
        self.next.set(next.wrapping_add(1));
    }

    pub(super) fn push_range(&self, slots: *mut *mut u8, count: usize) {
        self.push_pair(slots.cast(), RANGE, count);
    }

    /// Keeps an object that was traced up to `from`. The next part begins there.
    pub(super) fn push_rest(&self, object: *mut u8, from: usize) {
        self.push_pair(object, REST, from);
    }

    /// Keeps an item with a number. The number is below the item, so the item is popped first. Both
    /// are in the same chunk, because chunks go to other tracers one by one.
    fn push_pair(&self, at: *mut u8, tag: usize, number: usize) {
        if self.end.get().addr() - self.next.get().addr() < 2 * size_of::<usize>() {
            // Both words go into the next chunk; the last place of this chunk stays empty.
            self.make_room();
        }
        // Shifted, so that a number never looks like a tagged item.
        self.push(ptr::without_provenance_mut(number << TAGS.count_ones()));
        self.push(at.map_addr(|at| at | tag));
    }

    /// Pops the count of a range, or the place of a rest, that was just popped.
    pub(super) fn pop_count(&self) -> usize {
        self.pop().map_or(0, |count| count.addr() >> TAGS.count_ones())
    }

    /// Makes room for an item: the callbacks' slow path.
    #[cold]
    #[inline(never)]
    fn make_room(&self) {
        if !self.look.get().is_null() {
            return self.show();
        }
        if !self.has_made_room() {
            let chunk = self.of().marking.last_resort();
            self.resume(chunk);
            self.overflow();
        }
    }

    /// Makes room for an item. Returns false if the tracer has no chunk, and there is no memory.
    pub(super) fn has_made_room(&self) -> bool {
        let chunk = self.chunk.get();
        let Some(fresh) = self.of().marking.take_chunk() else {
            if chunk.is_null() {
                return false;
            }
            self.overflow();
            return true;
        };
        if !chunk.is_null() {
            self.close_chunk();
            if self.is_shared() && self.of().marking.gang.has_idle() {
                // SAFETY: the chunk was closed above, and is in no list.
                unsafe { self.of().marking.gang.give(chunk) };
            } else {
                // SAFETY: the chunk was closed just now, is this tracer's, and is in no list.
                unsafe { self.put_older(chunk) };
            }
        }
        self.open_chunk(fresh, 0);
        true
    }

    pub(super) fn items(chunk: *mut Chunk) -> *mut *mut u8 {
        // SAFETY: the place is in bounds of the chunk, and nothing is read.
        unsafe { &raw mut (*chunk).items }.cast()
    }

    fn open_chunk(&self, chunk: *mut Chunk, count: usize) {
        let items = Self::items(chunk);
        self.chunk.set(chunk);
        self.next.set(items.wrapping_add(count));
        self.end.set(items.wrapping_add(ITEMS));
    }

    pub(super) fn close_chunk(&self) {
        let chunk = self.chunk.get();
        let count = (self.next.get().addr() - Self::items(chunk).addr()) / size_of::<usize>();
        // SAFETY: the chunk is this tracer's.
        let place = unsafe { &raw mut (*chunk).count };
        // SAFETY: the count of the chunk, which is this tracer's.
        unsafe { place.write(count) };
        self.chunk.set(ptr::null_mut());
        self.next.set(ptr::null_mut());
        self.end.set(ptr::null_mut());
    }

    /// # Safety
    ///
    /// The chunk is this tracer's, closed, and in no list.
    unsafe fn put_older(&self, chunk: *mut Chunk) {
        // SAFETY: by the contract.
        let next = unsafe { &raw mut (*chunk).next };
        // SAFETY: the link of a chunk that is this tracer's.
        unsafe { next.write(self.older.get()) };
        self.older.set(chunk);
    }

    fn take_older(&self) -> Option<NonNull<Chunk>> {
        let chunk = NonNull::new(self.older.get())?;
        // SAFETY: the chunk is in this tracer's list.
        self.older.set(unsafe { chunk.as_ref() }.next);
        Some(chunk)
    }

    /// Opens a chunk of the tracer's list, which has items. Returns false if there is none.
    fn reopen(&self) -> bool {
        if let Some(spent) = NonNull::new(self.chunk.get()) {
            if self.older.get().is_null() {
                return false;
            }
            self.close_chunk();
            // SAFETY: the chunk has no items, and is in no list.
            unsafe { self.of().marking.gang.give_empty(spent.as_ptr()) };
        }
        let Some(chunk) = self.take_older() else { return false };
        self.resume(chunk.as_ptr());
        true
    }

    pub(super) fn resume(&self, chunk: *mut Chunk) {
        // SAFETY: the chunk is this tracer's, and says how many items it has.
        let count = unsafe { (*chunk).count };
        // SAFETY: the place of a field of the chunk, which is this tracer's.
        let home = unsafe { &raw mut (*chunk).home };
        // SAFETY: a field of the chunk, which is this tracer's.
        unsafe { home.write(0) };
        self.open_chunk(chunk, count);
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<*mut u8> {
        let chunk = self.chunk.get();
        if (chunk.is_null() || self.next.get() == Self::items(chunk)) && !self.reopen() {
            return None;
        }
        let next = self.next.get().wrapping_sub(1);
        self.next.set(next);
        // Prefetches the mark of the item that is popped soon, unless others come first. At a
        // chunk's start, this reads a word of the chunk's head, or of its neighbour, and the
        // prefetch is useless. Volatile: another thread may own the neighbour, and write the word.
        // SAFETY: the word is within the run of side memory that chunks are cut from, because no
        // chunk has the first place.
        let soon = unsafe { next.wrapping_sub(AHEAD).read_volatile() };
        let offset = soon.addr().wrapping_sub(MAP.base().addr());
        prefetch(mark_word(MAP.side_bitmap(0).cast(), offset).cast());
        if self.marks.get() >= Marks::First as usize {
            prefetch(mark_word(self.local_bitmap.get(), offset).cast());
        }
        // SAFETY: the item was pushed before, and is in this tracer's chunk.
        Some(unsafe { next.read() })
    }

    pub(crate) fn has_items(&self) -> bool {
        let chunk = self.chunk.get();
        !self.older.get().is_null() || !chunk.is_null() && self.next.get() != Self::items(chunk)
    }

    /// Returns the bytes of the tracer's items. These items are at least that much work.
    pub(crate) fn held_bytes(&self) -> usize {
        let newest = self.chunk.get();
        let mut bytes = 0;
        if !newest.is_null() {
            bytes = self.next.get().addr() - Self::items(newest).addr();
        }
        let mut older = self.older.get();
        // SAFETY: the pointer is null, or leads to a chunk of this tracer's list.
        while let Some(chunk) = unsafe { older.as_ref() } {
            bytes += chunk.count * size_of::<usize>();
            older = chunk.next;
        }
        bytes
    }

    /// The tracer's home. The tracer takes chunks of this home first.
    pub(super) fn home(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    pub(crate) fn publish(&self) {
        self.publish_at(0);
    }

    /// As [`Tracer::publish`], for items from the stack of the mutator whose tracer is `other`.
    pub(crate) fn publish_for(&self, other: &Self) {
        self.publish_at(other.home());
    }

    fn publish_at(&self, home: usize) {
        if !self.chunk.get().is_null() {
            let chunk = self.chunk.get();
            self.close_chunk();
            // SAFETY: the chunk was closed above, and is in no list.
            let count = unsafe { (*chunk).count };
            if count > 0 {
                // SAFETY: the chunk was closed just now, is this tracer's, and is in no list.
                unsafe { self.give_at(home, chunk) };
            } else {
                // SAFETY: the chunk was closed just now, is in no list, and has no items.
                unsafe { self.of().marking.gang.give_empty(chunk) };
            }
        }
        while let Some(chunk) = self.take_older() {
            // SAFETY: the chunk was taken from the list just now.
            unsafe { self.give_at(home, chunk.as_ptr()) };
        }
    }

    /// # Safety
    ///
    /// The chunk is this tracer's, closed, and in no list.
    unsafe fn give_at(&self, home: usize, chunk: *mut Chunk) {
        // SAFETY: by the contract.
        let place = unsafe { &raw mut (*chunk).home };
        // SAFETY: a field of the chunk, which is this tracer's.
        unsafe { place.write(home) };
        // SAFETY: the chunk is this tracer's, closed, and in no list, as the caller promises.
        unsafe { self.of().marking.gang.give(chunk) };
    }

    /// Gives an older chunk, or half of the newest chunk's items, to idle tracers, if that pays.
    #[cold]
    pub(super) fn share(&self) {
        if let Some(chunk) = self.take_older() {
            // SAFETY: the chunk was taken from the list just now.
            unsafe { self.of().marking.gang.give(chunk.as_ptr()) };
            return;
        }
        let chunk = self.chunk.get();
        if chunk.is_null() {
            return;
        }
        let items = Self::items(chunk);
        let count = (self.next.get().addr() - items.addr()) / size_of::<usize>();
        let mut keep = count.div_ceil(2);
        if count < 8 || keep >= count {
            return;
        }
        // SAFETY: the item is this tracer's.
        let cut = unsafe { items.wrapping_add(keep).read() };
        if matches!(cut.addr() & TAGS, RANGE | REST) {
            keep += 1;
        }
        let Some(other) = self.of().marking.take_chunk() else { return };
        // Gives the lower half: items that were found first lead to more objects.
        // SAFETY: both chunks have room for `keep` items, and belong to this tracer.
        unsafe { ptr::copy_nonoverlapping(items, Self::items(other), keep) };
        // SAFETY: the copy is within the chunk, from its upper half to its start.
        unsafe { ptr::copy(items.wrapping_add(keep), items, count - keep) };
        self.next.set(items.wrapping_add(count - keep));
        // SAFETY: the chunk is this tracer's.
        let place = unsafe { &raw mut (*other).count };
        // SAFETY: a field of the chunk, which is this tracer's.
        unsafe { place.write(keep) };
        // SAFETY: the chunk is in no list, and says how many items it has.
        unsafe { self.of().marking.gang.give(other) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::heap::Heap;
    use super::super::super::mutator::Mutator;
    use super::super::super::raw::{Options, Runtime};
    use super::*;
    extern crate std;
    use std::vec::Vec;

    /// Counts the ranges, and asserts that each has its count below it.
    fn ranges(items: &[usize]) -> usize {
        let is_range = |item: &usize| item & TAGS == RANGE;
        for (n, _) in items.iter().enumerate().filter(|(_, item)| is_range(item)) {
            assert_eq!(items[n - 1] >> 3, items[n] >> 3);
        }
        items.iter().filter(|item| is_range(item)).count()
    }

    #[test]
    fn sharing_parts_no_range_from_its_count() {
        let heap = Heap::make(Options::new(), Runtime::new()).unwrap();
        let slot = Mutator::attach(&heap.value).unwrap();
        let tracer = &slot.value.tracer;
        // The range at address 8n has n slots. The half may end at each possible place.
        for before in 8..40 {
            (0..before).for_each(|_| tracer.push(ptr::null_mut()));
            (9..9 + before).for_each(|n| tracer.push_range(ptr::without_provenance_mut(8 * n), n));
            tracer.share();
            tracer.publish();
            let mut found = 0;
            while let Some(chunk) = heap.value.trace.marking.gang.take_now() {
                // SAFETY: the chunk was taken from the gang just now.
                let items = unsafe { &*chunk };
                let items: Vec<usize> = items.items[..items.count].to_vec();
                found += ranges(&items);
                // SAFETY: nobody else knows the chunk.
                unsafe { (*chunk).count = 0 };
                // SAFETY: the chunk was taken from the gang, is in no list, and has no items now.
                unsafe { heap.value.trace.marking.gang.give_empty(chunk) };
            }
            assert_eq!(found, before);
        }
        Mutator::detach(slot);
        Heap::end(heap);
    }
}
