//! The arena that drops its values, and scopes in it.
//!
//! ```text
//!   last --> { before, drop | value } --> { before, drop, address, count } --> null
//!              a value, beside its note     elements, noted before they are made
//! ```
//!
//! The notes lie in the arena. Only values of types that need dropping get one. Values are dropped
//! in reverse order. A scope's end goes back to the last note and position before the scope.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, MaybeUninit, offset_of};
use core::ptr::{self, NonNull};

use super::local::{Core, Mark};
use super::make::{self, Memory};
use super::methods::{allocating, no_room, with_error};
use crate::refused::Refused;
use crate::unwinding;

/// The head of a record of values to drop.
struct Note {
    before: *mut Note,
    drop: unsafe fn(NonNull<Note>),
}

#[repr(C)]
struct One<T> {
    note: Note,
    value: T,
}

#[repr(C)]
pub(crate) struct Elements {
    note: Note,
    first: NonNull<u8>,
    count: usize,
}

/// Drops the value of a note.
///
/// # Safety
///
/// The note is that of a [`One`]. Its value is written and was not dropped.
unsafe fn drop_one<T>(note: NonNull<Note>) {
    let value = note.cast::<u8>().as_ptr().wrapping_add(offset_of!(One<T>, value));
    // SAFETY: by the contract the value is initialised and is dropped once.
    unsafe { unwinding::drop_each(value.cast::<T>(), 1) };
}

/// Drops the elements of a note.
///
/// # Safety
///
/// The note is that of [`Elements`] of this type. The elements are written and were not dropped.
unsafe fn drop_elements<T>(note: NonNull<Note>) {
    // SAFETY: by the contract the note belongs to elements.
    let Elements { first, count, .. } = unsafe { note.cast::<Elements>().as_ref() };
    // SAFETY: by the contract the elements are initialised and are dropped once.
    unsafe { unwinding::drop_each(first.cast::<T>().as_ptr(), *count) };
}

pub(crate) struct Dropping {
    core: Core,
    last: Cell<*mut Note>,
}

impl Dropping {
    /// Links a note.
    ///
    /// # Safety
    ///
    /// `at` has room for a note, in this memory, and no other code has this room. The record behind
    /// the note is of the kind that `drop` reads. Its values are written, and no other code drops
    /// them.
    #[inline(always)]
    unsafe fn link(&self, at: NonNull<Note>, drop: unsafe fn(NonNull<Note>)) {
        // SAFETY: by the contract there is room for a note that no other code has.
        unsafe { at.write(Note { before: self.last.get(), drop }) };
        self.last.set(at.as_ptr());
    }

    /// Drops the values noted since `last`, then calls `back`, even if a destructor panics.
    fn drop_to(&self, last: *mut Note, back: impl Fn(&Core)) {
        struct Remaining<'d, F: Fn(&Core)>(&'d Dropping, *mut Note, F);
        impl<F: Fn(&Core)> Remaining<'_, F> {
            fn run(&self) {
                while self.0.last.get() != self.1
                    && let Some(at) = NonNull::new(self.0.last.get())
                {
                    // SAFETY: the list leads to notes of the arena, valid until `back` below.
                    let Note { before, drop } = unsafe { at.as_ref() };
                    self.0.last.set(*before);
                    // SAFETY: the caller of `link` promises that `drop` fits this note's record.
                    // The note left the list, so its values are dropped once.
                    unsafe { drop(at) };
                }
            }
        }
        impl<F: Fn(&Core)> Drop for Remaining<'_, F> {
            fn drop(&mut self) {
                self.run();
                (self.2)(&self.0.core);
            }
        }
        // `Remaining` is dropped at the end of the statement, also during a panic.
        Remaining(self, last, back).run();
        unwinding::surface();
    }

    fn in_scope<'a, R>(&self, run: impl FnOnce(&mut DropScope<'_, 'a>) -> R) -> R {
        struct Back<'d>(&'d Dropping, *mut Note, Mark);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.drop_to(self.1, |core| core.rewind(self.2));
            }
        }
        let back = Back(self, self.last.get(), self.core.mark());
        run(&mut DropScope { memory: back.0, only: PhantomData, holds: PhantomData })
    }
}

