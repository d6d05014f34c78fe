//! A hash map in a realm: entries in the order of insertion, and an index beside.
//!
//! ```text
//!   Map --> | header | entries | index | live | hasher |
//!
//!   index    | hash, 31 bits | number | . | hash, 31 bits | number | ...   2^n words, never traced
//!   entries  | Some(k, v) | None | Some(k, v) | ...            a ring: number n is value n - first
//! ```
//!
//! *The index* is probed linearly from the place that the hash names; a cache line holds eight
//! words. An entry is read only if 31 bits of the hash agree. Words are ordered by the distance
//! from their own place (Robin Hood hashing: Celis, Larson, Munro 1985). So a search for an absent
//! key ends at the first word that is nearer to its own place. A removal shifts the following words
//! back by one, so there are no tombstones. A word has enough of the hash for its place in a larger
//! index. So no key is hashed again when a map without holes grows.
//!
//! *The entries* are dense, as in CPython's and Ruby's hash tables: iteration reads only the
//! entries, in the order of insertion. A removal leaves a hole. Holes at either end go at once.
//! (`first` counts holes at the front, so numbers stay.) Other holes stay until the buffer is full.
//! Then the entries move together if at least a quarter are holes. Otherwise the room doubles.
//!
//! *A small map* has no index: up to eight entries are compared one by one, and no key is hashed.
//!
//! The index holds no references: it is a leaf, and a store into it needs no report.
#![forbid(unsafe_code)]

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::super::buffer::Buffer;
use super::super::cells::Cell;
use super::super::copied::copied;
use super::super::mutation::Mutation;
use super::super::pointer::Gc;
use super::super::slice::Slice;
use super::super::trace::Trace;
use super::hash::Seeded;

/// The most entries of a map without an index.
const SMALL: usize = 8;
/// Bit of an index word that is in use. A free word is zero.
const USED: u64 = 1 << 63;
/// The most entries with the smallest index, of 16 words. An index is at most seven eighths full,
/// even after each doubling.
const INDEXED: usize = 14;
const MOST: usize = 1 << 30;

type Entries<'gc, K, V> = Buffer<'gc, Option<(K, V)>>;
type Index<'gc> = Slice<'gc, Cell<u64>>;

pub(crate) struct Body<'gc, K, V, S> {
    pub(super) entries: Cell<Option<Entries<'gc, K, V>>>,
    pub(super) index: Cell<Option<Index<'gc>>>,
    /// Entries that are not holes.
    pub(super) live: Cell<usize>,
    pub(super) hasher: S,
}

/// A hash map in a realm, shared by all copies of this reference.
///
/// Keys and values are copied in and out. Look-up, insertion and removal take amortised constant
/// time on average, and linear time if all hashes collide. Iteration follows the order in which
/// keys were inserted first. It takes time linear in the number of keys and of holes, which removed
/// keys leave. The index takes about one to two words for each place of an entry. When the places
/// are full, their number at most doubles.
///
/// A key is found by its borrowed form: a [`Str`](super::super::Str) by a `&str`. A [`Gc`] hashes
/// and compares as its value. Its address is no key, because values move. A change of a key
/// through cells must keep its hash and equality; otherwise look-ups return any result.
///
/// Every method that allocates panics if there is no memory.
///
/// ```
/// # use heapwright::{Rootable, gc::{Map, Realm, Str}};
/// let mut realm = Realm::<Rootable!['gc => Map<'gc, Str<'gc>, u32>]>::new(|mc| Map::new(mc));
/// realm.mutate(|mc, counts| {
///     for word in "a rose is a rose is a rose".split(' ') {
///         let count = counts.get(word).unwrap_or(0);
///         counts.insert(mc, mc.alloc_str(word), count + 1);
///     }
/// });
/// realm.collect();
/// realm.mutate(|_, counts| {
///     let all: Vec<(&str, u32)> = counts.iter().map(|(word, count)| (word.as_str(), count)).collect();
///     assert_eq!(all, [("a", 3), ("rose", 3), ("is", 2)]);
/// });
/// ```
pub struct Map<'gc, K, V, S = Seeded>(pub(super) Gc<'gc, Body<'gc, K, V, S>>);

impl<'gc, K, V> Map<'gc, K, V>
where
    K: Copy + Eq + Hash + Trace + 'gc,
    V: Copy + Trace + 'gc,
{
    /// Creates an empty map, without memory for entries.
    #[must_use]
    pub fn new(mc: &Mutation<'gc>) -> Self {
        Self::with_hasher(mc, Seeded::new())
    }
}

