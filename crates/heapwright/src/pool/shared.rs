//! The pool that threads share: magazines of free slots, one store behind a lock.
//!
//! ```text
//!   thread --> its magazine of 126 slots                    no lock, no atomics; or a try-lock
//!                |  empty: 63 from the store     ^ full: 63 to it
//!                v                               |
//!              store (sets, frontier, segments), one lock
//! ```
//!
//! Which magazine is a thread's is said by the process's cache model (`cache=`), and
//! known to `registry::places`: one at each desk, passed on when the thread ends, or K
//! for all threads, each behind a lock. So a thousand threads cost a pool a thousand
//! magazines, or K. The first way is the fast path; where magazines are shared it misses,
//! and the cold one finds them.
//!
//! An object may be destroyed by any thread: its slot goes into *that* thread's
//! magazine. Nothing asks whose a slot is, so there is nothing to send home. A
//! producer and a consumer meet at the store's lock once in 63 objects each.
//!
//! Threads without a magazine (see `Places::enter`) go to the store.
//!
//! A pool with a limit counts its objects, one atomic addition each way: else a
//! free slot in another magazine would be a refusal, or the limit none.
//!
//! The store and its lock, like shared magazines, are recycled and never freed, so that
//! a fork can hold the locks of all pools, wherever the pools are. A magazine's lock is
//! taken before the store's.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

use super::layout::Shape;
use super::store::{Called, Config, Store, Walk};
use super::{Refused, Reset, Stats, checked, fork};
use crate::ids::{Recycled, Slot};
use crate::misuse;
use crate::registry::by_cpu;
use crate::registry::common::Family;
use crate::registry::desks::DESKS;
use crate::registry::places::{self, Mine, Place, Places};
use crate::registry::shared::{self, Held};
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Slots a magazine has room for.
const ROUNDS: usize = 126;
/// Slots that go to the store, or come from it, at a time.
const BATCH: usize = ROUNDS / 2;
/// Free slots. Zero is an empty one.
///
/// At a desk, or behind a lock that begins its first line (see `registry::shared`).
#[repr(C)]
struct Magazine {
    /// Written by the thread that is in it; read by whoever counts.
    count: AtomicUsize,
    slots: UnsafeCell<[*mut u8; ROUNDS]>,
}

/// At a desk it fills whole lines, a power of two.
const _: () = assert!(size_of::<Magazine>() == 1024 - 8);

// SAFETY: the slots are touched by the one who is in it alone, by the contracts of
// unsafe methods; they lead to free memory that is nobody else's.
unsafe impl Sync for Magazine {}
// SAFETY: as above.
unsafe impl Send for Magazine {}

/// Magazines that threads share, of all pools.
static MAGAZINES: Family<Magazine> = Family::new();

// SAFETY: zero is an empty one; safe methods touch the count alone.
unsafe impl Place for Magazine {
    fn family() -> &'static Family<Self> {
        &MAGAZINES
    }
}

