//! A thread's cache of the hardened heap: for each class one ring of free slots, through no byte of theirs.
//!
//! ```text
//!   cache   | hot stub | ring of class 0 | ring of class 1 | ... | entries of ring 0 | entries of ring 1 | ...
//!
//!   ring    entries   . . | oldest ......................... newest | . .
//!                           ^ head: the next that malloc takes      ^ free puts here
//!                           |------- more than `keep` --------------|
//!   entry   the slot's first byte | its word
//! ```
//!
//! A ring is a quarantine and a list of what can be had at once: `malloc` takes the oldest entry, as long as more than `keep`
//! are there, so a freed slot is not handed out again before as many others were. Where there are no more, slots are drawn
//! from the class's slabs, and come out first, in random order; where the ring is full, the older half goes back to
//! them. With `hardened:full` what is freed changes places with a random entry of the ring.
//!
//! Caches lie in a reservation of their own at a random place, each between guards, so no overflow of a block reaches one.
//!
//! **Signal handlers.** The count of a ring is below zero while its thread is in the middle of it, so a handler that
//! interrupted it there goes to the slabs directly (`mod`).
//!
//! **Misuse.** A slot is handed out only if its word says that it is in a ring, and its first 16 bytes are zero; it is taken
//! only if its word says that it is live and made by the kind of call that frees it, and its canary is as it was. All
//! else is the cold way's.
//!
//! Invariants: only its thread changes a cache, but for one that ended, which has none. A cache is never freed.
//!
//! Called by `mod`.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::ptr;

use super::random::Random;
use super::settings;
use super::slabs;
use super::slots::{self, A_UNIT, Slot};
use super::word::{self, CANARY, IN_RING};
use crate::address_map::{CLASS_STEP, Entry, HARDENED, MAP, SLAB_KINDS};
use crate::cache::{Hot, HotStub};
use crate::chunk;
use crate::os::{Memory, SYSTEM};
use crate::request::Origin;
use crate::size_class::{self, CLASSES, LINEAR_MAX, MIN_ALIGN, UNIT};
use crate::sync::Lock;
use crate::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU16, AtomicU32, Ordering, compiler_fence,
};

/// A free slot in a ring.
#[repr(C)]
struct Place {
    block: AtomicPtr<u8>,
    word: AtomicPtr<AtomicU16>,
}

/// Free slots of a class, in a circle.
#[repr(C, align(64))]
pub(super) struct Ring {
    /// The place of the oldest, and how many there are: below zero while the thread is in the middle of a change.
    head: AtomicU32,
    count: AtomicI32,
    /// So many stay.
    keep: i32,
    /// Room for so many, a power of two, less one.
    mask: u32,
    /// The class's, so that nothing else needs to be read.
    size: u32,
    reciprocal: u32,
    /// Slots that the next refill draws.
    batch: AtomicU32,
    /// What is freed changes places with another entry, and what that was chosen by.
    shuffles: bool,
    order: AtomicU32,
    places: *const Place,
}

const RING_STEP: usize = size_of::<Ring>() / CLASS_STEP;
const _: () = assert!(size_of::<Ring>() == 64);

/// One thread's.
#[repr(C, align(64))]
pub(crate) struct Cache {
    /// What the thread's fast word leads to.
    stub: HotStub,
    rings: [Ring; CLASSES],
    /// The thread is in a slow path.
    is_busy: AtomicBool,
    random: UnsafeCell<Random>,
    /// The cache made before this one, and the next one that no thread has.
    older: *const Cache,
    unused: AtomicPtr<Cache>,
}

// SAFETY: a cache is changed by its thread alone; others read counts, which are atomics.
unsafe impl Sync for Cache {}

const _: () = assert!(offset_of!(Cache, stub) == 0);

/// Places in the ring of a class: a power of two.
const fn room(class: usize, full: bool) -> usize {
    let places = match size_class::size(class) {
        0..=512 => 64,
        513..=2048 => 32,
        2049..=8192 => 8,
        _ => 4,
    };
    if full { places * 2 } else { places }
}

