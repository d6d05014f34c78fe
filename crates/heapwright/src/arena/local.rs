//! The arena of one thread, and scopes in it.
//!
//! ```text
//!   alloc:   position up, one comparison           9 instructions
//!   scope:   a mark (chunk, position) before, back to it after
//! ```
//!
//! Lifetimes do the bookkeeping: what is made in an [`Arena`] borrows it, so a
//! reset finds nothing in use; what is made in a [`Scope`] cannot leave it, and while an
//! inner scope is open the outer one makes nothing, so going back to the mark
//! takes exactly what the inner one made.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use super::bump;
use super::chunks::{self, Bounds, Chunks};
use super::methods::{allocating, no_room};
use crate::refused::{IN_REGISTERS, Refused};

/// Where an arena stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    position: *mut u8,
    unit: Option<usize>,
}

impl Mark {
    /// The mark as a position and a number, for where only these go.
    #[must_use]
    pub fn into_parts(self) -> (*mut u8, usize) {
        (self.position, self.unit.unwrap_or(0))
    }

    /// The mark of [`Mark::into_parts`]; of others it is none.
    #[must_use]
    pub fn from_parts(position: *mut u8, number: usize) -> Self {
        Self { position, unit: (number != 0).then_some(number) }
    }
}

/// What arenas and scopes share.
pub(crate) struct Core {
    /// The next free byte; not null, so that a request for nothing gets an address.
    position: Cell<*mut u8>,
    /// The end of the current chunk.
    limit: Cell<usize>,
    current: Cell<Option<usize>>,
    chunks: Chunks,
}

/// The position of an arena without a chunk: a limit of 0 is below it.
const NOWHERE: *mut u8 = ptr::without_provenance_mut(1);

impl Core {
    const fn new(limit: usize) -> Self {
        Self {
            position: Cell::new(NOWHERE),
            limit: Cell::new(0),
            current: Cell::new(None),
            chunks: Chunks::new(limit),
        }
    }

    /// Memory from the current chunk, if it has room.
    #[inline(always)]
    pub(super) fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        let position = self.position.get();
        let (start, end) = bump::place(position.addr(), layout.size(), layout.align());
        if end > self.limit.get() {
            return None;
        }
        self.position.set(position.with_addr(end));
        // SAFETY: not null: the position is not, and the start is no less.
        Some(unsafe { NonNull::new_unchecked(position.with_addr(start)) })
    }

    #[inline(always)]
    pub(crate) fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.place_here(layout).or_else(|| self.place_cold(layout))
    }

    #[cold]
    #[inline(never)]
    fn place_cold(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            // Nothing needs no memory, only an address that is aligned.
            return NonNull::new(ptr::without_provenance_mut(layout.align()));
        }
        let unit = self.chunks.next(self.current.get(), layout)?;
        self.enter(Some(unit), None);
        self.place(layout)
    }

    /// Goes on in a chunk, from a position or from its start.
    fn enter(&self, unit: Option<usize>, position: Option<*mut u8>) {
        self.current.set(unit);
        let (start, end) = match unit.map(chunks::bounds) {
            Some(Bounds { start, end }) => (start, end),
            None => (NOWHERE, 0),
        };
        self.position.set(position.unwrap_or(start));
        self.limit.set(end);
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { position: self.position.get(), unit: self.current.get() }
    }

    pub(super) fn rewind(&self, mark: Mark) {
        self.enter(mark.unit, Some(mark.position));
    }

    pub(super) fn reset(&self) {
        self.enter(self.chunks.first(), None);
    }

    fn trim(&self) -> usize {
        let behind = self.chunks.give_behind(self.current.get(), true);
        let rest =
            self.current.get().map(|unit| self.chunks.purge_rest(unit, self.position.get().addr()));
        behind + rest.unwrap_or(0)
    }

    fn used(&self) -> usize {
        let Some(unit) = self.current.get() else { return 0 };
        let here = self.position.get().addr() - chunks::bounds(unit).start.addr();
        self.chunks.up_to(Some(unit)) + here
    }

    /// Whether a block is the last one. One that ends where the current chunk begins
    /// is of another.
    #[inline]
    fn is_last(&self, block: NonNull<u8>, size: usize) -> bool {
        block.addr().get() + size == self.position.get().addr()
            && self.current.get().is_some_and(|unit| block >= chunks::first_byte(unit))
    }

    /// Gives a block back: its memory, if it is the last one.
    #[inline]
    pub(crate) fn give(&self, block: NonNull<u8>, size: usize) {
        if size > 0 && self.is_last(block, size) {
            self.position.set(block.as_ptr());
        }
    }

    /// Changes a block's size where it is. False: it cannot stay there.
    #[inline]
    pub(super) fn resize(&self, block: NonNull<u8>, old: usize, new: usize) -> bool {
        if old == 0 || !self.is_last(block, old) {
            return new <= old;
        }
        // A slice is no larger than half of all addresses.
        let end = block.addr().get() + new;
        if end > self.limit.get() {
            return false;
        }
        self.position.set(block.as_ptr().with_addr(end));
        true
    }
}

