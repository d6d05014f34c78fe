//! A thread's cache of the hardened heap: for each class one ring of free slots, through no byte of theirs.
//!
//! ```text
//!   cache   | hot stub | ring of class 0 | ring of class 1 | ... | entries of ring 0 | entries of ring 1 | ...
//!
//!   ring    entries   . . | ready ......... | waiting ................ newest | . .
//!                           ^ head            ^ ready               tail: free ^ puts here
//!                             malloc takes      the quarantine
//!   entry   the slot's first byte | its word
//! ```
//!
//! A ring is a list of what can be had at once and a quarantine. `malloc` takes the oldest entry
//! that is ready. Where none is, those become ready, oldest first, behind which more than
//! [`Ring::stays`] wait; or slots are drawn from the class's slabs, and come out first, in random
//! order. So a freed slot is not handed out again before as many others were freed. Where the ring
//! is full, the oldest go back to the slabs. With `hardened:full` what is freed changes places with
//! a random entry of the newest.
//!
//! In a forked child nothing is ready, and all entries come into random order before the first is
//! taken: parent and children hand out other slots.
//!
//! Caches lie in a reservation of their own at a random place, each between guards, so no overflow of a block reaches one.
//!
//! **Signal handlers** may interrupt a thread anywhere, and allocate. So `malloc` takes a place by one
//! instruction (`step`), and then reads it: nobody else has it. An interrupted call is *pending*: it
//! has looked whether there are any and not yet taken its place, or has not yet read it. Up to
//! [`PENDING`] calls may be, of as many nested handlers. So the short way never empties a ring to the
//! last [`PENDING`] places, slow paths do not write to as many before the oldest, and twice as many wait.
//!
//! In a slow path the cache is *busy* and the ring *shut*, so that none is ready: handlers take
//! nothing from it and put nothing into it, but go to the slabs directly (`mod`). `free` shuts the
//! ring, too, while it puts a slot: no handler's slow path moves a place that is not written yet.
//!
//! **Misuse.** A slot is handed out only if its word says that it is in a ring, and its first 16 bytes are zero; it is taken
//! only if its word says that it is live and made by the kind of call that frees it, and its canary is as it was. All
//! else is the cold way's.
//!
//! Invariants: the entries from the oldest to the newest are slots whose words say that they are in a ring, each in one
//! place, but for those of pending calls. Only its thread changes a cache, but for one that ended, which has none. A cache is never freed.
//!
//! Called by `mod`.

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
use crate::cache::guard_draw::is_early;
use crate::cache::{Hardness, Hot, HotStub};
use crate::chunk;
use crate::os::{self, Memory, SYSTEM, prefetch};
use crate::request::Origin;
use crate::size_class::{self, CLASSES, LINEAR_MAX, MIN_ALIGN, UNIT};
use crate::sync::Lock;
use crate::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU16, AtomicU32, AtomicUsize, Ordering, compiler_fence,
};

/// A free slot in a ring.
#[repr(C)]
struct Place {
    block: AtomicPtr<u8>,
    word: AtomicPtr<AtomicU16>,
}

/// Free slots of a class, in a circle. Places are counted on and on, in bytes, and taken modulo the room: so the short way
/// scales nothing. All counts here are multiples of [`PLACE`].
#[repr(C, align(64))]
pub(super) struct Ring {
    /// The place of the oldest, and the one behind the newest.
    head: AtomicU32,
    tail: AtomicU32,
    /// The place behind the last one that is ready; one far before the oldest while the ring is
    /// shut. (Only slow paths change it. Pending calls may take a few that wait.)
    ready: AtomicU32,
    /// With more than so many the cold way puts what is freed: [`Ring::full`], but while the ring
    /// is shut, or if the short way does not put slots into it.
    most: AtomicI32,
    /// The room, a power of two, less an entry.
    mask: Cell<u32>,
    /// The word of a block of `malloc` that is as long as a slot can hold.
    longest: u32,
    /// The class's, so that nothing else needs to be read: as a word, to be multiplied with.
    reciprocal: u64,
    /// Bytes of a slot without the canary.
    room: u32,
    /// Slots that the next refill draws; 0: the process was forked, and all entries are to come
    /// into another order.
    batch: AtomicU16,
    /// Entries that become ready at a time, or more, and the most that need not wait. (Not times
    /// [`PLACE`].)
    renewed: u8,
    spare: u8,
    /// What the last change of places was chosen by.
    order: AtomicU32,
    /// So many wait, and more.
    stays: Cell<i32>,
    /// The most that are in it when one more is put.
    full: Cell<i32>,
    /// The newest entry changes places with one of so many newest, which all wait.
    reach: Cell<i32>,
    places: *const Place,
}