/// Entries that stay in the ring of a class: 16, or 8 KiB; twice as many with `full`.
const fn keep(class: usize, full: bool) -> usize {
    let most = (8 << 10) / size_class::size(class);
    let keep = if most > 16 { 16 } else { most };
    let keep = if full { keep * 2 } else { keep };
    if keep == 0 { 1 } else { keep }
}

/// Bytes of a cache with its places.
const fn bytes(full: bool) -> usize {
    let mut places = 0;
    let mut class = 0;
    while class < CLASSES {
        places += room(class, full);
        class += 1;
    }
    size_of::<Cache>() + places * size_of::<Place>()
}

/// Where caches lie.
struct Area {
    at: *mut u8,
    size: usize,
    used: usize,
    newest: *const Cache,
    unused: *const Cache,
}

// SAFETY: the pointers lead to what is never freed.
unsafe impl Send for Area {}

/// Bytes of address space for caches: some 16,000 threads', or 150 where it is scarce. Other threads have none.
const AREA: usize = 1 << 30;
const SCARCE_AREA: usize = 8 << 20;

static CACHES: Lock<Area> = Lock::new(Area {
    at: ptr::null_mut(),
    size: 0,
    used: 0,
    newest: ptr::null(),
    unused: ptr::null(),
});
/// The newest cache, for those that look at all.
static NEWEST: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

