//! The arena of one thread, and scopes in it.
//!
//! ```text
//!   alloc:   position up, one comparison           9 or 10 instructions
//!   scope:   a mark (chunk, position) before, back to it after
//! ```
//!
//! Lifetimes make this safe. An object borrows its [`Arena`], so no object is in use at a reset. An
//! object of a [`Scope`] cannot leave the scope. While an inner scope is open, the outer scope
//! allocates nothing, so a return to the mark frees exactly the inner scope's objects.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::bump;
use super::chunks::{self, Bounds, Chunks};
use super::make::{self, Memory};
use super::methods::{allocating, no_room, with_error};
use crate::address_map::MAP;
use crate::refused::Refused;

/// A position in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    position: *mut u8,
    /// The start of the position's chunk, or 0 if there was no chunk.
    start: usize,
}

impl Mark {
    /// Returns the mark as a position and a number, for C and other languages.
    #[must_use]
    pub fn into_parts(self) -> (*mut u8, usize) {
        (self.position, self.start)
    }

    /// Returns the mark of [`Mark::into_parts`]. Other values make no valid mark.
    #[must_use]
    pub fn from_parts(position: *mut u8, number: usize) -> Self {
        Self { position, start: number }
    }
}

pub(crate) struct Core {
    /// The next free byte. It is not null, so that an empty request gets an address.
    position: Cell<*mut u8>,
    /// The end of the current chunk.
    limit: Cell<usize>,
    /// The start of the current chunk, or 0 if there is none.
    start: Cell<usize>,
    chunks: Chunks,
}

/// The position of an arena without a chunk. The limit is then 0, below the position.
const NOWHERE: *mut u8 = ptr::without_provenance_mut(1);

impl Core {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            position: Cell::new(NOWHERE),
            limit: Cell::new(0),
            start: Cell::new(0),
            chunks: Chunks::new(limit),
        }
    }

    #[cold]
    #[inline(never)]
    fn place_cold(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            // An empty request needs only an aligned address.
            return NonNull::new(ptr::without_provenance_mut(layout.align()));
        }
        let unit = self.chunks.next(self.current(), layout)?;
        self.enter(Some(unit), None);
        self.place(layout)
    }

    pub(super) fn begin_with(&self, bytes: usize) -> Option<()> {
        if bytes > 0 {
            let layout = Layout::from_size_align(bytes, 1).ok()?;
            self.enter(Some(self.chunks.first_of(layout)?), None);
        }
        Some(())
    }

    fn current(&self) -> Option<usize> {
        let start = self.start.get();
        (start != 0).then(|| MAP.unit_of(start))
    }

    /// Makes `unit` the current chunk, at a position or at its start.
    fn enter(&self, unit: Option<usize>, position: Option<*mut u8>) {
        let Some(Bounds { start, end }) = unit.map(chunks::bounds) else {
            self.position.set(NOWHERE);
            self.limit.set(0);
            return self.start.set(0);
        };
        self.position.set(position.unwrap_or(start));
        self.limit.set(end);
        self.start.set(start.addr());
    }

    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark { position: self.position.get(), start: self.start.get() }
    }

    #[inline]
    pub(super) fn rewind(&self, mark: Mark) {
        if mark.start == self.start.get() {
            self.position.set(mark.position);
        } else {
            self.rewind_chunks(mark);
        }
    }

    #[cold]
    fn rewind_chunks(&self, mark: Mark) {
        match mark.start {
            // The mark is older than the first chunk, so all objects go. The first chunk becomes
            // current again.
            0 => self.reset(),
            start => self.enter(Some(MAP.unit_of(start)), Some(mark.position)),
        }
    }

    pub(super) fn reset(&self) {
        self.enter(self.chunks.first(), None);
    }

    pub(super) fn trim(&self) -> usize {
        let current = self.current();
        // SAFETY: blocks behind the current chunk ended with a reset or rewind before this call.
        let behind = unsafe { self.chunks.give_behind(current, true) };
        let Some(unit) = current else { return behind };
        let position = self.position.get().addr();
        // SAFETY: all blocks of the chunk end at its position, which no other thread moves.
        behind + unsafe { self.chunks.purge_rest(unit, position) }
    }

    pub(super) fn used(&self) -> usize {
        let Some(unit) = self.current() else { return 0 };
        self.chunks.up_to(Some(unit)) + (self.position.get().addr() - self.start.get())
    }

    pub(super) fn reserved(&self) -> usize {
        self.chunks.bytes()
    }

    pub(super) fn left(&self) -> usize {
        self.limit.get().saturating_sub(self.position.get().addr())
    }

    /// (A block that ends at the current chunk's start belongs to another chunk.)
    #[inline]
    fn is_last(&self, block: NonNull<u8>, size: usize) -> bool {
        let start = block.addr().get();
        start + size == self.position.get().addr() && start >= self.start.get()
    }
}

