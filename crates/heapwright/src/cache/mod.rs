//! Caches: the memory that a thread allocates from.
//!
//! ```text
//!   hot (one per class, 16 bytes; the fast paths' data)
//!     head -> block -> block -> ...      room: how many more the list takes
//!                |  full: the whole list, O(1)      ^ empty
//!                v                                  | refill, in this order:
//!   depot (a share of the slabs, in chains) --------+  1 a chain of the depot
//!                |  full: a chain, block by block   |  2 remote frees
//!                v                                  |  3 returned slots of slabs
//!   slabs (bits, lowest address first) -------------+  4 untouched slots
//!                |  no slot in use                  ^  5 a unit of the stash
//!                v                                  |  6 another owner's partly free slab
//!   stash, chunk (runs of units) -------------------+  7 a new unit
//! ```
//!
//! A list runs across slabs, so a free touches no record. A list knows its length (`base - room`),
//! so a full list moves to the depot without a walk. Chains for which the depot has no room return
//! to their slabs. A slab without a slot in use frees its unit.
//!
//! A remote free writes only the block's link. The block goes into the *outgoing* batch for its
//! owner, and the batch goes onto the owner's stack (`remote`).
//!
//! Invariants: a block is in at most one list, chain, batch, stack or bit of its slab. Only the
//! holder of the ownership accesses anything except `remote` and `ownership`. Fields that other
//! threads read, for statistics or at a fork, are atomics.
//!
//! Called by `heap`, `hardened`, `drawn`, `debug`, `profile`, `status`, `stats` and `tallies`.

// The files. Imports lead downward only:
//
//   scavenger   steps of a quiet or slow thread           large    runs as blocks; slow allocation
//       |                                                    '--> magazines, deferred, stash
//   maintenance     once a tick: asks for polls, passes over shared caches
//       |
//   magazines       shared caches                    sampling, guard_draw   a cache's draws
//       |                                                  |
//   arrays          CPUs' arrays                           |
//       |      hand_over   a cache given up                |
//       |       |      slabs   a cache's slabs             |
//       |       |       |                                  |
//       +--> central <--+   the common owner's slabs       |
//               |                                          |
//   abandoned   |-> outgoing   remote frees in batches     draw    process-wide draws, countdowns
//       |       |       '-> deferred   frees of threads that cannot wait
//       '---> visit   slow work in another cache
//               |
//           slab_lists   density   forced_slow   room     of lists and slabs, for any owner
//               |
//             depot --> stash        hot   the fast paths' data
//
// Many files have methods of `Cache` for their purpose.

mod abandoned;
pub(crate) mod arrays;
pub(crate) mod central;
pub(crate) mod counters;
pub(crate) mod deferred;
pub(crate) mod density;
mod depot;
#[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "nothing is drawn without stacks"))]
pub(crate) mod draw;
mod forced_slow;
#[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "nothing is guarded without stacks"))]
mod guard_draw;
mod hand_over;
pub(crate) mod hot;
pub(crate) mod large;
pub(crate) mod magazines;
pub(crate) mod maintenance;
mod outgoing;
mod room;
#[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "nothing is sampled without stacks"))]
mod sampling;
mod scavenger;
mod slab_lists;
mod slabs;
mod stash;
mod visit;

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;

use crate::address_map::{Entry, MAP};
use crate::registry::exclusive::{Exclusive, Member};
use crate::remote::{Block, Ownership, RemoteStack};
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::Slab;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{OwnerLock, Owning, QuickOwning};
use crate::unit_list::{ByOwner, BySize, UnitList};

pub(crate) use abandoned::{none_warm_after_fork, purge_abandoned};
use depot::{Depot, DepotChain};
use forced_slow::ForcedSlow;
use guard_draw::GuardDraw;
use hand_over::HandOver;
pub(crate) use hand_over::is_much_handed_over;
pub(crate) use hot::{Common, Hot, HotStub, List, Mismatch, Serve};
pub(crate) use outgoing::{send, send_along};
use room::Room;
use sampling::Sampling;
use scavenger::Scavenger;
use slab_lists::{Probe, terminated};
pub(crate) use stash::{Stash, note_address_limit};
use visit::Thief;

