//! Caches: what one thread allocates from.
//!
//! ```text
//!   hot (one per class, 16 bytes; all that malloc and free touch)
//!     head -> block -> block -> ...      room: how many more the list takes
//!                |  full: the whole list, O(1)      ^ empty
//!                v                                  | refill, in this order:
//!   depot (a share of the slabs, in chains) --------+  1 a chain of the depot
//!                |  full: oldest chain, block by block 2 what others freed
//!                v                                  |  3 returned slots of slabs
//!   slabs (bits, lowest address first) -------------+  4 untouched slots
//!                |  no slot out                     ^  5 a dead thread's slab
//!                v                                  |  6 a new unit
//!   chunk (runs of units) --------------------------+
//! ```
//!
//! A list runs across slabs, so freeing touches no record; a list knows its
//! length (`base - room`), so a full one moves to the depot without a walk and
//! the depot can be bounded in bytes (see `depot`). What leaves the depot goes back to its
//! slabs, where a slab without a slot out is seen and its unit given back.
//!
//! A block of another owner is not touched but for its link: it goes into the
//! *outgoing* batch for that owner and then, a batch at a time, onto the
//! owner's stack (see `remote`).
//!
//! Invariants: a block is in one list, one chain, one batch, one stack, or a
//! bit of its slab, never two; only the holder of the tenure touches anything
//! but `remote` and `tenure`. What other threads look at (statistics, the fork
//! handler) is atomic, and relaxed.
//!
//! Called by `heap`.

mod abandoned;
pub(crate) mod arrays;
pub(crate) mod central;
mod depot;
pub(crate) mod hot;
pub(crate) mod magazines;
pub(crate) mod maintenance;
mod outgoing;
mod room;
mod scavenger;
mod stash;
mod visit;
mod withheld;

use core::cell::Cell;
use core::ptr;

use crate::address_map::{Entry, Kind, MAP};
use crate::chunk::{self, Want};
use crate::misuse::{self, Call};
use crate::os::SYSTEM;
use crate::registry::exclusive::{Exclusive, Member};
use crate::remote::{Block, RemoteStack, Tenure};
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::{Chain, Slab, WayBack};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use crate::unit_list::{ByOwner, BySize, UnitList};

pub(crate) use abandoned::{none_warm_after_fork, purge_abandoned};
use depot::{Depot, DepotChain};
pub(crate) use hot::{Hot, HotStub, List, OnMiss, Residue};
pub(crate) use outgoing::{send, send_along};
use room::Room;
use scavenger::Scavenger;
pub(crate) use stash::Stash;
use withheld::Withheld;

/// Bytes in a chain, where blocks are small enough.
const CHAIN_BYTES: usize = 16 << 10;
/// Bytes that a class's first refill from slabs is about; each further one is
/// twice as much, up to a chain. A thread that hardly allocates has little to
/// take, and little to give back when it ends.
const FIRST_BYTES: usize = 1 << 10;
/// Resting caches that are asked for a slab.
const ASKS: usize = 8;
/// A class with so many slabs, and one for so many bytes of its size, is expected
/// to fill the next one too; so is any class of a cache with so many slabs.
const FILLED: usize = 8;
const SIZE_A_SLAB: usize = 64;
const LARGE_HEAP: usize = (16 << 20) / UNIT;
/// A slab is filled although at most one of so many parts is left behind its last slot.
const LEAVES: usize = 16;

/// Blocks in the first refill of `class`.
const fn first_length(class: usize) -> usize {
    let blocks = FIRST_BYTES / size_class::size(class);
    if blocks < 2 { 2 } else { blocks }
}

/// Blocks in a chain of `class`.
const fn chain_length(class: usize) -> usize {
    let blocks = CHAIN_BYTES / size_class::size(class);
    if blocks > 256 {
        256
    } else if blocks < 2 {
        2
    } else {
        blocks
    }
}