// SAFETY: the position moves up only over free memory. A block's owner moves it back into the last
// block or to its start. A rewind or reset moves it back over blocks that no code uses: their
// borrow ended, or the caller of `Arena::rewind` promises this. So no two blocks overlap. A trim
// releases only chunks behind the current one, which hold no block; all others stay until the
// arena's end.
unsafe impl Memory for Core {
    type Note = ();

    #[inline(always)]
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.place_here(layout).or_else(|| self.place_cold(layout))
    }

    #[inline(always)]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        let position = self.position.get();
        let (start, end) = bump::place(position.addr(), layout.size(), layout.align());
        if end > self.limit.get() {
            return None;
        }
        self.position.set(position.with_addr(end));
        // SAFETY: the position is not null, and the start is not below it.
        Some(unsafe { NonNull::new_unchecked(position.with_addr(start)) })
    }

    #[inline]
    unsafe fn give(&self, block: NonNull<u8>, size: usize) {
        if size > 0 && self.is_last(block, size) {
            self.position.set(block.as_ptr());
        }
    }

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, old: usize, new: usize) -> bool {
        if old == 0 || !self.is_last(block, old) {
            return new <= old;
        }
        // A slice is at most half of all addresses, so the sum does not wrap.
        let end = block.addr().get() + new;
        if end > self.limit.get() {
            return false;
        }
        self.position.set(block.as_ptr().with_addr(end));
        true
    }

    #[inline(always)]
    fn note<T>(&self) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    unsafe fn written_slice<T>(&self, (): (), _first: NonNull<T>, _count: usize) {}
}

/// A bump allocator for one thread: it hands out memory in a row and frees all of it at once.
///
/// An allocation takes nine or ten instructions, one of them a branch. Objects live as long as the
/// arena is borrowed, and are not dropped ([`DropArena`](super::DropArena) drops them).
/// [`Arena::reset`] keeps all memory, so a loop that fills the arena again needs no more memory.
/// [`Arena::trim`] returns unused memory to the kernel. Chunks double from 64 KiB to 8 MiB. A
/// larger request gets a chunk of its own size.
///
/// [`ArenaBox`](super::ArenaBox), [`ArenaVec`](super::ArenaVec) and
/// [`ArenaString`](super::ArenaString) own and drop their contents. `&Arena` is the allocator of
/// other collections (features `allocator-api2-02`, `-03`, `-04`, `nightly`). In all these
/// collections, the arena's last block grows and shrinks in place.
///
/// The idea is that of bumpalo and bump-scope.
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
/// An object does not outlive a reset:
///
/// ```compile_fail,E0502
/// use heapwright::arena::Arena;
/// let mut arena = Arena::new();
/// let seven = arena.alloc(7);
/// arena.reset();
/// assert_eq!(*seven, 7);
/// ```
///
/// An object does not leave its scope:
///
/// ```compile_fail
/// use heapwright::arena::Arena;
/// let mut arena = Arena::new();
/// let seven = arena.scope(|scope| scope.alloc(7));
/// assert_eq!(*seven, 7);
/// ```
///
/// The outer scope allocates nothing while an inner scope is open:
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
    core: Core,
}

// SAFETY: no part belongs to a thread, and the arena is the only owner of its chunks.
unsafe impl Send for Arena {}

impl Arena {
    /// Creates an empty arena. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// Creates an empty arena whose objects take at most `bytes` bytes, padding included. If a
    /// request does not fit in the current chunk, the chunk's free bytes are lost.
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

