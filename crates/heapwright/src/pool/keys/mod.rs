//! The pool of keyed objects: a slot map whose objects do not move.
//!
//! ```text
//!   KeyPool<T, K>        objects by key alone          SecondaryMap<K, V>   values by others' keys
//!          \__________________________ table ____________________________/
//!   table      segments of slots with generations and live bits; the cursor of insertions
//!   iter       iterations: pairs, keys, values, drains
//!   key        Key, RawKey, PoolKey, key_type!
//!   secondary  SecondaryMap
//! ```
//!
//! Called by users, and by `keyed` for the objects of a [`Pool`](super::Pool) with keys.

mod iter;
mod key;
mod secondary;
mod table;

use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ops::{Index, IndexMut};
use core::ptr::NonNull;

use super::store::{Called, Config};
use super::{Refused, Reset, Stats};
use crate::misuse;
use crate::unwinding;
use table::{Form, Table, Walk};

pub use iter::{Drain, IntoIter, Iter, IterMut};
pub use key::{Key, PoolKey, RawKey, key_type};
pub use secondary::SecondaryMap;

/// A pool of objects that are held by keys alone: a slot map whose objects do not move.
///
/// A key finds its object, or notices that the object is gone. Lookups, insertions and removals
/// take constant time, amortised over growth. Growth copies nothing.
///
/// Every object belongs to the pool, so `&KeyPool` can be iterated over, and threads may share it
/// for reading. [`Pool`](super::Pool) mixes keys with handles and pointers, and inserts by `&self`.
///
/// A stale key is recognised until its slot has had 2^31 further objects, or 2^30 if pages were
/// released meanwhile. A key of another pool with the same type of keys may find an object of this
/// pool. [`key_type!`](super::key_type) can make a type for each pool.
///
/// The idea is that of the crate slotmap, with segments instead of a vector.
///
/// ```
/// use heapwright::pool::KeyPool;
///
/// let mut pool = KeyPool::new();
/// let [one, two] = [pool.insert("one"), pool.insert("two")];
/// assert_eq!(pool[one], "one");
/// assert_eq!(pool.remove(one), Some("one"));
/// assert_eq!(pool.get(one), None, "the key is stale");
/// assert_eq!(pool.iter().collect::<Vec<_>>(), [(two, &"two")]);
/// ```
///
/// An object cannot be removed while a reference to it exists:
///
/// ```compile_fail,E0502
/// use heapwright::pool::KeyPool;
/// let mut pool: KeyPool<u32> = KeyPool::new();
/// let key = pool.insert(1);
/// let one = &pool[key];
/// pool.remove(key);
/// assert_eq!(*one, 1);
/// ```
///
/// A reference does not outlive the pool:
///
/// ```compile_fail,E0597
/// use heapwright::pool::KeyPool;
/// let one: &u32;
/// {
///     let mut pool: KeyPool<u32> = KeyPool::new();
///     let key = pool.insert(1);
///     one = &pool[key];
/// }
/// assert_eq!(*one, 1);
/// ```
///
/// Threads share the pool only if they may share its objects:
///
/// ```compile_fail,E0277
/// use heapwright::pool::KeyPool;
/// let pool: KeyPool<core::cell::Cell<u32>> = KeyPool::new();
/// std::thread::scope(|scope| scope.spawn(|| pool.len()).join().unwrap());
/// ```
pub struct KeyPool<T, K: PoolKey = Key<T>> {
    table: Table,
    objects: PhantomData<(T, fn() -> K)>,
}

impl<T> KeyPool<T> {
    /// Creates an empty pool with keys of the type [`Key`]. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_key()
    }

    /// Creates a builder for a pool with a chosen name, limit and kind of pages.
    ///
    /// ```
    /// use heapwright::pool::KeyPool;
    /// let mut pool = KeyPool::<u64>::builder().name("sessions").limit(1).build();
    /// pool.insert(1);
    /// assert_eq!(pool.try_insert(2).unwrap_err().0, 2);
    /// ```
    #[must_use]
    pub const fn builder() -> KeyBuilder<T> {
        KeyBuilder { config: Self::CONFIG, made: PhantomData }
    }
}

impl<T, K: PoolKey> KeyPool<T, K> {
    const FORM: Form = Form::of::<T>();
    const CONFIG: Config = Config::of(Called::Type(core::any::type_name::<T>));

    /// Creates an empty pool with keys of any type. Takes no memory yet.
    ///
    /// ```
    /// use heapwright::pool::{KeyPool, key_type};
    /// key_type! { struct Node; }
    /// let mut nodes: KeyPool<u32, Node> = KeyPool::with_key();
    /// let node: Node = nodes.insert(5);
    /// assert_eq!(nodes[node], 5);
    /// ```
    #[must_use]
    pub const fn with_key() -> Self {
        Self::of(Self::CONFIG)
    }

