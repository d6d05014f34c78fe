//! A hash set in a realm: a map without values.
#![forbid(unsafe_code)]

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::super::copied::copied;
use super::super::mutation::Mutation;
use super::super::trace::Trace;
use super::hash::Seeded;
use super::map::{self, Map};

/// A hash set in a realm, shared by all copies of this reference. The documentation of [`Map`] and
/// its keys applies.
///
/// ```
/// # use heapwright::{Rootable, gc::{Realm, Set, Str}};
/// let mut realm = Realm::<Rootable!['gc => Set<'gc, Str<'gc>>]>::new(|mc| Set::new(mc));
/// realm.mutate(|mc, seen| {
///     assert!(seen.insert(mc, mc.alloc_str("once")));
///     assert!(!seen.insert(mc, mc.alloc_str("once")));
/// });
/// realm.collect();
/// assert!(realm.mutate(|_, seen| seen.contains("once")));
/// ```
pub struct Set<'gc, K, S = Seeded>(pub(super) Map<'gc, K, (), S>);

impl<'gc, K: Copy + Eq + Hash + Trace + 'gc> Set<'gc, K> {
    /// Creates an empty set, without memory for keys.
    #[must_use]
    pub fn new(mc: &Mutation<'gc>) -> Self {
        Self(Map::new(mc))
    }
}

impl<'gc, K, S> Set<'gc, K, S>
where
    K: Copy + Eq + Hash + Trace + 'gc,
    S: BuildHasher + 'static,
{
    /// Creates an empty set with this hasher.
    #[must_use]
    pub fn with_hasher(mc: &Mutation<'gc>, hasher: S) -> Self {
        Self(Map::with_hasher(mc, hasher))
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether both are the same set.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.0.is(other.0)
    }

    /// Returns whether the set has a key. Constant time on average.
    #[inline]
    #[must_use]
    pub fn contains<Q: Eq + Hash + ?Sized>(self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Returns a key as it was inserted. Constant time on average. So a set can intern strings:
    /// look a string up, and insert it if it is missing.
    #[inline]
    #[must_use]
    pub fn get<Q: Eq + Hash + ?Sized>(self, key: &Q) -> Option<K>
    where
        K: Borrow<Q>,
    {
        self.0.get_key_value(key).map(|(key, ())| key)
    }

    /// Inserts a key. Returns whether it was new. Amortised constant time on average.
    ///
    /// # Panics
    ///
    /// If there is no memory, or if the set would need more than 2^30 places for keys.
    pub fn insert(self, mc: &Mutation<'gc>, key: K) -> bool {
        self.0.insert(mc, key, ()).is_none()
    }

    /// Removes a key. Returns whether it was there. Amortised constant time on average.
    pub fn remove<Q: Eq + Hash + ?Sized>(self, mc: &Mutation<'gc>, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.remove(mc, key).is_some()
    }

    /// Removes all keys, and drops the memory for them. Constant time.
    pub fn clear(self, mc: &Mutation<'gc>) {
        self.0.clear(mc);
    }

    /// Keeps the keys for which `keep` is true, in their order. Linear.
    pub fn retain(self, mc: &Mutation<'gc>, mut keep: impl FnMut(K) -> bool) {
        self.0.retain(mc, |key, ()| keep(key));
    }

    /// Returns the keys, in the order of their first insertion; see [`Map::iter`].
    #[must_use]
    pub fn iter(self) -> Iter<'gc, K, S> {
        Iter(self.0.iter())
    }
}

/// The keys of a [`Set`].
pub struct Iter<'gc, K, S = Seeded>(map::Iter<'gc, K, (), S>);

impl<'gc, K, S> Iterator for Iter<'gc, K, S>
where
    K: Copy + Eq + Hash + Trace + 'gc,
    S: BuildHasher + 'static,
{
    type Item = K;

    #[inline]
    fn next(&mut self) -> Option<K> {
        self.0.next().map(|(key, ())| key)
    }
}

impl<'gc, K, S> IntoIterator for Set<'gc, K, S>
where
    K: Copy + Eq + Hash + Trace + 'gc,
    S: BuildHasher + 'static,
{
    type Item = K;
    type IntoIter = Iter<'gc, K, S>;

    fn into_iter(self) -> Iter<'gc, K, S> {
        self.iter()
    }
}

copied!(Set<'_, K, S>: K, S);

impl<'gc, K, S> fmt::Debug for Set<'gc, K, S>
where
    K: Copy + Eq + Hash + Trace + fmt::Debug + 'gc,
    S: BuildHasher + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::printing::print(f, self.0.0.object(), |f| f.debug_set().entries(*self).finish())
    }
}
