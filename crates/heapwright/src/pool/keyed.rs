//! Keys: an index and a generation, for objects that come and go while somebody
//! still remembers them.
//!
//! ```text
//!   key            63 generation 32 31 index 0
//!   generation     even: no keyed object in the slot      odd: one, of that key
//! ```
//!
//! Generations lie apart from the objects and stay when slots and segments go, so
//! a stale key meets an even or a later number, and is refused. A slot that had
//! 2^31 keyed objects begins again; a key that old would be believed.
//!
//! Only keyed objects have generations, in segments where somebody asked for a key:
//! those who hold objects by handles or pointers pay nothing.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ptr::NonNull;

use super::policy::FreeList;
use super::store::Walk;
use super::typed::Pool;
use super::Refused;
use crate::misuse;

/// Names an object of a [`Pool`] for as long as it lives, and nothing afterwards.
///
/// Eight bytes, and so is an `Option` of it.
pub struct Key<T> {
    index: u32,
    /// Odd.
    generation: NonZeroU32,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// The object's index in its pool.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The key as a number, for where only numbers go. Never 0.
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

    /// The key of a number that [`Key::to_bits`] made. `None` for what is no key of
    /// any pool; what is none of this pool finds nothing there.
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

impl<T, F: FreeList> Pool<T, F> {
    /// Makes an object that is held by a key.
    #[must_use]
    pub fn insert(&self, value: T) -> Key<T> {
        match self.try_insert(value) {
            Ok(key) => key,
            Err(_) => misuse::no_room("pool ", self.with_raw(|raw| raw.store().name())),
        }
    }

    /// Makes an object that is held by a key.
    ///
    /// # Errors
    ///
    /// The value, where there is no memory or the limit is reached.
    pub fn try_insert(&self, value: T) -> Result<Key<T>, Refused<T>> {
        let Some(slot) = self.alloc() else { return Err(Refused(value)) };
        let Some((index, generation)) = self.with_raw(|raw| {
            let store = raw.store_mut();
            let index = store.index_of_own(slot.as_ptr().cast())?;
            let place = store.key_wanted(index)?;
            // SAFETY: the generation of a slot of this pool.
            let generation = unsafe { place.read() } | 1;
            // SAFETY: as above.
            unsafe { place.write(generation) };
            Some((index, generation))
        }) else {
            // SAFETY: the slot was just taken, and nothing is in it.
            unsafe { self.free(slot) };
            return Err(Refused(value));
        };
        // SAFETY: a slot of the type's size and alignment, and ours alone.
        unsafe { slot.write(value) };
        let generation = NonZeroU32::new(generation).expect("odd");
        Ok(Key { index, generation, of: PhantomData })
    }

    /// The object of a key; nothing for a stale one. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, key: Key<T>) -> Option<&T> {
        // SAFETY: the object is live, and changed through `&mut self` alone.
        self.find(key).map(|object| unsafe { object.as_ref() })
    }

    /// The object of a key, to be changed; nothing for a stale one. O(1).
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        // SAFETY: the object is live, and the pool is borrowed alone.
        self.find(key).map(|mut object| unsafe { object.as_mut() })
    }

    /// Takes the object of a key out; nothing for a stale one. The key is stale
    /// from now on. O(1).
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
    pub fn remove(&mut self, key: Key<T>) -> Option<T> {
        let object = self.find(key)?;
        let place = self.raw().store().key(key.index)?;
        // SAFETY: the generation of a slot of this pool; the key's is odd.
        unsafe { place.write(key.generation.get().wrapping_add(1)) };
        // SAFETY: the object is live, and nobody's from here on.
        let value = unsafe { object.read() };
        // SAFETY: what was in the slot is gone.
        unsafe { self.free(object) };
        Some(value)
    }

    /// Whether a key names an object. O(1).
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: Key<T>) -> bool {
        self.find(key).is_some()
    }

    #[inline]
    fn find(&self, key: Key<T>) -> Option<NonNull<T>> {
        self.with_raw(|raw| {
            let store = raw.store();
            let place = store.key(key.index)?;
            // SAFETY: the generation of a slot that this pool may have.
            if unsafe { place.read() } != key.generation.get() {
                return None;
            }
            NonNull::new(store.slot_of(key.index).cast())
        })
    }

    /// Makes the key of a slot stale, if it has one.
    pub(super) fn make_stale(&mut self, segment: usize, slot: usize) {
        let store = self.raw().store();
        if let Some(place) = store.key(store.index_of(segment, slot)) {
            // SAFETY: the generation of a slot of this pool.
            let generation = unsafe { place.read() };
            // SAFETY: as above. Even numbers stay.
            unsafe { place.write(generation.wrapping_add(generation & 1)) };
        }
    }

    /// Checked builds: says how many objects are live that no key holds. Keyed ones
    /// are the pool's own.
    pub(super) fn report_live(&mut self) {
        let raw = self.raw();
        raw.settle();
        let (mut walk, mut count) = (Walk::default(), 0);
        while let Some((segment, slot)) = raw.store().next_out(&mut walk) {
            let store = raw.store();
            let place = store.key(store.index_of(segment, slot));
            // SAFETY: the generation of a slot of this pool.
            let keyed = place.is_some_and(|place| unsafe { place.read() } & 1 != 0);
            count += usize::from(!keyed);
        }
        if count > 0 {
            misuse::live_at_end(raw.store().id(), count, size_of::<T>());
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