impl Magazine {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_count(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// The place of a slot.
    #[inline(always)]
    fn place(&self, at: usize) -> *mut *mut u8 {
        self.slots.get().cast::<*mut u8>().wrapping_add(at)
    }

    /// Takes the slot that came last, if there is one.
    ///
    /// # Safety
    ///
    /// The caller is in it: at its desk, or holding its lock.
    #[inline(always)]
    unsafe fn pop(&self) -> Option<NonNull<u8>> {
        let left = self.count().checked_sub(1)?;
        self.set_count(left);
        // SAFETY: the magazine is the caller's; below the count, so a slot is there.
        let slot = unsafe { self.place(left).read() };
        // SAFETY: slots in magazines are not null.
        Some(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Puts a slot in, if there is room.
    ///
    /// # Safety
    ///
    /// As [`Magazine::pop`].
    #[inline(always)]
    unsafe fn push(&self, slot: *mut u8) -> bool {
        let count = self.count();
        let has_room = count < ROUNDS;
        if has_room {
            // SAFETY: the magazine is the caller's, and there is room.
            unsafe { self.place(count).write(slot) };
            self.set_count(count + 1);
        }
        has_room
    }

    /// The slots.
    ///
    /// # Safety
    ///
    /// As [`Magazine::pop`]; the caller makes no other reference meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the magazine is the caller's, by the contract")]
    unsafe fn slots(&self) -> &mut [*mut u8; ROUNDS] {
        // SAFETY: the same contract.
        unsafe { &mut *self.slots.get() }
    }

    /// Takes all slots out.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    unsafe fn take_all(&self) -> &[*mut u8] {
        let count = self.count();
        self.set_count(0);
        // SAFETY: the same contract.
        unsafe { &self.slots()[..count] }
    }

    /// Fills it, which is empty, and takes a slot. `None`: there is none to be had.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    unsafe fn refill(&self, store: &mut Store) -> Option<NonNull<u8>> {
        // SAFETY: the same contract.
        let slots = unsafe { self.slots() };
        let mut count = store.take(&mut slots[..BATCH]);
        if count == 0 {
            // Fresh ones, of one segment, the lowest on top.
            while count < BATCH {
                let slot = if count == 0 { store.fresh_or_grow() } else { store.fresh() };
                if slot.is_null() {
                    break;
                }
                slots[count] = slot;
                count += 1;
            }
            slots[..count].reverse();
        }
        self.set_count(count);
        // SAFETY: the same contract.
        unsafe { self.pop() }
    }

    /// Makes room in it, which is full, and puts a slot in.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    unsafe fn overflow(&self, store: &mut Store, slot: *mut u8) {
        // SAFETY: the same contract.
        let slots = unsafe { self.slots() };
        // Those that have been there longest.
        store.put(&slots[..BATCH]);
        slots.copy_within(BATCH.., 0);
        slots[ROUNDS - BATCH] = slot;
        self.set_count(ROUNDS - BATCH + 1);
    }
}

/// A magazine that threads share, and its lock.
type Shelf = &'static shared::Slot<Magazine>;

/// Wakes one who sleeps for a magazine, and returns `slot`: in a tail call, so that who
/// hardly ever calls this saves no registers.
#[cold]
#[inline(never)]
fn wake(shared: Shelf, slot: NonNull<u8>) -> NonNull<u8> {
    shared.wake();
    // Hidden, for a caller that knew it to be its own argument would keep it for itself.
    core::hint::black_box(slot)
}

/// The stores of all shared pools.
static STORES: Recycled<Lock<Store>> = Recycled::new();

/// Holds the locks across a fork.
pub(super) fn before_fork() {
    MAGAZINES.before_fork();
    STORES.before_fork();
    for store in STORES.all() {
        store.acquire();
    }
}

/// Gives the locks back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    for store in STORES.all() {
        // SAFETY: the same contract, as for what follows.
        unsafe { store.release() };
    }
    // SAFETY: as above.
    unsafe { STORES.after_fork() };
    // SAFETY: as above.
    unsafe { MAGAZINES.after_fork() };
}

/// In a forked child: forgets who waited.
pub(super) fn forget_after_fork() {
    MAGAZINES.forget_after_fork();
}

