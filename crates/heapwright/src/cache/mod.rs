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

mod depot;
mod hidden;
mod hot;
mod room;
mod scavenger;
mod stash;
mod visit;

use core::cell::Cell;
use core::ptr;

use crate::address_map::{Entry, Kind, MAP};
use crate::chunk::{self, Want};
use crate::misuse::{self, Call};
use crate::os;
use crate::registry::{Member, Registry};
use crate::remote::{Block, RemoteStack, Tenure};
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::{ByOwner, BySize, Chain, SYSTEM, Slab, UnitList, WayBack};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use depot::{Depot, DepotChain};
use hidden::Hidden;
use hot::NOBODY;
pub(crate) use hot::{Hot, List};
use room::Room;
use scavenger::Scavenger;
use stash::Stash;

/// Bytes in a chain, where blocks are small enough.
const CHAIN_BYTES: usize = 16 << 10;
/// Blocks of other owners that are sent at once, and their bytes.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 64 << 10;
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
/// Caches that may rest with their blocks, and the bytes of them.
const WARM: usize = 4;
const WARM_BYTES: usize = 128 << 10;
/// Warm caches that one pass of a scavenger cools.
const COOLS: usize = 2;

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
    /// The list, while it is hidden.
    hidden: Hidden,
    room: Room,
}

