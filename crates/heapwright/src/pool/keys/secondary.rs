//! A map from the keys of a pool to further values.
//!
//! ```text
//!   key of a pool --> index --> a slot of the map's own table, with the key's generation
//! ```
//!
//! The map has a table like the pool's, but the key chooses the slot, and the slot's generation is
//! the key's. So lookups and iterations cost as much as in a pool. The map does not know its pool.
//!
//! Called by users.

use core::fmt;
use core::ops::{Index, IndexMut};
use core::ptr;

use super::{Drain, IntoIter, Iter, IterMut, KeyPool, PoolKey, RawKey};
use crate::pool::Refused;

/// Further values for the objects of a pool, by their keys.
///
/// A value of a stale key is found until a newer key with the same index gets a value. Lookups,
/// insertions and removals take constant time. The map takes address space in proportion to the
/// largest index, and pages only for values. For few values, a hash map takes less memory.
///
/// ```
/// use heapwright::pool::{KeyPool, SecondaryMap};
///
/// let mut names = KeyPool::new();
/// let mut ages = SecondaryMap::new();
/// let ann = names.insert("Ann");
/// ages.insert(ann, 30);
/// ages[ann] += 1;
/// assert_eq!(ages.get(ann), Some(&31));
///
/// names.remove(ann);
/// let bob = names.insert("Bob");
/// assert_eq!(bob.index(), ann.index());
/// assert_eq!(ages.get(bob), None, "the value was Ann's");
/// ```
///
/// ```compile_fail,E0502
/// use heapwright::pool::{KeyPool, SecondaryMap};
/// let key = KeyPool::new().insert('a');
/// let mut map = SecondaryMap::new();
/// map.insert(key, 1);
/// let one = &map[key];
/// map.clear();
/// assert_eq!(*one, 1);
/// ```
pub struct SecondaryMap<K: PoolKey, V> {
    values: KeyPool<V, K>,
}