/// Bytes in a chain of small blocks, and in a chain of blocks over [`LARGE`].
const CHAIN_BYTES: usize = 16 << 10;
const LARGE_CHAIN_BYTES: usize = UNIT / 2;
const LARGE: usize = 2 << 10;
/// Bytes in a class's first refill from slabs. Each further refill takes twice as many bytes, up to
/// a chain. So a thread that rarely allocates takes little, and gives little back at its end.
const FIRST_BYTES: usize = 1 << 10;
/// Caches that one search for a slab checks.
const ASKS: usize = 8;

const fn first_length(class: usize) -> usize {
    let size = size_class::size(class);
    let (blocks, least) = (FIRST_BYTES / size, if size > LARGE { 1 } else { 2 });
    if blocks < least { least } else { blocks }
}

const fn chain_length(class: usize) -> usize {
    let size = size_class::size(class);
    let blocks = if size > LARGE { LARGE_CHAIN_BYTES } else { CHAIN_BYTES } / size;
    if blocks > 256 {
        256
    } else if blocks < 2 {
        2
    } else {
        blocks
    }
}

struct Bin {
    /// `room` of the list when it is empty.
    base: Cell<i32>,
    depot: Depot,
    /// Blocks that the next refill from slabs takes.
    want: Cell<usize>,
    /// Slabs with returned slots.
    partial: UnitList<BySize>,
    slabs: Cell<usize>,
    /// The slab whose untouched slots are handed out, or 0.
    current: Cell<usize>,
    /// The list, while it is forced slow.
    forced_slow: ForcedSlow,
    room: Room,
    probe: Probe,
}

/// Counts that exist only if the options ask for statistics.
pub(crate) struct Counters {
    pub(crate) allocations: AtomicU64,
    pub(crate) frees: AtomicU64,
    pub(crate) requested: AtomicU64,
    pub(crate) sizes: [AtomicU64; heapwright_record::SIZE_BUCKETS],
    /// Allocations of each class, and their requested bytes.
    pub(crate) by_class: [(AtomicU64, AtomicU64); CLASSES],
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Use {
    /// A thread, live or ended.
    Thread = 0,
    /// A first-class heap.
    Heap = 1,
    /// All threads whose cache is gone, or that cannot get one.
    Late = 2,
    /// The samples of a heap profile.
    Samples = 3,
}

/// The memory that one thread, or one heap ([`Use`]), allocates from. A new cache is zero except
/// for the fields that [`Member::make`] sets.
#[repr(C)]
pub(crate) struct Cache {
    pub(crate) hot: Hot,
    bins: [Bin; CLASSES],
    /// Bytes and blocks in lists when they were last published.
    listed_bytes: AtomicUsize,
    listed_blocks: AtomicUsize,
    depot_bytes: AtomicUsize,
    depot_blocks: AtomicUsize,
    /// Bytes of blocks over [`LARGE`] in the depot.
    large_depot_bytes: Cell<usize>,
    /// Classes whose depots may have a chain, and the class that loses a chain next.
    kept: Cell<u128>,
    evict_next: Cell<u32>,
    scavenger: Scavenger,
    hand_over: HandOver,
    pub(crate) stash: Stash,
    /// All slabs, and their number.
    slabs: UnitList<ByOwner>,
    slab_count: Cell<usize>,
    /// Bytes of room that lists were given (see `room`).
    room_bytes: Cell<usize>,
    pub(crate) sampling: Sampling,
    pub(crate) guard_draw: GuardDraw,
    /// A first-class heap's large blocks.
    pub(crate) large: UnitList<ByOwner>,
    /// Orders the slow operations of the thread, visitors, and users of a first-class heap.
    pub(crate) lock: OwnerLock,
    thief: Thief,
    /// Whether units of slabs go to the stash. False while the cache's thread ends, and afterwards.
    keeps_units: Cell<bool>,
    owned_by: AtomicU8,
    /// Whether the abandoned cache has kept its blocks for the thread that adopts it.
    is_warm: Cell<bool>,
    /// Whether the cache's thread has ended.
    pub(crate) is_abandoned: AtomicBool,
    next_abandoned: AtomicPtr<Cache>,
    pub(crate) counters: Counters,
    // Other threads write to the inbox, so it has cache lines of its own.
    inbox: Inbox,
}

#[repr(align(128))]
struct Inbox {
    remote: RemoteStack,
    ownership: Ownership,
}

// SAFETY: other threads access only the atomics. Only the holder of the ownership accesses the
// other fields. The ownership passes between threads with acquire and release.
unsafe impl Sync for Cache {}

/// The calling thread's own cache: only that thread has a value of this type.
#[derive(Clone, Copy)]
pub(crate) struct OwnCache(&'static Cache, PhantomData<*const ()>);

impl OwnCache {
    /// # Safety
    ///
    /// The calling thread owns the cache until the thread ends.
    #[inline(always)]
    pub(crate) unsafe fn of(cache: &'static Cache) -> Self {
        Self(cache, PhantomData)
    }

    /// # Safety
    ///
    /// As for [`OwnCache::of`]. The calling thread's fast word, or its thread word, leads to `hot`.
    #[inline(always)]
    pub(crate) unsafe fn of_hot(hot: &Hot) -> Self {
        const { assert!(core::mem::offset_of!(Cache, hot) == 0) };
        // SAFETY: a cache begins with its hot part, and by the contract `hot` is a cache's.
        #[cfg(not(miri))]
        let cache = unsafe { &*core::ptr::from_ref(hot).cast::<Cache>() };
        // (`hot` is valid for the hot part only, the thread word's pointer for the whole cache.)
        // SAFETY: the thread word of a thread with its own cache leads to that cache.
        #[cfg(miri)]
        let cache = unsafe { &*crate::os::tls::own().cast::<Cache>() };
        debug_assert!(core::ptr::eq(hot, &raw const cache.hot));
        Self(cache, PhantomData)
    }

    /// Begins a slow operation: keeps visitors out until the guard is dropped.
    #[inline(always)]
    pub(crate) fn enter(self) -> Owning<'static> {
        // SAFETY: the cache has one owner, and this is its thread.
        unsafe { self.0.lock.own() }
    }

    /// [`OwnCache::enter`] for short paths. `None` if a visitor is in the cache now.
    #[inline(always)]
    pub(crate) fn try_enter(self) -> Option<QuickOwning<'static>> {
        // SAFETY: the cache has one owner, and this is its thread.
        unsafe { self.0.lock.try_own() }
    }

