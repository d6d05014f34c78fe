//! A growable array of values in a realm.
//!
//! ```text
//!   Vector --> | header | buffer |   Buffer --> | T | T | T | room |      doubles when it is full
//! ```
#![forbid(unsafe_code)]

use core::cmp::Ordering;
use core::fmt;

use super::super::growing::Growing;
use super::super::mutation::Mutation;
use super::super::slice::Slice;
use super::super::trace::Trace;
use super::sequence::sequence;

/// A growable array in a realm, shared by all copies of this reference.
///
/// Values are copied in and out. Changes take amortised constant time at the end, and linear time
/// at any other place; see each method. An iterator reads a value when it reaches the value's
/// place. It ends at the array's current end.
///
/// Every method that allocates panics if there is no memory.
///
/// ```
/// # use heapwright::{Rootable, gc::{Gc, Realm, Vector}};
/// type Root = Rootable!['gc => Vector<'gc, Gc<'gc, &'static str>>];
/// let mut realm = Realm::<Root>::new(|mc| Vector::new(mc));
/// realm.mutate(|mc, words| {
///     for word in ["one", "two", "three"] {
///         words.push(mc, mc.alloc(word));
///     }
///     assert_eq!(*words.get(1).unwrap(), "two");
/// });
/// realm.collect();
/// realm.mutate(|mc, words| {
///     assert_eq!(*words.pop(mc).unwrap(), "three");
///     assert_eq!(words.len(), 2);
/// });
/// ```
pub struct Vector<'gc, T>(pub(super) Growing<'gc, T>);

