//! Remote frees: how blocks get to the cache that owns them.
//!
//! ```text
//!   free of a remote block  --> outgoing batch, for one owner
//!                                  | 32 blocks or 64 KiB, or a block of another owner
//!                                  v one exchange
//!   owner's stack (see `remote`) --> lists (`drain`), or slabs (`drain_home`)
//! ```
//!
//! The freeing thread writes only the block's link. A batch is for one owner. So a thread that
//! frees blocks of many owners sends each batch early.
//!
//! The hot part's table (`heap::own`) serves the first block of a batch, and finds the owner. After
//! that the hot part has the owner's tag, and a block's tag mismatch says whether the block is for
//! the same batch ([`send_along`]).
//!
//! Another cache may take a slab over while a block of the slab is in a batch or stack. Then the
//! cache that receives the block sends it on.
//!
//! Called by `cache`, and by `heap` for remote frees.

use super::hot::{BATCH, Hot, Mismatch, Outgoing};
use super::{CACHES, Cache, deferred};
use crate::address_map::{COMMON, Entry, Kind, MAP};
use crate::misuse::{self, Call};
use crate::remote::Block;
use crate::size_class::{self, UNIT};

/// Sends the batch, which must be the calling thread's, to its owner.
#[cold]
#[inline(never)]
fn flush(out: &Outgoing) {
    let (count, bytes) = (out.count(), out.bytes());
    if count == 0 {
        return;
    }
    let (head, tail) = (out.head.get(), out.tail.get());
    out.forget();
    // SAFETY: blocks of the owner's slabs, linked from head to tail, which the batch has forgotten.
    let owner = unsafe { push_to(out.owner.get(), head, tail, count, bytes) };
    if let Some(owner) = owner {
        owner.drain_if_much_waits();
    }
}

/// Frees a block if the outgoing batch's owner owns it. `Err`: this owner does not own it, no slot
/// begins there, or `hot` is no cache's. The error holds `mismatch`: the caller need not save it.
///
/// # Safety
///
/// The thread's fast word leads to `hot`, and `mismatch` is the tag mismatch of the entry of the
/// block's unit. If the mismatch itself is a list's offset, no slot begins at `block`. If `block`
/// is a block, it is in use, and free from now on.
#[inline(always)]
pub(crate) unsafe fn send_along(
    hot: &Hot,
    mismatch: Mismatch,
    block: *mut u8,
) -> Result<(), Mismatch> {
    let rest = without_tag(hot, mismatch);
    if rest.is_mine() {
        // SAFETY: `rest` is the offset of a list.
        let list = unsafe { hot.list_of(rest) };
        if list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
            // SAFETY: a slot begins here, by the contract not one of the cache's own. So the tag is
            // not 0, and the entry is of the batch's owner and gives the class.
            if unsafe { hot.outgoing.push(rest.class(), block.cast()) } {
                flush(&hot.outgoing);
            }
            return Ok(());
        }
    }
    Err(without_tag(hot, rest))
}

