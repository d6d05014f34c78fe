//! A thread's cache of the hardened heap: one ring of free slots for each class. No list runs
//! through the slots' own bytes.
//!
//! ```text
//!   cache   | hot stub | ring of class 0 | ring 1 | ... | entries of ring 0 | of ring 1 | ...
//!
//!   ring    entries   . . | ready ......... | waiting ................ newest | . .
//!                           ^ head            ^ ready               tail: free ^ puts here
//!                             malloc takes      the quarantine
//!   entry   the slot's address | its word's address
//! ```
//!
//! A ring is both a list of slots to allocate and a quarantine. `malloc` takes the oldest ready
//! entry. If none is ready, the oldest waiting entries become ready, and the newest [`Ring::stays`]
//! go on waiting. So a freed slot comes out only after that many other slots were freed. If too few
//! wait, a refill draws slots from the class's slabs, and `malloc` takes these first, in random
//! order. A full ring gives its oldest entries back to the slabs. With `hardened:full` a freed slot
//! changes places with a random one of the newest entries.
//!
//! A forked child shuffles each ring before it takes the first entry. So parent and children hand
//! out slots in different orders. Signal handlers may interrupt any call, and allocate: see
//! [`PENDING`]. The slot's word and canary reveal misuse: see [`Cache`].
//!
//! Invariants: the word of each slot in a ring says that the slot is in a ring, and each slot is in
//! one place. Places of pending calls are excepted. Only a cache's own thread changes the cache.
//! The cache of an ended thread has no thread. A cache is never freed. Called by `mod`, and by
//! `heap::start` when a thread begins or ends.

use core::cell::{Cell, UnsafeCell};
use core::iter;
use core::mem::offset_of;
use core::ptr;

use super::random::{MOST_SHUFFLED, Random};
use super::settings;
use super::slabs;
use super::slots::{self, A_UNIT, Free};
use super::word::{self, CANARY, IN_RING, MOST_SLACK};
use crate::address_map::{self, CLASS_STEP, Entry, HARDENED, MAP, SLAB_KINDS};
use crate::cache::draw::is_early;
use crate::cache::{Hot, HotStub, Serve};
use crate::chunk;
use crate::os::{self, Memory, SYSTEM, prefetch};
use crate::request::Origin;
use crate::size_class::{self, CLASSES, LINEAR_MAX, MIN_ALIGN, UNIT};
use crate::sync::Lock;
use crate::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU16, AtomicU32, AtomicUsize, Ordering, compiler_fence,
};

#[repr(C)]
struct Place {
    block: AtomicPtr<u8>,
    word: AtomicPtr<AtomicU16>,
}

/// Free slots of a class, in a circle. The counters of places wrap around, and are taken modulo the
/// room. They count bytes: multiples of [`PLACE`].
#[repr(C, align(64))]
pub(super) struct Ring {
    /// The place of the oldest entry, and the place behind the newest entry.
    head: AtomicU32,
    tail: AtomicU32,
    /// The place behind the last ready entry; [`FAR`] before the oldest while the ring is shut.
    /// Only slow paths change it. Pending calls may take a few waiting entries.
    ready: AtomicU32,
    /// The fast path puts a freed slot only while the ring has at most this many entries:
    /// [`Ring::full`], [`SHUT`] or [`NONE_COMES`].
    most: AtomicI32,
    /// The room, a power of two, less an entry.
    mask: Cell<u32>,
    /// The word of a block of `malloc` with 0 bytes. The word of a block with n bytes is n less.
    longest: u32,
    /// The reciprocal of the class's size, as wide as the offset that it is multiplied by.
    reciprocal: u64,
    /// Bytes of a slot without its canary.
    room: u32,
    /// Slots that the next refill draws; 0 after a fork, until a slow path shuffles all entries.
    batch: AtomicU16,
    /// The fewest entries that become ready at a time, and the most that need not wait.
    renewed: u8,
    spare: u8,
    order: AtomicU32,
    /// The fewest entries that wait.
    stays: Cell<i32>,
    /// The ring takes one more slot while it has at most this many entries.
    full: Cell<i32>,
    /// A new entry changes places with one of this many newest entries. All of these wait.
    reach: Cell<i32>,
    places: *const Place,
}

const PLACE: u32 = size_of::<Place>() as u32;
/// The most calls of one thread that may be pending at a time. Signal handlers may interrupt a call
/// or one another, and may allocate. An interrupted call is *pending* if it has read the counters,
/// but has not taken its place (`step`), or has not read the place.
///
/// - The fast path does not use the last [`PENDING`] entries and the last [`PENDING`] free places.
/// - A slow path (a refill, or slots that go back) may run in a handler. It does not write to the
///   [`PENDING`] places before the oldest entry, unless no pending call reads there
///   ([`Cache::refill`]). At least [`LEAST_WAIT`] entries go on waiting.
/// - A thread in a slow path makes its cache *busy* and the ring *shut*, so no entry is ready.
///   Handlers do not use a shut ring, but go to the slabs directly (`mod`). `free` also sets
///   [`SHUT`] while it writes a place, so no slow path moves that place.
const PENDING: i32 = 3;
const LEAST_WAIT: i32 = 2 * PENDING + 1;
const FAR: u32 = 1 << 30;
/// The most entries that go back to the slabs at a time to make room, times [`PLACE`].
const MOST_GOES: i32 = 256 * PLACE as i32;
/// [`Ring::reach`] with `hardened:full`, if enough entries wait. (Not times [`PLACE`].)
const REACH: i32 = 256;
/// [`Ring::most`] if the slots are too long for the fast path, and while the ring is shut.
const NONE_COMES: i32 = -1;
const SHUT: i32 = -2;
/// The longest slots that the fast path takes back and clears.
const QUICK: u32 = 1024;
/// Slots of at least this length are verified whole, also with `hardened:light`.
pub(super) const LONG: usize = 1 << 10;
/// The longest slots that the fast path hands out. `malloc` calls pend only in rings of these.
const SHORT: usize = size_class::size(size_class::of(LINEAR_MAX + CANARY));
/// The word of a block of `malloc` without slack.
const LEAST_LIVE: u32 = word::live(word::maker(Origin::Malloc, false), 0) as u32;
const HEAD: usize = offset_of!(Ring, head);
const TAIL: usize = offset_of!(Ring, tail);
#[cfg(target_arch = "x86_64")]
const READY: usize = offset_of!(Ring, ready);
#[cfg(target_arch = "x86_64")]
const MOST: usize = offset_of!(Ring, most);
const RINGS: usize = offset_of!(Cache, rings);
const RING_STEP: usize = size_of::<Ring>() / CLASS_STEP;
const _: () = assert!(size_of::<Ring>() == 64);

