//! A buffer that a larger one replaces: the base of arrays, queues and string builders.
//!
//! ```text
//!   Growing --> | header | buffer |   Buffer --> | T | T | T | room |      none at first
//! ```
//!
//! A `Growing` is one word, and `Copy`. All copies lead to the cell, and the cell leads to the
//! current buffer. A replaced buffer is garbage; values that were read from it stay as they were.

use super::buffer::Buffer;
use super::cells::Cell;
use super::copied::copied;
use super::mutation::Mutation;
use super::pointer::Gc;
use super::trace::Trace;
use heapwright_gc::raw::Tracer;

const FIRST: usize = 4;

pub(super) struct Growing<'gc, T>(Gc<'gc, Cell<Option<Buffer<'gc, T>>>>);

copied!(Growing<'_, T>: T);

// SAFETY: its one field is reported.
unsafe impl<T: Copy + Trace> Trace for Growing<'_, T> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.0.trace(tracer);
    }
}

impl<'gc, T: Copy + Trace + 'gc> Growing<'gc, T> {
    /// Panics if there is no memory, as every function here does that allocates.
    pub(super) fn new(mc: &Mutation<'gc>, buffer: Option<Buffer<'gc, T>>) -> Self {
        Self(mc.alloc(Cell::new(buffer)))
    }

    /// Returns the cell's object, which stays the same when the buffer grows.
    pub(super) fn object(self) -> *mut u8 {
        self.0.object()
    }

    #[inline]
    pub(super) fn buffer(self) -> Option<Buffer<'gc, T>> {
        self.0.as_ref().get()
    }

    pub(super) fn replace(self, mc: &Mutation<'gc>, buffer: Option<Buffer<'gc, T>>) {
        self.0.as_ref().set(mc, self.0, buffer);
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.buffer().map_or(0, Buffer::len)
    }

    #[inline]
    pub(super) fn capacity(self) -> usize {
        self.buffer().map_or(0, Buffer::capacity)
    }

    pub(super) fn is(self, other: Self) -> bool {
        self.0.is(other.0)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn grow(self, mc: &Mutation<'gc>, capacity: usize) -> Buffer<'gc, T> {
        let made = match self.buffer() {
            Some(full) => mc.buffer_of(full, capacity),
            None => mc.buffer(capacity),
        };
        self.replace(mc, Some(made));
        made
    }

    pub(super) fn double(self, mc: &Mutation<'gc>) -> Buffer<'gc, T> {
        self.grow(mc, self.capacity().saturating_mul(2).max(FIRST))
    }
}
