//! A queue with two ends in a realm.
//!
//! ```text
//!   Deque --> | header | buffer |   Buffer --> | T | T | room | T | T |   a ring that doubles
//!                                                              ^ start
//! ```
#![forbid(unsafe_code)]

use core::fmt;

use super::super::growing::Growing;
use super::super::mutation::Mutation;
use super::super::trace::Trace;
use super::sequence::sequence;

/// A queue with two ends in a realm, shared by all copies of this reference.
///
/// Values are copied in and out. A push or pop takes amortised constant time at both ends, and a
/// read takes constant time at any place. An iterator counts from the front. So pushes and pops at
/// the front during the iteration shift its values.
///
/// Every method that allocates panics if there is no memory.
///
/// ```
/// # use heapwright::{Rootable, gc::{Deque, Realm}};
/// let mut realm = Realm::<Rootable!['gc => Deque<'gc, u32>]>::new(|mc| Deque::new(mc));
/// realm.mutate(|mc, queue| {
///     queue.push_back(mc, 2);
///     queue.push_back(mc, 3);
///     queue.push_front(mc, 1);
/// });
/// realm.collect();
/// let all: Vec<u32> = realm.mutate(|_, queue| queue.iter().collect());
/// assert_eq!(all, [1, 2, 3]);
/// assert_eq!(realm.mutate(|mc, queue| queue.pop_front(mc)), Some(1));
/// ```
pub struct Deque<'gc, T>(pub(super) Growing<'gc, T>);

impl<'gc, T: Copy + Trace + 'gc> Deque<'gc, T> {
    /// Creates an empty queue, without memory for values.
    #[must_use]
    pub fn new(mc: &Mutation<'gc>) -> Self {
        Self(Growing::new(mc, None))
    }

    /// Returns the number of values.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns whether the queue is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns whether both are the same queue.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.0.is(other.0)
    }

    /// Returns value `n` from the front. Constant time.
    #[inline]
    #[must_use]
    pub fn get(self, n: usize) -> Option<T> {
        self.0.buffer()?.get(n)
    }

    /// Returns the value at the front.
    #[inline]
    #[must_use]
    pub fn front(self) -> Option<T> {
        self.get(0)
    }

    /// Returns the value at the back.
    #[inline]
    #[must_use]
    pub fn back(self) -> Option<T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Changes value `n` from the front. Constant time.
    ///
    /// # Panics
    ///
    /// If there is no such value.
    #[inline]
    pub fn set(self, mc: &Mutation<'gc>, n: usize, value: T) {
        let is_set = self.0.buffer().is_some_and(|buffer| buffer.set(mc, n, value));
        assert!(is_set, "there is no value {n} in a queue of {}", self.len());
    }

    /// Puts a value at the back. Amortised constant time.
    #[inline]
    pub fn push_back(self, mc: &Mutation<'gc>, value: T) {
        if !self.0.buffer().is_some_and(|buffer| buffer.push_back(mc, value)) {
            self.0.double(mc).push_back(mc, value);
        }
    }

    /// Puts a value at the front. Amortised constant time.
    #[inline]
    pub fn push_front(self, mc: &Mutation<'gc>, value: T) {
        if !self.0.buffer().is_some_and(|buffer| buffer.push_front(mc, value)) {
            self.0.double(mc).push_front(mc, value);
        }
    }

    /// Takes the value at the back. Constant time.
    #[inline]
    pub fn pop_back(self, _: &Mutation<'gc>) -> Option<T> {
        self.0.buffer()?.pop_back()
    }

    /// Takes the value at the front. Constant time.
    #[inline]
    pub fn pop_front(self, _: &Mutation<'gc>) -> Option<T> {
        self.0.buffer()?.pop_front()
    }

    /// Removes all values, and drops the memory for them. Constant time.
    pub fn clear(self, mc: &Mutation<'gc>) {
        self.0.replace(mc, None);
    }

    /// Returns the values, from the front.
    #[must_use]
    pub fn iter(self) -> Iter<'gc, T> {
        Iter { of: self, next: 0 }
    }
}

sequence!(Deque);