/// Objects of one type that many threads make and destroy.
///
/// As [`Pool`](super::Pool), but `Sync`: each thread has a magazine of free slots
/// and takes no lock while it lasts; an object may be destroyed by any thread.
/// Objects come and go by handles ([`SharedBoxed`]) or raw.
///
/// Free slots in other magazines (at most 126 each) are not this thread's to
/// use; so a pool without a limit may be that much larger than its objects. With
/// a limit, exactly as many objects may live as it says, and each operation costs
/// one atomic addition more.
///
/// With many threads that use a pool now and then, a magazine for each may be too many.
/// A process that runs with `HEAPWRIGHT=cache=shared:K` has at most K a pool, each
/// behind a lock of its own that is hardly ever held.
///
/// After scudo's and tcmalloc's per-thread caches, and Bonwick's magazines.
///
/// ```
/// use heapwright::pool::SharedPool;
///
/// static WORDS: SharedPool<String> = SharedPool::new();
///
/// let made = WORDS.boxed(String::from("made here"));
/// std::thread::spawn(move || assert_eq!(*made, "made here")).join().unwrap();
/// assert_eq!(WORDS.len(), 0);
/// ```
///
/// A handle cannot outlive its pool:
///
/// ```compile_fail,E0597
/// use heapwright::pool::{SharedBoxed, SharedPool};
/// let handle: SharedBoxed<'_, u32>;
/// {
///     let pool: SharedPool<u32> = SharedPool::new();
///     handle = pool.boxed(1);
/// }
/// assert_eq!(*handle, 1);
/// ```
///
/// nor hold what lives shorter than the pool's type says:
///
/// ```compile_fail,E0597
/// use heapwright::pool::SharedPool;
/// let mut pool: SharedPool<&'static str> = SharedPool::new();
/// {
///     let text = String::from("short");
///     let short: &SharedPool<&str> = &pool;
///     std::mem::forget(short.boxed(&text));
/// }
/// pool.for_each(|text| println!("{text}"));
/// ```
///
/// nor go to another thread with what must stay:
///
/// ```compile_fail,E0277
/// use heapwright::pool::SharedPool;
/// use std::rc::Rc;
/// static POOL: SharedPool<Rc<u32>> = SharedPool::new();
/// ```
pub struct SharedPool<T> {
    magazines: Places<Magazine, { places::blocks::<Magazine>() }>,
    store: AtomicPtr<Slot<Lock<Store>>>,
    config: Config,
    /// Live objects, where there is a limit.
    live: AtomicU32,
    /// Invariant: values go in through a shared reference.
    objects: PhantomData<UnsafeCell<T>>,
}

// SAFETY: objects are made by one thread and dropped by another (`T: Send`); no
// reference to one is given out but by its handle. Magazines are one thread's at a
// time, the store is under its lock.
unsafe impl<T: Send> Sync for SharedPool<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SharedPool<T> {}

impl<T> SharedPool<T> {
    const SHAPE: Shape = match Shape::of(size_of::<T>(), align_of::<T>()) {
        Some(shape) => shape,
        None => panic!("a pool's objects are at most a tebibyte, at multiples of 4 GiB at most"),
    };

