//! The address map: finds the owner of any address in the process.
//!
//! The **window** is one address range `[base, base + span)`, cut into units of 64 KiB. Each unit
//! has a 32-bit entry (kind and owner), and a 128-byte record of all other facts for slow paths.
//! Both lie far from the user's bytes, so a look-up does not touch the address.
//!
//! ```text
//!   entry:   31          11 10       0
//!            +-------------+----------+
//!            | owner       | kind     |   kind < 80 * 16: a slab, of class kind / 16
//!            +-------------+----------+   else: large head, free, metadata, ...
//!   a later unit of a run: the number of the run's first unit, 24 bits, the upper 3 in the kind
//!
//!   base - TABLE_GAP            base                           base + span
//!   | entries, 4 B a unit | ..  | unit 0 | unit 1 | unit 2 | ...
//! ```
//!
//! On Linux the table lies at a constant distance below the window (except in a hardened process).
//! So one base register is enough for both. The exclusive-or of an entry and a cache's tag
//! (`owner << 11`) is below `SLAB_KINDS` exactly if the unit is a slab of that owner. The result is
//! then the byte offset of the class's list in the cache.
//!
//! Invariants: entries and records below `limit` are committed; `limit` only grows; entry 0 (owner
//! 0, no class) means *foreign*, and no cache has id 0. Only a unit's owner, or the holder of
//! `chunk`'s lock, changes the unit's entry. Relaxed loads suffice, because a program that frees a
//! block received the block after the entry was written. `chunk` and the heaps write the map; all
//! modules read it.

use core::ptr;

use crate::os;
use crate::size_class::{CLASSES, UNIT, UNIT_SHIFT};
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crate::unit_record::Record;

/// Bytes from the table's first entry to the window's first unit.
pub const TABLE_GAP: usize = MAX_UNITS * size_of::<u32>();
/// Units in the largest window: 1 TiB.
pub const MAX_UNITS: usize = 1 << 24;
/// Bytes of a unit's side bitmap, for slabs of more than 512 slots.
pub const SIDE_BITMAP: usize = UNIT / 16 / 8;

/// One unit's entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry(pub u32);

/// The use of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Foreign, or not used yet.
    Foreign,
    /// A slab of this class.
    Slab(usize),
    /// The first unit of a large block.
    LargeHead,
    /// A later unit of the large block that begins at this unit.
    LargeRest(usize),
    /// A unit of a free run.
    Free,
    /// The first unit of a run that a cache keeps for its next large block.
    Kept,
    /// The heap's own records.
    Metadata,
    /// The first unit of a segment of a pool, which owns the unit.
    PoolHead,
    /// A later unit of the pool segment that begins at this unit.
    PoolRest(usize),
    /// A unit of an arena's chunk.
    Arena,
    /// A unit of the hardened heap without a block: a guard, or address space kept for a class.
    Guard,
    /// The first unit of a span of the debug heap.
    Debug,
    /// A later unit of the debug heap's span that begins at this unit.
    DebugRest(usize),
    /// The first unit of a page on this page list of a collected heap, which owns the page.
    Collected(usize),
    /// A later unit of the collected heap's page that begins at this unit.
    CollectedRest(usize),
}

const KIND_BITS: u32 = 11;
const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
/// The factor of a class in an entry: the size of a list in a cache.
pub const CLASS_STEP: usize = 16;
/// Kinds below this are slabs.
pub const SLAB_KINDS: usize = CLASSES * CLASS_STEP;

/// See `gc::layout`.
const COLLECTED: u32 = 0x500;
const PAGE_LISTS: u32 = 0x200;
const LARGE_HEAD: u32 = 0x700;
const FREE: u32 = 0x701;
const METADATA: u32 = 0x702;
const POOL_HEAD: u32 = 0x704;
const ARENA: u32 = 0x705;
const DEBUG: u32 = 0x706;
const GUARD: u32 = 0x707;
/// Eight kinds each: the low three bits are the upper bits of the first unit's number.
const COLLECTED_REST: u32 = 0x7e0;
const DEBUG_REST: u32 = 0x7e8;
const POOL_REST: u32 = 0x7f0;
const LARGE_REST: u32 = 0x7f8;
const REST_LOW_BITS: u32 = 32 - KIND_BITS;