    pub(super) const fn of(config: Config) -> Self {
        Self { table: Table::new(config), objects: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn no_room(&self) -> ! {
        misuse::no_room("pool ", self.table.name())
    }

    /// Inserts an object. O(1) amortised. Ends the process if there is no memory, or at the limit.
    #[inline]
    pub fn insert(&mut self, value: T) -> K {
        let Some(vacant) = self.table.vacant(Self::FORM) else { self.no_room() };
        // SAFETY: the slot has the type's size and alignment, and no object.
        unsafe { vacant.slot.cast::<T>().write(value) };
        // SAFETY: the table did not change since it returned the slot, and the object is written.
        unsafe { self.table.occupy(&vacant) };
        vacant.key.into()
    }

    /// Inserts an object. O(1) amortised.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_insert(&mut self, value: T) -> Result<K, Refused<T>> {
        let Some(vacant) = self.table.vacant(Self::FORM) else { return Err(Refused(value)) };
        // SAFETY: the slot has the type's size and alignment, and no object.
        unsafe { vacant.slot.cast::<T>().write(value) };
        // SAFETY: the table did not change since it returned the slot, and the object is written.
        unsafe { self.table.occupy(&vacant) };
        Ok(vacant.key.into())
    }

    /// Inserts the object that `make` makes from its own key. See [`KeyPool::insert`].
    ///
    /// ```
    /// use heapwright::pool::{Key, KeyPool};
    /// struct Node { this: Key<Node> }
    /// let mut pool = KeyPool::new();
    /// let key = pool.insert_with_key(|this| Node { this });
    /// assert!(pool[key].this == key);
    /// ```
    #[inline]
    pub fn insert_with_key(&mut self, make: impl FnOnce(K) -> T) -> K {
        let Some(vacant) = self.table.vacant(Self::FORM) else { self.no_room() };
        let value = make(vacant.key.into());
        // SAFETY: the slot has the type's size and alignment, and no object.
        unsafe { vacant.slot.cast::<T>().write(value) };
        // SAFETY: the table did not change since it returned the slot, and the object is written.
        unsafe { self.table.occupy(&vacant) };
        vacant.key.into()
    }

    /// Returns the object of a key, or `None` if the key is stale. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, key: K) -> Option<&T> {
        let found = self.table.find(Self::FORM, key.raw())?;
        // SAFETY: the slot holds an object, and the pool is borrowed.
        Some(unsafe { &*found.slot.cast::<T>() })
    }