/// Memory handed out in a row and given back all at once: an unsynchronised bump
/// allocator.
///
/// Making something takes nine instructions, one of them a branch. What is made
/// lives as long as the arena is borrowed, and is not dropped
/// ([`DropArena`](super::DropArena) drops). [`Arena::reset`] keeps all memory, so
/// that a loop which fills the arena again asks for none; [`Arena::trim`] gives
/// what is not used to the kernel. Chunks double from 64 KiB to 8 MiB; a request
/// that is larger gets one of its own size, and changes nothing for those after it.
///
/// As an allocator of collections (features `allocator-api2-02`, `-03`, `-04`,
/// `nightly`): the last block grows and shrinks in place.
///
/// After bumpalo and bump-scope, and what their users asked for.
///
/// ```
/// use heapwright::arena::Arena;
///
/// let mut arena = Arena::new();
/// for line in ["one two", "three"] {
///     let words = arena.alloc_slice_fill_iter(line.split(' ').collect::<Vec<_>>());
///     let copy = arena.alloc_str(words[0]);
///     copy.make_ascii_uppercase();
///     assert!(["ONE", "THREE"].contains(&&*copy));
///     arena.reset();
/// }
/// assert_eq!(arena.used_bytes(), 0);
/// ```
///
/// What was made does not outlive a reset:
///
/// ```compile_fail,E0502
/// use heapwright::arena::Arena;
/// let mut arena = Arena::new();
/// let seven = arena.alloc(7);
/// arena.reset();
/// assert_eq!(*seven, 7);
/// ```
///
/// nor leave its scope:
///
/// ```compile_fail
/// use heapwright::arena::Arena;
/// let mut arena = Arena::new();
/// let seven = arena.scope(|scope| scope.alloc(7));
/// assert_eq!(*seven, 7);
/// ```
///
/// nor is anything made in the outer scope while an inner one is open:
///
/// ```compile_fail,E0501
/// use heapwright::arena::Arena;
/// let mut arena = Arena::new();
/// arena.scope(|outer| {
///     outer.scope(|inner| {
///         outer.alloc(1);
///         inner.alloc(2);
///     });
/// });
/// ```
pub struct Arena {
    pub(crate) core: Core,
}

// SAFETY: nothing in it belongs to a thread; it is the only way to its chunks.
unsafe impl Send for Arena {}

impl Arena {
    /// An empty arena. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// An empty arena that takes at most `bytes` bytes of memory, in whole chunks of
    /// 64 KiB.
    ///
    /// ```
    /// use heapwright::arena::Arena;
    /// let arena = Arena::with_limit(1 << 20);
    /// assert!(arena.try_alloc_slice_copy(&[0u8; 1000]).is_ok());
    /// assert!(arena.try_alloc_slice_fill_with(2 << 20, |_| 0u8).is_err());
    /// ```
    #[must_use]
    pub const fn with_limit(bytes: usize) -> Self {
        Self { core: Core::new(bytes) }
    }