/// The largest id of an owner. The two upper bits of an owner's tag are 0: see `cache::hot`.
pub const MAX_OWNER: u32 = (1 << (30 - KIND_BITS)) - 5 - HARDENED_GROUPS;
/// The sentinel's id, which owns nothing.
pub const NOBODY: u32 = MAX_OWNER + 1;
/// The owner of the hardened heap's slabs outside its groups, and of its large blocks.
pub const HARDENED: u32 = MAX_OWNER + 2;
/// The owner of the hardened heap's blocks of no bytes, which lie in inaccessible memory.
pub const HARDENED_EMPTY: u32 = MAX_OWNER + 3;
/// The owner of the slabs of the hardened heap's first group. Each group has its own owner.
pub const HARDENED_GROUP: u32 = MAX_OWNER + 4;
/// Groups of the hardened heap.
pub const HARDENED_GROUPS: u32 = 4;
/// The owner of all slabs if threads share caches.
pub const COMMON: u32 = HARDENED_GROUP + HARDENED_GROUPS;

const _: () = assert!(SLAB_KINDS <= COLLECTED as usize && COLLECTED + PAGE_LISTS <= LARGE_HEAD);
const _: () = assert!(MAX_UNITS == 1 << (REST_LOW_BITS + 3));

impl Entry {
    /// Not heapwright's.
    pub const FOREIGN: Self = Self(0);
    /// A unit of a free run.
    pub const FREE: Self = Self(FREE);
    /// heapwright's own records.
    pub const METADATA: Self = Self(METADATA);
    /// The first unit of a large block.
    pub const LARGE_HEAD: Self = Self(LARGE_HEAD);
    /// A chunk of an arena.
    pub const ARENA: Self = Self(ARENA);
    /// A unit of the hardened heap without a block.
    pub const GUARD: Self = Self(GUARD);
    /// The first unit of a debug heap's span.
    #[cfg(feature = "debug")]
    pub const DEBUG: Self = Self(DEBUG);

    /// The bits of an owner in its slabs' entries.
    #[inline]
    pub const fn tag(owner: u32) -> u32 {
        owner << KIND_BITS
    }

    /// A slab of `class` that belongs to `owner`.
    #[inline]
    pub const fn slab(owner: u32, class: usize) -> Self {
        Self(Self::tag(owner) | (class * CLASS_STEP) as u32)
    }

    /// A later unit of the large block that begins at unit `head`.
    #[inline]
    pub const fn large_rest(head: usize) -> Self {
        Self::rest(LARGE_REST, head)
    }

    /// The first unit of a segment of the pool `owner`.
    #[inline]
    pub const fn pool_head(owner: u32) -> Self {
        Self(Self::tag(owner) | POOL_HEAD)
    }

    /// A later unit of the pool segment that begins at unit `head`.
    #[inline]
    pub const fn pool_rest(head: usize) -> Self {
        Self::rest(POOL_REST, head)
    }

    /// A later unit of the debug heap's span that begins at unit `head`.
    #[cfg(feature = "debug")]
    #[inline]
    pub const fn debug_rest(head: usize) -> Self {
        Self::rest(DEBUG_REST, head)
    }

    /// The first unit of a page on a page list of the collected heap `owner`.
    #[inline]
    pub const fn collected(owner: u32, page_list: usize) -> Self {
        Self(Self::tag(owner) | (COLLECTED + page_list as u32))
    }

    /// The entry as a word of the map.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// A later unit of the page of a collected heap that begins at unit `head`.
    #[inline]
    pub const fn collected_rest(head: usize) -> Self {
        Self::rest(COLLECTED_REST, head)
    }

    /// The page list, if this is the first unit of a page of the collected heap whose
    /// [`Entry::tag`] is `tag`. Otherwise a number above all page lists.
    #[inline(always)]
    pub const fn page_list(self, tag: u32) -> usize {
        (self.0 ^ tag).wrapping_sub(COLLECTED) as usize
    }

    const fn rest(kind: u32, head: usize) -> Self {
        let head = head as u32;
        Self(head << KIND_BITS | kind | head >> REST_LOW_BITS)
    }

    const fn head(self) -> usize {
        (self.owner() | (self.0 & 7) << REST_LOW_BITS) as usize
    }