/// The cache of one thread. `malloc` hands out a slot only if its word says "in a ring" and its
/// first 16 bytes (full, or long slots: all bytes) are zero. `free` takes a slot only if its canary
/// is intact and its word says "live", with a matching maker.
#[repr(C, align(64))]
pub(crate) struct Cache {
    /// The stub that the thread's fast word leads to.
    stub: HotStub,
    rings: [Ring; CLASSES],
    reach: i32,
    /// Bytes by which the waiting entries of all rings have grown: see [`budget`].
    grown: Cell<usize>,
    renewals: Cell<u32>,
    is_busy: AtomicBool,
    random: UnsafeCell<Random>,
    /// The cache made before this cache, and the next cache without a thread.
    older: *const Cache,
    unused: AtomicPtr<Cache>,
    /// Whether slots wait in this cache while no thread has it.
    is_filled: Cell<bool>,
}

// SAFETY: only its thread changes a cache. Other threads read counts, which are atomics.
unsafe impl Sync for Cache {}

const _: () = assert!(offset_of!(Cache, stub) == 0);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    full: bool,
    is_limited: bool,
}

impl Shape {
    #[inline]
    fn of_process() -> Self {
        let settings = settings::get();
        Self { full: settings.full, is_limited: settings.is_limited }
    }
}

const fn most_drawn(class: usize, shape: Shape) -> usize {
    let most = match size_class::size(class) {
        0..=512 => 32,
        513..=2048 => 16,
        2049..=8192 => 8,
        _ => 4,
    };
    if shape.full { most * 2 } else { most }
}

const fn first_stays(class: usize, shape: Shape) -> usize {
    let most = (8 << 10) / size_class::size(class);
    let stays = if most > 16 { 16 } else { most };
    let stays = if shape.full { stays * 2 } else { stays };
    if stays == 0 { 1 } else { stays }
}

const fn last_stays(class: usize, shape: Shape) -> usize {
    let first = first_stays(class, shape);
    let (slots, bytes) = (if shape.full { 1984 } else { 320 }, budget(shape));
    let most = bytes / size_class::size(class);
    let last = if most > slots { slots } else { most };
    if shape.is_limited || last < first { first } else { last }
}

/// Returns the bytes by which the waiting slots in all rings of a thread may grow together.
const fn budget(shape: Shape) -> usize {
    if shape.full { 416 << 10 } else { 80 << 10 }
}

const fn renewed(class: usize, shape: Shape) -> usize {
    let (slots, bytes) = if shape.full { (128, 16 << 10) } else { (96, 12 << 10) };
    let most = bytes / size_class::size(class);
    let renewed = if most > slots { slots } else { most };
    let last = last_stays(class, shape);
    let renewed = if renewed > last { last } else { renewed };
    if renewed == 0 { 1 } else { renewed }
}

const fn spare(class: usize, shape: Shape) -> usize {
    renewed(class, shape) + most_drawn(class, shape) * 3 / 2
}

const fn room(class: usize, shape: Shape, stays: usize) -> usize {
    (stays + spare(class, shape) + 1 + PENDING as usize).next_power_of_two()
}

/// Few places, so they stay in the processor's caches.
const fn first_room(class: usize, shape: Shape) -> usize {
    room(class, shape, first_stays(class, shape))
}

const fn last_room(class: usize, shape: Shape) -> usize {
    room(class, shape, last_stays(class, shape))
}

// At least [`LEAST_WAIT`] entries wait in a ring with pending calls. A refill has room.
const _: () = {
    let mut class = 0;
    while class < CLASSES {
        let mut kind = 0;
        while kind < 4 {
            let shape = Shape { full: kind & 1 != 0, is_limited: kind & 2 != 0 };
            let is_short = size_class::size(class) <= SHORT;
            assert!(!is_short || first_stays(class, shape) >= LEAST_WAIT as usize);
            assert!(last_room(class, shape) <= MOST_SHUFFLED as usize);
            assert!(renewed(class, shape) <= first_room(class, shape));
            assert!(spare(class, shape) <= u8::MAX as usize);
            kind += 1;
        }
        assert!(size_class::size(class) < LONG || size_class::size(class).is_multiple_of(128));
        class += 1;
    }
};

const fn bytes(shape: Shape) -> usize {
    let mut places = 0;
    let mut class = 0;
    while class < CLASSES {
        places += last_room(class, shape);
        class += 1;
    }
    // `pop` reads one place behind the last.
    size_of::<Cache>() + (places + 1) * size_of::<Place>()
}

/// The reservation for all caches, at a random address. Each cache lies between guards.
struct Area {
    at: *mut u8,
    size: usize,
    used: usize,
    newest: *const Cache,
    /// Caches that no thread has. In `filled` of them slots wait.
    unused: *const Cache,
    filled: usize,
}

// SAFETY: the pointers lead to caches, which are never freed.
unsafe impl Send for Area {}

/// Address space reserved for caches: at first, of 20,000 threads (limited: 40) or more.
const AREA: usize = 8 << 30;
const FULL_AREA: usize = 32 << 30;
const LIMITED_AREA: usize = 8 << 20;
/// Twice this many caches in use, and each further doubling, halve the limit of waiting slots.
const MANY: usize = 16;
/// The most caches that have no thread, but slots that wait for the next thread.
const MOST_FILLED: usize = 4;