/// Bytes of an entry, by which places are counted.
const PLACE: u32 = size_of::<Place>() as u32;
/// So many calls of one thread may be pending at a time.
const PENDING: i32 = 3;
/// So many wait, where calls may be pending.
const LEAST_WAIT: i32 = 2 * PENDING + 1;
/// [`Ring::ready`] of a ring that is shut is so far before the oldest.
const FAR: u32 = 1 << 30;
/// The most that go back to the slabs at a time to make room, times [`PLACE`].
const MOST_GOES: i32 = 256 * PLACE as i32;
/// [`Ring::reach`] with `hardened:full`, where so many wait.
const REACH: i32 = 256;
/// [`Ring::most`] of a ring that the short way puts nothing into, and of one that is shut.
const NONE_COMES: i32 = -1;
const SHUT: i32 = -2;
/// The longest slots that the short way clears.
const QUICK: u32 = 1024;
/// Bytes of slots all of which are verified before they are handed out, with `hardened:light`, too.
pub(super) const LONG: usize = 1 << 10;
/// The longest slots that the short way hands out or takes: those of a ring with pending calls.
const SHORT: usize = size_class::size(size_class::of(LINEAR_MAX + CANARY));
/// The word of the shortest slack of `malloc`'s.
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

/// One thread's.
#[repr(C, align(64))]
pub(crate) struct Cache {
    /// What the thread's fast word leads to.
    stub: HotStub,
    rings: [Ring; CLASSES],
    /// [`REACH`], or 0.
    reach: i32,
    /// Bytes that wait in all rings and did not at first: see [`budget`].
    grown: Cell<usize>,
    /// How often slots have become ready.
    renewals: Cell<u32>,
    /// The thread is in a slow path.
    is_busy: AtomicBool,
    random: UnsafeCell<Random>,
    /// The cache made before this one, and the next one that no thread has.
    older: *const Cache,
    unused: AtomicPtr<Cache>,
    /// No thread has it, and slots wait in it.
    is_filled: Cell<bool>,
}

// SAFETY: a cache is changed by its thread alone; others read counts, which are atomics.
unsafe impl Sync for Cache {}

const _: () = assert!(offset_of!(Cache, stub) == 0);

/// How long rings are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    full: bool,
    /// Address space is.
    is_scarce: bool,
}

impl Shape {
    #[inline]
    fn of_process() -> Self {
        let settings = settings::get();
        Self { full: settings.full, is_scarce: settings.is_scarce }
    }
}

/// Most slots of a class that are drawn at a time.
const fn most_drawn(class: usize, shape: Shape) -> usize {
    let most = match size_class::size(class) {
        0..=512 => 32,
        513..=2048 => 16,
        2049..=8192 => 8,
        _ => 4,
    };
    if shape.full { most * 2 } else { most }
}

/// Entries that wait in the ring of a class at first: 16, or 8 KiB; twice as many with `full`.
const fn first_stays(class: usize, shape: Shape) -> usize {
    let most = (8 << 10) / size_class::size(class);
    let stays = if most > 16 { 16 } else { most };
    let stays = if shape.full { stays * 2 } else { stays };
    if stays == 0 { 1 } else { stays }
}

/// Entries that wait in the ring of a class at last, if [`budget`] has room for them: 320, or 80
/// KiB; with `full` 1984, or 416 KiB. Where address space is scarce as many as at first.
const fn last_stays(class: usize, shape: Shape) -> usize {
    let first = first_stays(class, shape);
    let (slots, bytes) = (if shape.full { 1984 } else { 320 }, budget(shape));
    let most = bytes / size_class::size(class);
    let last = if most > slots { slots } else { most };
    if shape.is_scarce || last < first { first } else { last }
}

/// Bytes of slots of all classes that wait in a thread's rings at last, and not at first: as many
/// as of one class.
const fn budget(shape: Shape) -> usize {
    if shape.full { 416 << 10 } else { 80 << 10 }
}

