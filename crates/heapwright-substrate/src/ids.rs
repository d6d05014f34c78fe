//! Ids: objects by number, in the heap's metadata, made once and never freed.
//!
//! ```text
//!   id --> pointer, in segments --> object
//! ```
//!
//! An id from an address map entry always leads to a valid object. Ids count up from 1. A look-up
//! takes no lock. Callers that make objects exclude each other. [`Recycled`] lends objects to
//! owners that come and go. An object must outlive its owner, because a fork may hold the object's
//! lock, or a late reader may find the object. Used by `registry`, `names` and all kinds of heaps.

use core::ptr;
#[cfg(feature = "debug")]
use core::{mem::MaybeUninit, ops::Range};

use crate::address_map::MAX_OWNER;
use crate::chunk::metadata;
use crate::segments::{self, Segments};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const FIRST: usize = 64;
const SEGMENTS: usize = 19;

/// All objects of one kind.
pub struct Ids<T> {
    /// The object of `id` is at `id - 1`.
    slots: Segments<AtomicPtr<T>, FIRST, SEGMENTS>,
    made: AtomicU32,
}

const _: () = assert!(segments::place(MAX_OWNER as usize - 1, FIRST).0 < SEGMENTS);

impl<T: 'static> Ids<T> {
    /// No objects yet.
    pub const fn new() -> Self {
        Self { slots: Segments::new(), made: AtomicU32::new(0) }
    }

    /// The object of `id`.
    pub fn get(&self, id: u32) -> Option<&'static T> {
        if id == 0 || id > self.made.load(Ordering::Acquire) {
            return None;
        }
        let object = self.slots.get(id as usize - 1)?.load(Ordering::Acquire);
        // SAFETY: `made` is raised after the slot is written; objects are never freed.
        unsafe { object.as_ref() }
    }

    /// All objects, in order of their ids.
    pub fn all(&self) -> impl Iterator<Item = &'static T> {
        (1..=self.made.load(Ordering::Acquire)).filter_map(|id| self.get(id))
    }

    /// The number of objects that were ever made.
    pub fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed) as usize
    }

    /// Makes the next object. `make` gets the object's id and zeroed memory, which no other thread
    /// knows. `None`: no memory or no id is left.
    ///
    /// # Safety
    ///
    /// Only one thread at a time makes objects here. After `make`, the memory holds a valid object.
    pub unsafe fn make(&self, make: impl FnOnce(*mut T, u32)) -> Option<&'static T> {
        let id = self.made.load(Ordering::Relaxed) + 1;
        if id > MAX_OWNER {
            return None;
        }
        let slot = self.slots.get_or_make(id as usize - 1)?;
        let object: *mut T = metadata::alloc(size_of::<T>(), align_of::<T>()).cast();
        if object.is_null() {
            return None;
        }
        make(object, id);
        slot.store(object, Ordering::Release);
        self.made.store(id, Ordering::Release);
        // SAFETY: just made, and never freed.
        Some(unsafe { &*object })
    }
}

/// An object that is lent again and again.
pub struct Slot<T> {
    id: u32,
    vacant: AtomicPtr<Slot<T>>,
    /// The object itself.
    pub value: T,
}

impl<T> Slot<T> {
    /// The object's id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Bytes from the slot to its value.
    pub const VALUE: usize = core::mem::offset_of!(Self, value);

    /// The slot that a value is in.
    ///
    /// # Safety
    ///
    /// `value` is the address of the value in a slot, made from a reference to the slot.
    pub unsafe fn containing(value: *const T) -> *const Self {
        value.wrapping_byte_sub(Self::VALUE).cast()
    }
}

struct Vacant<T>(*mut Slot<T>);

// SAFETY: the pointers lead to objects that any thread may reach and no thread frees.
unsafe impl<T> Send for Vacant<T> {}

/// Objects of one kind that are lent and returned.
pub struct Recycled<T> {
    ids: Ids<Slot<T>>,
    vacant: Lock<Vacant<T>>,
}

