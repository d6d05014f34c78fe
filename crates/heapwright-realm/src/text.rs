//! A string that is being built, in a realm.
//!
//! ```text
//!   StrBuilder --> | header | buffer |   Buffer --> | bytes ..... | room |   doubles when full
//!                                                     ^ never change; new text goes behind
//! ```
//!
//! Text that was added never changes in its buffer. New text goes behind it, and growing or
//! clearing takes another buffer. So text can be lent for the whole mutation, while more is added.

use core::fmt::{self, Write};

use super::copied::copied;
use super::growing::Growing;
use super::mutation::Mutation;
use super::slice::Str;
use super::trace::Trace;
use heapwright_gc::raw::Tracer;

const FIRST: usize = 24;

/// A string that grows, in a realm, shared by all that have a copy of this reference.
///
/// Every method that allocates panics if there is no memory.
///
/// ```
/// # use heapwright::{Rootable, gc::{Realm, StrBuilder}};
/// use core::fmt::Write;
///
/// let mut realm = Realm::<Rootable!['gc => StrBuilder<'gc>]>::new(|mc| StrBuilder::new(mc));
/// realm.mutate(|mc, line| {
///     line.push_str(mc, "one");
///     line.push(mc, ',');
///     write!(line.writer(mc), " {} and {}", 2, 3.5).unwrap();
/// });
/// realm.collect();
/// realm.mutate(|mc, line| {
///     assert_eq!(line.finish(mc), "one, 2 and 3.5");
///     assert!(line.is_empty());
/// });
/// ```
pub struct StrBuilder<'gc>(Growing<'gc, u8>);

impl<'gc> StrBuilder<'gc> {
    /// Creates an empty builder, without memory for text.
    #[must_use]
    pub fn new(mc: &Mutation<'gc>) -> Self {
        Self(Growing::new(mc, None))
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no text.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns whether both references lead to the same builder.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.0.is(other.0)
    }

    /// Returns the current text, without later additions. Constant time.
    #[must_use]
    pub fn as_str(self) -> &'gc str {
        // SAFETY: bytes that were added never change: `push_str` adds behind them.
        let bytes = self.0.buffer().map_or(&[][..], |buffer| unsafe { buffer.as_slice() });
        // SAFETY: the bytes are whole texts, one behind the other.
        unsafe { str::from_utf8_unchecked(bytes) }
    }

    /// Adds text at the end. Linear in its length, amortised.
    pub fn push_str(self, mc: &Mutation<'gc>, text: &str) {
        if !self.0.buffer().is_some_and(|buffer| buffer.extend(mc, text.as_bytes())) {
            let least = self.len().saturating_add(text.len()).max(FIRST);
            let larger = self.0.grow(mc, least.max(self.0.capacity() * 2));
            _ = larger.extend(mc, text.as_bytes());
        }
    }

    /// Adds a character at the end.
    pub fn push(self, mc: &Mutation<'gc>, char: char) {
        self.push_str(mc, char.encode_utf8(&mut [0; 4]));
    }

    /// Returns a writer for `write!`, which adds text at the end. It never fails, but panics if
    /// there is no memory.
    pub fn writer<'a>(self, mc: &'a Mutation<'gc>) -> impl Write + use<'a, 'gc> {
        Writer { to: self, mc }
    }

    /// Forgets the text and its memory. Constant time.
    pub fn clear(self, mc: &Mutation<'gc>) {
        self.0.replace(mc, None);
    }

    /// Returns the text as a string of its own. Linear.
    #[must_use]
    pub fn to_str(self, mc: &Mutation<'gc>) -> Str<'gc> {
        mc.alloc_str(self.as_str())
    }

    /// Does the same as [`StrBuilder::to_str`], and clears the builder.
    #[must_use]
    pub fn finish(self, mc: &Mutation<'gc>) -> Str<'gc> {
        let text = self.to_str(mc);
        self.clear(mc);
        text
    }
}

struct Writer<'a, 'gc> {
    to: StrBuilder<'gc>,
    mc: &'a Mutation<'gc>,
}

impl Write for Writer<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.to.push_str(self.mc, text);
        Ok(())
    }
}

impl<'gc> Mutation<'gc> {
    /// Creates a string with the text of `format_args!`.
    ///
    /// ```
    /// # use heapwright::{Rootable, gc::{Realm, Str}};
    /// type Root = Rootable!['gc => Str<'gc>];
    /// let mut realm = Realm::<Root>::new(|mc| mc.format(format_args!("{} and {}", 1, "two")));
    /// realm.mutate(|_, root| assert_eq!(*root.as_ref(), "1 and two"));
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no memory, or a value's `Display` fails.
    pub fn format(&self, text: fmt::Arguments<'_>) -> Str<'gc> {
        if let Some(text) = text.as_str() {
            return self.alloc_str(text);
        }
        let builder = StrBuilder::new(self);
        builder.writer(self).write_fmt(text).expect("a `Display` failed");
        builder.finish(self)
    }
}

copied!(StrBuilder<'_>);

impl fmt::Debug for StrBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

// SAFETY: its one field is reported.
unsafe impl Trace for StrBuilder<'_> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.0.trace(tracer);
    }
}
