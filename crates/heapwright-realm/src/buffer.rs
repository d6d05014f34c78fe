//! A buffer: room for some values, part of it in use. The collections are built on it.
//!
//! ```text
//!   object   | header | capacity | first | start | length | ring of `capacity` places .......... |
//!                                  ^ number of the first value: grows when that value is taken
//!                                          ^ its place; value n lies at (start + n) mod capacity
//! ```
//!
//! This file has the unsafe code of the collections, except their `Trace`. Its promises:
//!
//! - *values are copied in and out*, never lent, so no store changes a value during a read;
//! - *removed values are not traced*: the collector traces `length` values from `start` on;
//! - *every traced place holds a `T`*: a value is written before `length` counts it. Values are
//!   `Copy`, so there is nothing to drop, and old bits are a valid `T` while their objects live;
//! - *a store is reported before it is made, and made at once*: a reported place is traced after
//!   the mutation, and holds a live value by then. A report names the whole place of a value. No
//!   store changes the type of that value (see `cells`).
//!
//! `first` gives each value a number, which stays when values before it are taken. The index of a
//! map holds such numbers.

use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::{self, NonNull};

use super::cells::Cell;
use super::copied::copied;
use super::mutation::Mutation;
use super::pointer::{Gc, Header, Type, is_reported, kind_of, out_of_memory, report};
use super::trace::Trace;
use heapwright_gc::raw::Tracer;

#[repr(C)]
struct Head {
    header: Header,
    capacity: usize,
    first: usize,
    start: usize,
    length: usize,
}

/// A reference to a buffer in a realm. Invariant in `T`, because each copy may store.
pub(super) struct Buffer<'gc, T> {
    at: NonNull<Head>,
    of: PhantomData<(Gc<'gc, T>, Cell<T>)>,
}

copied!(Buffer<'_, T>: T);

// SAFETY: a `Buffer` is one reference, which it reports.
unsafe impl<T: Copy + Trace> Trace for Buffer<'_, T> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        // SAFETY: `at` is the object's own slot, and leads to a live object of this heap.
        unsafe { tracer.mark_slot(ptr::from_ref(&self.at).cast_mut().cast()) };
    }
}

// SAFETY: no mutation has the brand `'static`, so no value of this type exists outside of a heap.
unsafe impl<T: Send> Send for Buffer<'static, T> {}

impl<T> Buffer<'_, T> {
    #[inline]
    fn head(&self) -> *mut Head {
        self.at.as_ptr()
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        // SAFETY: nothing is collected while 'gc lasts, so `at` leads to a live object.
        unsafe { (*self.head()).length }
    }

    #[inline]
    pub(super) fn capacity(self) -> usize {
        // SAFETY: nothing is collected while 'gc lasts, so `at` leads to a live object.
        unsafe { (*self.head()).capacity }
    }

    #[inline]
    pub(super) fn first(self) -> usize {
        // SAFETY: nothing is collected while 'gc lasts, so `at` leads to a live object.
        unsafe { (*self.head()).first }
    }

    #[inline]
    fn start(self) -> usize {
        // SAFETY: nothing is collected while 'gc lasts, so `at` leads to a live object.
        unsafe { (*self.head()).start }
    }

    #[inline]
    fn object(self) -> *mut u8 {
        self.head().cast()
    }

    fn places(self) -> *mut T {
        self.head().wrapping_add(1).cast()
    }

    /// Returns the place of value `n`. The number `n` is at most the capacity.
    #[inline]
    fn place(self, n: usize) -> *mut T {
        let (at, capacity) = (self.start() + n, self.capacity());
        self.places().wrapping_add(if at >= capacity { at - capacity } else { at })
    }

    #[cfg(test)]
    pub(super) fn is(self, other: Self) -> bool {
        self.at == other.at
    }

    /// Numbers the values as if `first` values had been taken from the front.
    #[cfg(test)]
    pub(super) fn renumber(self, first: usize) {
        // SAFETY: `at` leads to a live object; no collector reads it while a mutation runs.
        unsafe { (*self.head()).first = first };
    }

    fn stretches(self) -> [Range<usize>; 2] {
        let (start, length) = (self.start(), self.len());
        let before_end = length.min(self.capacity() - start);
        [start..start + before_end, 0..length - before_end]
    }

    unsafe fn from_object(object: *mut u8) -> Self {
        // SAFETY: the object is such a buffer, so it does not lie at null.
        Self { at: unsafe { NonNull::new_unchecked(object.cast()) }, of: PhantomData }
    }
}

