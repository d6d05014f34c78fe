//! Blocks on their way between caches.
//!
//! ```text
//!   free of another's block --> outgoing batch (for one owner: the last one)
//!                                  | 32 blocks or 64 KiB, or a block of another owner
//!                                  v one exchange
//!   owner's stack (see `remote`) --> lists (`drain`), or slabs (`drain_home`)
//! ```
//!
//! The freeing thread touches only a block's link, and no record of the owner. A batch is for
//! one owner: a thread that frees blocks of many owners sends each batch early.
//!
//! The first block of a batch goes by the table of the hot part (`heap::own`), which finds the
//! owner. For those that follow, the hot part knows the owner's tag, and what the fast path left of
//! the block's entry says whether the block goes along ([`send_along`]).
//!
//! A slab may be taken over by another cache while a block of it is under way: a
//! cache that finds a block that is not its own sends it on.
//!
//! Called by `cache`, and by `heap` for frees of others' blocks.

use super::hot::{BATCH, Hot, Outgoing, Residue};
use super::{CACHES, Cache, deferred};
use crate::address_map::{COMMON, Entry, Kind, MAP};
use crate::misuse::{self, Call};
use crate::remote::Block;
use crate::size_class::{self, UNIT};

/// Sends the batch `out`, the calling thread's.
#[cold]
#[inline(never)]
fn flush(out: &Outgoing) {
    let (count, bytes) = (out.count(), out.bytes());
    if count == 0 {
        return;
    }
    let (head, tail) = (out.head.get(), out.tail.get());
    out.forget();
    // SAFETY: the batch's blocks are linked from head to tail and of the owner's slabs, and the
    // batch has forgotten them.
    let owner = unsafe { push_to(out.owner.get(), head, tail, count, bytes) };
    if let Some(owner) = owner {
        owner.drain_if_much_waits();
    }
}

/// Takes a block back if it is of the owner that the outgoing batch is for, as most blocks of
/// others are. `Err`: it is something else, no slot begins there, or `hot` is no cache's. It has
/// `residue`, which the caller so need not keep.
///
/// # Safety
///
/// `hot` is what the thread's fast word leads to, and `residue` what it left of the entry of the
/// block's unit; if that is a list's offset already, no slot begins at `block`. If `block` is a
/// block, it is in use, and free from now on.
#[inline(always)]
pub(crate) unsafe fn send_along(
    hot: &Hot,
    residue: Residue,
    block: *mut u8,
) -> Result<(), Residue> {
    let rest = without_tag(hot, residue);
    if rest.is_mine() {
        // SAFETY: just checked.
        let list = unsafe { hot.list_of(rest) };
        if list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
            // SAFETY: a slot begins here, and by the contract it is not one of the cache's own: so
            // the tag is not 0, there is a batch, and the entry says that the slot is of its owner,
            // and of what class.
            if unsafe { hot.outgoing.push(rest.class(), block.cast()) } {
                flush(&hot.outgoing);
            }
            return Ok(());
        }
    }
    Err(without_tag(hot, rest))
}

/// What is left of `residue` without the tag of the outgoing batch's owner, or with it again.
#[inline(always)]
fn without_tag(hot: &Hot, residue: Residue) -> Residue {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut bits = residue.bits();
        // Of a load the compiler would know that with the tag again it is what `send_along` was
        // given, and keep a copy of that. SAFETY: a load of the tag, which this thread alone
        // writes.
        unsafe {
            core::arch::asm!(
                "xor {bits}, qword ptr [{hot} + {tag}]",
                bits = inout(reg) bits,
                hot = in(reg) hot,
                tag = const core::mem::offset_of!(Hot, outgoing.tag),
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: bits of a residue, without a tag.
        unsafe { Residue::of(bits) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    residue.without(hot.outgoing.tag.get())
}

impl Cache {
    /// Takes what others freed and passes each block to `take`, with its class. Returns how many
    /// there were.
    fn drain_with(&self, mut take: impl FnMut(usize, *mut Block)) -> usize {
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
            let rest = if rest.is_mine() { rest } else { self.hot.residue_by_map(block.addr()) };
            if rest.is_mine() {
                bytes += size_class::size(rest.class());
                take(rest.class(), block);
            } else {
                // SAFETY: a block that was freed, out of the chain that was taken.
                bytes += unsafe { forward(block) };
            }
            block = next;
        }
        self.remote().taken(found, bytes);
        found
    }

    /// Takes what others freed into the lists, which are the calling thread's.
    pub(crate) fn drain(&self) {
        self.restore_lists();
        let too_long = |class| {
            let chain = self.empty(class);
            self.distribute(class, chain);
        };
        let blocks = if self.sampling.is_on() {
            self.drain_with(|class, block| {
                // SAFETY: the slab is of the class and this cache's, and the block was freed by
                // the thread that pushed it.
                if unsafe { self.put_listed(class, block) } {
                    too_long(class);
                }
            })
        } else {
            self.drain_with(|class, block| {
                // SAFETY: the slab is of the class and this cache's, and the block was freed by
                // the thread that pushed it.
                if unsafe { self.hot.list(class).push(block) } {
                    too_long(class);
                }
            })
        };
        self.hand_over.count(blocks);
    }

    /// Takes what others freed back to the slabs.
    pub(super) fn drain_home(&self) {
        let blocks = self.drain_with(|class, block| {
            // SAFETY: the slab is of the class and this cache's, and the block was freed by the
            // thread that pushed it.
            unsafe { self.put(class, block) };
        });
        self.hand_over.add(blocks);
    }

    /// Takes a block back that another cache owns: the first one of a batch, or one where the
    /// hot part did not know of its unit.
    ///
    /// # Safety
    ///
    /// The block is of `class`, of a slab of `owner`, which is another cache, and in use. This is
    /// the calling thread's cache.
    pub(crate) unsafe fn free_remote(&self, owner: u32, class: usize, block: *mut Block) {
        debug_assert!(owner != self.id());
        let out = &self.hot.outgoing;
        // A batch that was sent when it was due, one that is sent early, or none.
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
        // The window may have grown since this thread last took a slab of its own.
        self.hot.raise_limit();
        // SAFETY: a block of the batch's owner, which the caller gives away.
        if unsafe { out.push(class, block) } {
            flush(out);
        }
    }

    /// Sends the outgoing batch.
    pub(crate) fn flush_outgoing(&self) {
        flush(&self.hot.outgoing);
    }
}

/// Sends a block on whose slab was taken over by another owner after the
/// freeing thread had looked. Returns its size.
///
/// # Safety
///
/// The block is free, and the caller gives it away.
#[cold]
pub(super) unsafe fn forward(block: *mut Block) -> usize {
    let (_, entry) = MAP.lookup(block.addr());
    let Kind::Slab(class) = entry.kind() else { misuse::double_free(Call::Free, block.addr(), 0) };
    // SAFETY: the entry says of which class and whose it is; the caller gives it away.
    unsafe { send(entry.owner(), class, block) };
    size_class::size(class)
}

/// Sends one block of `class` to the cache that owns it, or to the common owner. Returns that
/// cache.
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
