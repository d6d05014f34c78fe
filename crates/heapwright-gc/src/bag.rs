//! Bags: many tracers add words, and one thread reads them later.
//!
//! ```text
//!   buffer, a tracer's     | word | word | .... |       no lock
//!        |  full, or on request
//!        v
//!   bag, the heap's       chunk --> chunk --> chunk    a lock, taken once for each chunk
//! ```
//!
//! A collection notes weak slots, ephemerons, and old objects that were stored into. The notes lie
//! in chunks, as the mark stack's items do, and have no order. Without memory for a chunk,
//! [`Buffer::push`] returns false. Used by `remembered`, `dirty_slots`, `weak` and `ephemerons`.

use core::ptr;

use heapwright_substrate::sync::Lock;

use super::cell::{Num, Ptr};
use super::gang::{Chunk, Chunks, ITEMS};
use super::locks::With;
use super::marking::Marking;

/// Chunks of words. All-zero bytes: no chunks.
pub(super) struct Bag {
    chunks: Lock<Stack>,
}

struct Stack(Chunks);

// SAFETY: chunks are memory of the heap, and are used under the lock.
unsafe impl Send for Stack {}

/// Words that one tracer has added, but not yet given to the heap. All-zero bytes: no words.
pub(super) struct Buffer {
    chunk: Ptr<Chunk>,
    count: Num,
}

/// The number of recent entries that a buffer recognises.
const KNOWN: usize = 64;

/// A buffer that recognises recent entries. All-zero bytes: it is empty, and recognises none.
pub(super) struct Recent {
    known: [Known; KNOWN],
    buffer: Buffer,
}

fn words(chunk: *mut Chunk) -> *mut usize {
    // SAFETY: the place is in bounds of the chunk, and nothing is read.
    unsafe { &raw mut (*chunk).items }.cast()
}

impl Buffer {
    /// Adds a few words that belong together. Returns false without memory.
    #[must_use]
    pub(super) fn push<T: Copy>(&self, marking: &Marking, bag: &Bag, together: T) -> bool {
        let count = const { size_of::<T>() / size_of::<usize>() };
        if self.chunk.get().is_null() || self.count.get() + count > ITEMS {
            self.give(bag);
            let Some(chunk) = marking.take_chunk() else { return false };
            self.chunk.set(chunk);
        }
        let place = words(self.chunk.get()).wrapping_add(self.count.get());
        // SAFETY: the chunk is this buffer's, and has room.
        unsafe { place.cast::<T>().write(together) };
        self.count.add(count);
        true
    }

    pub(super) fn give(&self, bag: &Bag) {
        let chunk = self.chunk.get();
        if chunk.is_null() {
            return;
        }
        // SAFETY: the chunk is this buffer's, and in no list.
        let place = unsafe { &raw mut (*chunk).count };
        // SAFETY: the count of the chunk, which is this buffer's.
        unsafe { place.write(self.count.take()) };
        self.chunk.set(ptr::null_mut());
        // SAFETY: the chunk was this buffer's, is in no list, and has its count.
        unsafe { bag.give(chunk) };
    }
}

/// The address and kind of a recent entry. All-zero bytes: no entry.
struct Known {
    address: Num,
    kind: Num,
}

impl Recent {
    /// Returns whether an entry with this address and `kind` was added recently. If not, the caller
    /// adds the entry now. A kind is any number, such as the address of the function that traces
    /// the place. Kinds distinguish entries that share an address.
    pub(super) fn has(&self, address: usize, kind: usize) -> bool {
        let known = &self.known[address / 16 % KNOWN];
        let same_kind = known.kind.replace(kind) == kind;
        known.address.replace(address) == address && same_kind
    }

    #[must_use]
    pub(super) fn push<T: Copy>(&self, marking: &Marking, bag: &Bag, together: T) -> bool {
        let pushed = self.buffer.push(marking, bag, together);
        if !pushed {
            self.forget();
        }
        pushed
    }

    /// Gives all entries to the heap. Afterwards no entry counts as recent. (A caller may find that
    /// an entry is new, and not add it. So even an empty buffer may recognise entries.)
    pub(super) fn give(&self, bag: &Bag) {
        self.buffer.give(bag);
        self.forget();
    }

    fn forget(&self) {
        self.known.iter().for_each(|known| known.address.set(0));
    }
}

impl Bag {
    /// Adds a chunk.
    ///
    /// # Safety
    ///
    /// The chunk is the caller's, has its count, and is in no list.
    pub(super) unsafe fn give(&self, chunk: *mut Chunk) {
        // SAFETY: by the contract.
        unsafe { self.chunks.lock().0.push(chunk) };
    }

    pub(super) fn words(&self) -> usize {
        self.chunks.lock().0.items()
    }

    pub(super) fn take(&self) -> Option<*mut Chunk> {
        self.chunks.lock().0.pop()
    }

    /// Takes all chunks of another bag. This bag must be empty.
    pub(super) fn take_all(&self, other: &Self) {
        let all = core::mem::replace(&mut other.chunks.lock().0, Chunks::none());
        self.chunks.lock().0 = all;
    }

    /// Changes each word to the result of `with`. No thread may add words meanwhile.
    pub(super) fn change(&self, with: impl FnMut(usize) -> usize) {
        self.change_each::<usize>(with);
    }

    /// As [`Bag::change`], for a bag that holds only values of type `T`.
    pub(super) fn change_each<T: Copy>(&self, mut with: impl FnMut(T) -> T) {
        let mut all = self.chunks.lock();
        let mut changed = Chunks::none();
        while let Some(chunk) = all.0.pop() {
            // SAFETY: the chunk is the bag's, and has its count.
            let count = unsafe { (*chunk).count };
            for n in (0..count).step_by(const { size_of::<T>() / size_of::<usize>() }) {
                let place: *mut T = words(chunk).wrapping_add(n).cast();
                // SAFETY: the place is below the count, so a `T` was written there.
                let now = with(unsafe { place.read() });
                // SAFETY: the place is below the count, in a chunk of this bag.
                unsafe { place.write(now) };
            }
            // SAFETY: the chunk is in no list.
            unsafe { changed.push(chunk) };
        }
        all.0 = changed;
    }

    pub(super) fn end(&self) {
        self.chunks.lock().0 = Chunks::none();
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.chunks);
    }
}

/// Calls `with` for each `T` in a chunk that was taken from a bag.
pub(super) fn each<T: Copy>(chunk: *mut Chunk, mut with: impl FnMut(T)) {
    // SAFETY: the caller took the chunk, which has its count.
    let count = unsafe { (*chunk).count };
    for n in (0..count).step_by(const { size_of::<T>() / size_of::<usize>() }) {
        // SAFETY: the place is below the count, so a `T` was written there.
        with(unsafe { words(chunk).wrapping_add(n).cast::<T>().read() });
    }
}