// SAFETY: all blocks are the core's. A note is memory that no other code has.
unsafe impl Memory for Dropping {
    /// Room for a note, if the elements need one.
    type Note = Option<NonNull<Elements>>;

    #[inline(always)]
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.core.place(layout)
    }

    #[inline(always)]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.core.place_here(layout)
    }

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, old: usize, new: usize) -> bool {
        // SAFETY: by the contract the block is this memory's, whose blocks are the core's.
        unsafe { self.core.resize(block, old, new) }
    }

    #[inline]
    unsafe fn give(&self, block: NonNull<u8>, size: usize) {
        // SAFETY: by the contract the block is this memory's, whose blocks are the core's.
        unsafe { self.core.give(block, size) };
    }

    #[inline(always)]
    fn layout<T>() -> Layout {
        if mem::needs_drop::<T>() { Layout::new::<One<T>>() } else { Layout::new::<T>() }
    }

    #[inline(always)]
    fn inside<T>(block: NonNull<u8>) -> NonNull<T> {
        if !mem::needs_drop::<T>() {
            return block.cast();
        }
        // SAFETY: a block for a value to drop has the layout of `One`, and the value is in it.
        unsafe { block.add(offset_of!(One<T>, value)) }.cast()
    }

    #[inline(always)]
    unsafe fn written<T>(&self, block: NonNull<u8>) {
        if mem::needs_drop::<T>() {
            // SAFETY: the block is a `One<T>`, as `drop_one::<T>` expects, and begins with
            // its note. By the contract its value is written, and no other code drops it.
            unsafe { self.link(block.cast(), drop_one::<T>) };
        }
    }

    #[inline(always)]
    fn note<T>(&self) -> Option<Self::Note> {
        if !mem::needs_drop::<T>() {
            return Some(None);
        }
        self.place(Layout::new::<Elements>()).map(|at| Some(at.cast()))
    }

    #[inline(always)]
    unsafe fn written_slice<T>(&self, note: Self::Note, first: NonNull<T>, count: usize) {
        let Some(at) = note else { return };
        let (before, drop, first) = (ptr::null_mut(), drop_elements::<T>, first.cast());
        // SAFETY: `note` took this room for an `Elements`, and no other code has it.
        unsafe { at.write(Elements { note: Note { before, drop }, first, count }) };
        // SAFETY: the record is an `Elements` of this type, as `drop_elements::<T>` expects. By the
        // contract the elements are written, and no other code drops them.
        unsafe { self.link(at.cast(), drop_elements::<T>) };
    }
}

/// An [`Arena`](super::Arena) that drops its values when it is reset or dropped, the newest first.
///
/// A value that needs dropping costs two more words, and a slice of such values four. Other values
/// cost nothing more. Values may borrow from data that outlives the arena. They may not borrow from
/// each other, because a destructor could use a value that was dropped before. If a closure or an
/// iterator panics, the elements that it made before are dropped with the arena.
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
///
/// A value cannot borrow from another one:
///
/// ```compile_fail,E0597
/// use heapwright::arena::DropArena;
/// let arena = DropArena::new();
/// let text = arena.alloc(String::from("dropped with the arena"));
/// arena.alloc(vec![&*text]);
/// ```
pub struct DropArena<'a> {
    memory: Dropping,
    /// The arena drops values that may borrow for `'a`.
    holds: PhantomData<Cell<&'a ()>>,
}

