//! Converts fields to bytes and back.
//!
//! One macro, `record!`, defines a struct and both directions at once, so that writer and reader
//! agree about the order. Nothing here panics or indexes: the writer works inside programs that are
//! already in trouble, and the reader may get any bytes.

/// Takes an entry's bytes. Also counts bytes that do not fit, so an empty buffer can measure.
pub(super) struct Sink<'b> {
    buffer: &'b mut [u8],
    at: usize,
    /// The bytes that all fields of variable length may take together.
    room: usize,
}

impl<'b> Sink<'b> {
    pub(super) fn new(buffer: &'b mut [u8], room: usize) -> Self {
        Self { buffer, at: 0, room }
    }

    /// Returns the number of bytes that were put, including those that did not fit.
    pub(super) fn length(&self) -> usize {
        self.at
    }

    // Not inlined into its many callers: calls are rare, and the code should be small.
    #[inline(never)]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        // In two steps, so that the compiler sees that the lengths are equal.
        let rest = self.buffer.get_mut(self.at..);
        if let Some(place) = rest.and_then(|rest| rest.get_mut(..bytes.len())) {
            place.copy_from_slice(bytes);
        }
        self.at = self.at.saturating_add(bytes.len());
    }

    /// Returns the number of items, of `count` items of `size` bytes, for which there is room.
    pub(super) fn grant(&mut self, count: usize, size: usize) -> usize {
        let granted = count.min(self.room / size);
        self.room -= granted * size;
        granted
    }
}

/// The part of a payload from which fields are still to be taken.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    broken: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, broken: false }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.rest.split_at_checked(length);
        let (taken, rest) = taken.unwrap_or_else(|| {
            self.broken = true;
            (&[], &[])
        });
        self.rest = rest;
        (!self.broken).then_some(taken)
    }

    /// Returns a number. Returns zero at the payload's end: an older writer wrote the entry.
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let length = if self.rest.is_empty() { 0 } else { N };
        self.take(length).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }
}

pub(super) trait Field<'a>: Sized {
    fn put(&self, sink: &mut Sink<'_>);
    fn take(cursor: &mut Cursor<'a>) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl<'a> Field<'a> for $type {
            fn put(&self, sink: &mut Sink<'_>) {
                sink.put(&self.to_le_bytes());
            }
            fn take(cursor: &mut Cursor<'a>) -> Self {
                Self::from_le_bytes(cursor.array())
            }
        })*
    };
}

integers!(u8, u16, u32, u64, i64);

macro_rules! record {
    ($(
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? { $( $(#[$field_doc:meta])* $field:ident: $type:ty, )* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name $(<$life>)? {
                $( $(#[$field_doc])* pub $field: $type, )*
            }

            impl<'a> $crate::debug::wire::Field<'a> for $name $(<$life>)? {
                fn put(&self, sink: &mut $crate::debug::wire::Sink<'_>) {
                    $( self.$field.put(sink); )*
                }
                fn take(cursor: &mut $crate::debug::wire::Cursor<'a>) -> Self {
                    // Fields are taken in the order of this list.
                    Self { $( $field: $crate::debug::wire::Field::take(cursor), )* }
                }
            }
        )*
    };
}

pub(super) use record;