#[derive(Clone, Copy)]
struct Found {
    /// The key's entry, counted from the first entry.
    entry: usize,
    /// The key's word of the index, if there is an index.
    word: usize,
}

/// Returns the part of a hash that an index word holds, in its position in the word.
#[inline]
fn word_of(hash: u64) -> u64 {
    (hash ^ hash >> 32) << 32 | USED
}

#[inline]
fn home(word: u64, mask: usize) -> usize {
    (word >> 32) as usize & mask
}

impl<'gc, K, V, S> Map<'gc, K, V, S>
where
    K: Copy + Eq + Hash + Trace + 'gc,
    V: Copy + Trace + 'gc,
    S: BuildHasher + 'static,
{
    /// Creates an empty map with this hasher.
    #[must_use]
    pub fn with_hasher(mc: &Mutation<'gc>, hasher: S) -> Self {
        let (entries, index) = (Cell::new(None), Cell::new(None));
        Self(mc.alloc(Body { entries, index, live: Cell::new(0), hasher }))
    }

    #[inline]
    fn entries(self) -> Option<Entries<'gc, K, V>> {
        self.0.as_ref().entries.get()
    }

    /// Returns the number of keys.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.0.as_ref().live.get()
    }

    /// Returns whether there is no key.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns whether both are the same map.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.0.is(other.0)
    }

    #[inline]
    fn hash<Q: Hash + ?Sized>(self, key: &Q) -> u64 {
        word_of(self.0.as_ref().hasher.hash_one(key))
    }

    /// Returns the place of a key, and the key's hash (0 if it was not computed).
    #[inline]
    fn find<Q: Eq + Hash + ?Sized>(self, key: &Q) -> (Option<Found>, u64)
    where
        K: Borrow<Q>,
    {
        let Some(entries) = self.entries() else { return (None, 0) };
        let is_at = |entry: usize| matches!(entries.get(entry), Some(Some((known, _))) if known.borrow() == key);
        let Some(index) = self.0.as_ref().index.get() else {
            let entry = (0..entries.len()).find(|&entry| is_at(entry));
            return (entry.map(|entry| Found { entry, word: 0 }), 0);
        };
        let (index, first, hash) = (index.as_slice(), entries.first() as u32, self.hash(key));
        let mask = index.len() - 1;
        let mut at = home(hash, mask);
        for distance in 0..index.len() {
            let word = index[at].get();
            if word == 0 || (at.wrapping_sub(home(word, mask)) & mask) < distance {
                break;
            }
            if (word ^ hash) >> 32 == 0 {
                let entry = (word as u32).wrapping_sub(first) as usize;
                if is_at(entry) {
                    return (Some(Found { entry, word: at }), hash);
                }
            }
            at = (at + 1) & mask;
        }
        (None, hash)
    }

    /// Returns the value of a key. Constant time on average.
    #[inline]
    #[must_use]
    pub fn get<Q: Eq + Hash + ?Sized>(self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// Returns a key as it was inserted, and its value. Constant time on average.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Eq + Hash + ?Sized>(self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        let found = self.find(key).0?;
        self.entries()?.get(found.entry)?
    }

    /// Returns whether there is such a key. Constant time on average.
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Eq + Hash + ?Sized>(self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).0.is_some()
    }

    /// Sets the value of a key. Returns the old value, if the key is present; the key itself and
    /// its position stay. Amortised constant time on average.
    ///
    /// # Panics
    ///
    /// If there is no memory, or if the map would need more than 2^30 places for entries.
    pub fn insert(self, mc: &Mutation<'gc>, key: K, value: V) -> Option<V> {
        let (found, mut hash) = self.find(&key);
        let entries = self.entries();
        if let Some(Found { entry, .. }) = found
            && let Some(entries) = entries
            && let Some(Some((known, old))) = entries.get(entry)
        {
            entries.set(mc, entry, Some((known, value)));
            return Some(old);
        }
        let entries = match entries {
            Some(entries) if entries.len() < entries.capacity() => entries,
            _ => self.make_room(mc),
        };
        let number = entries.first().wrapping_add(entries.len());
        if let Some(index) = self.0.as_ref().index.get() {
            if hash == 0 {
                // There was no index when `find` looked for the key.
                hash = self.hash(&key);
            }
            place(index.as_slice(), hash | u64::from(number as u32));
        }
        entries.push_back(mc, Some((key, value)));
        self.0.as_ref().live.put(self.len() + 1);
        None
    }

    /// Removes a key, and returns its value. Amortised constant time on average. The other keys
    /// stay in their order.
    pub fn remove<Q: Eq + Hash + ?Sized>(self, mc: &Mutation<'gc>, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(mc, key).map(|(_, value)| value)
    }

    /// Does the same as [`Map::remove`], but also returns the key as it was inserted.
    pub fn remove_entry<Q: Eq + Hash + ?Sized>(self, mc: &Mutation<'gc>, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        let found = self.find(key).0?;
        self.take(mc, found)
    }

    /// Removes the key that was inserted first. Amortised constant time on average.
    pub fn pop_first(self, mc: &Mutation<'gc>) -> Option<(K, V)> {
        // The first entry is no hole: `take` removes holes at the ends.
        let (key, _) = self.entries()?.get(0)??;
        self.remove_entry(mc, &key)
    }

    /// Removes the key that was inserted last. Amortised constant time on average.
    pub fn pop_last(self, mc: &Mutation<'gc>) -> Option<(K, V)> {
        let entries = self.entries()?;
        let (key, _) = entries.get(entries.len().checked_sub(1)?)??;
        self.remove_entry(mc, &key)
    }

    fn take(self, mc: &Mutation<'gc>, found: Found) -> Option<(K, V)> {
        let entries = self.entries()?;
        let taken = entries.get(found.entry)??;
        if let Some(index) = self.0.as_ref().index.get() {
            unplace(index.as_slice(), found.word);
        }
        entries.set(mc, found.entry, None);
        self.0.as_ref().live.put(self.len().saturating_sub(1));
        while let Some(None) = entries.get(0) {
            entries.pop_front();
        }
        while let Some(None) = entries.len().checked_sub(1).and_then(|last| entries.get(last)) {
            entries.pop_back();
        }
        Some(taken)
    }

    #[cold]
    #[inline(never)]
    fn make_room(self, mc: &Mutation<'gc>) -> Entries<'gc, K, V> {
        let Some(full) = self.entries() else { return self.rebuild(mc, SMALL / 2) };
        let (capacity, live) = (full.capacity(), self.len());
        let twice = if capacity == SMALL { INDEXED } else { (capacity * 2).min(MOST) };
        if live < full.len() {
            let is_nearly_full = live > capacity - capacity / 4;
            return self
                .rebuild(mc, if is_nearly_full { twice } else { (live * 2).clamp(SMALL, MOST) });
        }
        assert!(capacity < MOST, "a map has too many keys");
        // There are no holes, so numbers stay, and the old words are placed again.
        let made = mc.buffer_of(full, twice);
        let body = self.0.as_ref();
        let index = match body.index.get() {
            Some(old) => {
                let index = make_index(mc, made.capacity());
                old.iter()
                    .map(Cell::get)
                    .filter(|&word| word != 0)
                    .for_each(|word| place(index.as_slice(), word));
                Some(index)
            }
            None if made.capacity() > SMALL => Some(self.index_all(mc, made)),
            None => None,
        };
        body.index.set(mc, self.0, index);
        body.entries.set(mc, self.0, Some(made));
        made
    }

    fn rebuild(self, mc: &Mutation<'gc>, capacity: usize) -> Entries<'gc, K, V> {
        assert!(capacity <= MOST, "a map has too many keys");
        let made = mc.buffer(capacity);
        let old = self.entries();
        let entries = (0..).map_while(|n| old.and_then(|old| old.get(n)));
        entries.filter(Option::is_some).for_each(|entry| _ = made.push_back(mc, entry));
        let body = self.0.as_ref();
        let index = (capacity > SMALL).then(|| self.index_all(mc, made));
        body.index.set(mc, self.0, index);
        body.entries.set(mc, self.0, Some(made));
        // This undoes changes that the keys' `Hash` may have made to the map meanwhile.
        body.live.put(made.len());
        made
    }

    /// Makes an index of all these entries, none of which is a hole. The map gets the index only
    /// when it is complete, because a key's hash may panic.
    fn index_all(self, mc: &Mutation<'gc>, entries: Entries<'gc, K, V>) -> Index<'gc> {
        let index = make_index(mc, entries.capacity());
        for n in 0..entries.len() {
            if let Some(Some((key, _))) = entries.get(n) {
                let number = entries.first().wrapping_add(n) as u32;
                place(index.as_slice(), self.hash(&key) | u64::from(number));
            }
        }
        index
    }

    /// Forgets all keys, and the memory for them. Constant time.
    pub fn clear(self, mc: &Mutation<'gc>) {
        let body = self.0.as_ref();
        body.entries.set(mc, self.0, None);
        body.index.set(mc, self.0, None);
        body.live.put(0);
    }

    /// Keeps the keys for which `keep` returns true, in their order. Linear.
    pub fn retain(self, mc: &Mutation<'gc>, mut keep: impl FnMut(K, V) -> bool) {
        for (key, value) in self.iter() {
            if !keep(key, value) {
                self.remove(mc, &key);
            }
        }
    }

    /// Shrinks the map to the room that its keys need. Linear.
    pub fn shrink_to_fit(self, mc: &Mutation<'gc>) {
        if self.is_empty() {
            self.clear(mc);
        } else if self.entries().is_some_and(|entries| self.len() < entries.capacity()) {
            self.rebuild(mc, self.len());
        }
    }

    /// Returns keys and values, in the order in which keys were inserted first.
    ///
    /// The map may change meanwhile. Changes, removals and insertions ahead of the iterator take
    /// effect. But if keys were removed before, an insertion may move the entries together. Then
    /// the iterator skips some entries.
    #[must_use]
    pub fn iter(self) -> Iter<'gc, K, V, S> {
        Iter { of: self, next: self.entries().map_or(0, Buffer::first) }
    }

    /// Returns the keys, in the order in which they were inserted first.
    pub fn keys(self) -> impl Iterator<Item = K> + use<'gc, K, V, S> {
        self.iter().map(|(key, _)| key)
    }

    /// Returns the values, in the order in which their keys were inserted first.
    pub fn values(self) -> impl Iterator<Item = V> + use<'gc, K, V, S> {
        self.iter().map(|(_, value)| value)
    }
}

