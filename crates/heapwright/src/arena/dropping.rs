//! The arena that drops its values.
//!
//! ```text
//!   last --> { drop function, address, count, previous entry } --> ... --> null
//! ```
//!
//! The entries lie in the arena beside the values; only types that need dropping get one. Values
//! are dropped in the reverse order of their making, like a function's variables.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::{self, NonNull};

use super::local::Arena;
use super::methods::{no_room, put};
use crate::refused::Refused;
use crate::unwinding;

/// Values to drop.
struct Entry {
    before: *mut Entry,
    drop: unsafe fn(NonNull<u8>, usize),
    values: NonNull<u8>,
    count: usize,
}

/// An [`Arena`] that drops its values, the last made first, when it is reset or dropped.
///
/// A value that needs dropping costs four more words; other values cost nothing more. Values may
/// borrow from data that outlives the arena.
///
/// ```
/// use heapwright::arena::DropArena;
/// let mut arena = DropArena::new();
/// let text = arena.alloc(String::from("on the heap"));
/// text.push_str(", and freed");
/// arena.reset();
/// ```
///
/// ```compile_fail,E0597
/// use heapwright::arena::DropArena;
/// struct Prints<'a>(&'a str);
/// impl Drop for Prints<'_> {
///     fn drop(&mut self) { println!("{}", self.0) }
/// }
/// let arena = DropArena::new();
/// let text = String::from("gone before the arena");
/// arena.alloc(Prints(&text));
/// ```
pub struct DropArena<'a> {
    arena: Arena,
    last: Cell<*mut Entry>,
    /// The arena drops values that may borrow for `'a`.
    holds: PhantomData<Cell<&'a ()>>,
}

unsafe fn drop_all<T>(values: NonNull<u8>, count: usize) {
    // SAFETY: the entry's values are initialised, and each entry runs once.
    unsafe { unwinding::drop_each(values.cast::<T>().as_ptr(), count) };
}

impl<'a> DropArena<'a> {
    /// Creates an empty arena. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { arena: Arena::new(), last: Cell::new(ptr::null_mut()), holds: PhantomData }
    }

    /// Moves a value into the arena. O(1) amortised. Ends the process if there is no memory.
    #[inline]
    pub fn alloc<T: 'a>(&self, value: T) -> &mut T {
        match self.try_alloc(value) {
            Ok(value) => value,
            Err(_) => no_room(),
        }
    }

    /// Moves a value into the arena. O(1) amortised.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "memory that nobody else has")]
    pub fn try_alloc<T: 'a>(&self, value: T) -> Result<&mut T, Refused<T>> {
        if !mem::needs_drop::<T>() {
            return self.arena.try_alloc(value);
        }
        let (layout, entry) = (Layout::new::<T>(), Layout::new::<Entry>());
        let (Some(at), Some(entry)) = (self.arena.core.place(layout), self.arena.core.place(entry))
        else {
            return Err(Refused(value));
        };
        // SAFETY: the memory has the type's layout, and no other code has it.
        let value = unsafe { put(at, value) };
        let what = Entry { before: self.last.get(), drop: drop_all::<T>, values: at, count: 1 };
        // SAFETY: the memory has an entry's layout, and no other code has it.
        self.last.set(unsafe { put(entry, what) });
        Ok(value)
    }

    /// Collects an iterator into a slice in the arena. If the iterator panics, the elements before
    /// are not dropped.
    #[expect(clippy::mut_from_ref, reason = "memory that nobody else has")]
    pub fn alloc_slice_fill_iter<T: 'a, I>(&self, from: I) -> &mut [T]
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: ExactSizeIterator,
    {
        let Some(entry) = self.arena.core.place(Layout::new::<Entry>()) else { no_room() };
        let values = self.arena.alloc_slice_fill_iter(from);
        let count = values.len();
        // The entry and the result come from one pointer: a pointer made from a reference that is
        // used afterwards would be invalid.
        let first = NonNull::from(values).cast::<T>();
        if mem::needs_drop::<T>() {
            let (before, values) = (self.last.get(), first.cast());
            let what = Entry { before, drop: drop_all::<T>, values, count };
            // SAFETY: the memory has an entry's layout, and no other code has it.
            self.last.set(unsafe { put(entry, what) });
        }
        // SAFETY: `first` and `count` are the slice that was just made.
        unsafe { core::slice::from_raw_parts_mut(first.as_ptr(), count) }
    }

    /// Drops all values, the last made first, and keeps all chunks.
    ///
    /// # Panics
    ///
    /// If a destructor panics, the others still run and the arena is empty before that panic
    /// continues. If several panic, the first one continues. Without the feature `std` a second
    /// panic ends the process.
    pub fn reset(&mut self) {
        struct Remaining<'r>(&'r Arena, &'r Cell<*mut Entry>);
        impl Remaining<'_> {
            fn run(&self) {
                // SAFETY: the pointer is null or an entry of the arena, valid until the reset
                // below.
                while let Some(entry) = unsafe { self.1.get().as_ref() } {
                    self.1.set(entry.before);
                    // SAFETY: the entry leaves the list, so its values are dropped once.
                    unsafe { (entry.drop)(entry.values, entry.count) };
                }
            }
        }
        impl Drop for Remaining<'_> {
            fn drop(&mut self) {
                // Drops the remaining values, if a destructor panicked.
                self.run();
                self.0.core.reset();
            }
        }
        // `Remaining` is dropped at the end of the statement, also during a panic.
        Remaining(&self.arena, &self.last).run();
        unwinding::surface();
    }

    /// Returns unused memory to the kernel now. Returns the number of bytes.
    pub fn trim(&mut self) -> usize {
        self.arena.trim()
    }

    /// See [`Arena::used_bytes`].
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.arena.used_bytes()
    }

    /// See [`Arena::reserved_bytes`].
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.arena.reserved_bytes()
    }
}

impl Default for DropArena<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DropArena<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DropArena").field(&self.arena).finish()
    }
}

impl Drop for DropArena<'_> {
    fn drop(&mut self) {
        self.reset();
    }
}
