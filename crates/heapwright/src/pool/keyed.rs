//! The keyed objects of a [`Pool`]: a [`KeyPool`] inside it.
//!
//! ```text
//!   Pool<T>    raw     handles and pointers
//!              keyed   objects with keys: get, remove, iterate
//! ```
//!
//! A pool inserts through a shared reference, even while references to other keyed objects exist.
//! So no reference to the inner pool exists while the user's code runs. Mutable access to a keyed
//! object needs `&mut Pool`, so a shared iteration over keyed objects is sound.
//!
//! Called by users.

use core::iter::FusedIterator;
use core::ops::{Index, IndexMut};

use super::Refused;
use super::keys::{Drain, IterMut, Key, KeyPool, PoolKey, Steps, stale};
use super::typed::Pool;

impl<T> Pool<T> {
    /// Makes an object with a key. O(1) amortised. See [`KeyPool::insert`].
    #[inline]
    pub fn insert(&self, value: T) -> Key<T> {
        self.with_keyed(|keyed| keyed.insert(value))
    }

    /// Makes an object with a key. O(1) amortised.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<Key<T>, Refused<T>> {
        self.with_keyed(|keyed| keyed.try_insert(value))
    }

    /// Inserts the object that a function makes from its own key; see [`KeyPool::insert_with_key`].
    #[inline]
    pub fn insert_with_key(&mut self, make: impl FnOnce(Key<T>) -> T) -> Key<T> {
        self.keyed_mut().insert_with_key(make)
    }

    /// Returns the object of a key, or `None` if the key is stale. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, key: Key<T>) -> Option<&T> {
        let object: *const T = self.with_keyed(|keyed| keyed.get(key).map(core::ptr::from_ref))?;
        // SAFETY: the object is live, and only `&mut self` removes it or gives mutable references.
        Some(unsafe { &*object })
    }

    /// Returns the object of a key, mutable, or `None` if the key is stale. O(1).
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        self.keyed_mut().get_mut(key)
    }

    /// Returns the objects of several keys, mutable. `None` if a key is stale, or is there twice.
    #[must_use]
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [Key<T>; N]) -> Option<[&mut T; N]> {
        self.keyed_mut().get_disjoint_mut(keys)
    }

    /// Removes and returns the object of a key, which becomes stale. `None` if it was stale. O(1).
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let mut pool = Pool::new();
    /// let key = pool.insert(5);
    /// assert_eq!(pool.remove(key), Some(5));
    /// let other = pool.insert(6);
    /// assert_eq!(other.index(), key.index(), "the slot is used again");
    /// assert_eq!((pool.get(key), pool.get(other)), (None, Some(&6)));
    /// ```
    #[inline]
    pub fn remove(&mut self, key: Key<T>) -> Option<T> {
        self.keyed_mut().remove(key)
    }

    /// Returns whether a key's object is alive. O(1).
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: Key<T>) -> bool {
        self.with_keyed(|keyed| keyed.contains_key(key))
    }

    /// Returns the key of an object. `None` if the object is not this pool's, or has no key. O(1).
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool = Pool::new();
    /// let key = pool.insert(7);
    /// assert_eq!(pool.key_of(&pool[key]), Some(key));
    /// assert_eq!(pool.key_of(&*pool.boxed(7)), None);
    /// ```
    #[must_use]
    pub fn key_of(&self, object: &T) -> Option<Key<T>> {
        self.with_keyed(|keyed| keyed.key_of(object))
    }

    /// Drops the objects with keys, and keeps the memory; see [`KeyPool::clear`].
    pub fn clear(&mut self) {
        self.keyed_mut().clear();
    }

    /// Removes the objects with keys for which a function returns false; see [`KeyPool::retain`].
    pub fn retain(&mut self, keep: impl FnMut(Key<T>, &mut T) -> bool) {
        self.keyed_mut().retain(keep);
    }

    /// Removes all objects with keys and iterates over them; see [`KeyPool::drain`].
    pub fn drain(&mut self) -> Drain<'_, T, Key<T>> {
        self.keyed_mut().drain()
    }

    /// Iterates over the objects with keys in index order. The loop may insert objects, which the
    /// iteration may or may not meet.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool = Pool::new();
    /// let (a, b, _handle) = (pool.insert(1), pool.insert(2), pool.boxed(3));
    /// assert_eq!(pool.iter().collect::<Vec<_>>(), [(a, &1), (b, &2)]);
    /// ```
    ///
    /// The iteration does not meet objects of handles, because a handle may change its object
    /// meanwhile. The loop cannot remove objects:
    ///
    /// ```compile_fail,E0502
    /// use heapwright::pool::Pool;
    /// let mut pool: Pool<u32> = Pool::new();
    /// for (key, _) in pool.iter() {
    ///     pool.remove(key);
    /// }
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { pool: self, steps: KeyPool::<T>::steps() }
    }

    /// Iterates over the objects with keys, mutable; see [`KeyPool::iter_mut`].
    ///
    /// ```compile_fail,E0499
    /// use heapwright::pool::Pool;
    /// let mut pool: Pool<u32> = Pool::new();
    /// let key = pool.insert(1);
    /// let mut all = pool.iter_mut();
    /// let again = pool.get_mut(key);
    /// let _ = (all.next(), again);
    /// ```
    #[must_use]
    pub fn iter_mut(&mut self) -> IterMut<'_, T, Key<T>> {
        self.keyed_mut().iter_mut()
    }

    /// Iterates over the keys of the pool's objects; see [`Pool::iter`].
    pub fn keys(&self) -> impl FusedIterator<Item = Key<T>> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the objects with keys; see [`Pool::iter`].
    pub fn values(&self) -> impl FusedIterator<Item = &T> + Clone {
        self.iter().map(|(_, object)| object)
    }

    /// Iterates over the objects with keys, mutable; see [`KeyPool::iter_mut`].
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.keyed_mut().values_mut()
    }
}

/// Panics if the key is stale.
impl<T> Index<Key<T>> for Pool<T> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, key: Key<T>) -> &T {
        self.get(key).unwrap_or_else(|| stale(key.raw()))
    }
}

/// Panics if the key is stale.
impl<T> IndexMut<Key<T>> for Pool<T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, key: Key<T>) -> &mut T {
        &mut self.keyed_mut()[key]
    }
}

/// An iterator over the keys and objects of a [`Pool`]; see [`Pool::iter`].
pub struct Iter<'p, T> {
    pool: &'p Pool<T>,
    steps: Steps,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { pool: self.pool, steps: self.steps.clone() }
    }
}

impl<'p, T> Iterator for Iter<'p, T> {
    type Item = (Key<T>, &'p T);

    #[inline]
    fn next(&mut self) -> Option<(Key<T>, &'p T)> {
        let (key, object) = self.pool.with_keyed(|keyed| keyed.next_pair(&mut self.steps))?;
        // SAFETY: the object is live, and only `&mut Pool` removes it or gives mutable references.
        Some((key, unsafe { object.as_ref() }))
    }
}

impl<T> FusedIterator for Iter<'_, T> {}

impl<'p, T> IntoIterator for &'p Pool<T> {
    type Item = (Key<T>, &'p T);
    type IntoIter = Iter<'p, T>;

    fn into_iter(self) -> Iter<'p, T> {
        self.iter()
    }
}

impl<'p, T> IntoIterator for &'p mut Pool<T> {
    type Item = (Key<T>, &'p mut T);
    type IntoIter = IterMut<'p, T, Key<T>>;

    fn into_iter(self) -> IterMut<'p, T, Key<T>> {
        self.iter_mut()
    }
}