impl<T: Copy + Trace> Buffer<'_, T> {
    const TYPE: &'static Type = &Type {
        trace: Self::trace_all,
        drop: |_| {},
        size: Self::size_of_all,
        name: core::any::type_name::<[T]>,
    };

    unsafe fn trace_all(object: *mut u8, tracer: &Tracer) {
        // SAFETY: the header says that the object is such a buffer.
        let all = unsafe { Self::from_object(object) };
        for stretch in all.stretches() {
            for n in stretch {
                // SAFETY: the value is counted, so it was written; no mutation runs.
                unsafe { &*all.places().wrapping_add(n) }.trace(tracer);
            }
        }
    }

    unsafe fn size_of_all(object: *const u8) -> usize {
        // SAFETY: the header says that the object is such a buffer.
        let all = unsafe { Self::from_object(object.cast_mut()) };
        size_of::<Head>() + size_of::<T>() * all.capacity()
    }

    #[inline]
    pub(super) fn get(self, n: usize) -> Option<T> {
        // SAFETY: the value is counted, so it was written.
        (n < self.len()).then(|| unsafe { self.place(n).read() })
    }

    #[inline]
    fn touch(self, mc: &Mutation<'_>, place: *mut T) {
        if const { is_reported::<T>() } {
            mc.touch(self.object(), (place.cast(), report::<T>));
        }
    }

    /// Reports a store of value `n`, and makes it. The place may hold no value yet.
    #[inline]
    fn store(self, mc: &Mutation<'_>, n: usize, value: T) {
        let place = self.place(n);
        self.touch(mc, place);
        // SAFETY: no reference to a place of the buffer exists, because values are copied.
        unsafe { place.write(value) };
    }

    #[inline]
    fn set_length(self, length: usize) {
        // SAFETY: `at` leads to a live object; no collector reads it while a mutation runs.
        unsafe { (*self.head()).length = length };
    }

    #[inline]
    fn set_start(self, start: usize, first: usize) {
        // SAFETY: `at` leads to a live object; no collector reads it while a mutation runs.
        unsafe { (*self.head()).start = start };
        // SAFETY: `at` leads to a live object; no collector reads it while a mutation runs.
        unsafe { (*self.head()).first = first };
    }

    /// Changes value `n`. Returns false if there is no such value.
    #[inline]
    pub(super) fn set(self, mc: &Mutation<'_>, n: usize, value: T) -> bool {
        let is_there = n < self.len();
        if is_there {
            self.store(mc, n, value);
        }
        is_there
    }

    /// Adds a value at the end. Returns false if the buffer is full.
    #[inline]
    pub(super) fn push_back(self, mc: &Mutation<'_>, value: T) -> bool {
        let length = self.len();
        let has_room = length < self.capacity();
        if has_room {
            self.store(mc, length, value);
            self.set_length(length + 1);
        }
        has_room
    }

    /// Adds a value at the front. Returns false if the buffer is full.
    #[inline]
    pub(super) fn push_front(self, mc: &Mutation<'_>, value: T) -> bool {
        let (length, capacity) = (self.len(), self.capacity());
        if length == capacity {
            return false;
        }
        let start = self.start().checked_sub(1).unwrap_or(capacity - 1);
        let place = self.places().wrapping_add(start);
        self.touch(mc, place);
        // SAFETY: a place of the buffer, in which there is no value.
        unsafe { place.write(value) };
        self.set_start(start, self.first().wrapping_sub(1));
        self.set_length(length + 1);
        true
    }

    #[inline]
    pub(super) fn pop_back(self) -> Option<T> {
        let last = self.len().checked_sub(1)?;
        let value = self.get(last);
        self.set_length(last);
        value
    }

    #[inline]
    pub(super) fn pop_front(self) -> Option<T> {
        let value = self.get(0)?;
        let next = self.start() + 1;
        self.set_start(
            if next == self.capacity() { 0 } else { next },
            self.first().wrapping_add(1),
        );
        self.set_length(self.len() - 1);
        Some(value)
    }

    pub(super) fn truncate(self, length: usize) {
        self.set_length(length.min(self.len()));
    }

    /// Adds values at the end. Without room for all, adds none and returns false.
    pub(super) fn extend(self, mc: &Mutation<'_>, values: &[T]) -> bool {
        let has_room = values.len() <= self.capacity() - self.len();
        if has_room && T::TRACED {
            values.iter().for_each(|&value| _ = self.push_back(mc, value));
        } else if has_room {
            let length = self.len();
            let whole = self.places().wrapping_add(self.start() + length);
            if self.start() + length + values.len() <= self.capacity() {
                // SAFETY: these places are the buffer's, after its values; the source lies
                // elsewhere, or among those values.
                unsafe { ptr::copy_nonoverlapping(values.as_ptr(), whole, values.len()) };
            } else {
                (0..).zip(values).for_each(|(n, &value)| {
                    // SAFETY: a place of the buffer, in which there is no value.
                    unsafe { self.place(length + n).write(value) };
                });
            }
            self.set_length(length + values.len());
        }
        has_room
    }

    /// Returns the values, which must be one stretch.
    ///
    /// # Safety
    ///
    /// While the slice is in use, none of these values changes. Others may be added at the end.
    pub(super) unsafe fn as_slice<'a>(self) -> &'a [T]
    where
        Self: 'a,
    {
        let [stretch, rest] = self.stretches();
        debug_assert!(rest.is_empty());
        let values = self.places().wrapping_add(stretch.start);
        // SAFETY: values that were written, and stay as they are by the contract.
        unsafe { core::slice::from_raw_parts(values, stretch.len()) }
    }
}

