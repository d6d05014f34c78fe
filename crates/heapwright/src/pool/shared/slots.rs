//! The slots of a shared pool: how they come to a thread, and go back.
//!
//! ```text
//!            inline                 cold                          colder
//!   thread   its own magazine       a shared magazine, if a       takes an index, or waits for
//!                                   try-lock gets it              a lock; then the store
//!
//!   alloc    pop                    pop, or refill                pop, or refill; without a
//!                                                                 magazine, from the store
//!   free     push                   push, or overflow             push, or overflow; without a
//!                                                                 magazine, into the store
//! ```
//!
//! The process's cache model decides which of the first two columns serves: if threads share
//! magazines, the first column misses. Each later step is an out-of-line function, so no step saves
//! registers or makes stack space for the next step.
//!
//! **The limit.** Free slots in other threads' magazines must not cause a refusal. So the store's
//! own limit is higher than the pool's, and `live` counts the objects.
//!
//! Checked builds have no magazines: each slot goes through the store, which checks it.
//!
//! Invariants: a slot that was handed out is in use, in one magazine, or in a set of the store. A
//! magazine's lock is taken before the store's. A magazine with slots implies a store.
//!
//! Called by [`SharedPool`](super::SharedPool). Nothing here knows the objects' type.

use core::ptr::NonNull;

use super::super::checked;
use super::super::layout::Shape;
use super::super::store::{Config, Store};
use super::keyed::Keyed;
use super::locked::Locked;
use super::magazine::{Magazine, ROUNDS};
use crate::misuse;
use crate::registry::by_cpu;
use crate::registry::places::{self, Mine, Places};
use crate::registry::shared::{self, Held};
use crate::registry::thread_index::MOST_THREADS;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicU32, Ordering};

type SharedMagazine = &'static shared::Slot<Magazine>;

/// Wakes a waiting thread and returns `slot`. The caller makes a tail call, and saves no registers.
#[cold]
#[inline(never)]
fn wake(shared: SharedMagazine, slot: NonNull<u8>) -> NonNull<u8> {
    shared.wake();
    // If the compiler knew that the result is the argument, the caller would save it.
    core::hint::black_box(slot)
}

pub(in crate::pool) struct Slots {
    pub(super) magazines: Places<Magazine, { places::blocks::<Magazine>() }>,
    pub(super) store: Locked,
    shape: Shape,
    config: Config,
    /// Live objects, if the pool has a limit.
    pub(super) live: AtomicU32,
    pub(super) keyed: Keyed,
}

impl Slots {
    pub(super) const fn new(shape: Shape, config: Config) -> Self {
        Self {
            magazines: Places::new(),
            store: Locked::new(),
            shape,
            config,
            live: AtomicU32::new(0),
            keyed: Keyed::new(),
        }
    }