    /// An empty pool. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::builder().build()
    }

    /// An empty pool whose name, limit and kind of pages can be chosen.
    ///
    /// ```
    /// use heapwright::pool::SharedPool;
    /// let pool = SharedPool::<u64>::builder().name("jobs").limit(1).build();
    /// let one = pool.boxed(1);
    /// assert!(pool.try_boxed(2).is_err());
    /// drop(one);
    /// assert!(pool.try_boxed(2).is_ok());
    /// ```
    #[must_use]
    pub const fn builder() -> SharedBuilder<T> {
        let config = Config::of(Called::Type(core::any::type_name::<T>));
        SharedBuilder { config, made: PhantomData }
    }

    const fn limited(&self) -> bool {
        self.config.limit < u32::MAX
    }

    #[inline(always)]
    fn alloc(&self) -> Option<NonNull<T>> {
        if self.limited() && !self.count_one() {
            return None;
        }
        let magazine = self.magazines.at_desk();
        if let Some(magazine) = magazine
            && !cfg!(feature = "checked")
            // SAFETY: the desk is this thread's.
            && let Some(slot) = unsafe { magazine.pop() }
        {
            return Some(slot.cast());
        }
        let slot = self.alloc_cold(magazine);
        if slot.is_none() && self.limited() {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
        slot
    }

    /// Counts an object in. False: the limit is reached.
    fn count_one(&self) -> bool {
        let limit = self.config.limit;
        let more = |live| (live < limit).then_some(live + 1);
        self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Where the desk's magazine is empty or missing: one that is shared, most of the time.
    #[cold]
    #[inline(never)]
    fn alloc_cold(&self, at_desk: Option<&Magazine>) -> Option<NonNull<T>> {
        if by_cpu() { self.alloc_by_cpu(at_desk) } else { self.alloc_shared(at_desk, false) }
    }

    /// Apart, for it calls the system on its way, which the other does not.
    #[inline(never)]
    fn alloc_by_cpu(&self, at_desk: Option<&Magazine>) -> Option<NonNull<T>> {
        self.alloc_shared(at_desk, true)
    }

    #[inline(always)]
    fn alloc_shared(&self, at_desk: Option<&Magazine>, by_cpu: bool) -> Option<NonNull<T>> {
        let Some(shared) = self.try_shared(at_desk, by_cpu) else {
            return self.alloc_colder(at_desk);
        };
        // SAFETY: just locked.
        let magazine = unsafe { shared.value() };
        // SAFETY: as above.
        let Some(slot) = (unsafe { magazine.pop() }) else { return self.refill(shared) };
        // SAFETY: locked above.
        if unsafe { shared.unlock_asks() } {
            return Some(wake(shared, slot).cast());
        }
        Some(slot.cast())
    }

    /// The magazine that the calling thread shares, locked, if it could be had at once.
    #[inline(always)]
    fn try_shared(&self, at_desk: Option<&Magazine>, by_cpu: bool) -> Option<Shelf> {
        if at_desk.is_some() || cfg!(feature = "checked") {
            return None;
        }
        self.magazines.try_shared(by_cpu)
    }

    /// Fills a magazine that the caller has locked.
    #[cold]
    #[inline(never)]
    fn refill(&self, shared: Shelf) -> Option<NonNull<T>> {
        let magazine = Held::of(shared);
        let store = self.made()?;
        // SAFETY: locked by the caller.
        Some(unsafe { magazine.refill(&mut store.lock()) }?.cast())
    }

    #[cold]
    #[inline(never)]
    fn alloc_colder(&self, at_desk: Option<&Magazine>) -> Option<NonNull<T>> {
        let store = self.made_now()?;
        if cfg!(feature = "checked") {
            return NonNull::new(checked::alloc(&mut store.lock()).cast());
        }
        let Some(magazine) = at_desk.map(Mine::AtDesk).or_else(|| self.magazines.enter()) else {
            let mut store = store.lock();
            let slot = store.take_one().unwrap_or_else(|| store.fresh_or_grow());
            return NonNull::new(slot.cast());
        };
        // One that is shared, or that somebody left at the desk before, may have slots.
        // SAFETY: the magazine is this thread's.
        let slot = unsafe { magazine.pop() };
        // SAFETY: as above.
        let slot = slot.or_else(|| unsafe { magazine.refill(&mut store.lock()) });
        Some(slot?.cast())
    }

    /// # Safety
    ///
    /// The slot is this pool's and in use; what was in it is gone.
    #[inline(always)]
    unsafe fn free(&self, slot: NonNull<T>) {
        if self.limited() {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
        let magazine = self.magazines.at_desk();
        if let Some(magazine) = magazine
            && !cfg!(feature = "checked")
            // SAFETY: the desk is this thread's.
            && unsafe { magazine.push(slot.as_ptr().cast()) }
        {
            return;
        }
        self.free_cold(magazine, slot.as_ptr().cast());
    }

    #[cold]
    #[inline(never)]
    fn free_cold(&self, at_desk: Option<&Magazine>, slot: *mut u8) {
        if by_cpu() {
            self.free_by_cpu(at_desk, slot);
        } else {
            self.free_shared(at_desk, slot, false);
        }
    }

    #[inline(never)]
    fn free_by_cpu(&self, at_desk: Option<&Magazine>, slot: *mut u8) {
        self.free_shared(at_desk, slot, true);
    }

    #[inline(always)]
    fn free_shared(&self, at_desk: Option<&Magazine>, slot: *mut u8, by_cpu: bool) {
        let Some(shared) = self.try_shared(at_desk, by_cpu) else {
            return self.free_colder(at_desk, slot);
        };
        // SAFETY: just locked.
        let magazine = unsafe { shared.value() };
        // SAFETY: as above.
        if unsafe { !magazine.push(slot) } {
            return self.overflow(shared, slot);
        }
        // SAFETY: locked above.
        if unsafe { shared.unlock_asks() } {
            shared.wake();
        }
    }

    /// Makes room in a magazine that the caller has locked, and puts a slot in.
    #[cold]
    #[inline(never)]
    fn overflow(&self, shared: Shelf, slot: *mut u8) {
        let magazine = Held::of(shared);
        if let Some(store) = self.made() {
            // SAFETY: locked by the caller.
            unsafe { magazine.overflow(&mut store.lock(), slot) };
        }
    }

    #[cold]
    #[inline(never)]
    fn free_colder(&self, at_desk: Option<&Magazine>, slot: *mut u8) {
        let Some(store) = self.made() else {
            misuse::not_of_pool(self.config.called.name(), slot.addr())
        };
        if cfg!(feature = "checked") {
            return checked::free(&mut store.lock(), slot);
        }
        let Some(magazine) = at_desk.map(Mine::AtDesk).or_else(|| self.magazines.enter()) else {
            return store.lock().put(&[slot]);
        };
        // SAFETY: the magazine is this thread's.
        if unsafe { !magazine.push(slot) } {
            // SAFETY: as above.
            unsafe { magazine.overflow(&mut store.lock(), slot) };
        }
    }

    /// The store, if there is one.
    fn made(&self) -> Option<&'static Lock<Store>> {
        // SAFETY: null, or an object, which is never freed.
        unsafe { self.store.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
    }

    /// The store, made now if there is none. `None` where there is no memory.
    fn made_now(&self) -> Option<&'static Lock<Store>> {
        self.made().or_else(|| {
            // The object lies in the window.
            if !substrate::open_and_begin() {
                return None;
            }
            fork::join();
            let slot = STORES.take(Lock::new(self.new_store()))?;
            let new = ptr::from_ref(slot).cast_mut();
            let none = ptr::null_mut();
            *slot.value.lock() = self.new_store();
            if self.store.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                STORES.give(slot);
            }
            self.made()
        })
    }

    const fn new_store(&self) -> Store {
        // More slots than objects, for those that wait in magazines; the limit itself is
        // counted.
        let limit = self.config.limit.saturating_add((DESKS * ROUNDS) as u32);
        Store::new(Self::SHAPE, Config { limit, in_one: false, ..self.config })
    }

    #[cold]
    #[inline(never)]
    fn no_room(&self) -> ! {
        misuse::no_room("pool ", self.config.called.name())
    }

    /// Makes an object, owned by the handle.
    #[inline]
    #[must_use]
    pub fn boxed(&self, value: T) -> SharedBoxed<'_, T> {
        SharedBoxed { object: self.create(value), pool: self }
    }

    /// Makes an object, owned by the handle.
    ///
    /// # Errors
    ///
    /// The value, where there is no memory or the limit is reached.
    #[inline]
    pub fn try_boxed(&self, value: T) -> Result<SharedBoxed<'_, T>, Refused<T>> {
        self.try_create(value).map(|object| SharedBoxed { object, pool: self })
    }

    /// Makes an object that lives until [`SharedPool::destroy`], a reset, or the
    /// pool's end.
    #[inline]
    #[must_use]
    pub fn create(&self, value: T) -> NonNull<T> {
        match self.try_create(value) {
            Ok(object) => object,
            Err(_) => self.no_room(),
        }
    }

    /// Makes an object that lives until [`SharedPool::destroy`], a reset, or the
    /// pool's end.
    ///
    /// # Errors
    ///
    /// The value, where there is no memory or the limit is reached.
    #[inline]
    pub fn try_create(&self, value: T) -> Result<NonNull<T>, Refused<T>> {
        let Some(slot) = self.alloc() else { return Err(Refused(value)) };
        // SAFETY: a slot of the type's size and alignment, and ours alone.
        unsafe { slot.write(value) };
        Ok(slot)
    }

    /// Drops an object, in the calling thread, and takes its slot back, even if the
    /// drop panics.
    ///
    /// # Safety
    ///
    /// The object was created by this pool (or let go of by
    /// [`SharedBoxed::into_raw`]) and not destroyed; nobody uses it afterwards. If
    /// another thread created it, `T` is `Send`.
    #[inline]
    pub unsafe fn destroy(&self, object: NonNull<T>) {
        // Gives the slot back when it ends, however it ends.
        let _slot = Vacating { object, pool: self };
        if mem::needs_drop::<T>() {
            // SAFETY: by the contract the object is whole, and nobody's any more.
            unsafe { object.drop_in_place() };
        }
    }

    /// Makes a handle of an object again.
    ///
    /// # Safety
    ///
    /// As [`SharedPool::destroy`]: the handle will.
    pub unsafe fn own(&self, object: NonNull<T>) -> SharedBoxed<'_, T> {
        SharedBoxed { object, pool: self }
    }

    /// Objects in use, give or take what other threads do meanwhile.
    #[must_use]
    pub fn len(&self) -> usize {
        let Some(store) = self.made() else { return 0 };
        let out = store.lock().out();
        out.saturating_sub(self.in_magazines())
    }

    /// Whether no object is in use, give or take what other threads do meanwhile.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Free slots in all magazines, as far as it can be seen from here.
    fn in_magazines(&self) -> usize {
        self.magazines.all().map(Magazine::count).sum()
    }

    /// Whether an address lies in this pool's memory. O(1), under the lock; any
    /// address may be asked about.
    #[must_use]
    pub fn contains(&self, object: *const T) -> bool {
        let address = object.addr();
        self.made().is_some_and(|store| store.lock().segment_of(address).is_some())
    }

    /// Makes sure that `count` more objects can be made without asking the kernel
    /// for memory; puts pages behind them now if `touch`. False: no memory.
    pub fn preheat(&self, count: usize, touch: bool) -> bool {
        self.made_now().is_some_and(|store| store.lock().preheat(count, touch))
    }

    /// Gives every page to the kernel that holds no live object and no slot in another
    /// thread's magazine. Returns bytes.
    pub fn trim(&self) -> usize {
        let Some(store) = self.made() else { return 0 };
        self.magazines.visit(|magazine| {
            // SAFETY: `visit` makes it this thread's.
            store.lock().put(unsafe { magazine.take_all() });
        });
        store.lock().trim()
    }

    /// What there is, give or take what other threads do meanwhile.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = match self.made() {
            Some(store) => store.lock().stats(),
            None => Store::new(Self::SHAPE, self.config).stats(),
        };
        stats.live = stats.live.saturating_sub(self.in_magazines());
        stats
    }

    /// Puts the slots in all magazines into the sets.
    fn settle(&mut self) -> Option<&'static Lock<Store>> {
        let lock = self.made()?;
        let mut store = lock.lock();
        store.settle(&[]);
        for magazine in self.magazines.all() {
            // SAFETY: the pool is borrowed alone, so no thread uses a magazine.
            let twice = store.put_each(unsafe { magazine.take_all() });
            // The copies of two threads' magazines in a forked child may be of two
            // moments, and a slot in both.
            if let (Some(twice), false) = (twice, fork::has_forked()) {
                misuse::freed_twice_in_pool(store.name(), twice.addr());
            }
        }
        drop(store);
        Some(lock)
    }

    /// Calls `visit` with every live object, in order of their addresses.
    ///
    /// ```
    /// use heapwright::pool::SharedPool;
    /// let mut pool = SharedPool::new();
    /// let _two = [pool.create(1), pool.create(2)];
    /// let mut sum = 0;
    /// pool.for_each(|n| sum += *n);
    /// assert_eq!(sum, 3);
    /// ```
    pub fn for_each(&mut self, mut visit: impl FnMut(&mut T)) {
        let mut walk = Walk::default();
        while let Some(mut object) = self.next_live(&mut walk) {
            // SAFETY: a live object, and the pool is borrowed alone.
            visit(unsafe { object.as_mut() });
        }
    }

    /// The next live object. The lock is not held while code of the user's runs.
    fn next_live(&mut self, walk: &mut Walk) -> Option<NonNull<T>> {
        let store = if walk.has_begun() { self.made()? } else { self.settle()? };
        let store = store.lock();
        let (segment, slot) = store.next_out(walk)?;
        NonNull::new(store.slot(segment, slot).cast())
    }

    /// Drops what is live, in order of addresses, and keeps as much memory as `how`
    /// says. Destructors that panic are treated as by [`Pool::reset`](super::Pool::reset).
    pub fn reset(&mut self, how: Reset) {
        let mut ending = Ending { pool: self, walk: Walk::default(), how };
        ending.drop_live();
    }
}