/// What the slow paths keep of a class.
struct Bin {
    /// `room` of the list when it is empty.
    base: Cell<i32>,
    depot: Depot,
    /// Blocks that the next refill from slabs takes.
    want: Cell<usize>,
    /// Slabs with returned slots.
    partial: UnitList<BySize>,
    /// Slabs of the class.
    slabs: Cell<usize>,
    /// The slab that is being carved, or 0.
    current: Cell<usize>,
    /// The list, while it is withheld.
    withheld: Withheld,
    room: Room,
}

/// Counts that are kept only where statistics were asked for.
pub(crate) struct Counters {
    pub(crate) allocations: AtomicU64,
    pub(crate) frees: AtomicU64,
    pub(crate) requested: AtomicU64,
    pub(crate) sizes: [AtomicU64; heapwright_record::SIZE_BUCKETS],
    /// Allocations of each class, and the bytes asked for in them.
    pub(crate) by_class: [(AtomicU64, AtomicU64); CLASSES],
}

/// What owns the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A thread, or a thread that is dead.
    Thread,
    /// A first-class heap.
    Heap,
}

/// Everything one thread (or one first-class heap) allocates from. Zero but
/// for the tag, the lists' room and the tenure is a fresh one.
#[repr(C)]
pub(crate) struct Cache {
    pub(crate) hot: Hot,
    bins: [Bin; CLASSES],
    /// Bytes and blocks in lists when a slow path last looked.
    listed_bytes: AtomicUsize,
    listed_blocks: AtomicUsize,
    depot_bytes: AtomicUsize,
    depot_blocks: AtomicUsize,
    evict_next: Cell<usize>,
    scavenger: Scavenger,
    /// Runs kept for the next large block.
    pub(crate) stash: Stash,
    /// All slabs, and how many.
    slabs: UnitList<ByOwner>,
    slab_count: Cell<usize>,
    /// Bytes that lists were given room for, see `room`.
    room_bytes: Cell<usize>,
    /// A first-class heap's large blocks.
    pub(crate) large: UnitList<ByOwner>,
    /// Orders the slow operations: those of the thread, of visitors, and of the
    /// users of a first-class heap.
    pub(crate) lock: Lock<()>,
    /// Who is asked next for a slab.
    ask_next: Cell<u32>,
    is_heap: AtomicBool,
    /// It rests and has kept its blocks, for the thread that adopts it.
    is_warm: Cell<bool>,
    /// Its thread has ended.
    pub(crate) is_abandoned: AtomicBool,
    next_abandoned: AtomicPtr<Cache>,
    pub(crate) counters: Counters,
    // What other threads write to, on lines of its own.
    inbox: Inbox,
}

#[repr(align(128))]
struct Inbox {
    remote: RemoteStack,
    tenure: Tenure,
}

// SAFETY: other threads reach only the atomics; the rest is touched by the
// holder of the tenure, which passes between threads with acquire and release.
unsafe impl Sync for Cache {}

/// Whether caches made from now on pass sized frees on.
static FORWARD_SIZED: AtomicBool = AtomicBool::new(false);

/// Makes the fast path for sized frees refuse every block, for the calling
/// thread's cache, for those that threads share, and for all that are made later.
///
/// # Safety
///
/// No other thread uses the heap meanwhile; `mine` is the calling thread's.
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

/// All caches of the process, of threads and of first-class heaps.
pub(crate) static CACHES: Exclusive<Cache> = Exclusive::new();

impl Member for Cache {
    unsafe fn make(at: *mut Self, id: u32) {
        // SAFETY: by the contract `at` is zeroed memory for a cache that nobody
        // else knows; zero is valid for every field.
        let cache = unsafe { &mut *at };
        cache.hot.tag = Entry::tag(id) as usize;
        cache.begin();
        for class in 0..CLASSES {
            cache.hot.lists[class].reciprocal = size_class::reciprocal(class);
            cache.fill(class, DepotChain::EMPTY, 0);
            cache.bins[class].want.set(first_length(class));
        }
        cache.hot.refresh();
        cache.inbox.tenure = Tenure::held();
    }

    fn tenure(&self) -> &Tenure {
        &self.inbox.tenure
    }