impl<'a> DropArena<'a> {
    /// Creates an empty arena. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// Creates an empty arena whose objects take at most `bytes` bytes, padding and notes included.
    ///
    /// ```
    /// use heapwright::arena::DropArena;
    /// let arena = DropArena::with_limit(64 << 10);
    /// assert!(arena.try_alloc(vec![1, 2]).is_ok());
    /// assert!(arena.try_alloc_slice_fill_with(9999, |_| String::new()).is_err());
    /// ```
    #[must_use]
    pub const fn with_limit(bytes: usize) -> Self {
        let memory = Dropping { core: Core::new(bytes), last: Cell::new(ptr::null_mut()) };
        Self { memory, holds: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn memory(&self) -> &Dropping {
        &self.memory
    }

    pub(super) fn core(&self) -> &Core {
        &self.memory.core
    }

    allocating! {
        life '_, bound ['a],
        made "let arena = heapwright::arena::DropArena::new();", end ""
    }

    /// Runs `run` with a scope, and returns its result. The scope's end drops and frees exactly the
    /// objects made in it, even if `run` panics.
    ///
    /// # Panics
    ///
    /// Panics as [`DropArena::reset`] does.
    ///
    /// ```
    /// use heapwright::arena::DropArena;
    /// let mut arena = DropArena::new();
    /// let length = arena.scope(|scope| {
    ///     let words = scope.alloc(vec![String::from("freed")]);
    ///     scope.scope(|inner| inner.alloc(words[0].clone()).len())
    /// });
    /// assert_eq!((length, arena.used_bytes()), (5, 0));
    /// ```
    ///
    /// An object does not leave its scope:
    ///
    /// ```compile_fail
    /// use heapwright::arena::DropArena;
    /// let mut arena = DropArena::new();
    /// let text = arena.scope(|scope| scope.alloc(String::new()));
    /// assert!(text.is_empty());
    /// ```
    ///
    /// An object does not borrow from another object:
    ///
    /// ```compile_fail
    /// use heapwright::arena::DropArena;
    /// DropArena::new().scope(|scope| {
    ///     let text = scope.alloc(String::new());
    ///     scope.alloc(vec![&*text]);
    /// });
    /// ```
    pub fn scope<R>(&mut self, run: impl FnOnce(&mut DropScope<'_, 'a>) -> R) -> R {
        self.memory.in_scope(run)
    }

    /// Drops all values, the newest first, and keeps all chunks.
    ///
    /// # Panics
    ///
    /// If a destructor panics, the other destructors still run and the arena is empty before that
    /// panic continues. If several destructors panic, the first panic continues. Without the
    /// feature `std` a second panic ends the process.
    pub fn reset(&mut self) {
        self.memory.drop_to(ptr::null_mut(), Core::reset);
    }

    /// Gives unused memory back to the kernel now. Returns the number of bytes.
    pub fn trim(&mut self) -> usize {
        self.memory.core.trim()
    }

    /// See [`Arena::used_bytes`](super::Arena::used_bytes).
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.memory.core.used()
    }

    /// See [`Arena::reserved_bytes`](super::Arena::reserved_bytes).
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.memory.core.reserved()
    }
}

impl Default for DropArena<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DropArena<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropArena")
            .field("used_bytes", &self.used_bytes())
            .field("reserved_bytes", &self.reserved_bytes())
            .finish()
    }
}

impl Drop for DropArena<'_> {
    fn drop(&mut self) {
        self.reset();
    }
}

/// A scope of a [`DropArena`]. The scope's end drops its objects. See [`DropArena::scope`].
pub struct DropScope<'s, 'a> {
    memory: &'s Dropping,
    /// Makes the lifetime invariant, so that scopes of different lifetimes cannot be exchanged.
    only: PhantomData<Cell<&'s ()>>,
    /// The scope drops values that may borrow for `'a`, which is longer than the scope.
    holds: PhantomData<&'s Cell<&'a ()>>,
}

impl<'s, 'a> DropScope<'s, 'a> {
    #[inline(always)]
    pub(crate) fn memory(&self) -> &'s Dropping {
        self.memory
    }

    pub(super) fn core(&self) -> &'s Core {
        &self.memory.core
    }

    allocating! {
        life 's, bound ['a],
        made "heapwright::arena::DropArena::new().scope(|arena| {", end "});"
    }

    /// Runs `run` with a scope inside this one; see [`DropArena::scope`].
    ///
    /// # Panics
    ///
    /// Panics as [`DropArena::reset`] does.
    pub fn scope<R>(&mut self, run: impl FnOnce(&mut DropScope<'_, 'a>) -> R) -> R {
        self.memory.in_scope(run)
    }
}

impl fmt::Debug for DropScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropScope").finish_non_exhaustive()
    }
}