    /// Creates an arena with a first chunk of at least `bytes` free bytes. Later chunks are usually
    /// larger. Ends the process if there is no memory.
    ///
    /// ```
    /// use heapwright::arena::Arena;
    /// let arena = Arena::with_capacity(1 << 20);
    /// arena.alloc_slice_fill_copy(1 << 20, 0u8);
    /// assert_eq!(arena.reserved_bytes(), 1 << 20);
    /// ```
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self::try_with_capacity(bytes).unwrap_or_else(|_| no_room())
    }

    /// Like `with_capacity`, but returns an error if there is no memory.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub fn try_with_capacity(bytes: usize) -> Result<Self, Refused<()>> {
        let arena = Self::new();
        arena.core.begin_with(bytes).ok_or(Refused(()))?;
        Ok(arena)
    }

    #[inline(always)]
    pub(crate) fn memory(&self) -> &Core {
        &self.core
    }

    allocating! {
        life '_, bound [],
        made "let arena = heapwright::arena::Arena::new();", end ""
    }

    /// Runs `run` with a scope, and returns its result. The scope's end frees exactly the objects
    /// made in it, even if `run` panics.
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
    pub fn scope<'env, R>(&'env mut self, run: impl FnOnce(&mut Scope<'_, 'env>) -> R) -> R {
        in_scope(&self.core, run)
    }

    /// Frees all objects and keeps all chunks. O(1).
    pub fn reset(&mut self) {
        self.core.reset();
    }

    /// Gives unused memory back to the kernel now. Returns the number of bytes.
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

    /// Returns the bytes in use in all chunks, padding included.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.core.used()
    }

    /// Returns the bytes of all chunks, used or not.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.core.reserved()
    }

    /// Returns the free bytes of the current chunk.
    ///
    /// ```
    /// let arena = heapwright::arena::Arena::with_capacity(1 << 20);
    /// arena.alloc([0u8; 1000]);
    /// assert_eq!(arena.chunk_capacity(), (1 << 20) - 1000);
    /// ```
    #[must_use]
    pub fn chunk_capacity(&self) -> usize {
        self.core.left()
    }

    /// Returns the current position, for [`Arena::rewind`]. Scopes need no `unsafe`.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.core.mark()
    }

    /// Returns to a mark, and frees all objects that were made after it. O(1).
    ///
    /// # Safety
    ///
    /// The mark is this arena's. After the mark, the arena was not reset, trimmed, or rewound to an
    /// earlier mark. No code uses the objects that were made after the mark.
    pub unsafe fn rewind(&self, mark: Mark) {
        self.core.rewind(mark);
    }

    /// Frees one block of `size` bytes. Its memory is reused if it was the last one made. O(1).
    ///
    /// # Safety
    ///
    /// The block belongs to this arena and has `size` bytes, and no code uses it afterwards.
    pub unsafe fn free(&self, block: NonNull<u8>, size: usize) {
        // SAFETY: the caller promises that the block is this arena's and no longer used.
        unsafe { self.core.give(block, size) };
    }

    /// Changes the size of a block to `size` bytes. The block stays if it shrinks, or if it is the
    /// last one and there is room. Otherwise its bytes move. Without memory: `None`, and no change.
    ///
    /// # Safety
    ///
    /// The block belongs to this arena and has the layout `old`. Afterwards only the returned block
    /// is used. `size`, rounded up to the alignment, is at most `isize::MAX`.
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
        // SAFETY: the caller promises that the block is this arena's and has the layout `old`.
        unsafe { self.core.move_to(block, old, new) }
    }
}

fn in_scope<'env, R>(core: &Core, run: impl FnOnce(&mut Scope<'_, 'env>) -> R) -> R {
    struct Back<'a>(&'a Core, Mark);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            self.0.rewind(self.1);
        }
    }
    let back = Back(core, core.mark());
    run(&mut Scope { core: back.0, only: PhantomData, env: PhantomData })
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

/// A scope of an arena. Its objects live until the scope ends. See [`Arena::scope`].
///
/// Objects may borrow from values that are older than the scope (`'env`).
///
/// ```
/// use heapwright::arena::Arena;
/// let text = String::from("GET /");
/// Arena::new().scope(|scope| {
///     let words = scope.alloc_iter(text.split(' '));
///     let longest = scope.scope(|inner| *inner.alloc(words[0]));
///     assert_eq!(longest, "GET");
/// });
/// ```
pub struct Scope<'a, 'env> {
    core: &'a Core,
    /// Makes the lifetime invariant, so that scopes of different lifetimes cannot be exchanged.
    only: PhantomData<Cell<&'a ()>>,
    /// References of the environment outlive the scope.
    env: PhantomData<&'a &'env ()>,
}

impl<'a> Scope<'a, '_> {
    #[inline(always)]
    pub(crate) fn memory(&self) -> &'a Core {
        self.core
    }

    allocating! {
        life 'a, bound [],
        made "heapwright::arena::Arena::new().scope(|arena| {", end "});"
    }

    /// Runs `run` with a scope inside this one; see [`Arena::scope`].
    pub fn scope<'inner, R>(&'inner mut self, run: impl FnOnce(&mut Scope<'_, 'inner>) -> R) -> R {
        in_scope(self.core, run)
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