/// Entries that become ready at a time, or more.
const fn renewed(class: usize, shape: Shape) -> usize {
    let (slots, bytes) = if shape.full { (128, 16 << 10) } else { (96, 12 << 10) };
    let most = bytes / size_class::size(class);
    let renewed = if most > slots { slots } else { most };
    let last = last_stays(class, shape);
    let renewed = if renewed > last { last } else { renewed };
    if renewed == 0 { 1 } else { renewed }
}

/// The most entries of a class that need not wait.
const fn spare(class: usize, shape: Shape) -> usize {
    renewed(class, shape) + most_drawn(class, shape) * 3 / 2
}

/// Places in the ring of a class in which so many wait: a power of two.
const fn room(class: usize, shape: Shape, stays: usize) -> usize {
    (stays + spare(class, shape) + 1 + PENDING as usize).next_power_of_two()
}

/// Places that the ring of a class has at first: with `full` few, which stay in the processor's
/// caches.
const fn first_room(class: usize, shape: Shape) -> usize {
    let first = if shape.full { first_stays(class, shape) } else { last_stays(class, shape) };
    room(class, shape, first)
}

/// Places that the ring of a class may come to have.
const fn last_room(class: usize, shape: Shape) -> usize {
    room(class, shape, last_stays(class, shape))
}