impl<T> Default for SharedPool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for SharedPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPool").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl<T> Drop for SharedPool<T> {
    fn drop(&mut self) {
        if cfg!(feature = "checked")
            && let Some(store) = self.settle()
        {
            checked::at_end(&store.lock());
        }
        // What is left to do where a destructor panics.
        struct Rest<'p, T>(&'p mut SharedPool<T>);
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                // SAFETY: null, or an object, which is never freed.
                if let Some(slot) = unsafe { self.0.store.get_mut().as_ref() } {
                    slot.value.lock().end();
                    STORES.give(slot);
                }
            }
        }
        Rest(self).0.reset(Reset::FreeAll);
    }
}

/// Gives a slot back when it is dropped.
struct Vacating<'p, T> {
    object: NonNull<T>,
    pool: &'p SharedPool<T>,
}

impl<T> Drop for Vacating<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: whoever made this gave the object up.
        unsafe { self.pool.free(self.object) };
    }
}

/// A reset under way, which ends however a destructor does.
struct Ending<'p, T> {
    pool: &'p mut SharedPool<T>,
    walk: Walk,
    how: Reset,
}

impl<T> Ending<'_, T> {
    fn drop_live(&mut self) {
        while mem::needs_drop::<T>()
            && let Some(object) = self.pool.next_live(&mut self.walk)
        {
            // SAFETY: a live object, which the walk has passed.
            unsafe { object.drop_in_place() };
        }
    }
}

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        // What is left, if a destructor panicked.
        self.drop_live();
        if let Some(store) = self.pool.settle() {
            store.lock().reset(self.how);
        }
        *self.pool.live.get_mut() = 0;
    }
}