impl<T: Sync + 'static> Recycled<T> {
    /// No objects yet.
    pub const fn new() -> Self {
        Self { ids: Ids::new(), vacant: Lock::new(Vacant(ptr::null_mut())) }
    }

    /// Takes a vacant object as its owner left it, or makes one from `fresh`. `None`: no memory.
    pub fn take(&self, fresh: T) -> Option<&'static Slot<T>> {
        let mut vacant = self.vacant.lock();
        // SAFETY: null, or an object, which is never freed.
        if let Some(found) = unsafe { vacant.0.as_ref() } {
            vacant.0 = found.vacant.load(Ordering::Relaxed);
            return Some(found);
        }
        let make = |at: *mut Slot<T>, id| {
            let made = Slot { id, vacant: AtomicPtr::new(ptr::null_mut()), value: fresh };
            // SAFETY: the memory is for one object, and no other thread knows it.
            unsafe { at.write(made) };
        };
        // SAFETY: the lock is held, and `make` makes the object.
        unsafe { self.ids.make(make) }
    }

    /// [`Recycled::take`] for objects that are too large for a stack. A new object is a copy of the
    /// bytes of `fresh`. The range `zeros` is not copied, because new memory is zero.
    ///
    /// # Safety
    ///
    /// No thread ever uses `fresh`, and it does not contain its own address. `zeros` lies in it,
    /// and its bytes there are zero.
    #[cfg(feature = "debug")]
    #[cold]
    #[inline(never)]
    pub unsafe fn take_copy(
        &self,
        fresh: &'static T,
        zeros: Range<usize>,
    ) -> Option<&'static Slot<T>> {
        debug_assert!(zeros.start <= zeros.end && zeros.end <= size_of::<T>());
        let mut vacant = self.vacant.lock();
        // SAFETY: null, or an object, which is never freed.
        if let Some(found) = unsafe { vacant.0.as_ref() } {
            vacant.0 = found.vacant.load(Ordering::Relaxed);
            return Some(found);
        }
        let make = |at: *mut Slot<T>, id| {
            // SAFETY: the memory is for one object.
            let value = unsafe { &raw mut (*at).value };
            for part in [0..zeros.start, zeros.end..size_of::<T>()] {
                let from = ptr::from_ref(fresh).cast::<MaybeUninit<u8>>().wrapping_add(part.start);
                let to = value.cast::<MaybeUninit<u8>>().wrapping_add(part.start);
                // SAFETY: by the contract a copy is valid. The omitted bytes are zero in both.
                unsafe { ptr::copy_nonoverlapping(from, to, part.len()) };
            }
            // SAFETY: the id's place is in a copy that is ours.
            let place = unsafe { &raw mut (*at).id };
            // SAFETY: the id is in a copy that is ours.
            unsafe { place.write(id) };
        };
        // SAFETY: the lock is held, and `make` makes the object.
        unsafe { self.ids.make(make) }
    }

    /// As [`Recycled::take`], but a new object is zeroed memory.
    ///
    /// # Safety
    ///
    /// Zero is valid for the object.
    pub unsafe fn take_zeroed(&self) -> Option<&'static Slot<T>> {
        let mut vacant = self.vacant.lock();
        // SAFETY: null, or an object, which is never freed.
        if let Some(found) = unsafe { vacant.0.as_ref() } {
            vacant.0 = found.vacant.load(Ordering::Relaxed);
            return Some(found);
        }
        let make = |at: *mut Slot<T>, id| {
            // SAFETY: this is memory for one object; by the contract zeros are valid for the rest.
            let place = unsafe { &raw mut (*at).id };
            // SAFETY: the id's place is in memory for one object, which is ours.
            unsafe { place.write(id) };
        };
        // SAFETY: the lock is held, and `make` makes the object.
        unsafe { self.ids.make(make) }
    }

    /// Takes an object back.
    pub fn give(&self, slot: &'static Slot<T>) {
        let mut vacant = self.vacant.lock();
        slot.vacant.store(vacant.0, Ordering::Relaxed);
        vacant.0 = ptr::from_ref(slot).cast_mut();
    }

    /// The object of an id, even if it has no owner now.
    pub fn get(&self, id: u32) -> Option<&'static T> {
        self.ids.get(id).map(|slot| &slot.value)
    }

    /// All objects, also those without an owner.
    pub fn all(&self) -> impl Iterator<Item = &'static T> {
        self.ids.all().map(|slot| &slot.value)
    }

    /// Holds the lock across a fork, so that no object is made meanwhile.
    pub fn before_fork(&self) {
        self.vacant.acquire();
    }

    /// Gives the lock back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Recycled::before_fork`] in the forking thread or its copy.
    pub unsafe fn after_fork(&self) {
        // SAFETY: by the contract this thread (or its original) holds the lock.
        unsafe { self.vacant.release() };
    }
}