static CACHES: Lock<Area> = Lock::new(Area {
    at: ptr::null_mut(),
    size: 0,
    used: 0,
    newest: ptr::null(),
    unused: ptr::null(),
    filled: 0,
});
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static NEWEST: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

impl Cache {
    /// Returns the calling thread's cache. `hot` is the hardened stub that its fast word leads to.
    #[inline(always)]
    pub(super) fn of(hot: &Hot) -> &'static Self {
        // SAFETY: a hardened stub is the first field of a cache, and caches are never freed.
        unsafe { &*ptr::from_ref(hot).cast::<Self>() }
    }

    /// Returns a cache for the calling thread: an ended thread's, or a new one if memory allows.
    pub(crate) fn adopt_or_make(serve: &'static Serve) -> Option<&'static Self> {
        let mut area = CACHES.lock();
        // SAFETY: the pointer is null or leads to a cache, which is never freed.
        if let Some(cache) = unsafe { area.unused.as_ref() } {
            area.unused = cache.unused.load(Ordering::Relaxed);
            area.filled = area.filled.saturating_sub(cache.is_filled.take().into());
            IN_USE.fetch_add(1, Ordering::Relaxed);
            return Some(cache);
        }
        let shape = Shape::of_process();
        let page = SYSTEM.page_size();
        let size = bytes(shape).next_multiple_of(page);
        if area.used + page + size > area.size {
            area.size = match shape {
                // (The rest of the first area went, or all of it is used.)
                _ if !area.at.is_null() => LIMITED_AREA.max(page + size),
                Shape { is_limited: true, .. } => LIMITED_AREA,
                Shape { full: true, .. } => FULL_AREA,
                _ => AREA,
            };
            let at = chunk::reserve_anywhere(area.size);
            if at.is_null() {
                area.size = 0;
                return None;
            }
            (area.at, area.used) = (at, 0);
        }
        // A page before the cache stays inaccessible.
        let at = area.at.wrapping_add(area.used + page);
        // SAFETY: the range is an unused part of the reservation, in whole pages.
        if !unsafe { SYSTEM.commit(at, size) } {
            return None;
        }
        // SAFETY: the pages were just committed. (Without huge pages, a thread that uses few
        // classes touches few pages.)
        unsafe { os::advise_huge_pages(at, size, false) };
        area.used += page + size;
        let made = at.cast::<Self>();
        // SAFETY: fresh memory reads as zero, a cache without places. No other thread knows it.
        let cache = unsafe { &mut *made };
        cache.begin(serve, at.wrapping_add(size_of::<Self>()).cast(), shape);
        IN_USE.fetch_add(1, Ordering::Relaxed);
        cache.older = area.newest;
        area.newest = made;
        NEWEST.store(made, Ordering::Release);
        // SAFETY: the cache was made above, and is never freed.
        Some(unsafe { &*made })
    }

    /// Fills in a cache that reads as zero.
    fn begin(&mut self, serve: &'static Serve, mut places: *mut Place, shape: Shape) {
        self.stub.become_hardened(serve);
        self.reach = if shape.full { REACH * PLACE as i32 } else { 0 };
        for (class, ring) in self.rings.iter_mut().enumerate() {
            let (stays, size) = (first_stays(class, shape), size_class::size(class) as u32);
            ring.stays.set(stays as i32 * PLACE as i32);
            ring.mask.set((first_room(class, shape) as u32 - 1) * PLACE);
            ring.reciprocal = size_class::reciprocal(class).into();
            ring.room = size - CANARY as u32;
            ring.longest = ring.room + LEAST_LIVE;
            ring.renewed = renewed(class, shape) as u8;
            ring.spare = spare(class, shape) as u8;
            *ring.order.get_mut() = self.random.get_mut().next();
            ring.places = places;
            ring.batch.store(1, Ordering::Relaxed);
            ring.open(0, self.reach);
            places = places.wrapping_add(last_room(class, shape));
        }
    }

    /// Leaves the cache of an ending thread to the next thread. In a few caches the slots go on
    /// waiting, so that not every short-lived thread has to draw a quarantine.
    pub(crate) fn leave(&'static self) {
        let mut area = CACHES.lock();
        let is_filled = area.filled < MOST_FILLED;
        area.filled += usize::from(is_filled);
        drop(area);
        for class in 0..CLASSES {
            let left = self.slowly(class, |ring, ready| {
                let leave = if is_filled { ring.stays.get() } else { 0 };
                Self::give_back(class, ring, ready, leave);
            });
            if left.is_none() {
                // A signal handler ends the thread inside a call: no other thread gets this cache.
                let mut area = CACHES.lock();
                area.filled = area.filled.saturating_sub(is_filled.into());
                return;
            }
        }
        self.is_filled.set(is_filled);
        let mut area = CACHES.lock();
        self.unused.store(area.unused.cast_mut(), Ordering::Relaxed);
        area.unused = self;
        IN_USE.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives the oldest entries back down to `leave`, unless a handler would wait for the class's
    /// lock. The ring must be shut.
    fn give_back(class: usize, ring: &Ring, ready: &mut u32, leave: i32) -> bool {
        let count = ring.count();
        if count <= leave {
            return false;
        }
        let goes = (count - leave) as u32;
        let head = ring.head.load(Ordering::Relaxed);
        let places = (0..goes).step_by(PLACE as usize);
        let gone = slabs::put(class, places.map(|at| ring.place(head.wrapping_add(at)).get()));
        if gone {
            let head = head.wrapping_add(goes);
            ring.head.store(head, Ordering::Relaxed);
            *ready = later(*ready, head);
        }
        gone
    }

    /// Gives back, for each class, the slots that need not wait.
    pub(super) fn trim(&self) {
        self.give_back_each(|ring| ring.stays.get());
    }

    /// Gives back all slots, because memory ran out. Returns whether there were any.
    pub(super) fn empty(&self) -> bool {
        self.give_back_each(|_| 0)
    }

    fn give_back_each(&self, leave: impl Fn(&Ring) -> i32) -> bool {
        (0..CLASSES).fold(false, |any, class| {
            let give =
                |ring: &Ring, ready: &mut u32| Self::give_back(class, ring, ready, leave(ring));
            any | self.slowly(class, give).unwrap_or(false)
        })
    }

    /// Runs a slow path with the ring of a class shut. `run` may move the place behind the last
    /// ready entry. Returns `None` in a signal handler that interrupted a slow path or a `free`.
    fn slowly<T>(&self, class: usize, run: impl FnOnce(&Ring, &mut u32) -> T) -> Option<T> {
        let ring = &self.rings[class];
        if ring.most.load(Ordering::Relaxed) == SHUT {
            return None;
        }
        self.busily(|| {
            let mut ready = ring.shut();
            let done = run(ring, &mut ready);
            ring.open(ready, self.reach);
            done
        })
    }

    /// Runs `run`, or returns `None` in a signal handler that interrupted a slow path.
    fn busily<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        // (A handler that interrupts here ends before this call continues.)
        if self.is_busy.load(Ordering::Relaxed) {
            return None;
        }
        self.is_busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let done = run();
        compiler_fence(Ordering::SeqCst);
        self.is_busy.store(false, Ordering::Relaxed);
        Some(done)
    }

    /// Makes those slots ready that waited long enough. Returns whether some are ready.
    #[inline]
    pub(super) fn renew(&self, class: usize) -> bool {
        let ring = &self.rings[class];
        if ring.batch.load(Ordering::Relaxed) == 0 {
            self.slowly(class, |ring, ready| self.reorder(class, ring, ready));
        }
        let has_enough = |ready: u32| ring.waiting(ready) >= ring.stays.get() + ring.renewed();
        // (In a shut ring, more entries seem to wait than really wait.)
        has_enough(ring.ready.load(Ordering::Relaxed))
            && self.slowly(class, |ring, ready| {
                *ready = later(*ready, ring.head.load(Ordering::Relaxed));
                let is_ready = has_enough(*ready) && !self.grow(class, ring);
                if is_ready {
                    self.renewals.set(self.renewals.get().wrapping_add(1));
                    let stays = ring.stays.get() as u32;
                    *ready = ring.tail.load(Ordering::Relaxed).wrapping_sub(stays);
                }
                is_ready
            }) == Some(true)
    }

    /// Returns whether periodic work follows this renewal. Renewals are short, so one in 32 has it.
    pub(super) fn is_time_to_pass(&self) -> bool {
        self.renewals.get().is_multiple_of(32)
    }

    /// Raises the number of entries that wait in a ring. Returns false if it is at its limit.
    fn grow(&self, class: usize, ring: &Ring) -> bool {
        let (shape, size, stays) = (Shape::of_process(), size_class::size(class), ring.stays.get());
        let share = (IN_USE.load(Ordering::Relaxed) / MANY).max(1).ilog2();
        let most = ((last_stays(class, shape) >> share) * PLACE as usize) as i32;
        let may = budget(shape).saturating_sub(self.grown.get()) / size * PLACE as usize;
        let most = most.min(stays + may as i32);
        let grows = stays < most;
        if grows {
            ring.widen(most);
            let more = (stays + ring.renewed()).min(most);
            ring.stays.set(more);
            self.grown.set(self.grown.get() + (more - stays) as usize / PLACE as usize * size);
        }
        grows
    }

    /// Shuffles all entries of a ring except the newest, which pending calls may still have to
    /// write. Afterwards every entry waits.
    #[cold]
    #[inline(never)]
    fn reorder(&self, class: usize, ring: &Ring, ready: &mut u32) {
        let newest = if size_class::size(class) > SHORT { 0 } else { PENDING };
        let count = (ring.count() / PLACE as i32 - newest).max(0);
        // SAFETY: only slow paths use the random numbers, and the thread runs one at a time.
        let random = unsafe { &mut *self.random.get() };
        let head = ring.head.load(Ordering::Relaxed);
        let place = |at: u32| ring.place(head.wrapping_add(at * PLACE));
        random.shuffle(count as u32, |at, other| place(at).change_with(place(other)));
        ring.order.store(random.next(), Ordering::Relaxed);
        ring.batch.store(most_drawn(class, Shape::of_process()) as u16, Ordering::Relaxed);
        *ready = head;
    }

    /// Draws slots into a ring. Returns whether some are ready.
    pub(super) fn refill(&self, class: usize) -> bool {
        self.slowly(class, |ring, ready| self.refill_slowly(class, ring, ready)).unwrap_or(false)
    }

    fn refill_slowly(&self, class: usize, ring: &Ring, ready: &mut u32) -> bool {
        if (ring.head.load(Ordering::Relaxed).wrapping_sub(*ready) as i32) < 0 {
            // A signal handler has refilled the ring in between.
            return true;
        }
        // (The count is below zero only if more handlers are nested than [`PENDING`].)
        let count = ring.count().max(0) / PLACE as i32;
        let room = (ring.mask.get() / PLACE) as i32 + 1;
        let is_long = size_class::size(class) > SHORT;
        // All entries go on waiting. They count as at least [`LEAST_WAIT`], because pending calls
        // may have taken some.
        let waiting = if is_long { count } else { count.max(LEAST_WAIT) };
        // (In a young process each call decides whether its block gets guards.)
        let batch = if is_early() { 1 } else { ring.batch.load(Ordering::Relaxed).max(1) };
        let want = (batch as i32).max(waiting + 1 - count).min(room - PENDING - count);
        let tail = ring.tail.load(Ordering::Relaxed);
        let head = tail.wrapping_sub(count as u32 * PLACE);
        // Drawn slots come out first, so they go just before the oldest entry. This is safe if no
        // pending call has to read a place there: in a ring of long slots, or with at most
        // [`PENDING`] entries. In another ring they go behind the newest entry, and swap with the
        // oldest entries.
        let is_before = count <= PENDING || is_long;
        let mut drawn = 0u32;
        slabs::draw(class, want.max(0) as usize, |slot| {
            let behind = drawn * PLACE;
            drawn += 1;
            let at = if is_before {
                head.wrapping_sub(drawn * PLACE)
            } else {
                tail.wrapping_add(behind)
            };
            ring.place(at).set(slot.block, slot.word);
        });
        // SAFETY: only slow paths use the random numbers, and the thread runs one at a time.
        let random = unsafe { &mut *self.random.get() };
        let first = if is_before { head.wrapping_sub(drawn * PLACE) } else { tail };
        let place = |at: u32| ring.place(first.wrapping_add(at * PLACE));
        random.shuffle(drawn, |at, other| place(at).change_with(place(other)));
        // (The batch is 0 if a signal handler has forked. The child must shuffle the entries.)
        if ring.batch.load(Ordering::Relaxed) != 0 {
            let most = most_drawn(class, Shape::of_process()) as u16;
            ring.batch.store((batch * 2).min(most), Ordering::Relaxed);
        }
        let more = (count + drawn as i32 - waiting).max(0) as u32;
        if is_before {
            ring.head.store(first, Ordering::Relaxed);
            *ready = first.wrapping_add(more * PLACE);
        } else {
            let changes = ((count - PENDING) as u32).min(more);
            let last = drawn - changes;
            for at in 0..changes {
                ring.place(head.wrapping_add(at * PLACE)).change_with(place(last + at));
            }
            ring.tail.store(tail.wrapping_add(drawn * PLACE), Ordering::Relaxed);
            *ready = head.wrapping_add(changes * PLACE);
        }
        drawn > 0
    }

    /// Takes a slot of any length like [`Cache::pop`]. Returns `None` if `busily` does.
    #[inline]
    pub(super) fn pop_busily(
        &self,
        class: usize,
        asked: usize,
        maker: u16,
    ) -> Option<Result<*mut u8, Refused>> {
        let ring = &self.rings[class];
        let size = ring.room as usize + CANARY;
        self.busily(|| {
            // Long slots are handed out only here. Verifying them costs as much as clearing them.
            if size >= LONG {
                // SAFETY: the bytes are those of a slot, which is this thread's. The sizes of long
                // slots are multiples of 128 bytes.
                self.pop(ring, asked, maker, |block| unsafe { slots::long_bits(block, size) })
            } else if settings::get().full {
                // SAFETY: the bytes are those of a slot, which is this thread's.
                self.pop(ring, asked, maker, |block| unsafe { slots::all_bits(block, size) })
            } else {
                // SAFETY: a slot has 16 bytes.
                self.pop(ring, asked, maker, |block| unsafe { slots::first_bits(block) })
            }
        })
    }

    /// Takes the oldest slot of a ring for a block of `asked` bytes with this maker, if `bits`
    /// returns 0 for the slot.
    #[inline(always)]
    fn pop(
        &self,
        ring: &Ring,
        asked: usize,
        maker: u16,
        bits: impl FnOnce(*const u8) -> u64,
    ) -> Result<*mut u8, Refused> {
        if !ring.has_ready() {
            return Err(Refused::TooFew);
        }
        let at = ring.place_at(ring.step::<HEAD>());
        // SAFETY: the pointer leads to a place of the ring, which lives as long as the cache.
        let place = unsafe { &*at };
        let block = place.block.load(Ordering::Relaxed);
        // SAFETY: a place that is counted holds the word of a slot.
        let word = unsafe { &*place.word.load(Ordering::Relaxed) };
        if bits(block) | (slots::read(word) ^ u64::from(IN_RING)) != 0 {
            return Err(Refused::Changed(block));
        }
        // SAFETY: the next place belongs to this ring or the next. One more follows the last ring.
        let next = unsafe { &*at.wrapping_add(1) };
        prefetch(next.block.load(Ordering::Relaxed));
        let more = u32::from(word::live(maker, 0)) - LEAST_LIVE;
        word.store((ring.longest + more - asked as u32) as u16, Ordering::Relaxed);
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: the slot has room for the requested bytes and the canary, and is the caller's.
        unsafe { block.wrapping_add(asked).cast::<u64>().write_unaligned(canary) };
        Ok(block)
    }

    pub(super) fn batch(&self, class: usize) -> usize {
        self.rings[class].batch.load(Ordering::Relaxed).max(1) as usize
    }

    #[inline(always)]
    pub(super) fn malloc<const FROM: u8, const FULL: bool>(
        &self,
        size: usize,
    ) -> Result<*mut u8, Refused> {
        // The class is linear or, with the canary, the first class beyond.
        const { assert!(size_class::of(LINEAR_MAX + CANARY) == (LINEAR_MAX + CANARY - 1) / MIN_ALIGN) };
        debug_assert!((1..=LINEAR_MAX).contains(&size));
        // The ring's place in the cache: (size + CANARY - 1) / MIN_ALIGN rings behind the first.
        const { assert!(RINGS.is_multiple_of(size_of::<Ring>())) };
        let scale = const { size_of::<Ring>() / MIN_ALIGN };
        let at = (size * scale + ((CANARY - 1) * scale + RINGS)) & !(size_of::<Ring>() - 1);
        let ring = ptr::from_ref(self).cast::<u8>().wrapping_add(at).cast::<Ring>();
        // SAFETY: by the assertions above, the address is that of a class's ring.
        let ring = unsafe { &*ring };
        self.pop(ring, size, const { word::maker(Origin::of::<FROM>(), false) }, |block| {
            if FULL {
                // SAFETY: the bytes are those of a free slot, which is this thread's.
                unsafe { slots::all_bits(block, ring.room as usize + CANARY) }
            } else {
                // SAFETY: a slot has 16 bytes.
                unsafe { slots::first_bits(block) }
            }
        })
    }

    /// Takes back a block of `unit` if its word and canary are right. `told` is the size that the
    /// call names. Returns false if a slower path must decide.
    ///
    /// # Safety
    ///
    /// As `free`. `unit` is the window's unit of the address, or beyond the window.
    #[inline(always)]
    pub(super) unsafe fn free<const FROM: u8, const FULL: bool>(
        &self,
        block: *mut u8,
        unit: usize,
        told: Option<usize>,
    ) -> bool {
        // SAFETY: the caller gives up the block, if the address is that of a block.
        let Some((ring, word, _)) = (unsafe { self.find::<FROM>(block, unit, told) }) else {
            return false;
        };
        if ring.is_full() {
            return false;
        }
        word.store(IN_RING, Ordering::Relaxed);
        // SAFETY: the bytes are the whole slot, which the caller gives up.
        unsafe { slots::clear_quick(block, ring.room as usize + CANARY) };
        ring.push::<FULL>(block, word);
        true
    }

    /// Verifies the block that a call frees. Returns the ring of its class, its word and its
    /// length, or `None` if something is wrong.
    ///
    /// # Safety
    ///
    /// As [`Cache::free`].
    #[inline(always)]
    unsafe fn find<const FROM: u8>(
        &self,
        block: *mut u8,
        unit: usize,
        told: Option<usize>,
    ) -> Option<(&Ring, &AtomicU16, usize)> {
        if !address_map::is_known(unit) {
            return None;
        }
        // SAFETY: the unit is known, so it has an entry.
        let entry = unsafe { MAP.entry(unit) };
        let kind = (entry.0 ^ const { Entry::tag(HARDENED) }) as usize;
        if kind >= SLAB_KINDS {
            return None;
        }
        // SAFETY: the kind is that of a slab, so the address is that of its class's ring.
        let ring = unsafe { ptr::from_ref(&self.rings).byte_add(kind * RING_STEP) };
        // SAFETY: the address is that of a class's ring, which lives as long as the cache.
        let ring = unsafe { &*ring.cast::<Ring>() };
        let product = (block.addr() & (UNIT - 1)) as u64 * ring.reciprocal;
        if !is_start(product) {
            return None;
        }
        let index = (product >> 32) as usize;
        let word_at = settings::get().words.wrapping_add(unit * A_UNIT + index);
        // SAFETY: a unit has a word for every 16 bytes, and the words of a slab are committed.
        let word = unsafe { &*word_at };
        // If the maker does not fit the call, the result is more than any slack.
        let slack = (slots::read(word) as u32)
            .wrapping_sub(const { word::live(word::maker(Origin::of::<FROM>(), false), 0) as u32 });
        if slack > MOST_SLACK as u32 {
            return None;
        }
        let asked = (ring.room - slack) as usize;
        if told.is_some_and(|told| told != asked) {
            return None;
        }
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: the slot of a live block has room for the requested bytes and the canary.
        if unsafe { block.wrapping_add(asked).cast::<u64>().read_unaligned() } != canary {
            return None;
        }
        Some((ring, word, asked))
    }

    /// Frees a long block, or a block whose ring is full.
    ///
    /// # Safety
    ///
    /// As [`Cache::free`].
    #[inline(never)]
    pub(super) unsafe fn free_slowly<const FROM: u8>(
        &self,
        block: *mut u8,
        unit: usize,
        told: Option<usize>,
    ) -> bool {
        // SAFETY: the caller gives up the block, if the address is that of a block.
        match unsafe { self.find::<FROM>(block, unit, told) } {
            // SAFETY: the caller gives the block away, which is live and has `asked` bytes.
            Some((ring, word, asked)) => unsafe { self.take(ring, Free { block, word }, asked) },
            None => false,
        }
    }

    /// Takes back a live block of `asked` bytes with an intact canary, or leaves it to the cold
    /// path.
    ///
    /// # Safety
    ///
    /// As `free`. The ring is that of the block's class.
    unsafe fn take(&self, ring: &Ring, slot: Free, asked: usize) -> bool {
        let class = (ptr::from_ref(ring).addr() - self.rings.as_ptr().addr()) / size_of::<Ring>();
        // SAFETY: the slot holds a live block of `asked` bytes.
        if !unsafe { slots::is_whole(slot.block, asked, ring.room as usize + CANARY) } {
            return false;
        }
        let kept = self.slowly(class, |ring, ready| {
            // SAFETY: the words of a slab are committed, and only atomics write there.
            unsafe { &*slot.word }.store(IN_RING, Ordering::Relaxed);
            // SAFETY: the bytes are the block, which the caller gives away, and its canary. (The
            // bytes behind them are zero, as `is_whole` has just verified.)
            unsafe { slots::clear(slot.block, asked + CANARY) };
            Self::take_in(class, ring, ready, slot)
        });
        match kept {
            None => false,
            Some(true) => true,
            Some(false) => {
                slabs::put(class, iter::once(slot));
                true
            }
        }
    }

    /// Takes back a slot that was just freed. Returns false without room, or if `slowly` refused.
    pub(super) fn keep(&self, class: usize, slot: Free) -> bool {
        self.slowly(class, |ring, ready| Self::take_in(class, ring, ready, slot)) == Some(true)
    }

    /// Puts a slot that was just freed into the ring of its class, which must be shut. A full ring
    /// first gives its oldest entries back. Returns false if the ring is still full.
    fn take_in(class: usize, ring: &Ring, ready: &mut u32, slot: Free) -> bool {
        let count = ring.count();
        if count > ring.full.get() {
            let goes = ((count / 4) & !(PLACE as i32 - 1)).clamp(PLACE as i32, MOST_GOES);
            let leave = (count - goes).clamp(ring.stays.get(), ring.full.get());
            Self::give_back(class, ring, ready, leave);
        }
        let has_room = ring.count() <= ring.full.get();
        if has_room {
            ring.put(ring.step::<TAIL>(), slot.block, slot.word);
        }
        has_room
    }

    /// Returns the slots and bytes in all rings of all threads.
    pub(super) fn held_by_all() -> (usize, usize) {
        let (mut slots, mut bytes) = (0, 0);
        for cache in all() {
            for ring in &cache.rings {
                let count = (ring.count().max(0) as u32 / PLACE) as usize;
                slots += count;
                bytes += count * (ring.room as usize + CANARY);
            }
        }
        (slots, bytes)
    }
}

