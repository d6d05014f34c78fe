//! Remote frees: blocks that other threads freed, and the right to take these blocks back.
//!
//! ```text
//!   freeing threads                          the owner's cache
//!   +--------------+   one CAS a batch   +----------------------+
//!   | batch of <=32| ------------------> | RemoteStack          |
//!   +--------------+                     |  top -> b -> b -> .. |
//!                                        |  count (upper bound) |
//!                                        | Ownership            |
//!                                        +----------------------+
//! ```
//!
//! [`RemoteStack`] is a Treiber stack of chains. It is only emptied as a whole, so it has no ABA
//! problem. `count` is raised *before* a push, so a taken chain has at most `count` blocks. A walk
//! stops at this bound, because a double free may have made the chain cyclic. Only the thread with
//! the [`Ownership`] acts as the owner. After its end, others may claim the cache for a moment:
//!
//! ```text
//!   freer:  push; fence; ownership orphaned? claim, drain, let go
//!   leaver: orphan the ownership; fence; stack not empty? claim, drain, let go
//! ```
//!
//! The sequentially consistent fences forbid store buffering, so at least one of the two sees the
//! other's write, and no late free is lost. Called by `registry`, `cache`, `heap` and `drawn`. Also
//! `slab` links [`Block`]s.

use core::ptr;

#[cfg(loom)]
use loom::cell::UnsafeCell;

use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};

/// A free block: its first word links it to the next block.
#[repr(C)]
pub struct Block {
    #[cfg(not(loom))]
    next: *mut Block,
    #[cfg(loom)]
    next: UnsafeCell<*mut Block>,
    /// In the head of a chain in a depot: the chain below it.
    #[cfg(not(loom))]
    below: *mut Block,
}

impl Block {
    /// The block after `block` in its chain.
    ///
    /// # Safety
    ///
    /// `block` is a free block whose link was written, and only the caller uses it.
    #[inline(always)]
    pub unsafe fn next(block: *mut Block) -> *mut Block {
        #[cfg(not(loom))]
        // SAFETY: by the contract the block is ours and its link is written.
        unsafe {
            (*block).next
        }
        #[cfg(loom)]
        // SAFETY: the block's link was written, and no other thread uses it: loom checks that.
        unsafe {
            (*block).next.with(|next| *next)
        }
    }

    /// The word that [`Block::set_below`] wrote.
    ///
    /// # Safety
    ///
    /// As [`Block::next`], for the second word.
    #[cfg(not(loom))]
    #[inline]
    pub unsafe fn below(block: *mut Block) -> *mut Block {
        // SAFETY: by the contract the block is ours and the word is written.
        unsafe { (*block).below }
    }

    /// Writes a free block's second word.
    ///
    /// # Safety
    ///
    /// As [`Block::set_next`], for two words of memory.
    #[cfg(not(loom))]
    #[inline]
    pub unsafe fn set_below(block: *mut Block, below: *mut Block) {
        // SAFETY: by the contract the block is ours to write.
        unsafe { (*block).below = below };
    }

    /// Links `block` to `next`.
    ///
    /// # Safety
    ///
    /// `block` has an aligned, writable word at least, and no other thread uses it.
    #[inline(always)]
    pub unsafe fn set_next(block: *mut Block, next: *mut Block) {
        #[cfg(not(loom))]
        // SAFETY: by the contract the block is ours to write.
        unsafe {
            (*block).next = next;
        }
        #[cfg(loom)]
        // SAFETY: only the caller may write the block: loom checks that.
        unsafe {
            (*block).next.with_mut(|slot| *slot = next)
        }
    }
}

/// A stack of blocks. Any thread may push to it, and the owner empties it.
pub struct RemoteStack {
    top: AtomicPtr<Block>,
    /// An upper bound of the number of blocks on the stack.
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl RemoteStack {
    /// An empty stack.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            top: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// An empty stack.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            top: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Pushes a chain of `count` blocks of `bytes` bytes.
    ///
    /// # Safety
    ///
    /// The chain is linked from `head` to `tail`, and the caller gives up its blocks.
    #[inline]
    pub unsafe fn push(&self, head: *mut Block, tail: *mut Block, count: usize, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.count.fetch_add(count, Ordering::Relaxed);
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            // SAFETY: `tail` is still the caller's until the exchange succeeds.
            unsafe { Block::set_next(tail, top) };
            // Release: the thread that takes the chain sees its links and the count.
            match self.top.compare_exchange_weak(top, head, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes all blocks. Returns the chain's head and a bound on its length. The caller must then
    /// call [`RemoteStack::taken`].
    #[inline]
    pub fn take(&self) -> (*mut Block, usize) {
        // Not under loom, which finds orders by a word's last access. A pusher's load would hide
        // this load, and loom would never try a push between this load and the exchange.
        if cfg!(not(loom)) && self.is_empty() {
            return (ptr::null_mut(), 0);
        }
        let head = self.top.swap(ptr::null_mut(), Ordering::Acquire);
        (head, self.count.load(Ordering::Relaxed))
    }

    /// Subtracts the blocks and bytes of a take.
    #[inline]
    pub fn taken(&self, count: usize, bytes: usize) {
        self.count.fetch_sub(count, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// In a forked child: drops the blocks on the stack, which may be half changed.
    pub fn forget_after_fork(&self) {
        self.top.store(ptr::null_mut(), Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Whether no block waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.top.load(Ordering::Relaxed).is_null()
    }

    /// The number of waiting blocks, or a few more.
    #[inline]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The number of waiting bytes, or a few more.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

const HELD: u32 = 0;
const ORPHANED: u32 = 1;
const CLAIMED: u32 = 2;

/// The right to act as the owner of a cache.
pub struct Ownership(AtomicU32);

impl Ownership {
    /// An ownership that the caller holds.
    #[cfg(not(loom))]
    #[inline]
    pub const fn held() -> Self {
        Self(AtomicU32::new(HELD))
    }

    /// An ownership that the caller holds.
    #[cfg(loom)]
    #[inline]
    pub fn held() -> Self {
        Self(AtomicU32::new(HELD))
    }

    /// Tries to become the owner for a moment, if no thread is the owner.
    #[inline]
    pub fn try_claim(&self) -> bool {
        self.0.compare_exchange(ORPHANED, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Makes a claim permanent: the caller's thread holds the ownership from now on.
    #[inline]
    pub fn hold(&self) {
        self.0.store(HELD, Ordering::Release);
    }

    /// Whether a thread holds the ownership permanently.
    #[cfg(not(loom))]
    #[inline]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire) == HELD
    }

    /// Gives the ownership up. True: blocks arrived that perhaps no other thread sees. Then the
    /// caller must try to claim the ownership again, and take the blocks.
    #[must_use]
    #[inline]
    pub fn let_go(&self, stack: &RemoteStack) -> bool {
        self.0.store(ORPHANED, Ordering::Release);
        fence(Ordering::SeqCst);
        !stack.is_empty()
    }

    /// Call this after a push. True: no thread has the ownership. The caller must try to claim it.
    #[inline]
    pub fn needs_drainer(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_orphaned()
    }

    /// Whether no thread has the ownership.
    #[inline]
    pub fn is_orphaned(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ORPHANED
    }

    /// In a forked child: gives up the ownership of a thread that the child lacks.
    pub fn orphan_after_fork(&self) {
        self.0.store(ORPHANED, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
