//! Places: an owner (a pool) keeps an object for each thread, or shared objects (see `Model`).
//!
//! ```text
//!   exclusive    thread index --> block --> | place | place | ...     no lock
//!   shared:K     the thread's number --> one of up to K (`common`)    each has a lock
//!   percpu       the CPU's number --> the same
//!
//!   blocks   [ units | units | null ....... ]     made for the first thread of a block
//!   common   null, or the shared objects
//! ```
//!
//! The owner calls [`Places::exclusive`] first, inline. If threads share, this returns `None`.
//! [`Places::enter`] handles all other cases, out of line. Only this function looks at the model.
//!
//! Invariants: an owner has blocks or `common`, never both. Only the thread with the place's index
//! accesses an exclusive place. Only the holder of the place's lock accesses a shared place. A
//! thread that alone can access the owner may access all places. Called by `pool::shared`.

use core::ops::Deref;
use core::ptr::{self, NonNull};

use super::common::{Common, Family};
use super::shared::{self, Held};
use super::thread_index::{self, MOST_THREADS};
use super::{Model, model};
use crate::chunk::Side;
use crate::ids::Slot;
use crate::size_class::UNIT;
use crate::sync::atomic::{AtomicPtr, Ordering};

/// A type of objects, each for one thread or shared. The owner of the objects has five duties:
///
/// - It calls `exclusive` inline, and then `enter` if there is no place, or it is empty or full.
/// - If `enter` returns `None`, the owner serves the thread from its store.
/// - It locks its store after the place, never before, because a fork uses the same order.
/// - It holds the family's locks across a fork (`before_fork`, `after_fork`, then
///   `forget_after_fork` in the child).
/// - It empties all places before it drops them, because their memory is reused as it is.
///
/// # Safety
///
/// Zeroed memory is a valid, empty value. Any thread may call safe methods at any time; methods for
/// the place's user alone are unsafe.
pub unsafe trait Place: Send + Sync + Sized + 'static {
    /// The shared places of all owners, whose locks a fork must hold.
    fn family() -> &'static Family<Self>;
}

#[repr(C, align(64))]
struct OwnPlace<T>(T);

const fn in_block<T>() -> usize {
    UNIT / size_of::<OwnPlace<T>>()
}

/// The number of blocks for which an owner has room.
pub const fn blocks<T>() -> usize {
    MOST_THREADS.div_ceil(in_block::<T>())
}

/// All places of one owner, which must empty them before it drops this. `BLOCKS` is [`blocks`].
pub struct Places<T: Place, const BLOCKS: usize> {
    blocks: [AtomicPtr<OwnPlace<T>>; BLOCKS],
    common: AtomicPtr<Slot<Common<T>>>,
}

/// The calling thread's place, until the value is dropped.
pub enum Mine<'p, T: Place> {
    /// The place of the thread's index.
    Exclusive(&'p T),
    /// A shared place, locked.
    Shared(Held<T>),
}

impl<T: Place> Deref for Mine<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match self {
            Self::Exclusive(place) => place,
            Self::Shared(held) => held,
        }
    }
}

impl<T: Place, const BLOCKS: usize> Places<T, BLOCKS> {
    const RIGHT: () = assert!(BLOCKS == blocks::<T>());

    /// No places. Takes no memory yet.
    pub const fn new() -> Self {
        let () = Self::RIGHT;
        Self {
            blocks: [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS],
            common: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The place of the calling thread's index, if there is one and places are not shared.
    #[inline(always)]
    pub fn exclusive(&self) -> Option<&T> {
        let index = thread_index::exclusive();
        let block = self.blocks.get(index / in_block::<T>())?;
        let block = NonNull::new(block.load(Ordering::Acquire))?;
        // SAFETY: a block has this number of places.
        let place = unsafe { block.add(index % in_block::<T>()) };
        // SAFETY: blocks live as long as the owner; zero is a place.
        Some(unsafe { &place.as_ref().0 })
    }

    #[inline(always)]
    fn common(&self) -> Option<&'static Common<T>> {
        // SAFETY: null, or an object, which is never freed.
        unsafe { self.common.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
    }

    /// If places are shared and the lock of the calling thread's place is free, locks the place.
    /// The caller must unlock it. For `by_cpu` see [`by_cpu`](super::by_cpu).
    #[inline(always)]
    pub fn try_shared(&self, by_cpu: bool) -> Option<&'static shared::Slot<T>> {
        self.common()?.try_enter(by_cpu)
    }

    /// A place for the calling thread. `None`: no index or no memory is left, the thread is in its
    /// last destructors, or a signal handler calls this. Call this only after the window opened.
    pub fn enter(&self) -> Option<Mine<'_, T>> {
        match self.common() {
            Some(common) => common.enter().map(Mine::Shared),
            None => self.enter_first(),
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_first(&self) -> Option<Mine<'_, T>> {
        match model() {
            Model::Exclusive => self.take_place().map(Mine::Exclusive),
            Model::Shared(_) | Model::PerCpu(_) => self.share()?.enter().map(Mine::Shared),
        }
    }

    fn take_place(&self) -> Option<&T> {
        if thread_index::exclusive() >= MOST_THREADS {
            thread_index::take()?;
        }
        let block = self.blocks.get(thread_index::exclusive() / in_block::<T>())?;
        if block.load(Ordering::Acquire).is_null() {
            let mut side = Side::take(in_block::<T>() * size_of::<OwnPlace<T>>())?;
            let made: *mut OwnPlace<T> = side.at().cast();
            let first = ptr::null_mut();
            if block.compare_exchange(first, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
                side.give();
            }
        }
        self.exclusive()
    }

    fn share(&self) -> Option<&'static Common<T>> {
        let taken = T::family().take()?;
        let (none, new) = (ptr::null_mut(), ptr::from_ref(taken).cast_mut());
        if self.common.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            T::family().give(taken);
        }
        self.common()
    }

    /// All places of the owner.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        let blocks = self.blocks.iter().filter_map(|b| NonNull::new(b.load(Ordering::Acquire)));
        // SAFETY: a block has this number of places, and lives as long as the owner.
        let exclusive = blocks.flat_map(|block| unsafe {
            core::slice::from_raw_parts(block.as_ptr().cast_const(), in_block::<T>())
        });
        let shared = self.common().into_iter().flat_map(Common::all).map(|place| -> &T { place });
        exclusive.map(|place| &place.0).chain(shared)
    }

    /// Calls `visit` with the calling thread's place, or with all shared places.
    pub fn visit(&self, visit: impl FnMut(&T)) {
        match self.common() {
            Some(common) => common.visit(visit),
            None => self.exclusive().into_iter().for_each(visit),
        }
    }
}

impl<T: Place, const BLOCKS: usize> Drop for Places<T, BLOCKS> {
    fn drop(&mut self) {
        for block in &self.blocks {
            Side::give_at(block.load(Ordering::Relaxed).cast());
        }
        // SAFETY: null, or an object, which is never freed.
        if let Some(taken) = unsafe { self.common.get_mut().as_ref() } {
            T::family().give(taken);
        }
    }
}