pub(super) enum Refused {
    TooFew,
    /// The slot that was taken out has a wrong word, or bytes other than zero, and is in no ring.
    Changed(*mut u8),
}

impl Ring {
    #[inline(always)]
    fn place_at(&self, at: u32) -> *const Place {
        self.places.wrapping_byte_add((at & self.mask.get()) as usize)
    }

    #[inline(always)]
    fn place(&self, at: u32) -> &Place {
        // SAFETY: the pointer leads to a place of the ring, which lives as long as the cache.
        unsafe { &*self.place_at(at) }
    }

    /// Shuts the ring to signal handlers. Returns the place behind the last ready entry.
    fn shut(&self) -> u32 {
        let ready = self.ready.load(Ordering::Relaxed);
        self.ready.store(self.head.load(Ordering::Relaxed).wrapping_sub(FAR), Ordering::Relaxed);
        self.most.store(SHUT, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        ready
    }

    /// Makes places for `stays` waiting entries (times [`PLACE`]). The ring must be shut, so that
    /// no pending call still has to write a place that moves.
    fn widen(&self, stays: i32) {
        let (pending, mask) = (PENDING as u32 * PLACE, self.mask.get());
        let needed = stays as u32 + u32::from(self.spare) * PLACE + PLACE + pending;
        let wider = needed.next_power_of_two() - PLACE;
        if wider <= mask {
            return;
        }
        // (A pending call may still have to read a place just before the oldest entry.)
        let first = self.head.load(Ordering::Relaxed).wrapping_sub(pending);
        let count = self.tail.load(Ordering::Relaxed).wrapping_sub(first);
        for at in (0..count).step_by(PLACE as usize).map(|behind| first.wrapping_add(behind)) {
            if at & wider != at & mask {
                let Free { block, word } = self.place(at).get();
                let to = self.places.wrapping_byte_add((at & wider) as usize);
                // SAFETY: the place is the ring's, which has as many places as `stays` can need.
                unsafe { &*to }.set(block, word);
            }
        }
        self.mask.set(wider);
    }

    /// Lets the fast path take slots up to the place `ready`, and put slots.
    fn open(&self, ready: u32, reach: i32) {
        compiler_fence(Ordering::SeqCst);
        // A new entry changes places only with waiting entries that no pending call takes or still
        // has to write. (In a ring whose order is forgotten, `ready` lies far before all entries.)
        let first = later(ready, self.head.load(Ordering::Relaxed));
        let most = (self.waiting(first) - 2 * PENDING * PLACE as i32).max(0);
        self.reach.set(reach.min(most).min(self.stays.get() / 2));
        self.full.set(self.stays.get() + i32::from(self.spare) * PLACE as i32);
        let is_quick = self.room + CANARY as u32 <= QUICK;
        self.most.store(if is_quick { self.full.get() } else { NONE_COMES }, Ordering::Relaxed);
        if self.batch.load(Ordering::Relaxed) != 0 {
            self.ready.store(ready, Ordering::Relaxed);
        }
    }

    /// Makes the next call shuffle all entries first, in a forked child.
    fn forget_order(&self) {
        self.batch.store(0, Ordering::Relaxed);
        self.ready.store(self.head.load(Ordering::Relaxed).wrapping_sub(FAR), Ordering::Relaxed);
    }

    /// Returns the entries from the place `ready` on, times [`PLACE`].
    #[inline(always)]
    fn waiting(&self, ready: u32) -> i32 {
        self.tail.load(Ordering::Relaxed).wrapping_sub(ready) as i32
    }

    #[inline(always)]
    fn count(&self) -> i32 {
        self.waiting(self.head.load(Ordering::Relaxed))
    }

    fn renewed(&self) -> i32 {
        i32::from(self.renewed) * PLACE as i32
    }

    #[inline(always)]
    fn has_ready(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: the code only loads aligned counters of a ring, like relaxed atomic loads.
        unsafe {
            core::arch::asm!(
                "mov {head:e}, dword ptr [{ring} + {head_at}]",
                "cmp {head:e}, dword ptr [{ring} + {ready}]",
                "jns {none}",
                ring = in(reg) self,
                head = out(reg) _,
                head_at = const HEAD,
                ready = const READY,
                none = label { return false },
                options(readonly, nostack),
            );
            true
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            let head = self.head.load(Ordering::Relaxed);
            (head.wrapping_sub(self.ready.load(Ordering::Relaxed)) as i32) < 0
        }
    }

    /// Returns whether the fast path may put no more slots in.
    #[inline(always)]
    fn is_full(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: the code only loads aligned fields of a ring, like relaxed atomic loads.
        unsafe {
            core::arch::asm!(
                "mov {count:e}, dword ptr [{ring} + {tail}]",
                "sub {count:e}, dword ptr [{ring} + {head}]",
                "cmp {count:e}, dword ptr [{ring} + {most}]",
                "jle {room}",
                ring = in(reg) self,
                count = out(reg) _,
                tail = const TAIL,
                head = const HEAD,
                most = const MOST,
                room = label { return false },
                options(readonly, nostack),
            );
            true
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            self.count() > self.most.load(Ordering::Relaxed)
        }
    }

    /// Puts a free slot behind the newest entry. The ring must have room. [`SHUT`] keeps a
    /// handler's slow path from moving the place before this call writes it.
    #[inline(always)]
    fn push<const FULL: bool>(&self, block: *mut u8, word: *const AtomicU16) {
        self.most.store(SHUT, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let newest = self.step::<TAIL>();
        if FULL {
            self.put(newest, block, word);
        } else {
            self.place(newest).set(block, word);
        }
        compiler_fence(Ordering::SeqCst);
        self.most.store(self.full.get(), Ordering::Relaxed);
    }

    /// Returns the place that a counter names, and advances the counter. `COUNTER` is the counter's
    /// offset. One instruction does both, so no signal handler can take the same place.
    #[inline(always)]
    fn step<const COUNTER: usize>(&self) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let mut at = PLACE;
            // SAFETY: the code adds to a counter that only this thread changes and others may read.
            unsafe {
                core::arch::asm!(
                    "xadd dword ptr [{ring} + {counter}], {at:e}",
                    ring = in(reg) self,
                    counter = const COUNTER,
                    at = inout(reg) at,
                    options(nostack),
                );
            }
            at
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            let counter = if COUNTER == HEAD { &self.head } else { &self.tail };
            let at = counter.fetch_add(PLACE, Ordering::Relaxed);
            // (The caller reads the mask after this instruction.)
            compiler_fence(Ordering::SeqCst);
            at
        }
    }

