//! A buffer that a larger one replaces: the base of arrays, queues and string builders.
//!
//! ```text
//!   Growing --> | header | buffer |   Buffer --> | T | T | T | room |      none at first
//! ```
//!
//! One word, which is `Copy`: all copies lead to the cell, which leads to the current buffer. A
//! replaced buffer is garbage, and values that were read from it stay as they were.
//!
//! Part of `collections` and `text`.

use super::buffer::Buffer;
use super::cells::Cell;
use super::copied::copied;
use super::mutation::Mutation;
use super::pointer::Gc;
use super::trace::Trace;
use heapwright_gc::raw::Tracer;

/// Values that there is room for at first, where a buffer doubles.
const FIRST: usize = 4;

/// See the top of the file.
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
    /// One with this buffer. Panics if there is no memory, as all that makes something.
    pub(super) fn new(mc: &Mutation<'gc>, buffer: Option<Buffer<'gc, T>>) -> Self {
        Self(mc.alloc(Cell::new(buffer)))
    }

    /// Its object, which stays the same when it grows.
    pub(super) fn object(self) -> *mut u8 {
        self.0.object()
    }

    /// The current buffer.
    #[inline]
    pub(super) fn buffer(self) -> Option<Buffer<'gc, T>> {
        self.0.as_ref().get()
    }

    /// Another buffer, or none.
    pub(super) fn replace(self, mc: &Mutation<'gc>, buffer: Option<Buffer<'gc, T>>) {
        self.0.as_ref().set(mc, self.0, buffer);
    }

    /// The number of values.
    #[inline]
    pub(super) fn len(self) -> usize {
        self.buffer().map_or(0, Buffer::len)
    }

    /// How many there is room for.
    #[inline]
    pub(super) fn capacity(self) -> usize {
        self.buffer().map_or(0, Buffer::capacity)
    }

    /// Returns whether both are the same.
    pub(super) fn is(self, other: Self) -> bool {
        self.0.is(other.0)
    }

    /// A buffer with the same values, and room for that many.
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

    /// A buffer with the same values, and room for twice as many.
    pub(super) fn double(self, mc: &Mutation<'gc>) -> Buffer<'gc, T> {
        self.grow(mc, self.capacity().saturating_mul(2).max(FIRST))
    }
}
