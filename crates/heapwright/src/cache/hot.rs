//! The hot part of a cache: all that `malloc` and `free` touch.
//!
//! ```text
//!   0      list 0   { head | room | reciprocal }     16 bytes a class
//!   16     list 1
//!   ...
//!   1280   base | limit | tag | sized tag            the thread's own copies
//! ```
//!
//! An address map entry, exclusive-ored with the tag, is the offset of the
//! list that a block goes to; a request's size less one, rounded down, is the
//! offset of the list that it comes from. So neither path computes an index.
//!
//! Invariants: only the owner touches it; blocks in a list are free, linked,
//! and of the list's class and owner; `limit` is never above the map's.
//!
//! Called by `heap`'s fast paths, and by the rest of `cache`.

use core::cell::Cell;
use core::ptr;

use crate::address_map::{CLASS_STEP, Entry, MAP, MAX_OWNER, SLAB_KINDS};
use crate::remote::Block;
use crate::size_class::{self, CLASSES, UNIT_SHIFT};

/// The free blocks of one class: 16 bytes, so that an address map entry's kind
/// is the offset of its list.
///
/// Plain memory, not atomics: only the owner touches it, and the compiler may
/// then count in one instruction.
#[repr(C)]
pub(crate) struct List {
    pub(super) head: Cell<*mut Block>,
    /// Blocks it still takes; below zero it is too long.
    pub(super) room: Cell<i32>,
    /// The class's reciprocal, here so that `free` needs no other table.
    pub(super) reciprocal: u32,
}

const _: () = assert!(size_of::<List>() == CLASS_STEP);

impl List {
    /// The newest block, taken out.
    #[inline(always)]
    pub(crate) fn pop(&self) -> *mut Block {
        let block = self.head.get();
        if !block.is_null() {
            // SAFETY: blocks in a list are free, linked, and this thread's.
            self.head.set(unsafe { Block::next(block) });
            self.room.set(self.room.get() + 1);
        }
        block
    }

    /// Puts a block in. Returns whether the list is now too long.
    ///
    /// # Safety
    ///
    /// The block is of the list's class and owner, and free from now on.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn push(&self, block: *mut Block) -> bool {
        // SAFETY: the caller gives the block away.
        unsafe { Block::set_next(block, self.head.get()) };
        self.head.set(block);
        self.room.set(self.room.get() - 1);
        self.room.get() < 0
    }

    /// Whether `offset` bytes into a slab of the list's class begins a slot.
    #[inline(always)]
    pub(crate) fn is_slot_start(&self, offset: u32) -> bool {
        size_class::is_slot_start(offset, self.reciprocal)
    }
}

/// What the fast paths touch.
#[repr(C, align(64))]
pub(crate) struct Hot {
    pub(super) lists: [List; CLASSES],
    /// The window's base, and how many units of it this cache knows of: copies
    /// that no other thread writes. All slabs of the cache are below.
    base: Cell<*mut u8>,
    limit: Cell<usize>,
    /// The owner's id, shifted as in an address map entry. A whole word, so that
    /// the entry is widened by its load and not by an instruction of its own.
    pub(super) tag: usize,
    /// The same, or nobody's where frees that know their size must be passed on
    /// (see `forward_sized_frees`).
    pub(super) sized_tag: Cell<usize>,
}

pub(super) const NOBODY: usize = Entry::tag(MAX_OWNER + 1) as usize;

const _: () = assert!(core::mem::offset_of!(Hot, lists) == 0);

impl Hot {
    /// The lists of a thread that has no cache: empty, and of no owner.
    pub(crate) const fn sentinel() -> Self {
        Self {
            lists: [const {
                List { head: Cell::new(ptr::null_mut()), room: Cell::new(0), reciprocal: 0 }
            }; CLASSES],
            base: Cell::new(ptr::null_mut()),
            limit: Cell::new(0),
            tag: NOBODY,
            sized_tag: Cell::new(NOBODY),
        }
    }

    /// The list at a byte offset: a request's size less one, rounded down to 16.
    ///
    /// # Safety
    ///
    /// `offset` is a multiple of `CLASS_STEP` below `SLAB_KINDS`.
    #[inline(always)]
    pub(crate) unsafe fn list_at(&self, offset: usize) -> &List {
        // SAFETY: the lists come first, and by the contract this is one of them.
        let list = unsafe { ptr::from_ref(self).cast::<u8>().add(offset) };
        // SAFETY: as above.
        unsafe { &*list.cast::<List>() }
    }

    /// The list of the slab that `address` lies in, if that is this owner's.
    #[inline(always)]
    pub(crate) fn list_of(&self, address: usize) -> Option<&List> {
        // SAFETY: the cache's limit is never above the map's.
        unsafe { self.list_for(address, self.limit.get(), self.tag) }
    }

    /// As [`Hot::list_of`], but `None` where sized frees are passed on.
    #[inline(always)]
    pub(crate) fn list_of_sized(&self, address: usize) -> Option<&List> {
        // SAFETY: the cache's limit is never above the map's.
        unsafe { self.list_for(address, self.limit.get(), self.sized_tag.get()) }
    }

    /// The list of the class of the slab that `address` lies in, if the slab is
    /// of the owner of `tag` and its unit below `limit`.
    ///
    /// # Safety
    ///
    /// `limit` is not above the map's.
    #[inline(always)]
    pub(super) unsafe fn list_for(
        &self,
        address: usize,
        limit: usize,
        tag: usize,
    ) -> Option<&List> {
        let unit = self.unit_of(address);
        if unit >= limit {
            return None;
        }
        // SAFETY: below the map's limit.
        let entry = unsafe { MAP.entry_from(self.base.get(), unit) };
        let offset = entry.0 as usize ^ tag;
        if offset >= SLAB_KINDS {
            return None;
        }
        // SAFETY: below `SLAB_KINDS`, and slabs' kinds are multiples of the step.
        Some(unsafe { self.list_at(offset) })
    }

    /// The window's unit that `address` lies in.
    #[inline(always)]
    pub(super) fn unit_of(&self, address: usize) -> usize {
        address.wrapping_sub(self.base.get().addr()) >> UNIT_SHIFT
    }

    /// The class of one of this owner's lists.
    #[inline(always)]
    pub(crate) fn class_of(&self, list: &List) -> usize {
        (ptr::from_ref(list).addr() - ptr::from_ref(self).addr()) / CLASS_STEP
    }

    /// The list of `class`.
    #[inline(always)]
    pub(crate) fn list(&self, class: usize) -> &List {
        &self.lists[class]
    }

    /// Looks again how far the window goes.
    pub(super) fn refresh(&self) {
        self.base.set(MAP.base());
        self.limit.set(MAP.limit());
    }
}