/// An object of a [`SharedPool`], owned: dropping it drops the object and gives its
/// slot back, in whichever thread.
pub struct SharedBoxed<'p, T> {
    object: NonNull<T>,
    pool: &'p SharedPool<T>,
}

// SAFETY: the handle owns the object; the pool is for many threads.
unsafe impl<T: Send> Send for SharedBoxed<'_, T> {}
// SAFETY: a shared handle gives shared references alone.
unsafe impl<T: Sync> Sync for SharedBoxed<'_, T> {}

impl<T> SharedBoxed<'_, T> {
    /// The object itself; its slot is free.
    #[must_use]
    pub fn into_inner(self) -> T {
        let boxed = ManuallyDrop::new(self);
        let _slot = Vacating { object: boxed.object, pool: boxed.pool };
        // SAFETY: the handle owned the object, and is gone.
        unsafe { boxed.object.read() }
    }

    /// Lets go of the object: [`SharedPool::destroy`], [`SharedPool::own`], a reset or
    /// the pool's end will drop it.
    #[must_use]
    pub fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).object
    }
}

impl<T> Deref for SharedBoxed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the handle owns the object.
        unsafe { self.object.as_ref() }
    }
}

impl<T> DerefMut for SharedBoxed<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the handle owns the object, and is borrowed alone.
        unsafe { self.object.as_mut() }
    }
}

