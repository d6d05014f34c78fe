//! Local marks: how two threads mark at once without a locked instruction.
//!
//! ```text
//!   the map's side bitmaps  | page 0 | page 1 | page 2 | ...   written by the first, read by both
//!   local bitmap            | page 0 | page 1 | page 2 | ...   written by the second, read by both
//!   dirty, a byte a unit    |   1    |   0    |   1    | ...   where the second has written
//!
//!   end of a drain: the local bitmap is merged into the map's bitmaps, and is empty again
//! ```
//!
//! A bit that two threads may set at once needs a locked instruction, which waits for all earlier
//! stores. So each of the two threads has a bitmap that only it writes. An object is marked if
//! either bitmap has its mark. If both threads reach an object at the same moment, each may miss
//! the other's mark, and both trace the object. That costs only time: the merge finds such objects
//! and counts them once.
//!
//! More than two threads share the map's bitmaps, with locked instructions. So do two threads that
//! have much to mark (see `SMALL`). Steps do so because each merge visits all pages of the heap.
//! The local bitmap has its own address space, as long as the map. It takes memory only for units
//! where the second thread has marked. Opened by `mark`; `tracer` marks in it.

use core::ptr;

use heapwright_substrate::address_map::{MAP, SIDE_BITMAP};
use heapwright_substrate::os::SYSTEM;
use heapwright_substrate::os::{self, Memory};
use heapwright_substrate::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use super::bits::Bits;
use super::cell::Num;
use super::held::State;
use super::page::Page;

/// The most bytes to mark with local marks. With more, marks are not in a processor's caches.
/// Marking then waits for memory, and local marks would double the bytes that are fetched.
const SMALL: usize = 16 << 20;

/// Bytes of a unit's local bitmap: the marks, and the dirty byte.
const A_UNIT: usize = SIDE_BITMAP + 1;

/// The local bitmap of one heap. All-zero bytes: it has no memory.
pub(super) struct LocalMarks {
    at: AtomicPtr<u8>,
    units: Num,
    /// Whether a second thread marks there.
    used: Num,
}

impl LocalMarks {
    /// Makes sure that there is a local bitmap for all units. No thread may mark meanwhile.
    fn prepare(&self) -> bool {
        let units = MAP.limit();
        if units <= self.units.get() {
            return true;
        }
        self.end();
        // If address space is limited, local marks get none of it.
        if SYSTEM.address_space_limit().is_some() {
            return false;
        }
        let units = units.next_power_of_two();
        let size = Self::size(units);
        let at = SYSTEM.reserve(size, SYSTEM.page_size());
        if at.is_null() {
            return false;
        }
        // SAFETY: the memory was just reserved, in whole pages.
        if !unsafe { SYSTEM.commit(at, size) } {
            // SAFETY: the memory was just reserved, and nobody uses it.
            unsafe { SYSTEM.release(at, size) };
            return false;
        }
        // SAFETY: the memory was just reserved, in whole pages.
        unsafe { os::keep_out_of_dumps(at, size) };
        self.at.store(at, Ordering::Relaxed);
        self.units.set(units);
        true
    }

    /// From now on two threads mark `left` bytes, each in its own bitmap. Returns false without
    /// memory, or if local marks would not pay.
    pub(super) fn open(&self, left: usize) -> bool {
        let ready = left <= SMALL && self.prepare();
        self.used.set(usize::from(ready));
        ready
    }

    pub(super) fn close(&self) {
        self.used.set(0);
    }

    fn size(units: usize) -> usize {
        (units * A_UNIT).next_multiple_of(SYSTEM.page_size())
    }

    /// The words of all units' marks, in the order of the map's side bitmaps.
    pub(super) fn words(&self) -> *mut AtomicU64 {
        self.at.load(Ordering::Relaxed).cast()
    }