impl<'gc> Mutation<'gc> {
    /// Makes an empty buffer. Never collects. Panics if there is no memory.
    pub(super) fn buffer<T: Copy + Trace + 'gc>(&self, capacity: usize) -> Buffer<'gc, T> {
        const { assert!(align_of::<T>() <= 8, "values of a realm are aligned to 8 bytes at most") };
        let size = size_of::<T>().checked_mul(capacity);
        let Some(size) = size.and_then(|size| size.checked_add(size_of::<Head>())) else {
            out_of_memory(usize::MAX)
        };
        let Some(at) = self.object(size, const { kind_of::<T>() }) else { out_of_memory(size) };
        let header = Header { of: Some(Buffer::<T>::TYPE) };
        // SAFETY: fresh, and large enough.
        unsafe { at.cast().write(Head { header, capacity, first: 0, start: 0, length: 0 }) };
        Buffer { at: at.cast(), of: PhantomData }
    }

    /// Copies as many values of `from` as fit, with their numbers. Panics if there is no memory.
    pub(super) fn buffer_of<T: Copy + Trace + 'gc>(
        &self,
        from: Buffer<'gc, T>,
        capacity: usize,
    ) -> Buffer<'gc, T> {
        let made = self.buffer(capacity);
        made.set_start(0, from.first());
        for stretch in from.stretches() {
            let length = made.len();
            let count = stretch.len().min(capacity - length);
            let values = from.places().wrapping_add(stretch.start);
            // SAFETY: the values are another buffer's, and the new buffer has room for them. It is
            // not reachable yet, so the store needs no report.
            unsafe { ptr::copy_nonoverlapping(values, made.place(length), count) };
            made.set_length(length + count);
        }
        made
    }

    /// Makes a sorted copy, not stably, in O(n log n). Panics without memory, or if `compare` does.
    pub(super) fn sorted<T: Copy + Trace + 'gc>(
        &self,
        from: Buffer<'gc, T>,
        compare: impl FnMut(&T, &T) -> core::cmp::Ordering,
    ) -> Buffer<'gc, T> {
        let made = self.buffer_of(from, from.len());
        // SAFETY: all values are written, and no other reference to this buffer exists.
        let values = unsafe { core::slice::from_raw_parts_mut(made.places(), made.len()) };
        values.sort_unstable_by(compare);
        made
    }
}