    /// The owner of a slab, or of the first unit of a pool's segment or a collected heap's page.
    #[inline]
    pub const fn owner(self) -> u32 {
        self.0 >> KIND_BITS
    }

    /// Whether a slab is the hardened heap's.
    #[inline]
    pub const fn is_hardened(self) -> bool {
        matches!(self.owner(), HARDENED..COMMON)
    }

    /// The first unit of the debug heap's span around `unit`, and whether `unit` is a later unit.
    #[cfg(feature = "debug")]
    #[inline(always)]
    pub const fn debug_head(self, unit: usize) -> Option<(usize, bool)> {
        if self.0 == DEBUG {
            Some((unit, false))
        } else if self.0 & (KIND_MASK & !7) == DEBUG_REST {
            Some((self.head(), true))
        } else {
            None
        }
    }

    /// The kind of the unit.
    #[inline]
    pub const fn kind(self) -> Kind {
        match self.0 & KIND_MASK {
            slab if (slab as usize) < SLAB_KINDS && self.owner() != 0 => {
                Kind::Slab(slab as usize / CLASS_STEP)
            }
            LARGE_HEAD => Kind::LargeHead,
            FREE => Kind::Free,
            METADATA => Kind::Metadata,
            POOL_HEAD => Kind::PoolHead,
            ARENA => Kind::Arena,
            GUARD => Kind::Guard,
            page if page.wrapping_sub(COLLECTED) < PAGE_LISTS => {
                Kind::Collected((page - COLLECTED) as usize)
            }
            DEBUG => Kind::Debug,
            rest if rest >= LARGE_REST => Kind::LargeRest(self.head()),
            rest if rest >= POOL_REST => Kind::PoolRest(self.head()),
            rest if rest >= DEBUG_REST => Kind::DebugRest(self.head()),
            rest if rest >= COLLECTED_REST => Kind::CollectedRest(self.head()),
            _ => Kind::Foreign,
        }
    }
}

/// The map of one window.
#[repr(C, align(64))]
pub struct AddressMap {
    base: AtomicPtr<u8>,
    /// Units whose entries and records are committed.
    limit: AtomicUsize,
    table: AtomicPtr<AtomicU32>,
    records: AtomicPtr<Record>,
    bitmaps: AtomicPtr<u8>,
}