impl<T> Drop for SharedBoxed<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle owned the object, and is gone.
        unsafe { self.pool.destroy(self.object) };
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedBoxed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for SharedBoxed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Chooses how a [`SharedPool`] is made.
pub struct SharedBuilder<T> {
    config: Config,
    made: PhantomData<fn() -> T>,
}

super::builder_choices!(SharedBuilder<T>);

impl<T> SharedBuilder<T> {
    /// The pool, empty.
    #[must_use]
    pub const fn build(self) -> SharedPool<T> {
        // Here, so that a type that no pool can hold is refused when this is compiled.
        let _ = SharedPool::<T>::SHAPE;
        SharedPool {
            magazines: Places::new(),
            store: AtomicPtr::new(ptr::null_mut()),
            config: self.config,
            live: AtomicU32::new(0),
            objects: PhantomData,
        }
    }
}

#[cfg(test)]
impl<T> SharedPool<T> {
    /// Objects as the limit counts them.
    pub(super) fn live_now(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    /// Magazines with slots in them, and slots.
    pub(super) fn magazines_now(&self) -> (usize, usize) {
        let all = self.magazines.all().map(Magazine::count).filter(|&count| count > 0);
        all.fold((0, 0), |(magazines, slots), count| (magazines + 1, slots + count))
    }

    /// Magazines that were made.
    pub(super) fn made_magazines(&self) -> usize {
        self.magazines.all().count()
    }

    /// A magazine for the calling thread, if there is one, until this is dropped.
    pub(super) fn enter_one(&self) -> Option<impl Sized> {
        self.magazines.enter()
    }
}