    fn abandoned(&self) -> &AtomicPtr<Self> {
        &self.next_abandoned
    }
}

/// A block that was handed out.
#[derive(Clone, Copy)]
pub(crate) struct Allocated {
    pub(crate) block: *mut u8,
    /// Whether all of it reads as zero.
    pub(crate) zero: bool,
}

impl Cache {
    /// The id that address map entries carry.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        Entry(self.hot.tag as u32).owner()
    }

    /// What owns it.
    pub(crate) fn owned_by(&self) -> Use {
        if self.is_heap.load(Ordering::Relaxed) { Use::Heap } else { Use::Thread }
    }

    /// Makes it a first-class heap's.
    pub(crate) fn become_heap(&self) {
        self.is_heap.store(true, Ordering::Relaxed);
    }

    /// What other threads freed.
    pub(crate) fn remote(&self) -> &RemoteStack {
        &self.inbox.remote
    }

    /// Hands out a block of `class`.
    #[inline]
    pub(crate) fn alloc(&self, class: usize) -> Option<Allocated> {
        let block = self.hot.list(class).pop();
        if !block.is_null() {
            return Some(Allocated { block: block.cast(), zero: false });
        }
        self.refill(class)
    }

    /// Takes a block back that this cache owns.
    ///
    /// # Safety
    ///
    /// The block is of `class`, of a slab of this cache, and in use.
    #[inline]
    pub(crate) unsafe fn free(&self, class: usize, block: *mut Block) {
        // SAFETY: a block of the class, of a slab of this cache, which the caller gives away.
        if unsafe { self.hot.list(class).push(block) } {
            self.overflow(class);
        }
    }

    /// Hands out a block of `class`, whose list is empty, and fills the list.
    #[cold]
    pub(crate) fn refill(&self, class: usize) -> Option<Allocated> {
        if self.bins[class].withheld.is_withheld() {
            let block = self.pop_withheld(class);
            if !block.is_null() {
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
            if !block.is_null() {
                return Some(Allocated { block: block.cast(), zero: false });
            }
        }
        if let Some(chain) = self.take_returned(class) {
            return Some(self.start(class, chain));
        }
        self.scavenge();
        let bin = &self.bins[class];
        if bin.current.get() == 0 {
            if self.adopt_slab(class)
                && let Some(chain) = self.take_returned(class)
            {
                return Some(self.start(class, chain));
            }
            if self.steal_slab(class)
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
            return Some(Allocated { block: chain.head.cast(), zero: slab.is_zero() });
        }
        Some(self.start(class, terminated(chain)))
    }

    /// Blocks in the list of `class`.
    fn length(&self, class: usize) -> usize {
        let withheld = &self.bins[class].withheld;
        let room =
            if withheld.is_withheld() { withheld.room() } else { self.hot.list(class).room.get() };
        (self.bins[class].base.get() - room).max(0) as usize
    }

    /// Fills the list of `class`, which is empty.
    fn fill(&self, class: usize, chain: DepotChain, room: i32) {
        let list = self.hot.list(class);
        list.head.set(chain.head());
        list.room.set(room);
        self.bins[class].base.set(room + chain.count() as i32);
    }

    /// Takes all blocks out of the list of `class`.
    fn empty(&self, class: usize) -> DepotChain {
        self.unhide(class);
        let (head, count) = (self.hot.list(class).head.get(), self.length(class));
        // SAFETY: the list's blocks; it forgets them here.
        let chain = unsafe { DepotChain::of(head, count) };
        self.fill(class, DepotChain::EMPTY, self.room(class, count) as i32);
        chain
    }

    /// Makes a chain the (empty) list of its class and hands out its first block.
    fn start(&self, class: usize, chain: DepotChain) -> Allocated {
        // One less: when the list has all of them again and no room, they go.
        let room = self.room(class, chain.count()).min(chain_length(class)) as i32 - 1;
        self.fill(class, chain, room);
        let block = self.hot.list(class).pop();
        // It may have been withheld, empty, while we looked for blocks.
        self.stay_withheld(class);
        Allocated { block: block.cast(), zero: false }
    }

    /// How many blocks a refill from slabs takes; the next one takes twice as many.
    fn wanted(&self, class: usize) -> usize {
        let want = &self.bins[class].want;
        want.replace((2 * want.get()).min(chain_length(class)))
    }

    /// Returned slots of slabs: about as many as are wanted.
    fn take_returned(&self, class: usize) -> Option<DepotChain> {
        let bin = &self.bins[class];
        bin.partial.first()?;
        let most = self.wanted(class);
        let unlist = |slab: Slab<'_>| self.unlist(slab);
        let chain = gather(&bin.partial, class, most, self.scavenger.now.get(), unlist)?;
        bin.room.count(chain.count as i32);
        Some(terminated(chain))
    }

    /// Takes a slab into the list of all.
    fn own(&self, unit: usize, class: usize) {
        let slabs = &self.bins[class].slabs;
        slabs.set(slabs.get() + 1);
        self.slabs.push(&MAP, unit);
        self.slab_count.set(self.slab_count.get() + 1);
    }

    /// Takes a slab out of the list of all.
    fn disown(&self, unit: usize, class: usize) {
        let slabs = &self.bins[class].slabs;
        slabs.set(slabs.get() - 1);
        self.slabs.remove(&MAP, unit);
        self.slab_count.set(self.slab_count.get() - 1);
    }

    fn new_slab(&self, class: usize) -> Option<usize> {
        let entry = Entry::slab(self.id(), class);
        // The entry is set last: the record must be a slab's by then.
        let want = want_of_slab(class, self.bins[class].slabs.get(), self.slab_count.get());
        let run = chunk::take(1, 1, want, Entry::METADATA, Entry::large_rest)?;
        Slab::at(&MAP, run.unit, class).open(run.zero);
        self.own(run.unit, class);
        // First: what has this cache's tag must be below its limit.
        self.hot.refresh();
        MAP.set_entries(run.unit, 1, entry);
        self.publish();
        Some(run.unit)
    }

    /// The list of `class` is too long: moves it to the depot.
    #[cold]
    pub(crate) fn overflow(&self, class: usize) {
        let polled = self.bins[class].withheld.is_withheld();
        if polled && self.push_withheld(class) {
            return;
        }
        self.scavenge();
        let chain = self.empty(class);
        let length = chain_length(class);
        if chain.count() > 2 * length + 1 {
            // The list began as a chain of the depot. What came since is at its
            // head; it becomes a chain of its own, so that chains stay short.
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
            self.withhold_again(class);
        }
    }

    /// Sends the blocks of a chain back to their slabs.
    fn distribute(&self, class: usize, chain: DepotChain) {
        let way = WayBack::of(&MAP, class, self.scavenger.now.get());
        let mine = Entry::slab(self.id(), class);
        let mut block = chain.head();
        let mut left = chain.count();
        let mut home = chain.count() as i32;
        self.scavenger.note_work();
        while left > 0 {
            let unit = self.hot.unit_of(block.addr());
            // SAFETY: the unit of a block is below the map's limit.
            if unsafe { MAP.entry(unit) } != mine {
                // Its slab was taken over by another cache while it was in a list.
                // SAFETY: the chain is this cache's and has `count` linked blocks.
                let next = unsafe { Block::next(block) };
                // SAFETY: a free block of the chain's, which leaves the chain here.
                unsafe { self.forward(block) };
                home -= 1;
                block = next;
                left -= 1;
                continue;
            }
            let unit_of = |address| self.hot.unit_of(address);
            // SAFETY: the chain is of this cache's blocks of the class, `left` of them.
            if unsafe { put_run(&way, unit, class, &mut block, &mut left, unit_of) } {
                self.settle(Slab::at(&MAP, unit, class));
            }
        }
        self.bins[class].room.count(-home);
    }

    /// Sends one block back to its slab, which is this cache's.
    ///
    /// # Safety
    ///
    /// The slab is of `class` and this cache's; the block is free and the caller gives it away.
    #[inline]
    unsafe fn put(&self, class: usize, block: *mut Block) {
        let unit = self.hot.unit_of(block.addr());
        let way = WayBack::of(&MAP, class, self.scavenger.now.get());
        // SAFETY: by the contract the unit is a slab of the class, and this cache's.
        let mut visit = unsafe { way.visit(unit) };
        if !visit.put(block.addr() & (UNIT - 1)) {
            misuse::double_free(Call::Free, block.addr(), size_class::size(class));
        }
        if visit.finish() {
            self.settle(Slab::at(&MAP, unit, class));
        }
        self.bins[class].room.count(-1);
        self.scavenger.note_work();
    }

    /// Some of a slab's slots came back: lists it, or gives its unit back.
    fn settle(&self, slab: Slab<'_>) {
        let bin = &self.bins[slab.class];
        if slab.is_empty() && bin.current.get() != slab.unit {
            self.retire(slab);
        } else if !slab.is_listed() {
            bin.partial.push(&MAP, slab.unit);
            slab.set_listed(true);
        }
    }

    /// Takes a slab out of its partial list.
    fn unlist(&self, slab: Slab<'_>) {
        let partial = &self.bins[slab.class].partial;
        if self.scavenger.next.get() == slab.unit {
            self.scavenger.next.set(partial.after(&MAP, slab.unit).unwrap_or(0));
        }
        partial.remove(&MAP, slab.unit);
        slab.set_listed(false);
    }

    /// Gives a slab's unit back.
    fn retire(&self, slab: Slab<'_>) {
        slab.clear();
        if slab.is_listed() {
            self.unlist(slab);
        }
        self.disown(slab.unit, slab.class);
        chunk::give(slab.unit, 1);
    }

    /// Gives back all that is not in use: at a thread's end, and on a trim.
    pub(crate) fn release_free(&self) {
        self.flush_outgoing();
        for class in 0..CLASSES {
            let chain = self.empty(class);
            self.distribute(class, chain);
        }
        self.release_unlisted();
        self.publish();
    }

    /// Gives back what is not in use and not in a list.
    pub(crate) fn release_unlisted(&self) {
        self.stash.release();
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
    }

    /// Gives the pages back that hold no block, of all slabs. Returns bytes.
    pub(crate) fn purge_slabs(&self) -> usize {
        let mut given = 0;
        for class in 0..CLASSES {
            let mut at = self.bins[class].partial.first();
            while let Some(unit) = at {
                given += Slab::at(&MAP, unit, class).purge(&SYSTEM);
                at = self.bins[class].partial.after(&MAP, unit);
            }
        }
        chunk::note_purged(given);
        given
    }

    /// Takes over a slab with returned slots from another cache, whose slow
    /// operations are the caller's to do.
    fn take_over(&self, from: &Cache, slab: Slab<'_>) {
        let (unit, class) = (slab.unit, slab.class);
        from.unlist(slab);
        if from.bins[class].current.get() == unit {
            from.bins[class].current.set(0);
        }
        from.disown(unit, class);
        self.own(unit, class);
        from.bins[class].room.count(slab.free() as i32 - slab.carved() as i32);
        // First: what has this cache's tag must be below its limit.
        self.hot.refresh();
        MAP.set_entries(unit, 1, Entry::slab(self.id(), class));
        self.bins[class].partial.push(&MAP, unit);
        slab.set_listed(true);
        if slab.has_untouched() && self.bins[class].current.get() == 0 {
            self.bins[class].current.set(unit);
        }
    }

    /// Gives every slab back, in use or not: the end of a first-class heap.
    pub(crate) fn give_all_slabs(&self) {
        for class in 0..CLASSES {
            let bin = &self.bins[class];
            let _forgotten = self.empty(class);
            bin.depot.forget();
            bin.room.out.set(0);
            bin.current.set(0);
            // Before the units go: free runs use the same links.
            while let Some(unit) = bin.partial.first() {
                self.unlist(Slab::at(&MAP, unit, class));
            }
        }
        self.depot_bytes.store(0, Ordering::Relaxed);
        self.depot_blocks.store(0, Ordering::Relaxed);
        self.publish();
        while let Some(unit) = self.slabs.first() {
            let Kind::Slab(class) = MAP.kind(unit) else { break };
            self.disown(unit, class);
            Slab::at(&MAP, unit, class).clear();
            chunk::give(unit, 1);
        }
    }

    /// Whether it has slabs.
    pub(crate) fn has_slabs(&self) -> bool {
        self.slabs.first().is_some()
    }

    /// Tells other threads how much is in the lists now.
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

    /// Bytes in lists (when last published), depot and outgoing batch.
    pub(crate) fn cached_bytes(&self) -> usize {
        self.listed_bytes.load(Ordering::Relaxed)
            + self.depot_bytes.load(Ordering::Relaxed)
            + self.hot.outgoing.bytes()
    }
}

