//! A string in an arena.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};
use core::str;

use super::boxed::ArenaRef;
use super::make;
use super::methods::no_room;
use super::vec::ArenaVec;

/// A string in an arena, like `String`. It dereferences to `str`, and grows like an [`ArenaVec`].
/// Its functions end the process if there is no memory or the limit is reached.
///
/// ```
/// use heapwright::arena::{Arena, ArenaString};
/// use heapwright::format_in;
/// use std::fmt::Write;
///
/// let arena = Arena::new();
/// let mut line = ArenaString::from_str_in("GET ", &arena);
/// write!(line, "/{}", 7).unwrap();
/// line.push('\n');
/// assert_eq!(line, "GET /7\n");
/// assert_eq!(format_in!(&arena, "{} of {}", 1, 2), "1 of 2");
/// let kept: &str = line.into_str();
/// assert_eq!(kept.trim_end(), "GET /7");
/// ```
pub struct ArenaString<'a> {
    bytes: ArenaVec<'a, u8>,
}

/// Formats into an [`ArenaString`](crate::arena::ArenaString) of an arena, as `format!` does into a
/// `String`. (`arena.alloc_fmt(format_args!(...))` makes a `&mut str`, in any arena.)
///
/// ```
/// use heapwright::{arena::Arena, format_in};
/// let arena = Arena::new();
/// let mut name = format_in!(&arena, "request-{}", 17);
/// name.push_str(".log");
/// assert_eq!(name, "request-17.log");
/// ```
#[macro_export]
macro_rules! format_in {
    ($arena:expr, $($what:tt)*) => {
        $crate::arena::ArenaString::format_in(::core::format_args!($($what)*), $arena)
    };
}

impl<'a> ArenaString<'a> {
    /// Creates an empty string. Takes no memory yet.
    #[must_use]
    pub fn new_in(arena: impl Into<ArenaRef<'a>>) -> Self {
        Self { bytes: ArenaVec::new_in(arena) }
    }

    /// Creates an empty string with room for `capacity` bytes.
    #[must_use]
    pub fn with_capacity_in(capacity: usize, arena: impl Into<ArenaRef<'a>>) -> Self {
        Self { bytes: ArenaVec::with_capacity_in(capacity, arena) }
    }

    /// Copies a string into an arena. O(bytes).
    #[must_use]
    pub fn from_str_in(from: &str, arena: impl Into<ArenaRef<'a>>) -> Self {
        let mut string = Self::with_capacity_in(from.len(), arena);
        string.push_str(from);
        string
    }

    /// Collects characters.
    ///
    /// ```
    /// use heapwright::arena::{Arena, ArenaString};
    /// let arena = Arena::new();
    /// assert_eq!(ArenaString::from_iter_in("abc".chars().rev(), &arena), "cba");
    /// ```
    #[must_use]
    pub fn from_iter_in(
        from: impl IntoIterator<Item = char>,
        arena: impl Into<ArenaRef<'a>>,
    ) -> Self {
        let mut string = Self::new_in(arena);
        string.extend(from);
        string
    }

    /// Formats into a string; see [`format_in!`](crate::format_in).
    ///
    /// # Panics
    ///
    /// If an implementation of `Display` returns an error.
    #[must_use]
    pub fn format_in(what: fmt::Arguments<'_>, arena: impl Into<ArenaRef<'a>>) -> Self {
        let buffer = make::format(arena.into().0, what).unwrap_or_else(|_| no_room());
        Self { bytes: ArenaVec::of(buffer) }
    }

    /// Returns the arena, for other values.
    #[must_use]
    pub fn arena(&self) -> ArenaRef<'a> {
        self.bytes.arena()
    }

    /// Returns the number of bytes that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes room for `more` bytes.
    pub fn reserve(&mut self, more: usize) {
        self.bytes.reserve(more);
    }

    /// Gives the memory behind the text back if the block is the arena's last one.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Appends a character.
    #[inline]
    pub fn push(&mut self, character: char) {
        if character.is_ascii() {
            self.bytes.push(character as u8);
        } else {
            self.push_str(character.encode_utf8(&mut [0; 4]));
        }
    }

    /// Appends text. O(bytes).
    #[inline]
    pub fn push_str(&mut self, text: &str) {
        self.bytes.extend_from_slice_copy(text.as_bytes());
    }

    /// Removes the last character and returns it.
    pub fn pop(&mut self) -> Option<char> {
        let last = self.chars().next_back()?;
        self.bytes.truncate(self.len() - last.len_utf8());
        Some(last)
    }

    /// Removes the text from byte `length` on.
    ///
    /// # Panics
    ///
    /// If `length` is inside a character.
    pub fn truncate(&mut self, length: usize) {
        assert!(length >= self.len() || self.is_char_boundary(length), "inside a character");
        self.bytes.truncate(length);
    }

    /// Removes all text, and keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Returns the text.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        // SAFETY: only whole characters are appended and cut off.
        unsafe { str::from_utf8_unchecked(&self.bytes) }
    }

    /// Returns the text for as long as the arena is borrowed.
    #[must_use]
    pub fn into_str(self) -> &'a mut str {
        // SAFETY: only whole characters are appended and cut off.
        unsafe { str::from_utf8_unchecked_mut(self.bytes.into_slice()) }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn into_bytes(self) -> ArenaVec<'a, u8> {
        self.bytes
    }
}

impl Deref for ArenaString<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl DerefMut for ArenaString<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut str {
        // SAFETY: only whole characters are appended and cut off, and a `&mut str` keeps UTF-8.
        unsafe { str::from_utf8_unchecked_mut(&mut self.bytes) }
    }
}

impl fmt::Write for ArenaString<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

impl Extend<char> for ArenaString<'_> {
    fn extend<I: IntoIterator<Item = char>>(&mut self, from: I) {
        let from = from.into_iter();
        self.reserve(from.size_hint().0);
        from.for_each(|character| self.push(character));
    }
}

impl<'t> Extend<&'t str> for ArenaString<'_> {
    fn extend<I: IntoIterator<Item = &'t str>>(&mut self, from: I) {
        from.into_iter().for_each(|text| self.push_str(text));
    }
}

impl Clone for ArenaString<'_> {
    fn clone(&self) -> Self {
        Self::from_str_in(self, self.arena())
    }
}

impl AsRef<str> for ArenaString<'_> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl AsRef<[u8]> for ArenaString<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Borrow<str> for ArenaString<'_> {
    fn borrow(&self) -> &str {
        self
    }
}

impl fmt::Debug for ArenaString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for ArenaString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for ArenaString<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ArenaString<'_> {}

impl PartialEq<str> for ArenaString<'_> {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for ArenaString<'_> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialOrd for ArenaString<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ArenaString<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for ArenaString<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
