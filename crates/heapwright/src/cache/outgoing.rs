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
//! The first block of a batch comes by the door, which finds the owner. For those that follow, the
//! hot part knows the owner's tag, and what the fast path left of the block's entry says
//! whether the block goes along ([`send_along`]).
//!
//! A slab may be taken over by another cache while a block of it is under way: a
//! cache that finds a block that is not its own sends it on.
//!
//! Called by `cache`, and by `heap` for frees of others' blocks.

use core::cell::Cell;
use core::ptr;

use super::hot::{Hot, Residue};
use super::{CACHES, Cache, central};
use crate::address_map::{COMMON, Entry, Kind, MAP};
use crate::misuse::{self, Call};
use crate::remote::Block;
use crate::size_class::{self, CLASSES, SLAB_MAX, UNIT};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Blocks of other owners that are sent at once, and their bytes.
const BATCH: u64 = 32;
const BATCH_BYTES: u64 = 64 << 10;

/// What a block of each class adds to a batch: one block in the upper half, bytes in the
/// lower one.
static WEIGHTS: [u64; CLASSES] = {
    let mut weights = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        weights[class] = 1 << 32 | size_class::size(class) as u64;
        class += 1;
    }
    weights
};
/// The bits of which a batch that is due has one: a batch is sent as soon as it is due, so
/// neither half goes past twice its bound.
const DUE: u64 = BATCH << 32 | BATCH_BYTES;
const _: () = assert!(BATCH.is_power_of_two() && BATCH_BYTES.is_power_of_two());
const _: () = assert!(SLAB_MAX as u64 <= BATCH_BYTES);

/// Blocks of another owner on their way home. Zero is an empty one.
#[repr(C)]
pub(super) struct Outgoing {
    /// The tag of the batch's owner, exclusive-ored with the cache's own. An entry exclusive-ored with
    /// both this and the cache's tag is a list's offset exactly if its slab is the batch owner's. 0:
    /// the batch is empty, or the hot part is no cache's.
    tag: Cell<usize>,
    head: Cell<*mut Block>,
    tail: Cell<*mut Block>,
    /// Sum of [`WEIGHTS`]. Only the cache's thread writes; statistics read.
    weight: AtomicU64,
    owner: Cell<u32>,
}

impl Outgoing {
    /// An empty one.
    pub(super) const fn new() -> Self {
        Self {
            tag: Cell::new(0),
            head: Cell::new(ptr::null_mut()),
            tail: Cell::new(ptr::null_mut()),
            weight: AtomicU64::new(0),
            owner: Cell::new(0),
        }
    }

    /// Blocks in the batch.
    pub(super) fn count(&self) -> usize {
        (self.weight.load(Ordering::Relaxed) >> 32) as usize
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> usize {
        self.weight.load(Ordering::Relaxed) as u32 as usize
    }

    /// Puts a block in, and sends the batch if it is due.
    ///
    /// # Safety
    ///
    /// The block is of `class`, of a slab of the batch's owner, and the caller gives it away; `tail`
    /// is set, and the batch is the calling thread's.
    #[inline(always)]
    unsafe fn push(&self, class: usize, block: *mut Block) {
        debug_assert!(!self.tail.get().is_null());
        // SAFETY: the caller gives the block away.
        unsafe { Block::set_next(block, self.head.get()) };
        self.head.set(block);
        let weight = self.weight.load(Ordering::Relaxed) + WEIGHTS[class];
        self.weight.store(weight, Ordering::Relaxed);
        if weight & DUE != 0 {
            self.flush();
        }
    }

    /// Sends the batch.
    #[cold]
    #[inline(never)]
    fn flush(&self) {
        let (count, bytes) = (self.count(), self.bytes());
        if count == 0 {
            return;
        }
        let (head, tail) = (self.head.get(), self.tail.get());
        self.forget();
        // SAFETY: the batch's blocks are linked from head to tail and of the owner's slabs, and the
        // batch has forgotten them.
        let owner = unsafe { push_to(self.owner.get(), head, tail, count, bytes) };
        if let Some(owner) = owner {
            owner.drain_if_much_waits();
        }
    }

    /// Forgets the batch: it was sent, or is lost.
    pub(super) fn forget(&self) {
        self.tag.set(0);
        self.head.set(ptr::null_mut());
        self.tail.set(ptr::null_mut());
        self.weight.store(0, Ordering::Relaxed);
    }
}

/// Takes a block back if it is of the owner that the outgoing batch is for, as most blocks of
/// others are. `Err`: it is something else, no slot begins there, or `hot` is no cache's. It has `residue`, which the
/// caller so need not keep.
///
/// # Safety
///
/// `hot` is what the thread's fast word leads to, and `residue` what it left of the entry of the
/// block's unit; if that is a list's offset already, no slot begins at `block`. If `block` is a block,
/// it is in use, and free from now on.
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
            // SAFETY: a slot begins here, and by the contract it is not one of the cache's own: so the tag is
            // not 0, there is a batch, and the entry says that the slot is of its owner, and of what class.
            unsafe { hot.outgoing.push(rest.class(), block.cast()) };
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
        // Of a load the compiler would know that with the tag again it is what `send_along` was given, and keep a copy of that.
        // SAFETY: a load of the tag, which this thread alone writes.
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
    /// Takes what others freed and passes each block to `take`, with its class. Returns how many there were.
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
    /// The block is of `class`, of a slab of `owner`, which is another cache, and in use. This is the
    /// calling thread's cache.
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
            out.flush();
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
        unsafe { out.push(class, block) };
    }

    /// Sends the outgoing batch.
    pub(crate) fn flush_outgoing(&self) {
        self.hot.outgoing.flush();
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

/// Sends one block of `class` to the cache that owns it, or to the common owner. Returns that cache.
///
/// # Safety
///
/// The block is of `class`, of a slab of `owner`, and the caller gives it away.
pub(crate) unsafe fn send(owner: u32, class: usize, block: *mut Block) -> Option<&'static Cache> {
    if owner == COMMON {
        // SAFETY: the block is of this class and of a common slab, and the caller gives it away.
        unsafe { central::defer(class, block) };
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