// Where calls may be pending, so many and more wait; and a refill has room for one more.
const _: () = {
    let mut class = 0;
    while class < CLASSES {
        let mut kind = 0;
        while kind < 4 {
            let shape = Shape { full: kind & 1 != 0, is_scarce: kind & 2 != 0 };
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

/// Bytes of a cache with its places.
const fn bytes(shape: Shape) -> usize {
    let mut places = 0;
    let mut class = 0;
    while class < CLASSES {
        places += last_room(class, shape);
        class += 1;
    }
    // One more is read, behind the last.
    size_of::<Cache>() + (places + 1) * size_of::<Place>()
}

/// Where caches lie.
struct Area {
    at: *mut u8,
    size: usize,
    used: usize,
    newest: *const Cache,
    /// Those that no thread has. In `filled` of them slots wait.
    unused: *const Cache,
    filled: usize,
}

// SAFETY: the pointers lead to what is never freed.
unsafe impl Send for Area {}

/// Bytes of address space for caches: some 16,000 threads', or 150 where it is scarce. Other threads have none.
const AREA: usize = 8 << 30;
const FULL_AREA: usize = 32 << 30;
const SCARCE_AREA: usize = 8 << 20;
/// With twice as many threads that have a cache, and more, fewer slots come to wait in each:
/// together about as many.
const MANY: usize = 16;
/// Caches that no thread has and in which slots wait for the next thread, at most.
const MOST_FILLED: usize = 4;

static CACHES: Lock<Area> = Lock::new(Area {
    at: ptr::null_mut(),
    size: 0,
    used: 0,
    newest: ptr::null(),
    unused: ptr::null(),
    filled: 0,
});
/// Caches that threads have.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// The newest cache, for those that look at all.
static NEWEST: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

impl Cache {
    /// The calling thread's cache, by its fast word, which leads to a hardened stub.
    #[inline(always)]
    pub(super) fn of(hot: &Hot) -> &'static Self {
        debug_assert!(hot.hardness() != Hardness::None);
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
            area.filled = area.filled.saturating_sub(cache.is_filled.take().into());
            IN_USE.fetch_add(1, Ordering::Relaxed);
            return Some(cache);
        }
        let shape = Shape::of_process();
        let page = SYSTEM.page_size();
        let size = bytes(shape).next_multiple_of(page);
        if area.at.is_null() {
            area.size = match shape {
                Shape { is_scarce: true, .. } => SCARCE_AREA,
                Shape { full: true, .. } => FULL_AREA,
                _ => AREA,
            };
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
        // SAFETY: just committed. (A thread that uses few classes is to touch few pages.)
        unsafe { os::advise_huge_pages(at, size, false) };
        area.used += page + size;
        let made = at.cast::<Self>();
        // SAFETY: fresh memory, which reads as zero: a cache without a place, which no other thread knows.
        let cache = unsafe { &mut *made };
        cache.begin(at.wrapping_add(size_of::<Self>()).cast(), shape);
        IN_USE.fetch_add(1, Ordering::Relaxed);
        cache.older = area.newest;
        area.newest = made;
        NEWEST.store(made, Ordering::Release);
        // SAFETY: made above, and never freed.
        Some(unsafe { &*made })
    }

    /// Begins one of zeros.
    fn begin(&mut self, mut places: *mut Place, shape: Shape) {
        self.stub.become_hardened(shape.full);
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

    /// The thread ends, and another thread may have the cache. Its slots wait there for that thread
    /// (else short-lived threads would draw a quarantine each), or go back.
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
                // A signal handler ends the thread in the middle of a call: nobody gets this cache.
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

    /// Gives the oldest slots of a class back until no more than `leave` are left, if the class's
    /// lock can be had. The ring is shut.
    fn give_back(class: usize, ring: &Ring, ready: &mut u32, leave: i32) {
        let count = ring.count();
        if count <= leave {
            return;
        }
        let goes = (count - leave) as u32;
        let head = ring.head.load(Ordering::Relaxed);
        let places = (0..goes).step_by(PLACE as usize);
        if slabs::put(class, places.map(|at| ring.place(head.wrapping_add(at)).get())) {
            let head = head.wrapping_add(goes);
            ring.head.store(head, Ordering::Relaxed);
            *ready = later(*ready, head);
        }
    }

    /// Gives the slots of all classes back that need not wait.
    pub(super) fn trim(&self) {
        for class in 0..CLASSES {
            self.slowly(class, |ring, ready| Self::give_back(class, ring, ready, ring.stays.get()));
        }
    }

    /// Runs a slow path with the ring of a class shut: it may move the place behind the last one
    /// that is ready. `None`: this is a signal handler that interrupted one.
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

    /// Runs what no other slow path of the thread may interrupt. `None`: this is a signal handler that interrupted one.
    fn busily<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        // (A handler in between is done before this goes on.)
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

    /// Makes slots ready that have waited long enough. False: there are too few, or this is a
    /// signal handler that interrupted a slow path.
    #[inline]
    pub(super) fn renew(&self, class: usize) -> bool {
        let ring = &self.rings[class];
        if ring.batch.load(Ordering::Relaxed) == 0 {
            self.slowly(class, |ring, ready| self.reorder(class, ring, ready));
        }
        let has_enough = |ready: u32| ring.waiting(ready) >= ring.stays.get() + ring.renewed();
        // (Of a shut ring too many seem to wait.)
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

    /// Whether what slow paths do now and then is to be done after a renewal: each does little.
    pub(super) fn is_time_to_pass(&self) -> bool {
        self.renewals.get().is_multiple_of(32)
    }

    /// Has more entries of a ring wait. False: as many do as may.
    fn grow(&self, class: usize, ring: &Ring) -> bool {
        let (shape, size, stays) = (Shape::of_process(), size_class::size(class), ring.stays.get());
        let share = (IN_USE.load(Ordering::Relaxed) / MANY).max(1).ilog2();
        let most = ((last_stays(class, shape) >> share) * PLACE as usize) as i32;
        let may = budget(shape).saturating_sub(self.grown.get()) / size * PLACE as usize;
        let most = most.min(stays + may as i32);
        let grows = stays < most;
        if grows {
            if shape.full {
                ring.widen(most);
            }
            let more = (stays + ring.renewed()).min(most);
            ring.stays.set(more);
            self.grown.set(self.grown.get() + (more - stays) as usize / PLACE as usize * size);
        }
        grows
    }

    /// Brings all entries of a ring into random order, but for the newest, which pending calls may
    /// have yet to write; they all wait.
    #[cold]
    #[inline(never)]
    fn reorder(&self, class: usize, ring: &Ring, ready: &mut u32) {
        let newest = if size_class::size(class) > SHORT { 0 } else { PENDING };
        let count = (ring.count() / PLACE as i32 - newest).max(0);
        // SAFETY: the thread is in one slow path at a time, and only there are its random numbers
        // used.
        let random = unsafe { &mut *self.random.get() };
        let head = ring.head.load(Ordering::Relaxed);
        let place = |at: u32| ring.place(head.wrapping_add(at * PLACE));
        random.shuffle(count as u32, |at, other| place(at).change_with(place(other)));
        ring.order.store(random.next(), Ordering::Relaxed);
        ring.batch.store(most_drawn(class, Shape::of_process()) as u16, Ordering::Relaxed);
        *ready = head;
    }

    /// Draws slots into the ring of a class, so that some are ready. False: there is no memory, or
    /// this is a signal handler that interrupted a slow path.
    pub(super) fn refill(&self, class: usize) -> bool {
        self.slowly(class, |ring, ready| self.refill_slowly(class, ring, ready)).unwrap_or(false)
    }

    fn refill_slowly(&self, class: usize, ring: &Ring, ready: &mut u32) -> bool {
        if (ring.head.load(Ordering::Relaxed).wrapping_sub(*ready) as i32) < 0 {
            // A handler was here in between.
            return true;
        }
        // (Below zero it would be if more handlers were nested than may be.)
        let count = ring.count().max(0) / PLACE as i32;
        let room = (ring.mask.get() / PLACE) as i32 + 1;
        let is_long = size_class::size(class) > SHORT;
        // So many are to wait: those that do, but that pending calls may have taken some.
        let waiting = if is_long { count } else { count.max(LEAST_WAIT) };
        // (While a process is young each call is to look whether its block gets guards.)
        let batch = if is_early() { 1 } else { ring.batch.load(Ordering::Relaxed).max(1) };
        let want = (batch as i32).max(waiting + 1 - count).min(room - PENDING - count);
        let tail = ring.tail.load(Ordering::Relaxed);
        let head = tail.wrapping_sub(count as u32 * PLACE);
        // What is drawn comes out first. A call may be pending that has yet to read its place, just before the oldest: unless
        // fewer are there than it would have left. Then new slots go behind the newest, and change places with the oldest.
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
        // SAFETY: the thread is in one slow path at a time, and only there are its random numbers
        // used.
        let random = unsafe { &mut *self.random.get() };
        let first = if is_before { head.wrapping_sub(drawn * PLACE) } else { tail };
        let place = |at: u32| ring.place(first.wrapping_add(at * PLACE));
        random.shuffle(drawn, |at, other| place(at).change_with(place(other)));
        // (A handler that forked may have asked for another order.)
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

    /// [`Cache::pop`] of a class whose ring may have slots of any length. `None`: this is a signal handler that interrupted a
    /// slow path.
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
            // Long slots come this way alone, and are looked at as a whole: to clear them costs as much.
            if size >= LONG {
                // SAFETY: the bytes of a slot, which is this thread's; long ones are multiples of 128 bytes.
                self.pop(ring, asked, maker, |block| unsafe { slots::long_bits(block, size) })
            } else if settings::get().full {
                // SAFETY: the bytes of a slot, which is this thread's.
                self.pop(ring, asked, maker, |block| unsafe { slots::all_bits(block, size) })
            } else {
                // SAFETY: a slot has 16 bytes.
                self.pop(ring, asked, maker, |block| unsafe { slots::first_bits(block) })
            }
        })
    }

    /// Takes the oldest slot of a ring for a block of `asked` bytes with this maker, if what `bits` finds in it is 0.
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
        // SAFETY: one of the ring's places, which live as long as the cache.
        let place = unsafe { &*at };
        let block = place.block.load(Ordering::Relaxed);
        // SAFETY: a place that is counted holds the word of a slot.
        let word = unsafe { &*place.word.load(Ordering::Relaxed) };
        if bits(block) | (slots::read(word) ^ u64::from(IN_RING)) != 0 {
            return Err(Refused::Changed(block));
        }
        // SAFETY: the place behind, which is another ring's behind the last; behind that of the last ring there is one, too.
        let next = unsafe { &*at.wrapping_add(1) };
        prefetch(next.block.load(Ordering::Relaxed));
        let more = u32::from(word::live(maker, 0)) - LEAST_LIVE;
        word.store((ring.longest + more - asked as u32) as u16, Ordering::Relaxed);
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: the slot has room for the bytes asked for and the canary, and it is the caller's.
        unsafe { block.wrapping_add(asked).cast::<u64>().write_unaligned(canary) };
        Ok(block)
    }

    /// Slots that the next refill of a class draws, about.
    pub(super) fn batch(&self, class: usize) -> usize {
        self.rings[class].batch.load(Ordering::Relaxed).max(1) as usize
    }

    /// Serves a request of 1 to [`LINEAR_MAX`] bytes.
    #[inline(always)]
    pub(super) fn malloc<const FROM: u8, const FULL: bool>(
        &self,
        size: usize,
    ) -> Result<*mut u8, Refused> {
        // A linear class, or with the canary the first beyond.
        const { assert!(size_class::of(LINEAR_MAX + CANARY) == (LINEAR_MAX + CANARY - 1) / MIN_ALIGN) };
        debug_assert!((1..=LINEAR_MAX).contains(&size));
        // The ring's place in the cache: (size + CANARY - 1) / MIN_ALIGN rings behind the first.
        const { assert!(RINGS.is_multiple_of(size_of::<Ring>())) };
        let scale = const { size_of::<Ring>() / MIN_ALIGN };
        let at = (size * scale + ((CANARY - 1) * scale + RINGS)) & !(size_of::<Ring>() - 1);
        let ring = ptr::from_ref(self).cast::<u8>().wrapping_add(at).cast::<Ring>();
        // SAFETY: the ring of a class, by what was just asserted.
        let ring = unsafe { &*ring };
        self.pop(ring, size, const { word::maker(Origin::of::<FROM>(), false) }, |block| {
            if FULL {
                // SAFETY: the bytes of a free slot, which is this thread's.
                unsafe { slots::all_bits(block, ring.room as usize + CANARY) }
            } else {
                // SAFETY: a slot has 16 bytes.
                unsafe { slots::first_bits(block) }
            }
        })
    }

    /// Takes a block of `unit` back if all is as it should be; `told` is what the call says of its size. False: the cold way
    /// must look.
    ///
    /// # Safety
    ///
    /// As `free`; `unit` is the window's unit that the address lies in, or beyond.
    #[inline(always)]
    pub(super) unsafe fn free<const FROM: u8, const FULL: bool>(
        &self,
        block: *mut u8,
        unit: usize,
        told: Option<usize>,
    ) -> bool {
        // SAFETY: the caller gives the block away, if it is one.
        let Some((ring, word, _)) = (unsafe { self.find::<FROM>(block, unit, told) }) else {
            return false;
        };
        if ring.is_full() {
            return false;
        }
        word.store(IN_RING, Ordering::Relaxed);
        // SAFETY: the whole slot, which the caller gives away.
        unsafe { slots::clear_quick(block, ring.room as usize + CANARY) };
        ring.push::<FULL>(block, word);
        true
    }

    /// What a call frees, if all is as it should be: the ring of its class, its word, and how long it is.
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
        // SAFETY: checked above.
        let entry = unsafe { MAP.entry(unit) };
        let kind = (entry.0 ^ const { Entry::tag(HARDENED) }) as usize;
        if kind >= SLAB_KINDS {
            return None;
        }
        // SAFETY: the kind of a slab, so this is the ring of its class.
        let ring = unsafe { ptr::from_ref(&self.rings).byte_add(kind * RING_STEP) };
        // SAFETY: as was just said, and rings live as long as the cache.
        let ring = unsafe { &*ring.cast::<Ring>() };
        let product = (block.addr() & (UNIT - 1)) as u64 * ring.reciprocal;
        if !is_start(product) {
            return None;
        }
        let index = (product >> 32) as usize;
        let word_at = settings::get().words.wrapping_add(unit * A_UNIT + index);
        // SAFETY: a unit has words for as many slots of 16 bytes as it has room for, and a slab's are committed.
        let word = unsafe { &*word_at };
        // The slack alone, if the maker is that of the call.
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
        // SAFETY: the slot of a live block has room for the bytes asked for and the canary.
        if unsafe { block.wrapping_add(asked).cast::<u64>().read_unaligned() } != canary {
            return None;
        }
        Some((ring, word, asked))
    }

    /// [`Cache::free`] of a block that the short way does not take, for it is long, or its ring is full.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(never)]
    pub(super) unsafe fn free_slowly<const FROM: u8>(
        &self,
        block: *mut u8,
        unit: usize,
        told: Option<usize>,
    ) -> bool {
        // SAFETY: the caller gives the block away, if it is one.
        match unsafe { self.find::<FROM>(block, unit, told) } {
            // SAFETY: the caller gives it away, and it is live and as long.
            Some((ring, word, asked)) => unsafe { self.take(ring, Free { block, word }, asked) },
            None => false,
        }
    }

    /// Takes a block of `asked` bytes back that is live and has its canary. False: the cold way must look.
    ///
    /// # Safety
    ///
    /// As `free`; the ring is that of the block's class.
    unsafe fn take(&self, ring: &Ring, slot: Free, asked: usize) -> bool {
        let class = (ptr::from_ref(ring).addr() - self.rings.as_ptr().addr()) / size_of::<Ring>();
        // SAFETY: the slot of a live block of as many bytes.
        if !unsafe { slots::is_whole(slot.block, asked, ring.room as usize + CANARY) } {
            return false;
        }
        let kept = self.slowly(class, |ring, ready| {
            // SAFETY: the words of a slab are committed, and nothing is written there but by atomics.
            unsafe { &*slot.word }.store(IN_RING, Ordering::Relaxed);
            // SAFETY: the block, which the caller gives away, and its canary. (What is behind that was just seen to be zero.)
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

    /// Takes a slot back that was just freed. False: there is no room, or this is a signal handler that interrupted its thread
    /// in a slow path.
    pub(super) fn keep(&self, class: usize, slot: Free) -> bool {
        self.slowly(class, |ring, ready| Self::take_in(class, ring, ready, slot)) == Some(true)
    }

    /// Puts a slot that was just freed into the ring of its class, which is shut, and makes room first if there is none. False:
    /// there is none all the same.
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

    /// Slots and bytes in all rings of all threads.
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

/// Why no slot was taken from a ring.
pub(super) enum Refused {
    /// No more than must stay are there.
    TooFew,
    /// A slot that was taken out is not as it should be, and is in no ring now.
    Changed(*mut u8),
}

impl Ring {
    #[inline(always)]
    fn place_at(&self, at: u32) -> *const Place {
        self.places.wrapping_byte_add((at & self.mask.get()) as usize)
    }

    #[inline(always)]
    fn place(&self, at: u32) -> &Place {
        // SAFETY: one of the ring's places, which live as long as the cache.
        unsafe { &*self.place_at(at) }
    }

    /// Keeps signal handlers away. Returns the place behind the last one that is ready.
    fn shut(&self) -> u32 {
        let ready = self.ready.load(Ordering::Relaxed);
        self.ready.store(self.head.load(Ordering::Relaxed).wrapping_sub(FAR), Ordering::Relaxed);
        self.most.store(SHUT, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        ready
    }

    /// Has places for so many that wait (times [`PLACE`]). The ring is shut, and with
    /// `hardened:full`, so no pending call has yet to write a place that moves.
    fn widen(&self, stays: i32) {
        let (pending, mask) = (PENDING as u32 * PLACE, self.mask.get());
        let needed = stays as u32 + u32::from(self.spare) * PLACE + PLACE + pending;
        let wider = (needed.next_power_of_two() - PLACE).max(mask);
        // (Those just before the oldest may be a pending call's that has yet to read one.)
        let first = self.head.load(Ordering::Relaxed).wrapping_sub(pending);
        let count = self.tail.load(Ordering::Relaxed).wrapping_sub(first);
        for at in (0..count).step_by(PLACE as usize).map(|behind| first.wrapping_add(behind)) {
            if at & wider != at & mask {
                let Free { block, word } = self.place(at).get();
                let to = self.places.wrapping_byte_add((at & wider) as usize);
                // SAFETY: of the places that the ring may come to have, as the caller asks for.
                unsafe { &*to }.set(block, word);
            }
        }
        self.mask.set(wider);
    }

    /// Lets the short way take slots up to a place, and put slots.
    fn open(&self, ready: u32, reach: i32) {
        compiler_fence(Ordering::SeqCst);
        // It changes places with those that wait, and that no pending call takes or has yet to
        // write.
        let most = (self.waiting(ready) - 2 * PENDING * PLACE as i32).max(0);
        self.reach.set(reach.min(most).min(self.stays.get() / 2));
        self.full.set(self.stays.get() + i32::from(self.spare) * PLACE as i32);
        let is_quick = self.room + CANARY as u32 <= QUICK;
        self.most.store(if is_quick { self.full.get() } else { NONE_COMES }, Ordering::Relaxed);
        if self.batch.load(Ordering::Relaxed) != 0 {
            self.ready.store(ready, Ordering::Relaxed);
        }
    }

    /// In a forked child: has all entries come into another order before the next is taken.
    fn forget_order(&self) {
        self.batch.store(0, Ordering::Relaxed);
        self.ready.store(self.head.load(Ordering::Relaxed).wrapping_sub(FAR), Ordering::Relaxed);
    }

    /// How many wait from a place on, times [`PLACE`].
    #[inline(always)]
    fn waiting(&self, ready: u32) -> i32 {
        self.tail.load(Ordering::Relaxed).wrapping_sub(ready) as i32
    }

    /// How many there are, times [`PLACE`].
    #[inline(always)]
    fn count(&self) -> i32 {
        self.waiting(self.head.load(Ordering::Relaxed))
    }

    /// Entries that become ready at a time, times [`PLACE`].
    fn renewed(&self) -> i32 {
        i32::from(self.renewed) * PLACE as i32
    }

    /// Whether the oldest is ready.
    #[inline(always)]
    fn has_ready(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: aligned loads of a ring's counters, which are atomics, and loads are relaxed.
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

    /// Whether the short way puts no more slots in.
    #[inline(always)]
    fn is_full(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: aligned loads of a ring's fields, of which the counters are atomics, and loads are relaxed.
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

    /// Puts a free slot behind the newest, for which there is room. The ring is shut meanwhile: a
    /// handler's slow path would move the place that is not written yet.
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

    /// Takes the place that the counter at an offset says, and counts on, in one instruction: no signal handler can take it,
    /// too.
    #[inline(always)]
    fn step<const COUNTER: usize>(&self) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let mut at = PLACE;
            // SAFETY: adds to one of the counters, which only this thread changes; other threads may read it.
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
            // (The mask is read after it.)
            compiler_fence(Ordering::SeqCst);
            at
        }
    }

    /// Writes a slot into the newest place; with `hardened:full`, where enough wait, it changes
    /// places with another one. The choice is made from what was chosen before, by a generator that
    /// is quick and no secret: the order in which the slots were drawn is one.
    #[inline(always)]
    fn put(&self, newest: u32, block: *mut u8, word: *const AtomicU16) {
        let order =
            self.order.load(Ordering::Relaxed).wrapping_mul(0x9e37_79b1).wrapping_add(newest);
        self.order.store(order, Ordering::Relaxed);
        let place = self.place(newest);
        // One of the newest; none with `hardened:light`.
        const { assert!(REACH == 1 << 8) };
        let back = (order >> 24) * PLACE;
        if back as i32 >= self.reach.get() {
            return place.set(block, word);
        }
        let other = self.place(newest.wrapping_sub(back));
        // (In this order, for it may be the same place, which is not written yet.)
        let (other_block, other_word) =
            (other.block.load(Ordering::Relaxed), other.word.load(Ordering::Relaxed));
        place.set(other_block, other_word);
        other.set(block, word);
    }
}

/// The later one of two places.
fn later(one: u32, other: u32) -> u32 {
    if (one.wrapping_sub(other) as i32) < 0 { other } else { one }
}

/// Whether an offset into a slab, times the reciprocal of its class, is that of a slot's first byte.
#[inline(always)]
fn is_start(product: u64) -> bool {
    // The compiler makes two more instructions of the compare.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: compares a number.
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

/// All caches that were made.
fn all() -> impl Iterator<Item = &'static Cache> {
    // SAFETY: null, or a cache, which is never freed.
    let first = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    // SAFETY: null, or a cache, which is never freed.
    core::iter::successors(first, |cache| unsafe { cache.older.as_ref() })
}

/// Whether a slot is in a ring. The process has one thread.
pub(super) fn holds(block: *mut u8) -> bool {
    all().flat_map(|cache| &cache.rings).any(|ring| {
        let head = ring.head.load(Ordering::Relaxed);
        let mut places = (0..ring.count().max(0) as u32).step_by(PLACE as usize);
        places.any(|at| ring.place(head.wrapping_add(at)).get().block == block)
    })
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

/// In a forked child: other choices than the parent's. (At the next call of each class, and not
/// here: this may be a signal handler in the middle of one.)
pub(super) fn choose_anew() {
    all().flat_map(|cache| &cache.rings).for_each(Ring::forget_order);
}

/// In a forked child: what other threads held is lost, once, and their caches can be had.
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