    /// Writes a slot into the newest place. With `hardened:full`, if enough entries wait, the slot
    /// changes places with another slot. These choices are not secret, but the order of the drawn
    /// slots is.
    #[inline(always)]
    fn put(&self, newest: u32, block: *mut u8, word: *const AtomicU16) {
        let order =
            self.order.load(Ordering::Relaxed).wrapping_mul(0x9e37_79b1).wrapping_add(newest);
        self.order.store(order, Ordering::Relaxed);
        let place = self.place(newest);
        // The other entry lies this far back. With `hardened:light` the reach is 0.
        const { assert!(REACH == 1 << 8) };
        let back = (order >> 24) * PLACE;
        if back as i32 >= self.reach.get() {
            return place.set(block, word);
        }
        let other = self.place(newest.wrapping_sub(back));
        // (The order matters: the other place may be this place, which is not written yet.)
        let (other_block, other_word) =
            (other.block.load(Ordering::Relaxed), other.word.load(Ordering::Relaxed));
        place.set(other_block, other_word);
        other.set(block, word);
    }
}

fn later(one: u32, other: u32) -> u32 {
    if (one.wrapping_sub(other) as i32) < 0 { other } else { one }
}

/// Returns whether a slot begins at an offset into a slab. `product` is the offset times the
/// reciprocal of the class.
#[inline(always)]
fn is_start(product: u64) -> bool {
    // The compiler's own compare has two more instructions.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the code only compares a number.
    unsafe {
        core::arch::asm!(
            "cmp {product:e}, {last}",
            "ja {inside}",
            product = in(reg) product,
            last = const UNIT - 1,
            inside = label { return false },
            options(nomem, nostack),
        );
        true
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        (product as u32) < UNIT as u32
    }
}