    #[inline(always)]
    pub(crate) fn get(self) -> &'static Cache {
        self.0
    }
}

impl Deref for OwnCache {
    type Target = Cache;

    #[inline(always)]
    fn deref(&self) -> &Cache {
        self.0
    }
}

static FORWARD_SIZED: AtomicBool = AtomicBool::new(false);

/// Makes the fast path for sized frees refuse every block, in present and later caches.
///
/// # Safety
///
/// No other thread uses the heap during the call. `mine` is the calling thread's.
pub(crate) unsafe fn forward_sized_frees(mine: Option<&Cache>) {
    FORWARD_SIZED.store(true, Ordering::Relaxed);
    // SAFETY: by the contract there is no other thread.
    unsafe { magazines::forward_sized_frees() };
    // SAFETY: by the contract there is no other thread.
    unsafe { arrays::forward_sized_frees() };
    if let Some(cache) = mine {
        cache.hot.forward_sized(true);
    }
}

/// All caches of threads and of heaps ([`Use`]). Shared caches are in `magazines::ALL`.
pub(crate) static CACHES: Exclusive<Cache> = Exclusive::new();

impl Member for Cache {
    unsafe fn make(at: *mut Self, id: u32) {
        // SAFETY: by the contract `at` is zeroed memory for a cache that no other thread knows;
        // zero is valid for every field.
        let cache = unsafe { &mut *at };
        cache.hot.tag = Entry::tag(id) as usize;
        cache.hot.know_window();
        cache.begin();
        cache.lock.begin();
        for class in 0..CLASSES {
            cache.hot.lists[class].reciprocal = size_class::reciprocal(class);
            cache.fill(class, DepotChain::EMPTY, 0);
            cache.bins[class].want.set(first_length(class));
        }
        stash::note_made(id as usize);
        cache.inbox.ownership = Ownership::held();
    }

    fn ownership(&self) -> &Ownership {
        &self.inbox.ownership
    }