/// Removes the tag of the outgoing batch's owner from `mismatch`, or puts it back.
#[inline(always)]
fn without_tag(hot: &Hot, mismatch: Mismatch) -> Mismatch {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut bits = mismatch.bits();
        // With a plain load, the compiler would know that the tag, applied twice, gives the
        // argument of `send_along`, and would save this argument. SAFETY: a load of the tag, which
        // only this thread writes.
        unsafe {
            core::arch::asm!(
                "xor {bits}, qword ptr [{hot} + {tag}]",
                bits = inout(reg) bits,
                hot = in(reg) hot,
                tag = const core::mem::offset_of!(Hot, outgoing.tag),
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: bits of a mismatch, without a tag.
        unsafe { Mismatch::of(bits) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    mismatch.without(hot.outgoing.tag.get())
}

impl Cache {
    /// Passes each remote free to `take`, with its class, or sends it on. Returns their number.
    fn drain_with(&self, mut take: impl FnMut(usize, *mut Block)) -> usize {
        let (mut block, bound) = self.remote().take();
        let (mut found, mut bytes) = (0, 0);
        while !block.is_null() {
            found += 1;
            if found > bound {
                // Only a double free can make the chain longer than the pushed blocks.
                misuse::double_free(Call::Free, block.addr(), 0);
            }
            // SAFETY: the chain was taken whole and is this cache's.
            let next = unsafe { Block::next(block) };
            let rest = self.hot.mismatch_of(block.addr());
            let rest = if rest.is_mine() { rest } else { self.hot.mismatch_by_map(block.addr()) };
            if rest.is_mine() {
                bytes += size_class::size(rest.class());
                take(rest.class(), block);
            } else {
                // SAFETY: a free block of the chain, which was taken whole.
                bytes += unsafe { forward(block) };
            }
            block = next;
        }
        self.remote().taken(found, bytes);
        found
    }

    /// Drains the remote frees into the lists, which must be the calling thread's.
    pub(crate) fn drain(&self) {
        self.restore_lists();
        let too_long = |class| {
            let chain = self.empty(class);
            self.distribute(class, chain);
        };
        let blocks = if self.sampling.is_on() {
            self.drain_with(|class, block| {
                // SAFETY: this cache's block of the class, freed by the thread that pushed it.
                if unsafe { self.put_listed(class, block) } {
                    too_long(class);
                }
            })
        } else {
            self.drain_with(|class, block| {
                // SAFETY: this cache's block of the class, freed by the thread that pushed it.
                if unsafe { self.hot.list(class).push(block) } {
                    too_long(class);
                }
            })
        };
        self.hand_over.count(blocks);
    }

    /// Drains the remote frees into the slabs.
    pub(super) fn drain_home(&self) {
        let blocks = self.drain_with(|class, block| {
            // SAFETY: this cache's block of the class, freed by the thread that pushed it.
            unsafe { self.put(class, block) };
        });
        self.hand_over.add(blocks);
    }

    /// Frees another cache's block, which begins a batch, or whose unit the hot part does not know.
    ///
    /// # Safety
    ///
    /// The block is of `class`, of a slab of `owner`, which is another cache, and in use. The
    /// calling thread owns this cache.
    pub(crate) unsafe fn free_remote(&self, owner: u32, class: usize, block: *mut Block) {
        debug_assert!(owner != self.id());
        let out = &self.hot.outgoing;
        // The last batch was sent when it was due, or is sent early now, or is for this owner.
        let is_other = out.owner.get() != owner;
        let sent = match (out.count(), is_other) {
            (0, _) => BATCH as usize,
            (some, true) => some,
            (_, false) => 0,
        };
        if is_other {
            flush(out);
            out.owner.set(owner);
        }
        if out.head.get().is_null() {
            out.tail.set(block);
        }
        out.tag.set(Entry::tag(owner) as usize ^ self.hot.tag);
        self.hand_over.count(sent);
        // The window may have grown since this cache last got a slab.
        self.hot.raise_limit();
        // SAFETY: a block of the batch's owner, which the caller gives away.
        if unsafe { out.push(class, block) } {
            flush(out);
        }
    }

    pub(crate) fn flush_outgoing(&self) {
        flush(&self.hot.outgoing);
    }
}

/// Sends on a block whose slab another owner has taken over. Returns the block's size.
///
/// # Safety
///
/// The block is free, and the caller gives it away.
#[cold]
pub(super) unsafe fn forward(block: *mut Block) -> usize {
    let (_, entry) = MAP.lookup(block.addr());
    let Kind::Slab(class) = entry.kind() else { misuse::double_free(Call::Free, block.addr(), 0) };
    // SAFETY: the entry gives the class and the owner; the caller gives the block away.
    unsafe { send(entry.owner(), class, block) };
    size_class::size(class)
}

/// Sends one block to its owner. Returns the owner if it is a cache.
///
/// # Safety
///
/// The block is of `class`, of a slab of `owner`, and the caller gives it away.
pub(crate) unsafe fn send(owner: u32, class: usize, block: *mut Block) -> Option<&'static Cache> {
    if owner == COMMON {
        // SAFETY: the block is of this class and of a common slab, and the caller gives it away.
        unsafe { deferred::defer(class, block) };
        return None;
    }
    // SAFETY: a chain of one block, which the caller gives away.
    unsafe { push_to(owner, block, block, 1, size_class::size(class)) }
}

/// Sends a chain of blocks to the cache that owns them.
///
/// # Safety
///
/// The caller gives away blocks of slabs of `owner`, linked from `head` to `tail`.
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
