//! Keys: an index and a generation, so that a holder notices when its object is gone.
//!
//! ```text
//!   key            63 generation 32 31 index 0          null has the last index and generation 1
//!   generation     even: no object in the slot          odd: the generation of the object's key
//! ```
//!
//! A key's generation is odd, so it is never zero, and an `Option` of a key takes eight bytes. No
//! object has the last index, so the null key finds none.
//!
//! Called by the other files of this folder, by `keyed` and by `shared`.

#![forbid(unsafe_code)]

use core::cmp;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::num::NonZeroU32;

/// A key without its type: an index and an odd generation.
///
/// ```
/// use heapwright::pool::{KeyPool, PoolKey, RawKey};
/// let mut pool = KeyPool::new();
/// let raw: RawKey = pool.insert('a').raw();
/// assert_eq!((raw.index(), raw.generation()), (0, 1));
/// assert_eq!(RawKey::from_bits(raw.to_bits()), Some(raw));
/// ```
#[derive(Clone, Copy)]
pub struct RawKey {
    index: u32,
    /// Always odd.
    generation: NonZeroU32,
}

const _: () = assert!(size_of::<Option<RawKey>>() == 8);

impl RawKey {
    /// The key that never names an object.
    pub const NULL: Self = Self { index: u32::MAX, generation: NonZeroU32::MIN };

    /// Returns the key of an index and a generation. An even generation becomes odd.
    #[inline(always)]
    pub(in crate::pool) const fn of(index: u32, generation: u32) -> Self {
        match NonZeroU32::new(generation | 1) {
            Some(generation) => Self { index, generation },
            None => Self::NULL,
        }
    }

    /// Returns the object's index in its pool.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Returns the generation, an odd number. Each object has a higher generation than the object
    /// that had this index before, until the numbers wrap.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation.get()
    }

    /// Returns the key as a nonzero number, to store it outside Rust.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// Returns the key of a number from [`RawKey::to_bits`]. `None` if no pool has such a key.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) if generation.get() % 2 == 1 => {
                Some(Self { index: bits as u32, generation })
            }
            _ => None,
        }
    }
}

impl Default for RawKey {
    fn default() -> Self {
        Self::NULL
    }
}

impl PartialEq for RawKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl Eq for RawKey {}

impl PartialOrd for RawKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders keys by index, then by generation.
impl Ord for RawKey {
    #[inline]
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.to_bits().rotate_left(32).cmp(&other.to_bits().rotate_left(32))
    }
}

impl Hash for RawKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_bits().hash(state);
    }
}

impl fmt::Debug for RawKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NULL {
            return f.write_str("Key(null)");
        }
        write!(f, "Key({} of generation {})", self.index, self.generation.get() / 2)
    }
}

/// A type of keys: [`Key`], or a type that [`key_type!`](crate::pool::key_type) makes.
///
/// If each pool has keys of its own type, the compiler refuses a key of another pool.
pub trait PoolKey:
    Copy + Eq + Ord + Hash + Default + fmt::Debug + From<RawKey> + Into<RawKey>
{
    /// Returns the key without its type.
    #[inline]
    fn raw(self) -> RawKey {
        self.into()
    }

    /// Returns the key that never names an object, as `default()` does.
    ///
    /// ```
    /// use heapwright::pool::{Key, KeyPool, PoolKey};
    /// let pool: KeyPool<u32> = KeyPool::new();
    /// assert!(Key::<u32>::null().is_null() && !pool.contains_key(Key::default()));
    /// ```
    #[inline]
    #[must_use]
    fn null() -> Self {
        RawKey::NULL.into()
    }

    /// Returns whether this is the null key.
    #[inline]
    fn is_null(self) -> bool {
        self.raw() == RawKey::NULL
    }
}

/// Names an object of a [`Pool`](crate::pool::Pool), a [`KeyPool`](crate::pool::KeyPool) or a
/// [`SharedPool`](crate::pool::SharedPool) while the object lives. Afterwards the key is stale.
///
/// A key and an `Option` of it take eight bytes. Keys are ordered by their index. The default key
/// is null: it never names an object.
pub struct Key<T> {
    raw: RawKey,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// Returns the object's index in its pool.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.raw.index
    }

    /// Returns the key as a nonzero number, to store it outside Rust.
    ///
    /// ```
    /// use heapwright::pool::{Key, Pool};
    /// let pool = Pool::new();
    /// let key = pool.insert("kept");
    /// assert_eq!(Key::from_bits(key.to_bits()), Some(key));
    /// ```
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.raw.to_bits()
    }

    /// Returns the key of a number from [`Key::to_bits`]. `None` if no pool has such a key.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match RawKey::from_bits(bits) {
            Some(raw) => Some(Self { raw, of: PhantomData }),
            None => None,
        }
    }
}

impl<T> From<RawKey> for Key<T> {
    #[inline]
    fn from(raw: RawKey) -> Self {
        Self { raw, of: PhantomData }
    }
}

impl<T> From<Key<T>> for RawKey {
    #[inline]
    fn from(key: Key<T>) -> Self {
        key.raw
    }
}

impl<T> PoolKey for Key<T> {}

impl<T> Clone for Key<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> Default for Key<T> {
    fn default() -> Self {
        RawKey::NULL.into()
    }
}

impl<T> PartialEq for Key<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<T> Eq for Key<T> {}

impl<T> PartialOrd for Key<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Key<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.raw.cmp(&other.raw)
    }
}

impl<T> Hash for Key<T> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// Defines types of keys. Each is a [`PoolKey`](crate::pool::PoolKey) of its own, so the compiler
/// refuses a key of another type.
///
/// ```
/// use heapwright::pool::{KeyPool, PoolKey, SecondaryMap, key_type};
///
/// key_type! {
///     /// Names a player.
///     pub struct Player;
///     struct Item;
/// }
///
/// let mut players: KeyPool<&str, Player> = KeyPool::with_key();
/// let mut items: KeyPool<&str, Item> = KeyPool::with_key();
/// let mut holds: SecondaryMap<Player, Item> = SecondaryMap::new();
/// let ann = players.insert("Ann");
/// holds.insert(ann, items.insert("lamp"));
/// assert_eq!(items[holds[ann]], "lamp");
/// assert!(Item::default().is_null());
/// ```
///
/// ```compile_fail,E0308
/// use heapwright::pool::{KeyPool, key_type};
/// key_type! { struct Player; struct Item; }
/// let mut players: KeyPool<&str, Player> = KeyPool::with_key();
/// let items: KeyPool<&str, Item> = KeyPool::with_key();
/// let ann = players.insert("Ann");
/// let _ = items.get(ann);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __heapwright_key_type {
    ($($(#[$attribute:meta])* $visibility:vis struct $name:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $visibility struct $name($crate::pool::RawKey);

        impl ::core::convert::From<$crate::pool::RawKey> for $name {
            #[inline]
            fn from(raw: $crate::pool::RawKey) -> Self {
                Self(raw)
            }
        }

        impl ::core::convert::From<$name> for $crate::pool::RawKey {
            #[inline]
            fn from(key: $name) -> Self {
                key.0
            }
        }

        impl $crate::pool::PoolKey for $name {}
    )*};
}
#[doc(inline)]
pub use crate::__heapwright_key_type as key_type;
