//! Blocks on their way between caches.
//!
//! ```text
//!   free of another's block --> outgoing batch (for one owner: the last one)
//!                                  | 32 blocks or 64 KiB, or a block of another owner
//!                                  v one exchange
//!   owner's stack (see `remote`) --> lists (`drain`), or slabs (`drain_home`)
//! ```
//!
//! The freeing thread touches a block but for its link, and no record of the owner. A batch
//! is for one owner; who frees for many sends each batch early.
//!
//! A slab may be taken over by another cache while a block of it is under way: who
//! finds a block that is not its own sends it on.
//!
//! Called by `cache`, and by `heap` for frees of others' blocks.

use core::cell::Cell;
use core::ptr;

use super::{CACHES, Cache};
use crate::address_map::{Kind, MAP};
use crate::misuse::{self, Call};
use crate::remote::Block;
use crate::size_class::{self, UNIT};
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Blocks of other owners that are sent at once, and their bytes.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 64 << 10;

/// Blocks of another owner on their way home.
pub(super) struct Outgoing {
    owner: Cell<u32>,
    head: Cell<*mut Block>,
    tail: Cell<*mut Block>,
    pub(super) count: AtomicUsize,
    pub(super) bytes: AtomicUsize,
}

impl Outgoing {
    /// Forgets all of them: they were sent, or are lost.
    pub(super) fn forget(&self) {
        self.head.set(ptr::null_mut());
        self.tail.set(ptr::null_mut());
        self.count.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

impl Cache {
    /// Takes what others freed and passes each block to `take`, with its class.
    fn drain_with(&self, mut take: impl FnMut(usize, *mut Block)) {
        let (mut block, bound) = self.remote().take();
        let (mut found, mut bytes) = (0, 0);
        while !block.is_null() {
            found += 1;
            if found > bound {
                // Only a block that was freed twice can make the chain longer
                // than what was pushed.
                misuse::double_free(Call::Free, block.addr(), 0);
            }
            // SAFETY: the chain was taken whole and is this cache's.
            let next = unsafe { Block::next(block) };
            let rest = self.hot.residue_of(block.addr());
            if rest.is_mine() {
                bytes += size_class::size(rest.class());
                take(rest.class(), block);
            } else {
                // SAFETY: a block that was freed, out of the chain that was taken.
                bytes += unsafe { self.forward(block) };
            }
            block = next;
        }
        self.remote().taken(found, bytes);
    }

    /// Sends a block on whose slab was taken over by another cache after the
    /// freeing thread had looked. Returns its size.
    ///
    /// # Safety
    ///
    /// The block is free, and the caller gives it away.
    #[cold]
    pub(super) unsafe fn forward(&self, block: *mut Block) -> usize {
        let (_, entry) = MAP.lookup(block.addr());
        let Kind::Slab(class) = entry.kind() else {
            misuse::double_free(Call::Free, block.addr(), 0)
        };
        // SAFETY: the entry says of which class and whose it is; the caller gives it away.
        unsafe { send(entry.owner(), class, block) };
        size_class::size(class)
    }

    /// Takes what others freed into the lists.
    pub(crate) fn drain(&self) {
        self.unhide_all();
        self.drain_with(|class, block| {
            // SAFETY: the slab is of the class and this cache's, and the block was freed by
            // the thread that pushed it.
            if unsafe { self.hot.list(class).push(block) } {
                let chain = self.empty(class);
                self.distribute(class, chain);
            }
        });
    }

    /// Takes what others freed back to the slabs.
    pub(super) fn drain_home(&self) {
        self.drain_with(|class, block| {
            // SAFETY: the slab is of the class and this cache's, and the block was freed by the
            // thread that pushed it.
            unsafe { self.put(class, block) };
        });
    }

    /// Takes a block back that another cache owns.
    ///
    /// # Safety
    ///
    /// The block is of `class`, of a slab of `owner`, and in use.
    #[inline]
    pub(crate) unsafe fn free_remote(&self, owner: u32, class: usize, block: *mut Block) {
        let out = &self.outgoing;
        if out.owner.get() != owner {
            self.flush_outgoing();
            out.owner.set(owner);
        }
        // SAFETY: the caller gives the block away.
        unsafe { Block::set_next(block, out.head.get()) };
        out.head.set(block);
        let count = out.count.load(Ordering::Relaxed) + 1;
        let bytes = out.bytes.load(Ordering::Relaxed) + size_class::size(class);
        if count == 1 {
            out.tail.set(block);
        }
        out.count.store(count, Ordering::Relaxed);
        out.bytes.store(bytes, Ordering::Relaxed);
        if count >= BATCH || bytes >= BATCH_BYTES {
            self.flush_outgoing();
        }
    }

    /// Takes a block back if it is of the owner that the outgoing batch is for,
    /// as most are. False: it is something else, or no slot begins there.
    ///
    /// # Safety
    ///
    /// If `block` is a block, it is in use, and free from now on.
    #[inline]
    pub(crate) unsafe fn free_outgoing(&self, block: *mut Block) -> bool {
        let owner = self.outgoing.owner.get();
        let unit = self.hot.unit_of(block.addr());
        if unit >= MAP.limit() {
            return false;
        }
        // SAFETY: checked above: the unit is below the map's limit.
        let rest = unsafe { self.hot.residue_for(unit, owner) };
        if owner == 0 || !rest.is_mine() {
            return false;
        }
        // SAFETY: just checked.
        let list = unsafe { self.hot.list_of(rest) };
        if !list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
            return false;
        }
        // SAFETY: the slab's entry says whose it is and of what class.
        unsafe { self.free_remote(owner, rest.class(), block) };
        true
    }

    /// Sends the outgoing batch.
    #[cold]
    pub(crate) fn flush_outgoing(&self) {
        let out = &self.outgoing;
        let count = out.count.load(Ordering::Relaxed);
        if count > 0 {
            let (head, tail) = (out.head.get(), out.tail.get());
            let bytes = out.bytes.load(Ordering::Relaxed);
            out.forget();
            // SAFETY: the batch's blocks, of the owner's, which it has just forgotten.
            let owner = unsafe { push_to(out.owner.get(), head, tail, count, bytes) };
            if let Some(owner) = owner {
                owner.drain_if_much_waits();
            }
        }
    }
}

/// Sends one block of `class` to the cache that owns it.
///
/// # Safety
///
/// The block is of `class`, of a slab of `owner`, and the caller gives it away.
pub(crate) unsafe fn send(owner: u32, class: usize, block: *mut Block) {
    // SAFETY: a chain of one block, which the caller gives away.
    unsafe { push_to(owner, block, block, 1, size_class::size(class)) };
}

/// Sends a chain of `count` blocks, of so many `bytes`, to the cache that owns them.
///
/// # Safety
///
/// They are linked from `head` to `tail`, of slabs of `owner`, and the caller gives them away.
unsafe fn push_to(
    owner: u32,
    head: *mut Block,
    tail: *mut Block,
    count: usize,
    bytes: usize,
) -> Option<&'static Cache> {
    let cache = CACHES.get(owner)?;
    // SAFETY: the caller gives the linked chain away.
    unsafe { cache.remote().push(head, tail, count, bytes) };
    cache.reclaim();
    Some(cache)
}
