//! The arena that threads share.
//!
//! ```text
//!   current chunk --> its record { position, end }      position moved by one exchange
//!        ^
//!        +-- a thread that finds no room moves this to the next chunk, under the lock
//! ```
//!
//! Position and end belong to a chunk, not to the arena. So a thread that still sees an older chunk
//! takes memory there or finds no room. A trim releases only chunks behind the current one, which
//! no thread has entered since the last reset. A reset or a drop has the arena to itself.
//!
//! The list of chunks and its lock are recycled and never freed, so a fork can hold the locks of
//! all arenas. (The chunks themselves are freed.)

use core::alloc::Layout;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::bump;
use super::chunks::{self, Chunks};
use super::make::{self, Memory};
use super::methods::{allocating, no_room, with_error};
use crate::address_map::MAP;
use crate::fork::{self, Handlers, Part};
use crate::ids::{Recycled, Slot};
use crate::refused::Refused;
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// An arena for many threads; see [`Arena`](super::Arena).
///
/// An allocation is one atomic exchange, and O(1) amortised. Threads that allocate much should each
/// have an [`Arena`](super::Arena). A shared arena suits results that many threads make and that
/// end together.
///
/// ```
/// use heapwright::arena::SharedArena;
///
/// let arena = SharedArena::new();
/// let made: Vec<&mut u32> = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..3).map(|n| scope.spawn({ let a = &arena; move || a.alloc(n) })).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert_eq!(made, [&0, &1, &2]);
/// ```
pub struct SharedArena {
    /// The first unit of the current chunk, or 0 if there is none.
    current: AtomicUsize,
    chunks: AtomicPtr<Slot<Lock<Chunks>>>,
    limit: usize,
}

static CHUNKS: Recycled<Lock<Chunks>> = Recycled::new();

static HANDLERS: Handlers = Handlers { before: before_fork, unlock: after_fork, in_child: |_| {} };

fn before_fork() {
    CHUNKS.before_fork();
    for chunks in CHUNKS.all() {
        chunks.acquire();
    }
}

/// Releases the locks.
///
/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
unsafe fn after_fork() {
    for chunks in CHUNKS.all() {
        // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
        unsafe { chunks.release() };
    }
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { CHUNKS.after_fork() };
}

impl SharedArena {
    /// Creates an empty arena. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// Creates an empty arena whose objects take at most `bytes` bytes, padding included.
    #[must_use]
    pub const fn with_limit(bytes: usize) -> Self {
        let chunks = AtomicPtr::new(ptr::null_mut());
        Self { current: AtomicUsize::new(0), chunks, limit: bytes }
    }

    fn made(&self) -> Option<&'static Lock<Chunks>> {
        // SAFETY: the pointer is null or a recycled object, which is never freed.
        unsafe { self.chunks.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
    }