    /// Returns the object of a key, mutable, or `None` if the key is stale. O(1).
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let found = self.table.find(Self::FORM, key.raw())?;
        // SAFETY: the slot holds an object, and the pool is borrowed mutably.
        Some(unsafe { &mut *found.slot.cast::<T>() })
    }

    /// Returns the objects of several keys, mutable. `None` if a key is stale, or is there twice.
    ///
    /// ```
    /// use heapwright::pool::KeyPool;
    /// let mut pool = KeyPool::new();
    /// let (a, b) = (pool.insert(1), pool.insert(2));
    /// let [one, two] = pool.get_disjoint_mut([a, b]).unwrap();
    /// std::mem::swap(one, two);
    /// assert_eq!((pool[a], pool[b]), (2, 1));
    /// assert!(pool.get_disjoint_mut([a, b, a]).is_none());
    /// ```
    #[must_use]
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut T; N]> {
        let objects = disjoint(&mut self.table, Self::FORM, keys.map(Into::into))?;
        // SAFETY: different slots with objects, and the pool is borrowed mutably.
        Some(objects.map(|slot| unsafe { &mut *slot.cast::<T>() }))
    }

    /// Removes and returns the object of a key, which becomes stale. `None` if it was stale. O(1).
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<T> {
        let found = self.table.find(Self::FORM, key.raw())?;
        // SAFETY: the object was just found, and is only moved out below.
        unsafe { self.table.vacate(Self::FORM, found) };
        // SAFETY: the slot held an object, and counts as empty now.
        Some(unsafe { found.slot.cast::<T>().read() })
    }

    /// Returns whether a key's object is alive. O(1).
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: K) -> bool {
        self.table.find(Self::FORM, key.raw()).is_some()
    }

    /// Returns the key of an object of this pool, or `None` if the object is not in it. O(1).
    ///
    /// ```
    /// use heapwright::pool::KeyPool;
    /// let mut pool = KeyPool::new();
    /// let key = pool.insert(7);
    /// assert_eq!(pool.key_of(&pool[key]), Some(key));
    /// assert_eq!(pool.key_of(&7), None);
    /// ```
    #[must_use]
    pub fn key_of(&self, object: &T) -> Option<K> {
        self.table.at(Self::FORM, core::ptr::from_ref(object).addr()).map(Into::into)
    }

    /// Returns the number of objects. O(1).
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether the pool has no object.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of objects that the pool has memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Reserves memory for `count` more objects; `touch` also makes its pages resident now. Returns
    /// false if there is no memory or the limit is reached.
    pub fn preheat(&mut self, count: usize, touch: bool) -> bool {
        let count = self.len().saturating_add(count);
        self.table.preheat(Self::FORM, count, touch)
    }

    /// Gives every page without an object back to the kernel now. Returns the number of bytes.
    pub fn trim(&mut self) -> usize {
        self.table.trim(Self::FORM)
    }

    /// Returns statistics of the pool.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.table.stats(Self::FORM)
    }

    /// Returns whether an address lies in this pool's memory. Any address is allowed. O(1).
    #[must_use]
    pub fn contains(&self, object: *const T) -> bool {
        self.table.segment_of(Self::FORM, object.addr()).is_some()
    }

    /// Drops all objects in index order and keeps the memory. All keys become stale for good.
    ///
    /// # Panics
    ///
    /// If a destructor panics; see [`Pool::reset`](super::Pool::reset).
    pub fn clear(&mut self) {
        self.reset(Reset::RetainCapacity);
    }

    /// Drops all objects as [`KeyPool::clear`] does, and keeps as much memory as `how` says.
    ///
    /// # Panics
    ///
    /// As [`KeyPool::clear`].
    pub fn reset(&mut self, how: Reset) {
        self.finish(Some(how));
    }

    fn finish(&mut self, how: Option<Reset>) {
        let mut ending = Ending { pool: self, walk: Walk::new(Self::FORM), how };
        ending.drop_live();
        drop(ending);
        unwinding::surface();
    }

    /// Removes the objects for which a function returns false, in the order of their indexes.
    ///
    /// ```
    /// use heapwright::pool::KeyPool;
    /// let mut pool = KeyPool::new();
    /// let keys = [1, 2, 3, 4].map(|n| pool.insert(n));
    /// pool.retain(|_, n| *n % 2 == 0);
    /// assert_eq!(keys.map(|key| pool.contains_key(key)), [false, true, false, true]);
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut T) -> bool) {
        let mut walk = Walk::new(Self::FORM);
        while let Some(found) = walk.next(&self.table, Self::FORM) {
            // SAFETY: the slot holds an object, and the pool is borrowed mutably.
            let object = unsafe { &mut *found.slot.cast::<T>() };
            if !keep(found.key().into(), object) {
                // SAFETY: the walk just found the object, the pool stayed borrowed meanwhile, and
                // the object is only dropped below.
                unsafe { self.table.vacate(Self::FORM, found) };
                // SAFETY: the slot held an object, and counts as empty now.
                unsafe { found.slot.cast::<T>().drop_in_place() };
            }
        }
    }

    /// Removes all objects and iterates over them with their keys, which become stale. Dropping the
    /// iterator drops the remaining objects. The memory stays.
    ///
    /// ```
    /// use heapwright::pool::KeyPool;
    /// let mut pool = KeyPool::new();
    /// let key = pool.insert(1);
    /// assert_eq!(pool.drain().collect::<Vec<_>>(), [(key, 1)]);
    /// assert!(pool.is_empty());
    /// ```
    pub fn drain(&mut self) -> Drain<'_, T, K> {
        Drain { walk: Walk::new(Self::FORM), pool: self }
    }

    fn take_next(&mut self, walk: &mut Walk) -> Option<(K, T)> {
        let found = walk.next(&self.table, Self::FORM)?;
        let key = found.key();
        // SAFETY: the object was just found, and is only moved out below.
        unsafe { self.table.vacate(Self::FORM, found) };
        // SAFETY: the slot held an object, and counts as empty now.
        Some((key.into(), unsafe { found.slot.cast::<T>().read() }))
    }

    /// Iterates over keys and objects in the order of their indexes. Takes time in proportion to
    /// the objects, and to a 64th of the slots that were used.
    ///
    /// ```
    /// use heapwright::pool::KeyPool;
    /// let mut pool = KeyPool::new();
    /// let (a, b) = (pool.insert(10), pool.insert(20));
    /// assert_eq!(pool.iter().collect::<Vec<_>>(), [(a, &10), (b, &20)]);
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T, K> {
        Iter { table: &self.table, walk: Walk::new(Self::FORM), left: self.len(), of: PhantomData }
    }

    /// Iterates over keys and objects, mutable; see [`KeyPool::iter`].
    ///
    /// ```
    /// use heapwright::pool::KeyPool;
    /// let mut pool = KeyPool::new();
    /// let key = pool.insert(10);
    /// for (_, object) in &mut pool { *object += 1; }
    /// assert_eq!(pool[key], 11);
    /// ```
    #[must_use]
    pub fn iter_mut(&mut self) -> IterMut<'_, T, K> {
        let left = self.len();
        IterMut { table: &self.table, walk: Walk::new(Self::FORM), left, of: PhantomData }
    }

    /// Iterates over the keys; see [`KeyPool::iter`].
    pub fn keys(&self) -> impl ExactSizeIterator<Item = K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the objects; see [`KeyPool::iter`].
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.iter().map(|(_, object)| object)
    }

    /// Iterates over the objects, mutable; see [`KeyPool::iter`].
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.iter_mut().map(|(_, object)| object)
    }

    /// Returns the next key and object of an iteration. The pool may insert between two calls.
    pub(super) fn next_pair(&self, walk: &mut Steps) -> Option<(K, NonNull<T>)> {
        let found = walk.0.next(&self.table, Self::FORM)?;
        Some((found.key().into(), NonNull::new(found.slot.cast())?))
    }

    pub(super) const fn steps() -> Steps {
        Steps(Walk::new(Self::FORM))
    }
}