impl Place {
    #[inline(always)]
    fn set(&self, block: *mut u8, word: *const AtomicU16) {
        self.block.store(block, Ordering::Relaxed);
        self.word.store(word.cast_mut(), Ordering::Relaxed);
    }

    fn get(&self) -> Free {
        Free { block: self.block.load(Ordering::Relaxed), word: self.word.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    fn change_with(&self, other: &Self) {
        let (block, word) = (self.block.load(Ordering::Relaxed), self.word.load(Ordering::Relaxed));
        self.set(other.block.load(Ordering::Relaxed), other.word.load(Ordering::Relaxed));
        other.set(block, word);
    }
}

fn all() -> impl Iterator<Item = &'static Cache> {
    // SAFETY: the pointer is null or leads to a cache, which is never freed.
    let first = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    // SAFETY: the pointer is null or leads to a cache, which is never freed.
    core::iter::successors(first, |cache| unsafe { cache.older.as_ref() })
}

/// Returns whether a slot is in a ring. Call this only while the process has one thread.
pub(super) fn holds(block: *mut u8) -> bool {
    all().flat_map(|cache| &cache.rings).any(|ring| {
        let head = ring.head.load(Ordering::Relaxed);
        let mut places = (0..ring.count().max(0) as u32).step_by(PLACE as usize);
        places.any(|at| ring.place(head.wrapping_add(at)).get().block == block)
    })
}

/// Releases reserved room for caches, because reserved addresses will be limited.
pub(super) fn give_up_reserve() {
    let mut area = CACHES.lock();
    let rest = area.size - area.used;
    if rest > 0 {
        // SAFETY: this part of the reservation was never committed. New caches hold the lock, too.
        if unsafe { SYSTEM.release(area.at.wrapping_add(area.used), rest) } {
            area.size = area.used;
        }
    }
}

pub(super) fn before_fork() {
    CACHES.acquire();
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: by the contract this thread, or the thread that it is a copy of, holds the lock.
    unsafe { CACHES.release() };
}

/// Makes each ring shuffle its entries later, because a signal handler may have forked in a call.
pub(super) fn choose_anew() {
    all().flat_map(|cache| &cache.rings).for_each(Ring::forget_order);
}

/// Empties the caches of the parent's other threads in a forked child, and offers them to new
/// threads. The slots in these caches are lost.
pub(super) fn forget_after_fork(mine: Option<&'static Cache>) {
    let mut area = CACHES.lock();
    area.unused = ptr::null();
    area.filled = 0;
    IN_USE.store(mine.is_some().into(), Ordering::Relaxed);
    for cache in all().filter(|cache| !mine.is_some_and(|mine| ptr::eq(mine, *cache))) {
        for ring in &cache.rings {
            let tail = ring.tail.load(Ordering::Relaxed);
            ring.head.store(tail, Ordering::Relaxed);
            ring.open(tail, cache.reach);
        }
        cache.is_busy.store(false, Ordering::Relaxed);
        cache.is_filled.set(false);
        cache.unused.store(area.unused.cast_mut(), Ordering::Relaxed);
        area.unused = cache;
    }
}

#[cfg(test)]
mod tests;