impl<K: PoolKey, V> SecondaryMap<K, V> {
    /// Creates an empty map. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: KeyPool::with_key() }
    }

    /// Sets the value of a key and returns the old one. Ends the process if there is no memory.
    ///
    /// A value of an older key with the same index is dropped. If a newer key with the same index
    /// has a value, or the key is null, the new value is dropped.
    ///
    /// ```
    /// use heapwright::pool::{KeyPool, SecondaryMap};
    /// let key = KeyPool::new().insert('a');
    /// let mut map = SecondaryMap::new();
    /// assert_eq!((map.insert(key, 1), map.insert(key, 2)), (None, Some(1)));
    /// ```
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.try_insert(key, value) {
            Ok(before) => before,
            Err(_) => self.values.no_room(),
        }
    }

    /// Sets the value of a key and returns the previous value; see [`SecondaryMap::insert`].
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, Refused<V>> {
        // Reads the key once: the user's own type of keys may return another key the next time.
        let raw = key.raw();
        if raw.index() == RawKey::NULL.index() {
            return Ok(None);
        }
        let (table, form) = (&mut self.values.table, KeyPool::<V, K>::FORM);
        if let Some(found) = table.find(form, raw) {
            // SAFETY: the slot holds a value of this key, and gets another value.
            return Ok(Some(unsafe { ptr::replace(found.slot.cast::<V>(), value) }));
        }
        let Some(place) = table.place(form, raw) else { return Err(Refused(value)) };
        let slot = place.slot().cast::<V>();
        let Some(there) = place.there else {
            // SAFETY: the slot has the type's size and alignment, and no value.
            unsafe { slot.write(value) };
            // SAFETY: the table made the place and did not change since; the value is written.
            unsafe { table.hold(place) };
            return Ok(None);
        };
        let age = raw.generation().wrapping_sub(there.generation());
        if age.cast_signed() > 0 {
            // SAFETY: the slot holds the value of the older key, and gets another value.
            let before = unsafe { ptr::replace(slot, value) };
            // SAFETY: the table made the place and did not change since; a value is in the slot.
            unsafe { table.hold(place) };
            drop(before);
        }
        Ok(None)
    }

    /// Returns the value of a key. If the key has no value, first inserts a value that `make`
    /// makes. `None` if the key is null, or a newer key with the same index has a value.
    ///
    /// ```
    /// use heapwright::pool::{KeyPool, SecondaryMap};
    /// let key = KeyPool::new().insert('a');
    /// let mut visits = SecondaryMap::new();
    /// *visits.get_or_insert_with(key, || 0).unwrap() += 1;
    /// *visits.get_or_insert_with(key, || 0).unwrap() += 1;
    /// assert_eq!(visits[key], 2);
    /// ```
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> Option<&mut V> {
        if !self.contains_key(key) {
            self.insert(key, make());
        }
        self.get_mut(key)
    }

    /// Returns the value of a key, if it has one. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, key: K) -> Option<&V> {
        self.values.get(key)
    }

    /// Returns the value of a key, mutable, if it has one. O(1).
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.values.get_mut(key)
    }

    /// Returns the values of several keys, mutable. `None` if a key has no value or is there twice.
    #[must_use]
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut V; N]> {
        self.values.get_disjoint_mut(keys)
    }

    /// Removes and returns the value of a key, if it has one. O(1).
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.values.remove(key)
    }

    /// Returns whether a key has a value. O(1).
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: K) -> bool {
        self.values.contains_key(key)
    }

    /// Returns the number of values. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether no key has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Drops all values and keeps the memory; for panics see [`KeyPool::clear`].
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Gives every page without a value back to the kernel now. Returns the number of bytes.
    pub fn trim(&mut self) -> usize {
        self.values.trim()
    }

    /// Removes the values for which a function returns false, in the order of their indexes.
    ///
    /// ```
    /// use heapwright::pool::{KeyPool, SecondaryMap};
    /// let mut pool = KeyPool::new();
    /// let (a, b) = (pool.insert('a'), pool.insert('b'));
    /// let mut map: SecondaryMap<_, _> = [(a, 1), (b, 2)].into_iter().collect();
    /// pool.remove(a);
    /// map.retain(|key, _| pool.contains_key(key));
    /// assert_eq!(map.into_iter().collect::<Vec<_>>(), [(b, 2)]);
    /// ```
    pub fn retain(&mut self, keep: impl FnMut(K, &mut V) -> bool) {
        self.values.retain(keep);
    }

    /// Removes all values and iterates over them with their keys; see [`KeyPool::drain`].
    pub fn drain(&mut self) -> Drain<'_, V, K> {
        self.values.drain()
    }

    /// Iterates over keys and values in the order of their indexes; see [`KeyPool::iter`].
    #[must_use]
    pub fn iter(&self) -> Iter<'_, V, K> {
        self.values.iter()
    }

    /// Iterates over keys and values, mutable; see [`KeyPool::iter`].
    #[must_use]
    pub fn iter_mut(&mut self) -> IterMut<'_, V, K> {
        self.values.iter_mut()
    }

    /// Iterates over the keys that have values; see [`KeyPool::iter`].
    pub fn keys(&self) -> impl ExactSizeIterator<Item = K> + Clone {
        self.values.keys()
    }

    /// Iterates over the values; see [`KeyPool::iter`].
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + Clone {
        self.values.values()
    }

    /// Iterates over the values, mutable; see [`KeyPool::iter`].
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> {
        self.values.values_mut()
    }
}

impl<K: PoolKey, V> Default for SecondaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: PoolKey, V: fmt::Debug> fmt::Debug for SecondaryMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}

/// Panics if the key has no value.
impl<K: PoolKey, V> Index<K> for SecondaryMap<K, V> {
    type Output = V;

    #[inline]
    #[track_caller]
    fn index(&self, key: K) -> &V {
        &self.values[key]
    }
}

/// Panics if the key has no value.
impl<K: PoolKey, V> IndexMut<K> for SecondaryMap<K, V> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.values[key]
    }
}

impl<K: PoolKey, V> Extend<(K, V)> for SecondaryMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<K: PoolKey, V> FromIterator<(K, V)> for SecondaryMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Self::new();
        map.extend(pairs);
        map
    }
}

impl<'p, K: PoolKey, V> IntoIterator for &'p SecondaryMap<K, V> {
    type Item = (K, &'p V);
    type IntoIter = Iter<'p, V, K>;

    fn into_iter(self) -> Iter<'p, V, K> {
        self.iter()
    }
}

impl<'p, K: PoolKey, V> IntoIterator for &'p mut SecondaryMap<K, V> {
    type Item = (K, &'p mut V);
    type IntoIter = IterMut<'p, V, K>;

    fn into_iter(self) -> IterMut<'p, V, K> {
        self.iter_mut()
    }
}

impl<K: PoolKey, V> IntoIterator for SecondaryMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<V, K>;

    fn into_iter(self) -> IntoIter<V, K> {
        self.values.into_iter()
    }
}