    #[inline(always)]
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn name(&self) -> &'static str {
        self.config.called.name()
    }

    const fn limited(&self) -> bool {
        self.config.limit < u32::MAX
    }

    /// Counts a new object. False if the limit is reached.
    #[inline(always)]
    fn count_one(&self) -> bool {
        let limit = self.config.limit;
        let more = |live| (live < limit).then_some(live + 1);
        self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Returns a slot for the caller. `None` if there is no memory, or the limit is reached.
    #[inline(always)]
    pub(super) fn alloc(&self) -> Option<NonNull<u8>> {
        if self.limited() && !self.count_one() {
            return None;
        }
        let magazine = self.magazines.exclusive();
        if let Some(magazine) = magazine
            && !cfg!(feature = "checked")
            // SAFETY: the index is this thread's.
            && let Some(slot) = unsafe { magazine.pop() }
        {
            return Some(slot);
        }
        let slot = self.alloc_cold(magazine);
        if slot.is_none() && self.limited() {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
        slot
    }

    /// Allocates if the thread's own magazine is empty or missing, usually from a shared one.
    #[cold]
    #[inline(never)]
    fn alloc_cold(&self, exclusive: Option<&Magazine>) -> Option<NonNull<u8>> {
        if by_cpu() { self.alloc_by_cpu(exclusive) } else { self.alloc_shared(exclusive, false) }
    }

    /// This is a function of its own, because only this case may make a system call.
    #[inline(never)]
    fn alloc_by_cpu(&self, exclusive: Option<&Magazine>) -> Option<NonNull<u8>> {
        self.alloc_shared(exclusive, true)
    }

    #[inline(always)]
    fn alloc_shared(&self, exclusive: Option<&Magazine>, by_cpu: bool) -> Option<NonNull<u8>> {
        let Some(shared) = self.try_shared(exclusive, by_cpu) else {
            return self.alloc_colder(exclusive);
        };
        // SAFETY: `try_shared` locked the magazine.
        let magazine = unsafe { shared.value() };
        // SAFETY: `try_shared` locked the magazine, so it is this thread's.
        let Some(slot) = (unsafe { magazine.pop() }) else { return self.refill(shared) };
        // SAFETY: this thread holds the magazine's lock.
        if unsafe { shared.unlock_asks() } {
            return Some(wake(shared, slot));
        }
        Some(slot)
    }

    /// Locks the thread's shared magazine. `None` if it is held, or if there is none.
    #[inline(always)]
    fn try_shared(&self, exclusive: Option<&Magazine>, by_cpu: bool) -> Option<SharedMagazine> {
        if exclusive.is_some() || cfg!(feature = "checked") {
            return None;
        }
        self.magazines.try_shared(by_cpu)
    }

    /// Fills a magazine, which the caller must have locked.
    #[cold]
    #[inline(never)]
    fn refill(&self, shared: SharedMagazine) -> Option<NonNull<u8>> {
        let magazine = Held::of(shared);
        let store = self.store.made()?;
        // SAFETY: the caller has locked the magazine in this thread.
        unsafe { magazine.refill(&mut store.lock()) }
    }

    #[cold]
    #[inline(never)]
    fn alloc_colder(&self, exclusive: Option<&Magazine>) -> Option<NonNull<u8>> {
        let store = self.store_now()?;
        if cfg!(feature = "checked") {
            return NonNull::new(checked::alloc(&mut store.lock()));
        }
        let Some(magazine) = self.enter(exclusive) else {
            let mut store = store.lock();
            let slot = store.take_one().unwrap_or_else(|| store.fresh_or_grow());
            return NonNull::new(slot);
        };
        // A shared magazine may have slots. So may a magazine that the index's last holder left.
        // SAFETY: the magazine is this thread's.
        let slot = unsafe { magazine.pop() };
        // SAFETY: the magazine is this thread's.
        slot.or_else(|| unsafe { magazine.refill(&mut store.lock()) })
    }

    /// Returns a magazine, after a wait if necessary. If `None`, the caller must use the store.
    #[inline(always)]
    fn enter<'p>(&'p self, exclusive: Option<&'p Magazine>) -> Option<Mine<'p, Magazine>> {
        exclusive.map(Mine::Exclusive).or_else(|| self.magazines.enter())
    }

    /// Takes a slot back.
    ///
    /// # Safety
    ///
    /// The slot is this pool's and in use; its object has been dropped or moved out.
    #[inline(always)]
    pub(super) unsafe fn free(&self, slot: NonNull<u8>) {
        if self.limited() {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
        let magazine = self.magazines.exclusive();
        if let Some(magazine) = magazine
            && !cfg!(feature = "checked")
            // SAFETY: the index is this thread's.
            && unsafe { magazine.push(slot.as_ptr()) }
        {
            return;
        }
        // SAFETY: the slot is the caller's to give back.
        unsafe { self.free_cold(magazine, slot.as_ptr()) };
    }

    /// Frees a slot if the thread's own magazine is full or missing, usually into a shared one.
    ///
    /// # Safety
    ///
    /// As [`Slots::free`].
    #[cold]
    #[inline(never)]
    unsafe fn free_cold(&self, exclusive: Option<&Magazine>, slot: *mut u8) {
        if by_cpu() {
            // SAFETY: the slot is the caller's to give back.
            unsafe { self.free_by_cpu(exclusive, slot) };
        } else {
            // SAFETY: the slot is the caller's to give back.
            unsafe { self.free_shared(exclusive, slot, false) };
        }
    }

    /// Frees a slot into the magazine of the CPU.
    ///
    /// # Safety
    ///
    /// As [`Slots::free`].
    #[inline(never)]
    unsafe fn free_by_cpu(&self, exclusive: Option<&Magazine>, slot: *mut u8) {
        // SAFETY: the slot is the caller's to give back.
        unsafe { self.free_shared(exclusive, slot, true) };
    }

    /// Frees a slot into the thread's shared magazine.
    ///
    /// # Safety
    ///
    /// As [`Slots::free`].
    #[inline(always)]
    unsafe fn free_shared(&self, exclusive: Option<&Magazine>, slot: *mut u8, by_cpu: bool) {
        let Some(shared) = self.try_shared(exclusive, by_cpu) else {
            // SAFETY: the slot is the caller's to give back.
            return unsafe { self.free_colder(exclusive, slot) };
        };
        // SAFETY: `try_shared` locked the magazine.
        let magazine = unsafe { shared.value() };
        // SAFETY: `try_shared` locked the magazine, so it is this thread's.
        if unsafe { !magazine.push(slot) } {
            // SAFETY: this thread holds the magazine's lock, and the slot is the caller's to give
            // back.
            return unsafe { self.overflow(shared, slot) };
        }
        // SAFETY: this thread holds the magazine's lock.
        if unsafe { shared.unlock_asks() } {
            shared.wake();
        }
    }

    /// Makes room in a magazine, and puts a slot in.
    ///
    /// # Safety
    ///
    /// The caller has locked the magazine. The slot is as for [`Slots::free`].
    #[cold]
    #[inline(never)]
    unsafe fn overflow(&self, shared: SharedMagazine, slot: *mut u8) {
        let magazine = Held::of(shared);
        if let Some(store) = self.store.made() {
            // SAFETY: the caller has locked the magazine in this thread.
            unsafe { magazine.overflow(&mut store.lock(), slot) };
        }
    }

    /// Frees a slot if no shared magazine was free at once.
    ///
    /// # Safety
    ///
    /// As [`Slots::free`].
    #[cold]
    #[inline(never)]
    unsafe fn free_colder(&self, exclusive: Option<&Magazine>, slot: *mut u8) {
        let Some(store) = self.store.made() else { misuse::not_of_pool(self.name(), slot.addr()) };
        if cfg!(feature = "checked") {
            // SAFETY: the slot is the caller's to give back.
            return unsafe { checked::free(&mut store.lock(), slot) };
        }
        let Some(magazine) = self.enter(exclusive) else {
            return store.lock().put(&[slot]);
        };
        // SAFETY: the magazine is this thread's.
        if unsafe { !magazine.push(slot) } {
            // SAFETY: the magazine is this thread's.
            unsafe { magazine.overflow(&mut store.lock(), slot) };
        }
    }

    fn store_now(&self) -> Option<&'static Lock<Store>> {
        self.store.made_now(|| self.new_store())
    }

    pub(super) const fn new_store(&self) -> Store {
        // The store's limit is higher: magazines hold free slots. `live` enforces the pool's limit.
        let limit = self.config.limit.saturating_add((MOST_THREADS * ROUNDS) as u32);
        Store::new(self.shape, Config { limit, in_one: false, ..self.config })
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        self.store.made().is_some_and(|store| store.lock().segment_of(address).is_some())
    }

    pub(super) fn preheat(&self, count: usize, touch: bool) -> bool {
        self.store_now().is_some_and(|store| store.lock().preheat(count, touch))
    }
}