/// Creates an index for `capacity` entries. At most seven eighths of its words are in use.
fn make_index<'gc>(mc: &Mutation<'gc>, capacity: usize) -> Index<'gc> {
    mc.alloc_slice((capacity + capacity / 7).next_power_of_two(), |_| Cell::new(0))
}

fn place(index: &[Cell<u64>], word: u64) {
    let mask = index.len() - 1;
    let (mut word, mut at) = (word, home(word, mask));
    let mut distance = 0;
    for _ in 0..index.len() {
        let other = index[at].get();
        if other == 0 {
            index[at].put(word);
            return;
        }
        let others = at.wrapping_sub(home(other, mask)) & mask;
        if others < distance {
            // The other word is nearer to its own place, so it makes room.
            index[at].put(word);
            (word, distance) = (other, others);
        }
        at = (at + 1) & mask;
        distance += 1;
    }
    unreachable!("an eighth of an index is free");
}

/// Frees a word of an index. Words behind it move back by one, up to a word in its own place.
fn unplace(index: &[Cell<u64>], at: usize) {
    let mask = index.len() - 1;
    let mut at = at;
    for _ in 0..index.len() {
        let next = (at + 1) & mask;
        let word = index[next].get();
        if word == 0 || home(word, mask) == next {
            break;
        }
        index[at].put(word);
        at = next;
    }
    index[at].put(0);
}