    /// Returns the list of chunks. The first call makes it. `None` if there is no memory.
    fn made_now(&self) -> Option<&'static Lock<Chunks>> {
        self.made().or_else(|| {
            // The window must be open, because the list will lie in it.
            if !substrate::open_and_begin() {
                return None;
            }
            fork::join(Part::Arenas, &HANDLERS);
            let slot = CHUNKS.take(Lock::new(Chunks::new(self.limit)))?;
            *slot.value.lock() = Chunks::new(self.limit);
            let (none, new) = (ptr::null_mut(), ptr::from_ref(slot).cast_mut());
            if self.chunks.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                CHUNKS.give(slot);
            }
            self.made()
        })
    }

    #[inline]
    fn place_in(unit: usize, layout: Layout) -> Option<NonNull<u8>> {
        if unit == 0 {
            return None;
        }
        let record = MAP.record(unit);
        let chunk = chunks::bounds(unit);
        let place = |position| {
            let (start, end) = bump::place(position, layout.size(), layout.align());
            (end <= chunk.end).then_some((start, end))
        };
        let moved = |position| place(position).map(|(_, end)| end);
        // Acquire: another thread may have used the memory and given it back.
        let position =
            record.requested.fetch_update(Ordering::Acquire, Ordering::Relaxed, moved).ok()?;
        let (start, _) = place(position)?;
        NonNull::new(chunk.start.with_addr(start))
    }

    /// Returns the chunk after `unit` if `unit` is current and has no room, or the current chunk.
    #[cold]
    #[inline(never)]
    fn next_chunk(&self, unit: usize, layout: Layout) -> Option<usize> {
        let chunks = self.made_now()?.lock();
        let current = self.current.load(Ordering::Relaxed);
        // (`unit` may have looked full to this thread while another thread trimmed it.)
        let has_room = unit != 0
            && bump::place(position(unit), layout.size(), layout.align()).1
                <= chunks::bounds(unit).end;
        if current != unit || has_room {
            return Some(current);
        }
        let next = chunks.next((unit != 0).then_some(unit), layout)?;
        let start = chunks::bounds(next).start.addr();
        MAP.record(next).requested.store(start, Ordering::Relaxed);
        self.current.store(next, Ordering::Release);
        Some(next)
    }

    /// Moves the end of the current chunk's last block. False for another block, or without room.
    fn move_end(&self, block: NonNull<u8>, old: usize, new: usize) -> bool {
        let unit = self.current.load(Ordering::Acquire);
        if unit == 0 || old == 0 {
            return false;
        }
        let (chunk, start) = (chunks::bounds(unit), block.addr().get());
        // A block that ends at the chunk's start belongs to another chunk. (A slice is at most half
        // of all addresses, so no sum wraps.)
        if start < chunk.start.addr() || start + old.max(new) > chunk.end {
            return false;
        }
        // Release: the next owner of memory that is given back comes after this one. Acquire: this
        // block may grow over such memory.
        let (old, new) = (start + old, start + new);
        let position = &MAP.record(unit).requested;
        position.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline(always)]
    pub(crate) fn memory(&self) -> &Self {
        self
    }

    allocating! {
        life '_, bound [],
        made "let arena = heapwright::arena::SharedArena::new();", end ""
    }

    /// Frees all objects and keeps all chunks.
    pub fn reset(&mut self) {
        if let Some(first) = self.made().and_then(|chunks| chunks.lock().first()) {
            let start = chunks::bounds(first).start.addr();
            MAP.record(first).requested.store(start, Ordering::Relaxed);
            self.current.store(first, Ordering::Release);
        }
    }

    /// Gives unused memory back to the kernel now, while other threads may allocate. Returns the
    /// number of bytes.
    ///
    /// ```
    /// let mut arena = heapwright::arena::SharedArena::new();
    /// arena.alloc_slice_fill_copy(1 << 20, 1u8);
    /// arena.reset();
    /// assert!(arena.trim() >= 1 << 20);
    /// ```
    pub fn trim(&self) -> usize {
        let Some(chunks) = self.made() else { return 0 };
        // While this thread has the lock, no other thread makes another chunk current.
        let chunks = chunks.lock();
        let unit = self.current.load(Ordering::Relaxed);
        if unit == 0 {
            return 0;
        }
        // SAFETY: no thread has entered the chunks behind the current one since the last reset, and
        // none enters them without the lock.
        let behind = unsafe { chunks.give_behind(Some(unit), true) };
        // Takes all free bytes of the current chunk, so that other threads find no room there.
        let (end, position) = (chunks::bounds(unit).end, &MAP.record(unit).requested);
        let from = position.swap(end, Ordering::Acquire);
        // SAFETY: the chunk's blocks end at `from`, and its position is the chunk's end until the
        // exchange below. So no thread takes or uses bytes between the two.
        let rest = unsafe { chunks.purge_rest(unit, from) };
        // If the chunk was full, the owner of its last block may have freed it. Then this fails.
        let _ = position.compare_exchange(end, from, Ordering::Release, Ordering::Relaxed);
        behind + rest
    }

    /// Returns the bytes in use in all chunks, padding included. Other threads may allocate
    /// meanwhile, so their last blocks may be missing.
    ///
    /// ```
    /// let arena = heapwright::arena::SharedArena::new();
    /// arena.alloc([0u8; 1000]);
    /// assert_eq!(arena.used_bytes(), 1000);
    /// ```
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        let Some(chunks) = self.made() else { return 0 };
        let chunks = chunks.lock();
        match self.current.load(Ordering::Relaxed) {
            0 => 0,
            unit => {
                let here = position(unit) - chunks::bounds(unit).start.addr();
                chunks.up_to(Some(unit)) + here
            }
        }
    }

    /// Returns the bytes of all chunks.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.made().map_or(0, |chunks| chunks.lock().bytes())
    }
}

fn position(unit: usize) -> usize {
    MAP.record(unit).requested.load(Ordering::Relaxed)
}

// SAFETY: a position moves over memory by an exchange, so one thread gets the memory. The position
// moves back only into a block or to its start, by the block's owner, while no other block is
// behind. (A trim moves the position to the chunk's end and back, over bytes of no block.) A chunk
// with a block stays until a reset or drop, which has the arena to itself. A trim releases only
// chunks that no thread has entered since the last reset.
unsafe impl Memory for SharedArena {
    type Note = ();

    #[inline]
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        let mut unit = self.current.load(Ordering::Acquire);
        loop {
            if let Some(at) = Self::place_in(unit, layout) {
                return Some(at);
            }
            if layout.size() == 0 {
                return NonNull::new(ptr::without_provenance_mut(layout.align()));
            }
            unit = self.next_chunk(unit, layout)?;
        }
    }

    #[inline]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        Self::place_in(self.current.load(Ordering::Acquire), layout)
    }

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, old: usize, new: usize) -> bool {
        self.move_end(block, old, new) || new <= old
    }

    #[inline]
    unsafe fn give(&self, block: NonNull<u8>, size: usize) {
        self.move_end(block, size, 0);
    }

    #[inline(always)]
    fn note<T>(&self) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    unsafe fn written_slice<T>(&self, (): (), _first: NonNull<T>, _count: usize) {}
}

impl Drop for SharedArena {
    fn drop(&mut self) {
        // SAFETY: the pointer is null or a recycled object, which is never freed.
        if let Some(slot) = unsafe { self.chunks.get_mut().as_ref() } {
            *slot.value.lock() = Chunks::new(0);
            CHUNKS.give(slot);
        }
    }
}

impl Default for SharedArena {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SharedArena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedArena")
            .field("used_bytes", &self.used_bytes())
            .field("reserved_bytes", &self.reserved_bytes())
            .finish()
    }
}