    fn abandoned(&self) -> &AtomicPtr<Self> {
        &self.next_abandoned
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Allocated {
    pub(crate) block: *mut u8,
    /// Whether the whole block reads as zero.
    pub(crate) zero: bool,
}

impl Cache {
    /// The id that address map entries carry.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        Entry(self.hot.tag as u32).owner()
    }

    pub(crate) fn owned_by(&self) -> Use {
        match self.owned_by.load(Ordering::Relaxed) {
            0 => Use::Thread,
            1 => Use::Heap,
            2 => Use::Late,
            _ => Use::Samples,
        }
    }

    /// Whether the cache belongs to no thread, so that each call takes its lock.
    pub(crate) fn is_heap(&self) -> bool {
        self.owned_by() != Use::Thread
    }

    pub(crate) fn become_heap(&self, owned_by: Use) {
        // A heap's blocks are counted elsewhere.
        self.end_sampling();
        self.end_guards();
        self.owned_by.store(owned_by as u8, Ordering::Relaxed);
    }

    pub(crate) fn remote(&self) -> &RemoteStack {
        &self.inbox.remote
    }

    #[inline]
    pub(crate) fn alloc(&self, class: usize) -> Option<Allocated> {
        let block = self.hot.list(class).pop();
        if !block.is_null() {
            return Some(Allocated { block: block.cast(), zero: false });
        }
        self.refill(class)
    }

    /// # Safety
    ///
    /// The block is of `class`, of a slab of this cache, and in use.
    #[inline]
    pub(crate) unsafe fn free(&self, class: usize, block: *mut Block) {
        // SAFETY: a block of the class, of a slab of this cache, which the caller gives away.
        if unsafe { self.put_listed(class, block) } {
            self.overflow(class);
        }
    }

    /// Refills the empty list of `class`, and hands out a block.
    #[cold]
    pub(crate) fn refill(&self, class: usize) -> Option<Allocated> {
        if self.sampling.is_watched() {
            return self.refill_counted(class);
        }
        self.refill_uncounted(class)
    }

    /// [`Cache::refill`] if no block is counted, or no sample is due. Null if one is due now.
    #[inline(always)]
    fn refill_uncounted(&self, class: usize) -> Option<Allocated> {
        if self.bins[class].forced_slow.is_on() {
            let block = self.pop_forced_slow(class);
            if !block.is_null() || self.sampling.is_due(class) {
                return Some(Allocated { block: block.cast(), zero: false });
            }
        }
        if let Some(chain) = self.undepot(class) {
            self.grow_room(class);
            return Some(self.start(class, chain));
        }
        if !self.remote().is_empty() {
            self.drain();
            let block = self.hot.list(class).pop();
            if !block.is_null() || self.sampling.is_due(class) {
                return Some(Allocated { block: block.cast(), zero: false });
            }
        }
        if let Some(chain) = self.take_returned(class) {
            return Some(self.start(class, chain));
        }
        self.scavenge();
        let bin = &self.bins[class];
        if bin.current.get() == 0
            && let Some(unit) = self.kept_unit()
        {
            bin.current.set(self.open_slab(unit, false, class));
        }
        if bin.current.get() == 0 {
            if self.adopt_slab(class)
                && let Some(chain) = self.take_returned(class)
            {
                return Some(self.start(class, chain));
            }
            if self.steal_slabs(class)
                && let Some(chain) = self.take_returned(class)
            {
                return Some(self.start(class, chain));
            }
            if bin.current.get() == 0 {
                bin.current.set(self.new_slab(class)?);
            }
        }
        let slab = Slab::at(&MAP, bin.current.get(), class);
        let chain = slab.carve(self.wanted(class))?;
        if !slab.has_untouched() {
            bin.current.set(0);
        }
        bin.room.count(chain.count as i32);
        if chain.count == 1 {
            if self.sampling.count_given(class) {
                return Some(Allocated { block: chain.head.cast(), zero: slab.is_zero() });
            }
            self.distribute(class, terminated(chain));
            return Some(Allocated { block: core::ptr::null_mut(), zero: false });
        }
        Some(self.start(class, terminated(chain)))
    }

    fn length(&self, class: usize) -> usize {
        let forced_slow = &self.bins[class].forced_slow;
        if forced_slow.is_on() { forced_slow.count() } else { self.listed(class) }
    }

    /// The length of a list that is not forced slow.
    fn listed(&self, class: usize) -> usize {
        (self.bins[class].base.get() - self.hot.list(class).room.get()).max(0) as usize
    }

    /// Makes a chain the list of `class`, which is empty.
    fn fill(&self, class: usize, chain: DepotChain, room: i32) {
        self.set_listed(class, chain.head(), chain.count());
        self.hot.list(class).room.set(room);
        self.bins[class].base.set(room + chain.count() as i32);
    }

    fn empty(&self, class: usize) -> DepotChain {
        self.restore(class);
        let count = self.length(class);
        let head = self.take_all_listed(class);
        // SAFETY: the list's blocks, which the list forgets here.
        let chain = unsafe { DepotChain::of(head, count) };
        self.fill(class, DepotChain::EMPTY, self.room(class, count) as i32);
        chain
    }

    /// Makes a chain the list of its class, which is empty, and hands out the chain's first block.
    #[inline(never)]
    fn start(&self, class: usize, chain: DepotChain) -> Allocated {
        // (One less: a list without room overflows when it has all blocks of the chain again.)
        let room = self.room(class, chain.count()).min(chain_length(class)) as i32 - 1;
        self.fill(class, chain, room);
        let block = self.hot.list(class).pop();
        if block.is_null() || self.bins[class].forced_slow.is_on() {
            return self.start_otherwise(class, block);
        }
        Allocated { block: block.cast(), zero: false }
    }

    /// The end of [`Cache::start`] if a sample is due (`block` is null) or the list is forced slow.
    #[cold]
    #[inline(never)]
    fn start_otherwise(&self, class: usize, block: *mut Block) -> Allocated {
        // The search for blocks may have forced the empty list slow.
        self.stay_forced_slow(class);
        if block.is_null() {
            self.sampling.stays_due(class);
        }
        Allocated { block: block.cast(), zero: false }
    }

    /// Blocks that a refill from slabs takes. Doubles the number for the next refill.
    fn wanted(&self, class: usize) -> usize {
        let want = &self.bins[class].want;
        want.replace((2 * want.get()).min(chain_length(class)))
    }

    /// Moves the list of `class`, which is too long, to the depot.
    #[cold]
    pub(crate) fn overflow(&self, class: usize) {
        let polled = self.bins[class].forced_slow.is_on();
        if polled && self.push_forced_slow(class) {
            return;
        }
        self.scavenge();
        let chain = self.empty(class);
        let length = chain_length(class);
        if chain.count() > 2 * length + 1 {
            // The list began as a chain of the depot. Newer blocks become a chain of their own.
            let (newer, older) = chain.cut(length + 1);
            self.keep(class, older);
            self.keep(class, newer);
        } else {
            self.keep(class, chain);
        }
        if !self.remote().is_empty() {
            self.drain();
        }
        if polled {
            self.force_slow_again(class);
        }
    }

    /// Gives back all free memory: at a thread's end, on a trim, or if memory is short.
    pub(crate) fn release_free(&self) {
        self.flush_outgoing();
        for class in 0..CLASSES {
            let chain = self.empty(class);
            self.distribute(class, chain);
        }
        self.release_unlisted();
        self.publish();
    }

    pub(crate) fn release_unlisted(&self) {
        self.drain_home();
        for class in 0..CLASSES {
            while self.evict(class) {}
            let current = self.bins[class].current.get();
            if current != 0 {
                let slab = Slab::at(&MAP, current, class);
                if slab.is_empty() {
                    self.bins[class].current.set(0);
                    self.retire(slab);
                }
            }
        }
        // This comes last, because `retire` puts units of slabs into the stash.
        self.stash.release();
    }

    pub(crate) fn publish(&self) {
        let (mut blocks, mut bytes) = (0, 0);
        for class in 0..CLASSES {
            blocks += self.length(class);
            bytes += self.length(class) * size_class::size(class);
        }
        self.listed_blocks.store(blocks, Ordering::Relaxed);
        self.listed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Blocks in lists (when last published), depot and outgoing batch.
    pub(crate) fn cached_blocks(&self) -> usize {
        self.listed_blocks.load(Ordering::Relaxed)
            + self.depot_blocks.load(Ordering::Relaxed)
            + self.hot.outgoing.count()
    }

    pub(crate) fn cached_bytes(&self) -> usize {
        self.listed_bytes.load(Ordering::Relaxed)
            + self.depot_bytes.load(Ordering::Relaxed)
            + self.hot.outgoing.bytes()
    }
}