impl Cache {
    /// The calling thread's cache, by its fast word, which leads to a hardened stub.
    #[inline(always)]
    pub(super) fn of(hot: &Hot) -> &'static Self {
        debug_assert!(hot.is_hardened());
        // SAFETY: a hardened stub is the first field of a cache, and caches are never freed.
        unsafe { &*ptr::from_ref(hot).cast::<Self>() }
    }

    /// What a thread's fast word leads to.
    pub(crate) fn stub(&self) -> *mut u8 {
        ptr::from_ref(&self.stub).cast_mut().cast()
    }

    /// One for the calling thread: an ended thread's, or a new one. `None`: there is no memory.
    pub(crate) fn adopt_or_make() -> Option<&'static Self> {
        let mut area = CACHES.lock();
        // SAFETY: null, or a cache, which is never freed.
        if let Some(cache) = unsafe { area.unused.as_ref() } {
            area.unused = cache.unused.load(Ordering::Relaxed);
            return Some(cache);
        }
        let full = settings::get().full;
        let page = SYSTEM.page_size();
        let size = bytes(full).next_multiple_of(page);
        if area.at.is_null() {
            area.size = if chunk::is_scarce() { SCARCE_AREA } else { AREA };
            area.at = chunk::reserve_anywhere(area.size);
        }
        if area.at.is_null() || area.used + size + page > area.size {
            return None;
        }
        // A page before it stays inaccessible.
        let at = area.at.wrapping_add(area.used + page);
        // SAFETY: a part of the reservation that is not used yet, in whole pages.
        if !unsafe { SYSTEM.commit(at, size) } {
            return None;
        }
        area.used += page + size;
        let made = at.cast::<Self>();
        // SAFETY: fresh memory, which reads as zero: a cache without a place, which no other thread knows.
        let cache = unsafe { &mut *made };
        cache.begin(at.wrapping_add(size_of::<Self>()).cast(), full);
        cache.older = area.newest;
        area.newest = made;
        NEWEST.store(made, Ordering::Release);
        // SAFETY: made above, and never freed.
        Some(unsafe { &*made })
    }

    /// Begins one of zeros.
    fn begin(&mut self, mut places: *mut Place, full: bool) {
        self.stub.become_hardened();
        for (class, ring) in self.rings.iter_mut().enumerate() {
            let room = room(class, full);
            ring.keep = keep(class, full) as i32;
            ring.mask = room as u32 - 1;
            ring.size = size_class::size(class) as u32;
            ring.reciprocal = size_class::reciprocal(class);
            ring.shuffles = full;
            *ring.order.get_mut() = ring.reciprocal ^ settings::get().secret as u32;
            ring.places = places;
            ring.batch.store(4, Ordering::Relaxed);
            places = places.wrapping_add(room);
        }
        super::seed(self.random.get_mut());
    }

    /// The thread ends: its slots go back, and another thread may have the cache.
    pub(crate) fn leave(&'static self) {
        for class in 0..CLASSES {
            self.give_back(class, 0);
        }
        let mut area = CACHES.lock();
        self.unused.store(area.unused.cast_mut(), Ordering::Relaxed);
        area.unused = self;
    }

    /// Gives the older slots of a class back until no more than `keep` are left.
    pub(super) fn give_back(&self, class: usize, keep: i32) {
        let ring = &self.rings[class];
        let count = ring.count.load(Ordering::Relaxed);
        if count <= keep {
            return;
        }
        ring.count.store(-1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let head = ring.head.load(Ordering::Relaxed);
        let goes = (count - keep) as u32;
        slabs::put(class, (0..goes).map(|at| ring.slot(class, head + at)));
        ring.head.store((head + goes) & ring.mask, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        ring.count.store(keep, Ordering::Relaxed);
    }

    /// Gives the slots of all classes back that need not wait.
    pub(super) fn trim(&self) {
        for (class, ring) in self.rings.iter().enumerate() {
            self.give_back(class, ring.keep);
        }
    }

    /// Draws slots into the ring of a class, so that more than `keep` are there. False: there is no memory, or this is a signal
    /// handler that interrupted a slow path.
    pub(super) fn refill(&self, class: usize) -> bool {
        let ring = &self.rings[class];
        let count = ring.count.load(Ordering::Relaxed);
        if count < 0 || self.is_busy.swap(true, Ordering::Relaxed) {
            return false;
        }
        ring.count.store(-1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let room = ring.mask as usize + 1;
        let batch = ring.batch.load(Ordering::Relaxed) as usize;
        let least = (ring.keep + 1 - count).max(1) as usize;
        let want = batch.max(least).min(room - count as usize);
        let head = ring.head.load(Ordering::Relaxed);
        let mut drawn = 0u32;
        slabs::draw(class, want, |slot| {
            drawn += 1;
            ring.place(head.wrapping_sub(drawn)).set(slot.block, slot.word);
        });
        let head = head.wrapping_sub(drawn) & ring.mask;
        // SAFETY: the thread is in one slow path at a time, and only there are its random numbers used.
        let random = unsafe { &mut *self.random.get() };
        for at in (1..drawn).rev() {
            let other = random.below(at as usize + 1) as u32;
            ring.place(head + at).change_with(ring.place(head + other));
        }
        ring.head.store(head, Ordering::Relaxed);
        ring.batch.store((batch * 2).min(room / 2) as u32, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let count = count + drawn as i32;
        ring.count.store(count, Ordering::Relaxed);
        self.is_busy.store(false, Ordering::Relaxed);
        // Where there is no more memory, none has to wait.
        drawn > 0
    }

    /// Takes the oldest slot of a class for a block of `asked` bytes with this maker. Null: there are too few.
    #[inline(always)]
    pub(super) fn pop(&self, ring: &Ring, asked: usize, maker: u16) -> Result<*mut u8, Refused> {
        let count = ring.count.load(Ordering::Relaxed);
        if count <= ring.keep {
            return Err(Refused::TooFew);
        }
        ring.count.store(-1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let head = ring.head.load(Ordering::Relaxed);
        let place = ring.place(head);
        let block = place.block.load(Ordering::Relaxed);
        // SAFETY: a place that is counted holds the word of a slot.
        let word = unsafe { &*place.word.load(Ordering::Relaxed) };
        ring.head.store((head + 1) & ring.mask, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        ring.count.store(count - 1, Ordering::Relaxed);
        let looked_at = if ring.shuffles { ring.size as usize } else { MIN_ALIGN };
        // SAFETY: bytes of a free slot, which is this thread's.
        let is_zero = unsafe { slots::is_zero(block, looked_at) };
        if word.load(Ordering::Relaxed) != IN_RING || !is_zero {
            return Err(Refused::Changed(block));
        }
        let slack = ring.size as usize - CANARY - asked;
        word.store(word::live(maker, slack), Ordering::Relaxed);
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: the slot has room for the bytes asked for and the canary, and it is the caller's.
        unsafe { block.wrapping_add(asked).cast::<u64>().write_unaligned(canary) };
        Ok(block)
    }

    /// The ring of a class.
    #[inline(always)]
    pub(super) fn ring(&self, class: usize) -> &Ring {
        &self.rings[class]
    }

    /// Serves a request of a linear class. Null: the cold way must.
    #[inline(always)]
    pub(super) fn malloc<const FROM: u8>(&self, size: usize) -> *mut u8 {
        if size.wrapping_sub(1) >= LINEAR_MAX - CANARY {
            return ptr::null_mut();
        }
        let class = (size + CANARY - 1) / MIN_ALIGN;
        let maker = const { word::maker(Origin::of::<FROM>()) };
        self.pop(&self.rings[class], size, maker).unwrap_or(ptr::null_mut())
    }

    /// Takes a block back if all is as it should be. False: the cold way must look.
    ///
    /// # Safety
    ///
    /// As `free`.
    #[inline(always)]
    pub(super) unsafe fn free<const FROM: u8>(&self, block: *mut u8) -> bool {
        let (unit, entry) = MAP.lookup(block.addr());
        let kind = (entry.0 ^ const { Entry::tag(HARDENED) }) as usize;
        if kind >= SLAB_KINDS {
            return false;
        }
        let ring = ptr::from_ref(&self.rings).cast::<u8>().wrapping_add(kind * RING_STEP);
        // SAFETY: the kind of a slab, so this is the ring of its class.
        let ring = unsafe { &*ring.cast::<Ring>() };
        let product = (block.addr() & (UNIT - 1)) as u64 * u64::from(ring.reciprocal);
        if product as u32 >= UNIT as u32 {
            return false;
        }
        let index = (product >> 32) as usize;
        let word_at = settings::get().words.wrapping_add(unit * A_UNIT + index);
        // SAFETY: a unit has words for as many slots of 16 bytes as it has room for, and a slab's are committed.
        let word = unsafe { &*word_at };
        let known = word.load(Ordering::Relaxed);
        if word::maker_of(known) != const { word::maker(Origin::of::<FROM>()) } {
            return false;
        }
        let asked = ring.size as usize - CANARY - word::slack_of(known);
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: the slot of a live block has room for the bytes asked for and the canary.
        if unsafe { block.wrapping_add(asked).cast::<u64>().read_unaligned() } != canary {
            return false;
        }
        let count = ring.count.load(Ordering::Relaxed);
        if count as u32 > ring.mask {
            return false;
        }
        word.store(IN_RING, Ordering::Relaxed);
        // SAFETY: the whole slot, which the caller gives away.
        unsafe { slots::clear(block, ring.size as usize) };
        ring.push(count, block, word_at);
        true
    }

    /// Takes a slot back that was just freed, and makes room if there is none. False: this is a signal handler that
    /// interrupted its thread in the middle of the ring.
    pub(super) fn keep(&self, slot: Slot) -> bool {
        let ring = &self.rings[slot.class];
        let count = ring.count.load(Ordering::Relaxed);
        if count < 0 {
            return false;
        }
        if count as u32 > ring.mask {
            if self.is_busy.swap(true, Ordering::Relaxed) {
                return false;
            }
            self.give_back(slot.class, count / 2);
            self.is_busy.store(false, Ordering::Relaxed);
        }
        let count = ring.count.load(Ordering::Relaxed);
        ring.push(count, slot.block, slot.word);
        true
    }

    /// Slots and bytes in all rings of all threads.
    pub(super) fn held_by_all() -> (usize, usize) {
        let (mut slots, mut bytes) = (0, 0);
        for cache in all() {
            for ring in &cache.rings {
                let count = ring.count.load(Ordering::Relaxed).max(0) as usize;
                slots += count;
                bytes += count * ring.size as usize;
            }
        }
        (slots, bytes)
    }
}

/// Why no slot was taken from a ring.
pub(super) enum Refused {
    /// No more than must stay are there, or the thread is in the middle of it.
    TooFew,
    /// A slot that was taken out is not as it should be, and is in no ring now.
    Changed(*mut u8),
}

impl Ring {
    #[inline(always)]
    fn place(&self, at: u32) -> &Place {
        let place = self.places.wrapping_add((at & self.mask) as usize);
        // SAFETY: one of the ring's places, which live as long as the cache.
        unsafe { &*place }
    }

    fn slot(&self, class: usize, at: u32) -> Slot {
        let block = self.place(at).block.load(Ordering::Relaxed);
        let unit = MAP.unit_of(block.addr());
        let index = size_class::slot_of(class, block.addr() & (UNIT - 1));
        Slot { block, word: slots::word_of(unit, index), class, unit, index, is_empty: false }
    }

    /// Puts a free slot behind the newest of `count`, for which there is room.
    #[inline(always)]
    fn push(&self, count: i32, block: *mut u8, word: *const AtomicU16) {
        self.count.store(-1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let at = self.head.load(Ordering::Relaxed) + count as u32;
        let place = self.place(at);
        place.set(block, word);
        if self.shuffles {
            self.shuffle(at, count);
        }
        compiler_fence(Ordering::SeqCst);
        self.count.store(count + 1, Ordering::Relaxed);
    }

    /// Changes the newest entry with another one. The choice is made from the slot's address and what was chosen before, by a
    /// generator that is quick and not secret: the order in which the slots were drawn is.
    #[inline(always)]
    fn shuffle(&self, newest: u32, count: i32) {
        let order =
            self.order.load(Ordering::Relaxed).wrapping_add(newest).wrapping_mul(0x9e37_79b1);
        self.order.store(order, Ordering::Relaxed);
        let other = ((u64::from(order) * count as u64) >> 32) as u32;
        self.place(newest).change_with(self.place(self.head.load(Ordering::Relaxed) + other));
    }
}

impl Place {
    #[inline(always)]
    fn set(&self, block: *mut u8, word: *const AtomicU16) {
        self.block.store(block, Ordering::Relaxed);
        self.word.store(word.cast_mut(), Ordering::Relaxed);
    }

    #[inline(always)]
    fn change_with(&self, other: &Self) {
        let (block, word) = (self.block.load(Ordering::Relaxed), self.word.load(Ordering::Relaxed));
        self.set(other.block.load(Ordering::Relaxed), other.word.load(Ordering::Relaxed));
        other.set(block, word);
    }
}

/// All caches that were made.
fn all() -> impl Iterator<Item = &'static Cache> {
    // SAFETY: null, or a cache, which is never freed.
    let first = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    // SAFETY: null, or a cache, which is never freed.
    core::iter::successors(first, |cache| unsafe { cache.older.as_ref() })
}

/// Holds the lock across a fork.
pub(super) fn before_fork() {
    CACHES.acquire();
}

/// Gives the lock back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: by the contract this thread (or the one it is a copy of) holds it.
    unsafe { CACHES.release() };
}

/// In a forked child: what other threads held is lost, once, and their caches can be had. `mine` draws anew.
pub(super) fn forget_after_fork(mine: Option<&'static Cache>) {
    let mut area = CACHES.lock();
    area.unused = ptr::null();
    for cache in all() {
        if mine.is_some_and(|mine| ptr::eq(mine, cache)) {
            // SAFETY: the only thread there is.
            super::seed(unsafe { &mut *cache.random.get() });
            continue;
        }
        for ring in &cache.rings {
            ring.count.store(0, Ordering::Relaxed);
        }
        cache.is_busy.store(false, Ordering::Relaxed);
        cache.unused.store(area.unused.cast_mut(), Ordering::Relaxed);
        area.unused = cache;
        // SAFETY: the only thread there is.
        super::seed(unsafe { &mut *cache.random.get() });
    }
}