/// What to ask for a new slab of `class`, whose owner has so many of the class and so many
/// in all. It will be filled if the class has filled many, the more the larger its blocks
/// are, for programs leave the end of large ones untouched; or if the heap is so large that
/// the ends of all classes' last slabs are a small part of it.
fn want_of_slab(class: usize, slabs: usize, all: usize) -> Want {
    let size = size_class::size(class);
    let many = (size / SIZE_A_SLAB).max(FILLED);
    let behind = UNIT - size_class::capacity(class) * size;
    let is_filled = behind <= UNIT / LEAVES && (slabs >= many || all >= LARGE_HEAP);
    if is_filled { Want::Dense } else { Want::Any }
}

/// Returned slots of the slabs of `class` in `partial`, about `most`, at least one; `unlist` takes a slab
/// out that has no more.
fn gather(
    partial: &UnitList<BySize>,
    class: usize,
    most: usize,
    now: u32,
    unlist: impl Fn(Slab<'_>),
) -> Option<Chain> {
    // A slab that gave nothing would stay the first for ever.
    let most = most.max(1);
    let mut all: Option<Chain> = None;
    while let Some(unit) = partial.first() {
        let slab = Slab::at(&MAP, unit, class);
        let have = all.map_or(0, |chain| chain.count);
        let more = slab.take(most - have, now);
        if slab.free() == 0 {
            unlist(slab);
        }
        all = match (all, more) {
            (Some(all), Some(more)) => {
                // SAFETY: both chains were just taken and are the caller's.
                unsafe { Block::set_next(all.tail, more.head) };
                Some(Chain { tail: more.tail, count: all.count + more.count, ..all })
            }
            (all, more) => all.or(more),
        };
        if all.is_some_and(|chain| chain.count * 2 >= most) {
            break;
        }
    }
    all
}

/// Puts the blocks of a chain of `left` blocks back that lie in the slab of `class` at
/// `unit`, up to the first that does not. Returns whether the slab is now to be settled.
///
/// # Safety
///
/// The slab is the caller's, and so is the chain.
#[inline(always)]
unsafe fn put_run(
    way: &WayBack,
    unit: usize,
    class: usize,
    block: &mut *mut Block,
    left: &mut usize,
    unit_of: impl Fn(usize) -> usize,
) -> bool {
    // SAFETY: the unit is a slab of the class and the caller's.
    let mut visit = unsafe { way.visit(unit) };
    while *left > 0 && unit_of(block.addr()) == unit {
        // First, because all else waits for it where the block is cold.
        // SAFETY: the chain is the caller's, and this is not behind its end.
        let next = unsafe { Block::next(*block) };
        if !visit.put(block.addr() & (UNIT - 1)) {
            misuse::double_free(Call::Free, block.addr(), size_class::size(class));
        }
        *block = next;
        *left -= 1;
    }
    visit.finish()
}

/// A chain that was just taken from a slab, with an end.
fn terminated(chain: Chain) -> DepotChain {
    // SAFETY: slabs make chains of slots that are whoever's took them, who gives this one away.
    unsafe { Block::set_next(chain.tail, ptr::null_mut()) };
    // SAFETY: as many slots of one slab, linked and with an end.
    unsafe { DepotChain::of(chain.head, chain.count) }
}
