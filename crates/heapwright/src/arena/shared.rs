//! The arena that threads share.
//!
//! ```text
//!   current chunk --> its record { position, end }      position moved by one exchange
//!        ^
//!        +-- under the lock, to the next chunk, by the thread that finds no room
//! ```
//!
//! Position and end belong to a chunk, not to the arena. So a thread that still sees the last chunk
//! compares two values of that chunk: it takes memory there or finds no room. Chunks stay until a
//! reset or drop, for which the caller has the arena alone.
//!
//! The chunks and their lock are recycled and never freed. So a fork can hold the locks of all
//! arenas.

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

use super::bump;
use super::chunks::{self, Chunks};
use super::methods::{allocating, no_room};
use crate::address_map::MAP;
use crate::fork::{self, Handlers, Part};
use crate::ids::{Recycled, Slot};
use crate::refused::{IN_REGISTERS, Refused};
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// An arena for many threads; see [`Arena`](super::Arena).
///
/// An allocation is one atomic exchange, and O(1) amortised. Threads that allocate much should each
/// have an [`Arena`](super::Arena). A shared arena suits results that threads leave together.
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
    /// The first unit of the current chunk; 0: none.
    current: AtomicUsize,
    chunks: AtomicPtr<Slot<Lock<Chunks>>>,
    limit: usize,
}

/// The chunks of all shared arenas.
static CHUNKS: Recycled<Lock<Chunks>> = Recycled::new();

static HANDLERS: Handlers = Handlers { before: before_fork, unlock: after_fork, in_child: |_| {} };

fn before_fork() {
    CHUNKS.before_fork();
    for chunks in CHUNKS.all() {
        chunks.acquire();
    }
}

/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
unsafe fn after_fork() {
    for chunks in CHUNKS.all() {
        // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
        unsafe { chunks.release() };
    }
    // SAFETY: this thread, or the one that it is a copy of, took these locks before the fork.
    unsafe { CHUNKS.after_fork() };
}

impl SharedArena {
    /// Creates an empty arena. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// Creates an empty arena of at most `bytes` bytes, in whole chunks of 64 KiB.
    #[must_use]
    pub const fn with_limit(bytes: usize) -> Self {
        let chunks = AtomicPtr::new(ptr::null_mut());
        Self { current: AtomicUsize::new(0), chunks, limit: bytes }
    }

    /// Returns the chunks, if there are any.
    fn made(&self) -> Option<&'static Lock<Chunks>> {
        // SAFETY: the pointer is null or a recycled object, which is never freed.
        unsafe { self.chunks.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
    }

    /// Returns the chunks; the first call makes them. `None`: there is no memory.
    fn made_now(&self) -> Option<&'static Lock<Chunks>> {
        self.made().or_else(|| {
            // The object lies in the window.
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
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        let mut unit = self.current.load(Ordering::Acquire);
        loop {
            if let Some(at) = Self::place_in(unit, layout) {
                return Some(at);
            }
            if layout.size() == 0 {
                return NonNull::new(core::ptr::without_provenance_mut(layout.align()));
            }
            unit = self.next_chunk(unit, layout)?;
        }
    }

    #[inline]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        Self::place_in(self.current.load(Ordering::Acquire), layout)
    }

    /// Takes memory from a chunk, if it has room.
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
        // Relaxed: the memory is new to its owner, so it publishes nothing.
        let position =
            record.requested.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved).ok()?;
        let (start, _) = place(position)?;
        NonNull::new(chunk.start.with_addr(start))
    }

    /// Returns the chunk after `unit` if that is still current; otherwise the current one.
    #[cold]
    #[inline(never)]
    fn next_chunk(&self, unit: usize, layout: Layout) -> Option<usize> {
        let chunks = self.made_now()?.lock();
        let current = self.current.load(Ordering::Relaxed);
        if current != unit {
            return Some(current);
        }
        let next = chunks.next((unit != 0).then_some(unit), layout)?;
        let start = chunks::bounds(next).start.addr();
        MAP.record(next).requested.store(start, Ordering::Relaxed);
        self.current.store(next, Ordering::Release);
        Some(next)
    }

    allocating!('_);

    /// Frees all objects and keeps all chunks.
    pub fn reset(&mut self) {
        if let Some(first) = self.made().and_then(|chunks| chunks.lock().first()) {
            let start = chunks::bounds(first).start.addr();
            MAP.record(first).requested.store(start, Ordering::Relaxed);
            self.current.store(first, Ordering::Release);
        }
    }

    /// Returns the bytes of all chunks.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.made().map_or(0, |chunks| chunks.lock().bytes())
    }
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
        f.debug_struct("SharedArena").field("reserved_bytes", &self.reserved_bytes()).finish()
    }
}