/// Keys and values of a [`Map`].
pub struct Iter<'gc, K, V, S = Seeded> {
    of: Map<'gc, K, V, S>,
    next: usize,
}

impl<'gc, K, V, S> Iterator for Iter<'gc, K, V, S>
where
    K: Copy + Eq + Hash + Trace + 'gc,
    V: Copy + Trace + 'gc,
    S: BuildHasher + 'static,
{
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        let entries = self.of.entries()?;
        // Entries that were removed from the front meanwhile are not visited.
        let mut n = (self.next.wrapping_sub(entries.first()) as isize).max(0) as usize;
        loop {
            let entry = entries.get(n)?;
            n += 1;
            self.next = entries.first().wrapping_add(n);
            if entry.is_some() {
                return entry;
            }
        }
    }
}

impl<'gc, K, V, S> IntoIterator for Map<'gc, K, V, S>
where
    K: Copy + Eq + Hash + Trace + 'gc,
    V: Copy + Trace + 'gc,
    S: BuildHasher + 'static,
{
    type Item = (K, V);
    type IntoIter = Iter<'gc, K, V, S>;

    fn into_iter(self) -> Iter<'gc, K, V, S> {
        self.iter()
    }
}

copied!(Map<'_, K, V, S>: K, V, S);

impl<'gc, K, V, S> fmt::Debug for Map<'gc, K, V, S>
where
    K: Copy + Eq + Hash + Trace + fmt::Debug + 'gc,
    V: Copy + Trace + fmt::Debug + 'gc,
    S: BuildHasher + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::printing::print(f, self.0.object(), |f| f.debug_map().entries(*self).finish())
    }
}
