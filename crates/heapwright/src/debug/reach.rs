//! Finds the live blocks of a check (*suspects*) to which other memory still refers.
//!
//! ```text
//!   roots    all modules' data | the thread's own words | its callers' stack frames
//!            | live blocks that are not suspects
//!     |  any word that is an address in a suspect
//!     v
//!   suspect: reached --> its words are roots, too
//! ```
//!
//! The search is conservative: a number that looks like an address counts as an address. The stack
//! below the caller is not read, because it holds the stale pointers of the closure. The search
//! reads live blocks under their heap's lock. Called by `check`.

use core::{ptr, slice};

use crate::os;

use super::HEAPS;
use super::heap::Heap;
use super::scope;
use super::table::{give_room, room};

#[derive(Clone, Copy)]
pub(super) struct Suspect {
    pub(super) start: usize,
    pub(super) size: usize,
    heap: &'static Heap,
    is_reached: bool,
    /// The next reached suspect to read, plus 1; 0 ends the list.
    next: usize,
}

impl Suspect {
    pub(super) fn is_live(&self) -> bool {
        self.heap.with_live(self.start, &mut |_, _| ())
    }

    pub(super) fn report(&self) {
        self.heap.report_leak_at(self.start);
    }
}

/// The live blocks of one scope, by address.
pub(super) struct Suspects {
    memory: *mut u8,
    room: usize,
    count: usize,
    unread: usize,
}

impl Suspects {
    pub(super) fn of(scope: u32) -> Option<Self> {
        let mut count = 0;
        each(scope, &mut |_, _, _, is_of_scope| count += usize::from(is_of_scope));
        // Running threads may make more blocks, which are left out.
        let bytes = (count + 16) * size_of::<Suspect>();
        let memory = if count == 0 { ptr::null_mut() } else { room(bytes) };
        let mut suspects = Self { memory, room: bytes, count: 0, unread: 0 };
        if count == 0 {
            return Some(suspects);
        }
        if memory.is_null() {
            return None;
        }
        each(scope, &mut |heap, start, size, is_of_scope| {
            if is_of_scope && suspects.count < count + 16 {
                let suspect = Suspect { start, size, heap, is_reached: false, next: 0 };
                let place = memory.cast::<Suspect>().wrapping_add(suspects.count);
                // SAFETY: one of the places that fit in the memory.
                unsafe { place.write(suspect) };
                suspects.count += 1;
            }
        });
        suspects.list().sort_unstable_by_key(|suspect| suspect.start);
        Some(suspects)
    }

    fn list(&mut self) -> &mut [Suspect] {
        if self.count == 0 {
            return &mut [];
        }
        // SAFETY: this many suspects were written, and the memory is ours.
        unsafe { slice::from_raw_parts_mut(self.memory.cast(), self.count) }
    }

    pub(super) fn unreached(&mut self) -> impl Iterator<Item = Suspect> {
        self.list().iter().filter(|suspect| !suspect.is_reached).copied()
    }

    /// Follows references to suspects. `stack` lies below the frames of the thread's callers.
    pub(super) fn follow(&mut self, scope: u32, stack: usize) {
        if self.count == 0 {
            return;
        }
        os::each_data_segment(&mut |from, to| self.read(from, to));
        // A thread's own words lie in the mapping of its stack, except for the first thread's.
        let own = os::mapping_of(os::thread_token()).ok().flatten();
        let frames = os::mapping_of(stack).ok().flatten();
        if let Some(frames) = frames {
            self.read(stack, frames.end);
        }
        if let Some(own) = own
            && frames.is_none_or(|frames| frames.start != own.start)
            && own.readable
        {
            self.read(own.start, own.end);
        }
        self.read_reached();
        each(scope, &mut |heap, start, _, is_of_scope| {
            if !is_of_scope {
                heap.with_live(start, &mut |block, size| self.read_block(block, size));
                self.read_reached();
            }
        });
    }

    fn read(&mut self, from: usize, to: usize) {
        let from = from.next_multiple_of(size_of::<usize>());
        let words = to.saturating_sub(from) / size_of::<usize>();
        self.read_words(ptr::with_exposed_provenance(from), words);
    }

    fn read_block(&mut self, block: *mut u8, size: usize) {
        let skip = block.addr().next_multiple_of(size_of::<usize>()) - block.addr();
        let words = size.saturating_sub(skip) / size_of::<usize>();
        self.read_words(block.wrapping_add(skip).cast(), words);
    }

    fn read_words(&mut self, from: *const usize, count: usize) {
        for word in 0..count {
            // SAFETY: the word is aligned and mapped; a concurrent write yields some word.
            let word = unsafe { from.wrapping_add(word).read_volatile() };
            self.reach(word);
        }
    }

    fn reach(&mut self, word: usize) {
        let unread = self.unread;
        let list = self.list();
        if word < list[0].start {
            return;
        }
        let index = list.partition_point(|suspect| suspect.start <= word) - 1;
        let suspect = &mut list[index];
        if word - suspect.start < suspect.size.max(1) && !suspect.is_reached {
            suspect.is_reached = true;
            suspect.next = unread;
            self.unread = index + 1;
        }
    }

    fn read_reached(&mut self) {
        while let Some(index) = self.unread.checked_sub(1) {
            let Suspect { start, heap, next, .. } = self.list()[index];
            self.unread = next;
            heap.with_live(start, &mut |block, size| self.read_block(block, size));
        }
    }
}

impl Drop for Suspects {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: the memory came from `room` with this size, and no code uses it.
            unsafe { give_room(self.memory, self.room) };
        }
    }
}

/// Visits every live block, with its heap, address and size, and whether it is in the scope.
fn each(scope: u32, visit: &mut dyn FnMut(&'static Heap, usize, usize, bool)) {
    for heap in HEAPS.all() {
        heap.each_block(&mut |start, size, thread| {
            let is_of_scope = scope::is_within(heap.threads.scope_of(thread), scope);
            visit(heap, start, size, is_of_scope);
        });
    }
}