/// Blocks of another owner on their way home.
struct Outgoing {
    owner: Cell<u32>,
    head: Cell<*mut Block>,
    tail: Cell<*mut Block>,
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl Outgoing {
    fn forget(&self) {
        self.head.set(ptr::null_mut());
        self.tail.set(ptr::null_mut());
        self.count.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
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
    outgoing: Outgoing,
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
    pub(crate) is_resting: AtomicBool,
    next_resting: AtomicPtr<Cache>,
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
/// thread's cache and all that are made later.
pub(crate) fn forward_sized_frees(mine: Option<&Cache>) {
    FORWARD_SIZED.store(true, Ordering::Relaxed);
    if let Some(cache) = mine {
        cache.hot.sized_tag.set(NOBODY);
    }
}

/// How many caches are warm.
static WARM_NOW: AtomicUsize = AtomicUsize::new(0);

/// All caches of the process, of threads and of first-class heaps.
pub(crate) static CACHES: Registry<Cache> = Registry::new();

impl Member for Cache {
    unsafe fn make(at: *mut Self, id: u32) {
        // SAFETY: by the contract `at` is zeroed memory for a cache that nobody
        // else knows; zero is valid for every field.
        let cache = unsafe { &mut *at };
        cache.hot.tag = Entry::tag(id) as usize;
        cache.begin();
        for class in 0..CLASSES {
            cache.hot.lists[class].reciprocal = size_class::reciprocal(class);
            cache.fill(class, ptr::null_mut(), 0, 0);
            cache.bins[class].want.set(first_length(class));
        }
        cache.hot.refresh();
        cache.inbox.tenure = Tenure::held();
    }

    fn tenure(&self) -> &Tenure {
        &self.inbox.tenure
    }

    fn resting(&self) -> &AtomicPtr<Self> {
        &self.next_resting
    }
}

/// A block that was handed out.
#[derive(Clone, Copy)]
pub(crate) struct Given {
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
    pub(crate) fn alloc(&self, class: usize) -> Option<Given> {
        let block = self.hot.list(class).pop();
        if !block.is_null() {
            return Some(Given { block: block.cast(), zero: false });
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
        // SAFETY: the same contract.
        if unsafe { self.hot.list(class).push(block) } {
            self.overflow(class);
        }
    }

    /// Hands out a block of `class`, whose list is empty, and fills the list.
    #[cold]
    fn refill(&self, class: usize) -> Option<Given> {
        if self.bins[class].hidden.is_hidden() {
            let block = self.pop_hidden(class);
            if !block.is_null() {
                return Some(Given { block: block.cast(), zero: false });
            }
        }
        if let Some(chain) = self.undepot(class) {
            self.grow_room(class);
            return Some(self.start(class, chain.head, chain.count));
        }
        if !self.remote().is_empty() {
            self.drain();
            let block = self.hot.list(class).pop();
            if !block.is_null() {
                return Some(Given { block: block.cast(), zero: false });
            }
        }
        if let Some(chain) = self.take_returned(class) {
            return Some(self.start(class, chain.head, chain.count));
        }
        self.scavenge();
        let bin = &self.bins[class];
        if bin.current.get() == 0 {
            if self.adopt_slab(class)
                && let Some(chain) = self.take_returned(class)
            {
                return Some(self.start(class, chain.head, chain.count));
            }
            if self.steal_slab(class)
                && let Some(chain) = self.take_returned(class)
            {
                return Some(self.start(class, chain.head, chain.count));
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
            return Some(Given { block: chain.head.cast(), zero: slab.is_zero() });
        }
        Some(self.start(class, terminate(chain), chain.count))
    }

    /// Blocks in the list of `class`.
    fn length(&self, class: usize) -> usize {
        let hidden = &self.bins[class].hidden;
        let room = if hidden.is_hidden() { hidden.room() } else { self.hot.list(class).room.get() };
        (self.bins[class].base.get() - room).max(0) as usize
    }

    /// Fills the list of `class`, which is empty.
    fn fill(&self, class: usize, head: *mut Block, count: usize, room: i32) {
        let list = self.hot.list(class);
        list.head.set(head);
        list.room.set(room);
        self.bins[class].base.set(room + count as i32);
    }

    /// Takes all blocks out of the list of `class`.
    fn empty(&self, class: usize) -> DepotChain {
        self.unhide(class);
        let chain = DepotChain { head: self.hot.list(class).head.get(), count: self.length(class) };
        self.fill(class, ptr::null_mut(), 0, self.room(class, chain.count) as i32);
        chain
    }

    /// Makes a chain the (empty) list of its class and hands out its first block.
    fn start(&self, class: usize, head: *mut Block, count: usize) -> Given {
        // One less: when the list has all of them again and no room, they go.
        let room = self.room(class, count).min(chain_length(class)) as i32 - 1;
        self.fill(class, head, count, room);
        let block = self.hot.list(class).pop();
        // It may have been hidden, empty, while we looked for blocks.
        self.stay_hidden(class);
        Given { block: block.cast(), zero: false }
    }

    /// How many blocks a refill from slabs takes; the next one takes twice as many.
    fn wanted(&self, class: usize) -> usize {
        let want = &self.bins[class].want;
        want.replace((2 * want.get()).min(chain_length(class)))
    }

    /// Returned slots of slabs: about as many as are wanted.
    fn take_returned(&self, class: usize) -> Option<Chain> {
        let bin = &self.bins[class];
        bin.partial.first()?;
        let most = self.wanted(class);
        let mut all: Option<Chain> = None;
        while let Some(unit) = bin.partial.first() {
            let slab = Slab::at(&MAP, unit, class);
            let have = all.map_or(0, |chain| chain.count);
            let more = slab.take(most - have, self.scavenger.now.get());
            if slab.free() == 0 {
                self.unlist(slab);
            }
            all = match (all, more) {
                (Some(all), Some(more)) => {
                    // SAFETY: both chains were just taken and are this cache's.
                    unsafe { Block::set_next(all.tail, more.head) };
                    Some(Chain { tail: more.tail, count: all.count + more.count, ..all })
                }
                (all, more) => all.or(more),
            };
            if all.is_some_and(|chain| chain.count * 2 >= most) {
                break;
            }
        }
        let chain = all?;
        bin.room.count(chain.count as i32);
        Some(Chain { head: terminate(chain), ..chain })
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

    /// Whether a new slab of `class` will be filled: the class has filled many, the
    /// more the larger its blocks are, for programs leave the end of large ones
    /// untouched; or the heap is so large that the ends of all classes' last slabs are a
    /// small part of it.
    fn fills_slabs(&self, class: usize) -> bool {
        let size = size_class::size(class);
        let many = (size / SIZE_A_SLAB).max(FILLED);
        let behind = UNIT - size_class::capacity(class) * size;
        behind <= UNIT / LEAVES
            && (self.bins[class].slabs.get() >= many || self.slab_count.get() >= LARGE_HEAP)
    }

    fn new_slab(&self, class: usize) -> Option<usize> {
        let entry = Entry::slab(self.id(), class);
        // The entry is set last: the record must be a slab's by then.
        let want = if self.fills_slabs(class) { Want::Dense } else { Want::Any };
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
        let knocked = self.bins[class].hidden.is_hidden();
        if knocked && self.push_hidden(class) {
            return;
        }
        self.scavenge();
        let chain = self.empty(class);
        let length = chain_length(class);
        if chain.count > 2 * length + 1 {
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
        if knocked {
            self.hide_again(class);
        }
    }

    /// Sends the blocks of a chain back to their slabs.
    fn distribute(&self, class: usize, chain: DepotChain) {
        let way = WayBack::of(&MAP, class, self.scavenger.now.get());
        let mine = Entry::slab(self.id(), class);
        let mut block = chain.head;
        let mut left = chain.count;
        let mut home = chain.count as i32;
        self.scavenger.note_work();
        while left > 0 {
            let unit = self.hot.unit_of(block.addr());
            // SAFETY: the unit of a block is below the map's limit.
            if unsafe { MAP.entry(unit) } != mine {
                // Its slab was taken over by another cache while it was in a list.
                // SAFETY: the chain is this cache's and has `count` linked blocks.
                let next = unsafe { Block::next(block) };
                self.forward(block);
                home -= 1;
                block = next;
                left -= 1;
                continue;
            }
            // SAFETY: the chain is of this cache's blocks of the class.
            let mut visit = unsafe { way.visit(unit) };
            while left > 0 && self.hot.unit_of(block.addr()) == unit {
                // First, because all else waits for it where the block is cold.
                // SAFETY: the chain is this cache's and has `count` linked blocks.
                let next = unsafe { Block::next(block) };
                if !visit.put(block.addr() & (UNIT - 1)) {
                    misuse::double_free(Call::Free, block.addr(), size_class::size(class));
                }
                block = next;
                left -= 1;
            }
            if visit.finish() {
                self.settle(Slab::at(&MAP, unit, class));
            }
        }
        self.bins[class].room.count(-home);
    }

    /// Sends one block back to its slab, which is this cache's.
    #[inline]
    fn put(&self, class: usize, block: *mut Block) {
        let unit = self.hot.unit_of(block.addr());
        let way = WayBack::of(&MAP, class, self.scavenger.now.get());
        // SAFETY: the contract of `WayBack::visit` is this function's own.
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

    /// Takes what others freed and passes each block to `take`, with its list.
    fn drain_with(&self, mut take: impl FnMut(&List, *mut Block)) {
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
            match self.hot.list_of(block.addr()) {
                Some(list) => {
                    bytes += size_class::size(self.hot.class_of(list));
                    take(list, block);
                }
                None => bytes += self.forward(block),
            }
            block = next;
        }
        self.remote().taken(found, bytes);
    }

    /// Sends a block on whose slab was taken over by another cache after the
    /// freeing thread had looked. Returns its size.
    #[cold]
    fn forward(&self, block: *mut Block) -> usize {
        let (_, entry) = MAP.lookup(block.addr());
        let Kind::Slab(class) = entry.kind() else {
            misuse::double_free(Call::Free, block.addr(), 0)
        };
        send(entry.owner(), class, block);
        size_class::size(class)
    }

    /// Takes what others freed into the lists.
    pub(crate) fn drain(&self) {
        self.unhide_all();
        self.drain_with(|list, block| {
            // SAFETY: the list is that of the block's slab; it was freed by
            // whoever pushed it.
            if unsafe { list.push(block) } {
                let class = self.hot.class_of(list);
                let chain = self.empty(class);
                self.distribute(class, chain);
            }
        });
    }

    /// Takes what others freed back to the slabs.
    fn drain_home(&self) {
        self.drain_with(|list, block| self.put(self.hot.class_of(list), block));
    }

    /// Takes a block back that another cache owns.
    ///
    /// # Safety
    ///
    /// The block is of `class`, of a slab of `owner`, and in use.
    #[inline]
    pub(crate) unsafe fn free_remote(&self, owner: u32, class: usize, block: *mut Block) {
        let out = &self.outgoing;
        if out.owner.get() != owner {
            self.flush_outgoing();
            out.owner.set(owner);
        }
        // SAFETY: the caller gives the block away.
        unsafe { Block::set_next(block, out.head.get()) };
        out.head.set(block);
        let count = out.count.load(Ordering::Relaxed) + 1;
        let bytes = out.bytes.load(Ordering::Relaxed) + size_class::size(class);
        if count == 1 {
            out.tail.set(block);
        }
        out.count.store(count, Ordering::Relaxed);
        out.bytes.store(bytes, Ordering::Relaxed);
        if count >= BATCH || bytes >= BATCH_BYTES {
            self.flush_outgoing();
        }
    }

    /// Takes a block back if it is of the owner that the outgoing batch is for,
    /// as most are. False: it is something else, or no slot begins there.
    ///
    /// # Safety
    ///
    /// If `block` is a block, it is in use, and free from now on.
    #[inline]
    pub(crate) unsafe fn free_outgoing(&self, block: *mut Block) -> bool {
        let owner = self.outgoing.owner.get();
        // SAFETY: the map's own limit.
        let list =
            unsafe { self.hot.list_for(block.addr(), MAP.limit(), Entry::tag(owner) as usize) };
        match list {
            Some(list) if owner != 0 && list.is_slot_start((block.addr() & (UNIT - 1)) as u32) => {
                // SAFETY: the slab's entry says whose it is and of what class.
                unsafe { self.free_remote(owner, self.hot.class_of(list), block) };
                true
            }
            _ => false,
        }
    }

    /// Sends the outgoing batch.
    #[cold]
    pub(crate) fn flush_outgoing(&self) {
        let out = &self.outgoing;
        let count = out.count.load(Ordering::Relaxed);
        if count > 0 {
            let (head, tail) = (out.head.get(), out.tail.get());
            let bytes = out.bytes.load(Ordering::Relaxed);
            out.forget();
            if let Some(owner) = push_to(out.owner.get(), head, tail, count, bytes) {
                owner.relieve();
            }
        }
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

    /// A thread begins to use it.
    pub(crate) fn begin(&self) {
        self.no_longer_warm();
        let forward = FORWARD_SIZED.load(Ordering::Relaxed);
        self.hot.sized_tag.set(if forward { NOBODY } else { self.hot.tag });
        self.unhide_all();
        let now = os::coarse_ms();
        self.scavenger.began.set(now);
        self.scavenger.active.store(now, Ordering::Relaxed);
    }

    /// The thread has ended: gives back what is free and lets go of the rest, for
    /// others to reclaim and adopt. Of a few caches the next threads are to have
    /// the free blocks too, if these are few: then it costs little to be a thread.
    pub(crate) fn leave(&self) {
        let _order = self.lock.lock();
        self.flush_outgoing();
        self.stash.release();
        self.drain_home();
        self.publish();
        self.scavenger.now.set(os::coarse_ms());
        let is_light = self.cached_bytes() <= WARM_BYTES;
        if is_light && WARM_NOW.fetch_add(1, Ordering::Relaxed) < WARM {
            self.is_warm.set(true);
        } else {
            if is_light {
                WARM_NOW.fetch_sub(1, Ordering::Relaxed);
            }
            self.cool();
        }
        self.is_resting.store(true, Ordering::Relaxed);
        CACHES.rest(self);
        self.let_go();
    }

    /// Gives back what is free, of a cache that is no thread's.
    fn cool(&self) {
        self.release_free();
        for (class, bin) in self.bins.iter().enumerate() {
            // Nobody carves on, so that a slab goes as soon as its last slot does.
            bin.current.set(0);
            bin.want.set(first_length(class));
        }
    }

    /// Returns whether it was.
    fn no_longer_warm(&self) -> bool {
        let was_warm = self.is_warm.replace(false);
        if was_warm {
            WARM_NOW.fetch_sub(1, Ordering::Relaxed);
        }
        was_warm
    }

    /// Lets go of the tenure; takes what arrives at the last moment.
    fn let_go(&self) {
        loop {
            if !self.tenure().let_go(self.remote()) || !self.tenure().try_claim() {
                return;
            }
            self.drain_home();
        }
    }

    /// After a push: if nobody owns the cache, takes the pushed blocks home.
    fn reclaim(&self) {
        if self.tenure().needs_drainer() && self.tenure().try_claim() {
            self.drain_home();
            self.let_go();
        }
    }

    /// Takes over a slab of `class` with returned slots from a dead thread.
    fn adopt_slab(&self, class: usize) -> bool {
        if self.owned_by() == Use::Heap {
            return false;
        }
        CACHES.visit_resting(ASKS, |dead| {
            let partial = &dead.bins[class].partial;
            // Of a warm cache, which the next thread adopts, only what is mostly left
            // over: slots in its lists may be of the slab that is taken.
            let found = if dead.is_warm.get() { dead.to_spare(class) } else { partial.first() };
            if let Some(unit) = found {
                self.take_over(dead, Slab::at(&MAP, unit, class));
            }
            dead.let_go();
            found.is_some()
        })
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
            self.empty(class);
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
            + self.outgoing.count.load(Ordering::Relaxed)
    }

    /// Bytes in lists (when last published), depot and outgoing batch.
    pub(crate) fn cached_bytes(&self) -> usize {
        self.listed_bytes.load(Ordering::Relaxed)
            + self.depot_bytes.load(Ordering::Relaxed)
            + self.outgoing.bytes.load(Ordering::Relaxed)
    }

    /// In a forked child, for the cache of a thread that is not here: keeps
    /// nothing but the identity. See `heap::fork`.
    pub(crate) fn forget_after_fork(&self) {
        // SAFETY: whoever held it is not in this process, which has one thread.
        unsafe { self.lock.release() };
        self.hot.refresh();
        for class in 0..CLASSES {
            self.bins[class].hidden.forget_after_fork();
            self.empty(class);
            let bin = &self.bins[class];
            bin.depot.forget();
            bin.room.out.set(0);
            bin.current.set(0);
            bin.partial.forget();
            bin.slabs.set(0);
        }
        self.depot_bytes.store(0, Ordering::Relaxed);
        self.depot_blocks.store(0, Ordering::Relaxed);
        self.outgoing.forget();
        self.stash.forget_after_fork();
        self.scavenger.classes_left.set(0);
        self.scavenger.next.set(0);
        self.scavenger.are_hidden.set(false);
        self.slabs.forget();
        self.slab_count.set(0);
        self.remote().forget_after_fork();
        self.publish();
        self.no_longer_warm();
        self.is_resting.store(true, Ordering::Relaxed);
        self.tenure().orphan_after_fork();
    }

    /// In a forked child: gets a slab back, all of whose slots count as out.
    pub(crate) fn regain_after_fork(&self, slab: Slab<'_>) {
        slab.all_out_after_fork();
        self.bins[slab.class].room.count(size_class::capacity(slab.class) as i32);
        self.own(slab.unit, slab.class);
    }
}

/// Ends a chain. Returns its head.
fn terminate(chain: Chain) -> *mut Block {
    // SAFETY: the chain was just taken from a slab and is the caller's.
    unsafe { Block::set_next(chain.tail, ptr::null_mut()) };
    chain.head
}

/// Sends one block of `class` to the cache that owns it.
pub(crate) fn send(owner: u32, class: usize, block: *mut Block) {
    push_to(owner, block, block, 1, size_class::size(class));
}

fn push_to(
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

/// In a forked child: no other thread's cache is warm.
pub(crate) fn none_warm_after_fork() {
    WARM_NOW.store(0, Ordering::Relaxed);
}

/// Cools a few of the caches that have rested for `delay` milliseconds and were
/// not adopted.
fn cool_resting(now: u32, delay: i32) {
    if WARM_NOW.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut cooled = 0;
    CACHES.visit_resting(2 * WARM, |dead| {
        if dead.is_warm.get() && chunk::waited(dead.scavenger.now.get(), now) >= delay {
            dead.no_longer_warm();
            dead.cool();
            cooled += 1;
        }
        dead.let_go();
        cooled == COOLS
    });
}

/// Gives back what is free of the caches and slabs of ended threads, and the
/// pages that hold no block.
pub(crate) fn purge_resting() -> usize {
    let mut given = 0;
    CACHES.visit_resting(usize::MAX, |dead| {
        if dead.no_longer_warm() {
            dead.cool();
        }
        given += dead.purge_slabs();
        dead.let_go();
        false
    });
    given
}