    #[inline(always)]
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.core.place(layout)
    }

    #[inline(always)]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.core.place_here(layout)
    }

    allocating!('_);

    /// Runs `run` with a scope: what is made in it is given back when it ends,
    /// exactly that, even if `run` panics.
    ///
    /// ```
    /// use heapwright::arena::Arena;
    /// let mut arena = Arena::new();
    /// let sum = arena.scope(|outer| {
    ///     let kept = outer.alloc(1);
    ///     let more = outer.scope(|inner| *inner.alloc(2) + *inner.alloc(3));
    ///     *kept + more
    /// });
    /// assert_eq!((sum, arena.used_bytes()), (6, 0));
    /// ```
    pub fn scope<R>(&mut self, run: impl FnOnce(&mut Scope<'_>) -> R) -> R {
        in_scope(&self.core, run)
    }

    /// Takes everything back and keeps all chunks.
    pub fn reset(&mut self) {
        self.core.reset();
    }

    /// Gives memory behind what is in use to the kernel, now. Returns bytes.
    ///
    /// ```
    /// use heapwright::arena::Arena;
    /// let mut arena = Arena::new();
    /// arena.alloc_slice_fill_with(1 << 20, |_| 1u8);
    /// arena.reset();
    /// assert!(arena.trim() >= 1 << 20);
    /// ```
    pub fn trim(&mut self) -> usize {
        self.core.trim()
    }

    /// Bytes from the start of each chunk to where it stands, padding included.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.core.used()
    }

    /// Bytes of all chunks.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.core.chunks.bytes()
    }

    /// Where the arena stands, for [`Arena::rewind`]. Scopes need no `unsafe`.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.core.mark()
    }

    /// Goes back to a mark: what was made since is given back.
    ///
    /// # Safety
    ///
    /// The mark is this arena's; since then it was neither reset, nor trimmed, nor
    /// taken back behind the mark. Nobody uses what was made since.
    pub unsafe fn rewind(&self, mark: Mark) {
        self.core.rewind(mark);
    }

    /// Gives one block back. Its memory is used again if it was the last one made.
    ///
    /// # Safety
    ///
    /// The block is of this arena and of so many bytes, and nobody uses it any more.
    pub unsafe fn free(&self, block: NonNull<u8>, size: usize) {
        self.core.give(block, size);
    }

    /// Changes the size of a block, in place if it is the last one made (or shrinks);
    /// else the bytes move. `None`: no memory, and the block is as it was.
    ///
    /// # Safety
    ///
    /// The block is of this arena, and of the layout `old`; afterwards only the
    /// returned one is used. `size`, rounded up to the alignment, is at most
    /// `isize::MAX`.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let arena = heapwright::arena::Arena::new();
    /// let block = arena.alloc_layout(Layout::new::<u64>());
    /// // SAFETY: the block is of this layout, and the new one replaces it.
    /// let grown = unsafe { arena.resize(block, Layout::new::<u64>(), 800) };
    /// assert_eq!(grown, Some(block));
    /// ```
    #[must_use]
    pub unsafe fn resize(
        &self,
        block: NonNull<u8>,
        old: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        let new = Layout::from_size_align(size, old.align()).ok()?;
        // SAFETY: the block is of this arena and of the layout `old`, as the caller promises.
        unsafe { self.core.move_to(block, old, new) }
    }
}

impl Core {
    /// A block of the layout `new` with the bytes of `block`, which may be it.
    ///
    /// # Safety
    ///
    /// As [`Arena::resize`].
    pub(crate) unsafe fn move_to(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<u8>> {
        let aligned = block.addr().get().is_multiple_of(new.align());
        if aligned && self.resize(block, old.size(), new.size()) {
            return Some(block);
        }
        let moved = self.place(new)?;
        let kept = old.size().min(new.size());
        // SAFETY: both have as many bytes, and the new one is nobody else's.
        unsafe { block.copy_to_nonoverlapping(moved, kept) };
        Some(moved)
    }
}

fn in_scope<R>(core: &Core, run: impl FnOnce(&mut Scope<'_>) -> R) -> R {
    struct Back<'a>(&'a Core, Mark);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            self.0.rewind(self.1);
        }
    }
    let back = Back(core, core.mark());
    run(&mut Scope { core: back.0, only: PhantomData })
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("used_bytes", &self.used_bytes())
            .field("reserved_bytes", &self.reserved_bytes())
            .finish()
    }
}

/// A part of an arena's time: what is made in it lives until it ends. See
/// [`Arena::scope`].
pub struct Scope<'a> {
    pub(crate) core: &'a Core,
    /// Invariant, so that scopes of different lifetimes cannot be exchanged.
    only: PhantomData<Cell<&'a ()>>,
}

impl<'a> Scope<'a> {
    #[inline(always)]
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.core.place(layout)
    }

    #[inline(always)]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.core.place_here(layout)
    }

    allocating!('a);

    /// Runs `run` with a scope in this one: see [`Arena::scope`].
    pub fn scope<R>(&mut self, run: impl FnOnce(&mut Scope<'_>) -> R) -> R {
        in_scope(self.core, run)
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