impl<'gc, T: Copy + Trace + 'gc> Vector<'gc, T> {
    /// Creates an empty array, without memory for values.
    #[must_use]
    pub fn new(mc: &Mutation<'gc>) -> Self {
        Self(Growing::new(mc, None))
    }

    /// Creates an empty array with room for `capacity` values.
    #[must_use]
    pub fn with_capacity(mc: &Mutation<'gc>, capacity: usize) -> Self {
        let buffer = (capacity > 0).then(|| mc.buffer(capacity));
        Self(Growing::new(mc, buffer))
    }

    /// Creates an array with these values.
    #[must_use]
    pub fn of(mc: &Mutation<'gc>, values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter();
        let made = Self::with_capacity(mc, values.size_hint().0);
        values.for_each(|value| made.push(mc, value));
        made
    }

    /// Returns the number of values.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no value.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values that fit.
    #[must_use]
    pub fn capacity(self) -> usize {
        self.0.capacity()
    }

    /// Returns whether both are the same array.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.0.is(other.0)
    }

    /// Returns value `n`. Constant time.
    #[inline]
    #[must_use]
    pub fn get(self, n: usize) -> Option<T> {
        self.0.buffer()?.get(n)
    }

    /// Returns the first value.
    #[inline]
    #[must_use]
    pub fn first(self) -> Option<T> {
        self.get(0)
    }

    /// Returns the last value.
    #[inline]
    #[must_use]
    pub fn last(self) -> Option<T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Changes value `n`. Constant time.
    ///
    /// # Panics
    ///
    /// If there is no such value.
    #[inline]
    pub fn set(self, mc: &Mutation<'gc>, n: usize, value: T) {
        let is_set = self.0.buffer().is_some_and(|buffer| buffer.set(mc, n, value));
        assert!(is_set, "there is no value {n} in an array of {}", self.len());
    }

    /// Exchanges two values. Constant time.
    ///
    /// # Panics
    ///
    /// If there is no value `a` or no value `b`.
    pub fn swap(self, mc: &Mutation<'gc>, a: usize, b: usize) {
        let (Some(one), Some(other)) = (self.get(a), self.get(b)) else {
            panic!("there is no value {} in an array of {}", a.max(b), self.len())
        };
        self.set(mc, a, other);
        self.set(mc, b, one);
    }

    /// Makes room for `more` more values.
    pub fn reserve(self, mc: &Mutation<'gc>, more: usize) {
        let wanted = self.len().saturating_add(more);
        if wanted > self.capacity() {
            self.0.grow(mc, wanted.max(self.capacity().saturating_mul(2)));
        }
    }

    /// Adds a value at the end. Amortised constant time.
    #[inline]
    pub fn push(self, mc: &Mutation<'gc>, value: T) {
        if !self.0.buffer().is_some_and(|buffer| buffer.push_back(mc, value)) {
            self.0.double(mc).push_back(mc, value);
        }
    }

    /// Takes the last value. Constant time.
    #[inline]
    pub fn pop(self, _: &Mutation<'gc>) -> Option<T> {
        self.0.buffer()?.pop_back()
    }

    /// Adds all values of an iterator at the end.
    pub fn extend(self, mc: &Mutation<'gc>, values: impl IntoIterator<Item = T>) {
        let values = values.into_iter();
        self.reserve(mc, values.size_hint().0);
        values.for_each(|value| self.push(mc, value));
    }

    /// Adds all values of a slice at the end. Linear in their number.
    pub fn extend_from_slice(self, mc: &Mutation<'gc>, values: &[T]) {
        self.reserve(mc, values.len());
        _ = self.0.buffer().is_some_and(|buffer| buffer.extend(mc, values));
    }

    /// Puts a value before value `n`, or at the end. Linear in the number of values behind it.
    ///
    /// # Panics
    ///
    /// If there are fewer than `n` values, or no memory.
    pub fn insert(self, mc: &Mutation<'gc>, n: usize, value: T) {
        assert!(n <= self.len(), "there is no place {n} in an array of {}", self.len());
        let mut value = value;
        for at in n..self.len() {
            let next = self.get(at).unwrap_or(value);
            self.set(mc, at, value);
            value = next;
        }
        self.push(mc, value);
    }

    /// Takes value `n`. Linear in the number of values behind it.
    pub fn remove(self, mc: &Mutation<'gc>, n: usize) -> Option<T> {
        let removed = self.get(n)?;
        for at in n + 1..self.len() {
            let next = self.get(at).unwrap_or(removed);
            self.set(mc, at - 1, next);
        }
        self.pop(mc);
        Some(removed)
    }

    /// Takes value `n`, and moves the last value to its place. Constant time.
    pub fn swap_remove(self, mc: &Mutation<'gc>, n: usize) -> Option<T> {
        let removed = self.get(n)?;
        let last = self.pop(mc)?;
        if n < self.len() {
            self.set(mc, n, last);
        }
        Some(removed)
    }

    /// Forgets all values from number `length` on. Constant time.
    pub fn truncate(self, _: &Mutation<'gc>, length: usize) {
        if let Some(buffer) = self.0.buffer() {
            buffer.truncate(length);
        }
    }

    /// Forgets all values, and the memory for them. Constant time.
    pub fn clear(self, mc: &Mutation<'gc>) {
        self.0.replace(mc, None);
    }

    /// Keeps the values for which `keep` returns true, in their order. Linear.
    pub fn retain(self, mc: &Mutation<'gc>, mut keep: impl FnMut(T) -> bool) {
        let (mut kept, mut at) = (0, 0);
        while let Some(value) = self.get(at) {
            at += 1;
            if keep(value) {
                self.set(mc, kept, value);
                kept += 1;
            }
        }
        self.truncate(mc, kept);
    }

    /// Gives unused room back. Linear.
    pub fn shrink_to_fit(self, mc: &Mutation<'gc>) {
        if self.is_empty() {
            self.clear(mc);
        } else if self.len() < self.capacity() {
            self.0.grow(mc, self.len());
        }
    }

    /// Sorts the values, not stably. Takes O(n log n) time, and new memory. If `compare` panics,
    /// the array stays as it was. Changes that `compare` makes to the array are lost.
    pub fn sort_by(self, mc: &Mutation<'gc>, compare: impl FnMut(&T, &T) -> Ordering) {
        if let Some(buffer) = self.0.buffer() {
            let sorted = mc.sorted(buffer, compare);
            self.0.replace(mc, Some(sorted));
        }
    }

    /// Returns the values, one after the other.
    #[must_use]
    pub fn iter(self) -> Iter<'gc, T> {
        Iter { of: self, next: 0 }
    }

    /// Creates a copy that does not change any more.
    #[must_use]
    pub fn to_slice(self, mc: &Mutation<'gc>) -> Slice<'gc, T> {
        let (buffer, length) = (self.0.buffer(), self.len());
        let value = |n| buffer.and_then(|buffer| buffer.get(n));
        mc.alloc_slice(length, |n| value(n).expect("nobody changes it meanwhile"))
    }
}

sequence!(Vector);