impl AddressMap {
    /// A map of no window: every address is foreign.
    pub const fn new() -> Self {
        Self {
            base: AtomicPtr::new(ptr::null_mut()),
            limit: AtomicUsize::new(0),
            table: AtomicPtr::new(ptr::null_mut()),
            records: AtomicPtr::new(ptr::null_mut()),
            bitmaps: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Sets the window. Call this once, before [`AddressMap::extend`].
    pub fn place(
        &self,
        base: *mut u8,
        table: *mut AtomicU32,
        records: *mut Record,
        bitmaps: *mut u8,
    ) {
        self.table.store(table, Ordering::Relaxed);
        self.records.store(records, Ordering::Relaxed);
        self.bitmaps.store(bitmaps, Ordering::Relaxed);
        self.base.store(base, Ordering::Release);
    }

    /// Publishes that entries and records of units below `limit` are committed.
    pub fn extend(&self, limit: usize) {
        self.limit.store(limit, Ordering::Release);
    }

    /// The unit of `address`. Its number is below the limit only in the window's committed part.
    #[inline(always)]
    pub fn unit_of(&self, address: usize) -> usize {
        address.wrapping_sub(self.base.load(Ordering::Relaxed).addr()) >> UNIT_SHIFT
    }

    /// The number of units with readable entries.
    #[inline(always)]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// The entry of `unit`.
    ///
    /// # Safety
    ///
    /// `unit < self.limit()`.
    #[inline(always)]
    pub unsafe fn entry(&self, unit: usize) -> Entry {
        // SAFETY: by the contract `unit` is below the limit.
        let slot = unsafe { self.slot(unit) };
        // SAFETY: slots below the limit are committed.
        Entry(unsafe { &*slot }.load(Ordering::Relaxed))
    }

    /// The entry of `unit`, for a caller that has the window's base at hand.
    ///
    /// # Safety
    ///
    /// `unit < self.limit()`, or `unit` is below the result of `chunk::expose_table`; `base` is
    /// [`AddressMap::base`]; and the window is not scattered (`chunk::open`).
    #[inline(always)]
    pub unsafe fn entry_from(&self, base: *mut u8, unit: usize) -> Entry {
        if !os::TABLE_ADJACENT {
            // SAFETY: `unit` is below the limit: a system without an adjacent table exposes none.
            return unsafe { self.entry(unit) };
        }
        let slot = base.wrapping_sub(TABLE_GAP).cast::<AtomicU32>().wrapping_add(unit);
        // SAFETY: slots below the limit are committed, and exposed ones are readable.
        Entry(unsafe { &*slot }.load(Ordering::Relaxed))
    }

    #[inline(always)]
    unsafe fn slot(&self, unit: usize) -> *const AtomicU32 {
        self.table.load(Ordering::Relaxed).wrapping_add(unit)
    }

    /// The unit of `address` and its entry, which is foreign outside the window.
    #[inline]
    pub fn lookup(&self, address: usize) -> (usize, Entry) {
        // A thread that sees a limit above zero also sees the base and committed entries.
        let limit = self.limit.load(Ordering::Acquire);
        let unit = self.unit_of(address);
        if unit >= limit {
            return (unit, Entry::FOREIGN);
        }
        // SAFETY: `unit` is below the limit.
        (unit, unsafe { self.entry(unit) })
    }

    /// The kind of `unit`; foreign above the limit.
    #[inline]
    pub fn kind(&self, unit: usize) -> Kind {
        if unit >= self.limit.load(Ordering::Acquire) {
            return Kind::Foreign;
        }
        // SAFETY: `unit` is below the limit.
        self.kind_of(unit, unsafe { self.entry(unit) })
    }

    /// As [`Entry::kind`], but a freed large block whose run is kept is [`Kind::Kept`].
    #[inline]
    pub fn kind_of(&self, unit: usize, entry: Entry) -> Kind {
        match entry.kind() {
            Kind::LargeHead
                if self.record(unit).requested.load(Ordering::Relaxed) == Record::KEPT =>
            {
                Kind::Kept
            }
            kind => kind,
        }
    }

    /// Changes the entries of `count` units from `unit` on. The caller owns the units, or holds the
    /// lock of the chunk that owns them.
    pub fn set_entries(&self, unit: usize, count: usize, entry: Entry) {
        assert!(unit + count <= self.limit());
        for at in unit..unit + count {
            // SAFETY: below the limit, checked above.
            let slot = unsafe { self.slot(at) };
            // SAFETY: slots below the limit are committed.
            unsafe { &*slot }.store(entry.0, Ordering::Relaxed);
        }
    }

    /// Changes the entry of `unit`. The caller owns the unit, as for [`AddressMap::set_entries`].
    #[inline]
    pub fn set_entry(&self, unit: usize, entry: Entry) {
        assert!(unit < self.limit());
        // SAFETY: below the limit, checked above.
        let slot = unsafe { self.slot(unit) };
        // SAFETY: slots below the limit are committed.
        unsafe { &*slot }.store(entry.0, Ordering::Relaxed);
    }

    /// The record of `unit`.
    #[inline]
    pub fn record(&self, unit: usize) -> &Record {
        debug_assert!(unit < self.limit());
        let record = self.records.load(Ordering::Relaxed).wrapping_add(unit);
        // SAFETY: records below the limit are committed, zero is valid, and all fields are atomics.
        unsafe { &*record }
    }

    /// The record of unit 0, with the provenance of all records.
    #[inline]
    pub fn records(&self) -> *const Record {
        self.records.load(Ordering::Relaxed)
    }

    /// The side bitmap of `unit`: [`SIDE_BITMAP`] bytes.
    #[inline]
    pub fn side_bitmap(&self, unit: usize) -> *mut u8 {
        debug_assert!(unit < self.limit());
        self.bitmaps.load(Ordering::Relaxed).wrapping_add(unit * SIDE_BITMAP)
    }

    /// The address of unit 0's entry, with the provenance of all entries.
    #[inline]
    pub fn entries(&self) -> *mut AtomicU32 {
        self.table.load(Ordering::Relaxed)
    }

    /// The first byte of `unit`, with the window's provenance.
    #[inline]
    pub fn address_of(&self, unit: usize) -> *mut u8 {
        self.base.load(Ordering::Relaxed).wrapping_add(unit * UNIT)
    }

    /// The window's first byte.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base.load(Ordering::Relaxed)
    }
}

/// The map of the process's window.
pub static MAP: AddressMap = AddressMap::new();

/// Whether a unit is below the limit of [`MAP`].
#[inline(always)]
pub fn is_known(unit: usize) -> bool {
    // The compiler does not make one instruction of an atomic load and a compare.
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    // SAFETY: an aligned load of the limit, as a relaxed load is.
    unsafe {
        core::arch::asm!(
            "cmp {unit}, qword ptr [rip + {map} + {limit}]",
            "jae {beyond}",
            unit = in(reg) unit,
            map = sym MAP,
            limit = const core::mem::offset_of!(AddressMap, limit),
            beyond = label { return false },
            options(readonly, nostack),
        );
        true
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
    {
        unit < MAP.limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_was_put_in() {
        for class in [0, 1, CLASSES - 1] {
            for owner in [1, 77, MAX_OWNER] {
                let entry = Entry::slab(owner, class);
                assert_eq!(entry.kind(), Kind::Slab(class));
                assert_eq!(entry.owner(), owner);
            }
        }
        for head in [1, 77, 1 << 20, 1 << 21, 1 << 22, MAX_UNITS - 1] {
            assert_eq!(Entry::large_rest(head).kind(), Kind::LargeRest(head));
            assert_eq!(Entry::pool_rest(head).kind(), Kind::PoolRest(head));
            assert_eq!(Entry::collected_rest(head).kind(), Kind::CollectedRest(head));
        }
        assert_eq!(Entry::FOREIGN.kind(), Kind::Foreign);
        assert_eq!(Entry::FREE.kind(), Kind::Free);
        assert_eq!(Entry::METADATA.kind(), Kind::Metadata);
        assert_eq!(Entry::LARGE_HEAD.kind(), Kind::LargeHead);
        assert_eq!(Entry::ARENA.kind(), Kind::Arena);
        assert_eq!(Entry::pool_head(MAX_OWNER).kind(), Kind::PoolHead);
        assert_eq!(Entry::pool_head(MAX_OWNER).owner(), MAX_OWNER);
        for page_list in [0, 1, PAGE_LISTS as usize - 1] {
            let entry = Entry::collected(MAX_OWNER, page_list);
            assert_eq!((entry.kind(), entry.owner()), (Kind::Collected(page_list), MAX_OWNER));
            assert_eq!(entry.page_list(Entry::tag(MAX_OWNER)), page_list);
            assert!(entry.page_list(Entry::tag(5)) >= PAGE_LISTS as usize);
        }
        assert!(Entry::collected_rest(1).page_list(Entry::tag(1)) >= PAGE_LISTS as usize);
        assert!(Entry::FOREIGN.page_list(Entry::tag(1)) >= PAGE_LISTS as usize);
        assert_eq!(Entry(Entry::tag(1) | 0x7df).kind(), Kind::Foreign);
    }

    #[test]
    fn one_compare_gives_owner_and_class() {
        let tag = Entry::tag(5);
        let mine = |entry: Entry| ((entry.0 ^ tag) as usize) < SLAB_KINDS;
        assert!(mine(Entry::slab(5, 0)) && mine(Entry::slab(5, CLASSES - 1)));
        assert!(!mine(Entry::slab(4, 0)) && !mine(Entry::slab(6, 3)));
        let pool = [Entry::pool_head(5), Entry::pool_rest(5)];
        let page = Entry::collected(5, 0);
        for other in [
            Entry::FOREIGN,
            Entry::FREE,
            Entry::METADATA,
            Entry::LARGE_HEAD,
            pool[0],
            pool[1],
            page,
        ] {
            assert!(!mine(other));
        }
        assert!(!mine(Entry::large_rest(5)));
        let sentinel = Entry::tag(NOBODY);
        assert!((Entry::slab(MAX_OWNER, 0).0 ^ sentinel) as usize >= SLAB_KINDS);
        assert!((Entry::FOREIGN.0 ^ sentinel) as usize >= SLAB_KINDS);
    }

    #[test]
    fn without_a_window_every_address_is_foreign() {
        let map = AddressMap::new();
        for address in [0, 1, 4096, usize::MAX, 1 << 46] {
            assert!(map.lookup(address).1 == Entry::FOREIGN);
        }
    }
}