    pub(super) fn dirty(&self) -> *mut AtomicU8 {
        self.at.load(Ordering::Relaxed).wrapping_add(self.units.get() * SIDE_BITMAP).cast()
    }

    pub(super) fn is_used(&self) -> bool {
        self.used.get() != 0
    }

    /// Returns the local bitmap of a page if it is dirty, and makes it clean.
    pub(super) fn take(&self, page: &Page) -> Option<&Bits> {
        let unit = page.unit.get();
        if page.state() != State::InUse || unit >= self.units.get() {
            return None;
        }
        // SAFETY: there is a byte for each of `units` units.
        let dirty = unsafe { &*self.dirty().wrapping_add(unit) };
        if dirty.load(Ordering::Relaxed) == 0 {
            return None;
        }
        dirty.store(0, Ordering::Relaxed);
        // SAFETY: there is a bitmap for each of `units` units.
        Some(unsafe { &*self.words().cast::<Bits>().wrapping_add(unit) })
    }

    pub(super) fn end(&self) {
        let at = self.at.swap(ptr::null_mut(), Ordering::Relaxed);
        if !at.is_null() {
            // SAFETY: `prepare` reserved the memory, and nobody uses it any more.
            unsafe { SYSTEM.release(at, Self::size(self.units.get())) };
        }
        self.units.set(0);
        self.used.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::LEAF;
    use super::super::bits::WORDS;
    use super::super::heap::Heap;
    use super::super::layout::PAGE_LISTS;
    use super::super::mutator::Mutator;
    use super::super::raw::{Options, Runtime};
    use super::super::tracer::{Marks, Tracer};
    use super::*;

    #[test]
    fn what_both_have_marked_is_marked_and_counted_once() {
        let slot = Heap::make(Options::new(), Runtime::new()).unwrap();
        let heap = &slot.value;
        let mutators = [Mutator::attach(heap).unwrap(), Mutator::attach(heap).unwrap()];
        let [first, second] = [&mutators[0].value, &mutators[1].value];
        let objects: [_; 6] = core::array::from_fn(|_| first.alloc(48, LEAF as usize));
        assert!(heap.trace.marking.local_marks.open(0));
        first.tracer.mark_as(Marks::First);
        second.tracer.mark_as(Marks::Second);
        let mark = |tracer: &Tracer, from: usize| {
            objects[from..from + 4].iter().for_each(|&object| tracer.mark(object));
            assert!(tracer.drain_own(0, usize::MAX));
        };
        mark(&second.tracer, 2);
        // The first tracer does not see the second tracer's latest marks.
        let unit = MAP.unit_of(objects[0].addr());
        // SAFETY: there is a local bitmap for each unit.
        let local_bitmap =
            unsafe { &*heap.trace.marking.local_marks.words().cast::<Bits>().wrapping_add(unit) };
        let marks: [u64; WORDS] =
            core::array::from_fn(|n| local_bitmap[n].swap(0, Ordering::Relaxed));
        mark(&first.tracer, 0);
        local_bitmap
            .iter()
            .zip(marks)
            .for_each(|(word, marks)| word.store(marks, Ordering::Relaxed));
        assert!(heap.space.is_marked(objects[3]) && !heap.space.is_marked(objects[4]));
        // Now the first tracer sees them.
        mark(&first.tracer, 2);
        heap.trace.merge_local_marks();
        assert!(objects.into_iter().all(|object| heap.space.is_marked(object)));
        for mutator in &mutators {
            mutator.value.tracer.give_counts();
        }
        let mut counted = [0; PAGE_LISTS];
        assert_eq!(heap.trace.marking.take_counts(&mut counted), 6 * 48);
        assert_eq!(counted.iter().sum::<usize>(), 6);
        // The local bitmap is empty again.
        assert!(
            heap.space.pages.all().all(|page| heap.trace.marking.local_marks.take(page).is_none())
        );
        mutators.into_iter().for_each(Mutator::detach);
        Heap::end(slot);
    }
}
