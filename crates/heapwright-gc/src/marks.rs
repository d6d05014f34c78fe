//! Marks: reading and changing the mark bit of one object.
//!
//! ```text
//!   object --map--> unit's side bitmap, a bit for each granule
//! ```
//!
//! Part of `space`. `tracer` sets marks by itself. This is for callers with a single object.

use heapwright_substrate::address_map::MAP;

use super::bits::{self, Bits};
use super::find;
use super::page;
use super::space::Space;

impl Space {
    /// Returns an object's mark: the bitmap, and the object's offset in its page. `None` if the
    /// object is not of this heap.
    fn mark_of(&self, object: *mut u8) -> Option<(&'static Bits, usize)> {
        let (unit, _) = find::list_of(object.addr(), self.tag())?;
        Some((page::marks(unit), object.addr() - MAP.address_of(unit).addr()))
    }

    /// Returns whether a reference leads into a page of the heap, where an object could be.
    pub(super) fn is_object(&self, reference: *mut u8) -> bool {
        find::list_of(reference.addr(), self.tag()).is_some()
    }

    pub(super) fn is_marked(&self, object: *mut u8) -> bool {
        self.mark_of(object).is_some_and(|(marks, at)| bits::is_set(marks, at))
    }

    pub(super) fn is_unmarked(&self, reference: *mut u8) -> bool {
        !reference.is_null()
            && reference.addr() & 7 == 0
            && self.mark_of(reference).is_some_and(|(marks, at)| !bits::is_set(marks, at))
    }

    /// Clears an object's mark. Returns whether it had one.
    pub(super) fn take_mark(&self, object: *mut u8) -> bool {
        self.mark_of(object).is_some_and(|(marks, at)| bits::take(marks, at))
    }

    pub(super) fn give_mark(&self, object: *mut u8) {
        if let Some((marks, at)) = self.mark_of(object) {
            bits::set_shared(marks, at);
        }
    }
}
