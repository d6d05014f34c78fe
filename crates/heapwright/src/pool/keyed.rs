//! Keys: an index and a generation, so that a holder notices when its object is gone.
//!
//! ```text
//!   key            63 generation 32 31 index 0
//!   generation     even: no keyed object in the slot      odd: one, of that key
//! ```
//!
//! Generations lie apart from the objects and outlive slots and segments. So a stale key finds an
//! even or a later number, and is refused. After 2^31 keyed objects a slot's generations repeat,
//! and a key that old would be accepted.
//!
//! Only keyed objects have generations, in segments with keys. Handles and pointers cost nothing
//! more.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ptr::NonNull;

use super::Refused;
use super::typed::Pool;

/// Names an object of a [`Pool`] while it lives; afterwards the key is stale.
///
/// A key and an `Option` of it take eight bytes.
pub struct Key<T> {
    index: u32,
    /// The generation, always odd.
    generation: NonZeroU32,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// Returns the object's index in its pool.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Returns the key as a nonzero number, to store it outside Rust.
    ///
    /// ```
    /// use heapwright::pool::{Key, Pool};
    /// let pool = Pool::new();
    /// let key = pool.insert("kept");
    /// assert_eq!(Key::from_bits(key.to_bits()), Some(key));
    /// ```
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// Returns the key of a number from [`Key::to_bits`]. `None`: the number is no key of any pool.
    /// A key of another pool of the same type may find an object of this pool.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) if generation.get() % 2 == 1 => {
                Some(Self { index: bits as u32, generation, of: PhantomData })
            }
            _ => None,
        }
    }
}

impl<T> Pool<T> {
    /// Makes an object with a key. O(1) amortised. Ends the process if there is no memory or the
    /// limit is reached.
    #[inline]
    #[must_use]
    pub fn insert(&self, value: T) -> Key<T> {
        match self.try_insert(value) {
            Ok(key) => key,
            Err(_) => self.no_room(),
        }
    }

    /// Makes an object with a key. O(1) amortised.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<Key<T>, Refused<T>> {
        let Some(slot) = self.alloc() else { return Err(Refused(value)) };
        let wanted = self.with_raw(|raw| raw.store_mut().key_wanted(slot.as_ptr().cast()));
        let Some((index, place)) = wanted else { return self.keyless(slot, value) };
        // SAFETY: the generation of a slot of this pool.
        let generation = unsafe { place.read() } | 1;
        // SAFETY: the generation of a slot of this pool.
        unsafe { place.write(generation) };
        // SAFETY: the slot has the type's size and alignment, and no other code has it.
        unsafe { slot.write(value) };
        let generation = NonZeroU32::new(generation).expect("odd");
        Ok(Key { index, generation, of: PhantomData })
    }

    /// Undoes an insertion for which there was no memory for a generation.
    #[cold]
    #[inline(never)]
    fn keyless<K>(&self, slot: NonNull<T>, value: T) -> Result<K, Refused<T>> {
        // SAFETY: the slot was just taken, and nothing is in it.
        unsafe { self.free(slot) };
        Err(Refused(value))
    }

    /// Returns the object of a key; `None` if the key is stale. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, key: Key<T>) -> Option<&T> {
        // SAFETY: the object is live, and only `&mut self` gives mutable references.
        self.find(key).map(|(object, _)| unsafe { object.as_ref() })
    }

    /// Returns the object of a key, mutable; `None` if the key is stale. O(1).
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        // SAFETY: the object is live, and the pool is borrowed mutably.
        self.find(key).map(|(mut object, _)| unsafe { object.as_mut() })
    }

    /// Removes and returns the object of a key, which becomes stale; `None` if it was stale. O(1).
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
        let (object, place) = self.find(key)?;
        // SAFETY: the generation of a slot of this pool; the key's is odd.
        unsafe { place.write(key.generation.get().wrapping_add(1)) };
        // SAFETY: the object is live; after the read its slot counts as empty.
        let value = unsafe { object.read() };
        // SAFETY: the object was moved out of the slot.
        unsafe { self.free(object) };
        Some(value)
    }

    /// Returns whether a key's object is alive. O(1).
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: Key<T>) -> bool {
        self.find(key).is_some()
    }

    /// Returns the object of a key, and the address of its generation.
    #[inline]
    fn find(&self, key: Key<T>) -> Option<(NonNull<T>, *mut u32)> {
        let (slot, place) = self.with_raw(|raw| raw.store().keyed(key.index))?;
        // SAFETY: `place` is the generation of a slot in this pool's memory.
        if unsafe { place.read() } != key.generation.get() {
            return None;
        }
        // SAFETY: a keyed object lives there, and its address is not null.
        Some((unsafe { NonNull::new_unchecked(slot.cast()) }, place))
    }

    /// Makes the key of a slot stale, if it has one.
    pub(super) fn make_stale(&mut self, segment: usize, slot: usize) {
        let store = self.raw().store();
        if let Some((_, place)) = store.keyed(store.index_of(segment, slot)) {
            // SAFETY: the generation of a slot of this pool.
            let generation = unsafe { place.read() };
            // SAFETY: the generation of a slot of this pool. Even numbers stay.
            unsafe { place.write(generation.wrapping_add(generation & 1)) };
        }
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl<T> Eq for Key<T> {}

impl<T> Hash for Key<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_bits().hash(state);
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} of generation {})", self.index, self.generation.get() / 2)
    }
}

const _: () = assert!(size_of::<Option<Key<u8>>>() == 8);
