//! Incoming references: which slots lead to a page whose objects are to be moved.
//!
//! ```text
//!   page of the plan --incoming--> | slot, target | --> | slot, target | --> ...     newest first
//!
//!   block, of the heap    | link | reference | reference | ... memory of one tracer ... |  64 KiB
//! ```
//!
//! While a compacting collection marks, each reported slot that leads to a page of the plan is
//! noted with that page. Any number of tracers do so at once. Each has its own memory for notes,
//! and links a note in front of the page's list. When the objects have moved, the list names all
//! slots to change (Ben-Yitzhak et al., "An algorithm for parallel incremental compaction", 2002).
//!
//! If a slot no longer leads to the recorded object, its reference is skipped. No reference is ever
//! removed. Filled by `tracer`, read by `moving`.

use core::ptr::{self, NonNull};

use heapwright_substrate::address_map::MAP;
use heapwright_substrate::chunk::Side;
use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicPtr, Ordering};

use super::bits::GRANULE;
use super::cell::{Num, Ptr};
use super::locks::With;

const ADDRESS: u32 = 48;

#[repr(C)]
struct Reference {
    /// The slot's address; above it the granule where the object begins in its page.
    packed: usize,
    next: *mut Reference,
}

/// The slots that lead to a page's objects. All-zero bytes: no slots.
#[repr(C)]
pub(super) struct Incoming {
    first: AtomicPtr<Reference>,
    count: Num,
}

/// A tracer's memory for references. All-zero bytes: no memory.
pub(super) struct Room {
    next: Ptr<Reference>,
    end: Ptr<Reference>,
    /// The number of the plan that the memory belongs to.
    round: Num,
}

pub(super) struct References {
    blocks: Lock<Blocks>,
    round: Num,
}

struct Blocks(*mut u8);

// SAFETY: blocks are memory of the heap, and are used under the lock.
unsafe impl Send for Blocks {}

impl References {
    fn take(&self, room: &Room) -> Option<NonNull<Reference>> {
        if room.next.get() == room.end.get() || room.round.get() != self.round.get() {
            let side = Side::take(UNIT)?;
            let block = side.at();
            let mut blocks = self.blocks.lock();
            // SAFETY: fresh memory; the link takes the place of the first reference.
            unsafe { block.cast::<*mut u8>().write(blocks.0) };
            blocks.0 = block;
            drop(blocks);
            room.next.set(block.cast::<Reference>().wrapping_add(1));
            room.end.set(block.wrapping_add(UNIT).cast());
            room.round.set(self.round.get());
        }
        let place = room.next.get();
        room.next.set(place.wrapping_add(1));
        NonNull::new(place)
    }

    /// Gives all memory back. Lists of pages that stayed dangle until [`Incoming::forget`].
    pub(super) fn end(&self) {
        let mut blocks = self.blocks.lock();
        while !blocks.0.is_null() {
            // SAFETY: the first word of a block leads to the next one.
            let next = unsafe { blocks.0.cast::<*mut u8>().read() };
            Side::give_at(blocks.0);
            blocks.0 = next;
        }
        self.round.add(1);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.blocks);
    }
}

impl Room {
    /// Forgets the memory, because the tracer is no longer used, or is used for another heap.
    pub(super) fn forget(&self) {
        self.next.set(ptr::null_mut());
        self.end.set(ptr::null_mut());
    }
}

impl Incoming {
    /// Notes that a slot leads to the object that begins at byte `offset` of the page. Any number
    /// of threads may call this. Returns false without memory.
    #[must_use]
    pub(super) fn note(
        &self,
        all: &References,
        room: &Room,
        slot: *mut *mut u8,
        offset: usize,
    ) -> bool {
        debug_assert!(slot.addr() >> ADDRESS == 0);
        let Some(place) = all.take(room) else { return false };
        let packed = slot.addr() | (offset / GRANULE) << ADDRESS;
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // SAFETY: the memory is this tracer's. Nobody else knows it before it is linked.
            unsafe { place.write(Reference { packed, next: first }) };
            let hung = self.first.compare_exchange_weak(
                first,
                place.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match hung {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        self.count.add_shared(1);
        true
    }

    pub(super) fn count(&self) -> usize {
        self.count.get()
    }

    pub(super) fn forget(&self) {
        self.first.store(ptr::null_mut(), Ordering::Relaxed);
        self.count.set(0);
    }

    /// Calls `with` for each slot and the granule of its object. No thread may note slots now.
    pub(super) fn each(&self, mut with: impl FnMut(*mut *mut u8, usize)) {
        let mut at = self.first.load(Ordering::Acquire);
        // SAFETY: the pointer is null, or leads to a reference in a block that exists until
        // `References::end`.
        while let Some(reference) = unsafe { at.as_ref() } {
            at = reference.next;
            let address = reference.packed & ((1 << ADDRESS) - 1);
            with(MAP.base().with_addr(address).cast(), reference.packed >> ADDRESS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn what_several_note_is_all_there_and_goes_with_the_plan() {
        assert!(heapwright_substrate::substrate::open(heapwright_substrate::options::get));
        // SAFETY: zero has nothing.
        let all: References = unsafe { core::mem::zeroed() };
        // SAFETY: a plan of zeros has nothing in it.
        let incoming: Incoming = unsafe { core::mem::zeroed() };
        let each = if cfg!(miri) { 50 } else { 10_000 };
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let (all, incoming) = (&all, &incoming);
                scope.spawn(move || {
                    // SAFETY: zero has no room.
                    let room: Room = unsafe { core::mem::zeroed() };
                    for n in 0..each {
                        let slot = ptr::without_provenance_mut(8 * (thread * each + n));
                        assert!(incoming.note(all, &room, slot, 16 * (n % 4096) + 8));
                    }
                });
            }
        });
        assert_eq!(incoming.count(), 4 * each);
        let mut found = Vec::new();
        incoming.each(|slot, granule| found.push((slot.addr() / 8, granule)));
        found.sort_unstable();
        assert!(found.iter().copied().eq((0..4 * each).map(|n| (n, n % each % 4096))));
        incoming.forget();
        all.end();
        incoming.each(|_, _| unreachable!());
        assert!(all.blocks.lock().0.is_null());
    }
}