#[derive(Clone)]
pub(super) struct Steps(Walk);

fn disjoint<const N: usize>(
    table: &mut Table,
    form: Form,
    keys: [RawKey; N],
) -> Option<[*mut u8; N]> {
    let mut all = [None; N];
    let mut found = 0;
    for key in keys {
        let Some(one) = table.find(form, key) else { break };
        // Hides the object, so that a second search for the same key fails.
        // SAFETY: the object was just found, and is shown again below.
        unsafe { table.hide(one, true) };
        all[found] = Some(one);
        found += 1;
    }
    for &one in all.iter().flatten() {
        // SAFETY: the object was hidden above, and nothing but searches happened meanwhile.
        unsafe { table.hide(one, false) };
    }
    if found < N {
        return None;
    }
    Some(all.map(|one| one.map_or(core::ptr::null_mut(), |one| one.slot)))
}

/// A reset in progress. Its drop completes the reset even if a destructor panics.
struct Ending<'p, T, K: PoolKey> {
    pool: &'p mut KeyPool<T, K>,
    walk: Walk,
    /// The memory to keep, or `None` if the pool ends.
    how: Option<Reset>,
}

impl<T, K: PoolKey> Ending<'_, T, K> {
    fn drop_live(&mut self) {
        while mem::needs_drop::<T>()
            && let Some(found) = self.walk.next(&self.pool.table, KeyPool::<T, K>::FORM)
        {
            unwinding::caught(|| {
                // SAFETY: the slot holds an object, and the walk does not return to it.
                unsafe { found.slot.cast::<T>().drop_in_place() };
            });
        }
    }
}

impl<T, K: PoolKey> Drop for Ending<'_, T, K> {
    fn drop(&mut self) {
        self.drop_live();
        match self.how {
            Some(how) => self.pool.table.reset(KeyPool::<T, K>::FORM, how),
            None => self.pool.table.end(KeyPool::<T, K>::FORM),
        }
    }
}

impl<T, K: PoolKey> Drop for KeyPool<T, K> {
    fn drop(&mut self) {
        self.finish(None);
    }
}

impl<T, K: PoolKey> Default for KeyPool<T, K> {
    fn default() -> Self {
        Self::with_key()
    }
}

impl<T: fmt::Debug, K: PoolKey> fmt::Debug for KeyPool<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Panics if the key is stale.
impl<T, K: PoolKey> Index<K> for KeyPool<T, K> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, key: K) -> &T {
        self.get(key).unwrap_or_else(|| stale(key.raw()))
    }
}

/// Panics if the key is stale.
impl<T, K: PoolKey> IndexMut<K> for KeyPool<T, K> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, key: K) -> &mut T {
        self.get_mut(key).unwrap_or_else(|| stale(key.raw()))
    }
}

#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn stale(key: RawKey) -> ! {
    panic!("the key is stale: {key:?}")
}

/// Settings of a new [`KeyPool`].
pub struct KeyBuilder<T> {
    config: Config,
    made: PhantomData<fn() -> T>,
}

super::builder_choices!(KeyBuilder<T>);

impl<T> KeyBuilder<T> {
    /// Makes the pool, which is empty, with keys of the type [`Key`].
    #[must_use]
    pub const fn build(self) -> KeyPool<T> {
        self.build_with_key()
    }

    /// Makes the pool, which is empty, with keys of any type.
    #[must_use]
    pub const fn build_with_key<K: PoolKey>(self) -> KeyPool<T, K> {
        KeyPool::of(self.config)
    }
}

#[cfg(test)]
mod tests;
