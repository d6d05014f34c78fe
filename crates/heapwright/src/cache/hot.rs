//! The hot part of a cache: the part that the fast paths of `malloc` and `free` touch.
//!
//! ```text
//!   0      descriptor of malloc's sequence           only the per-CPU entry has one: `arrays`
//!   32     list 0   { head | room | reciprocal }     16 bytes a class
//!   48     list 1
//!   ...
//!   1312   base | limit | tag | sized tag            the thread's own copies
//!   1344   outgoing batch | the table for all other calls
//! ```
//!
//! An address map entry, exclusive-ored with the tag, is the offset of the list that a block goes
//! to. A request's size less one, rounded down to a multiple of 16, is the offset of the list to
//! take from. So neither path computes an index.
//!
//! Invariants: only the holder of the ownership changes a hot part. (`HotStub` has rules of its
//! own.) Blocks in a list are free, linked, and of the list's class and owner. Entries below
//! `limit` can be read.
//!
//! Threads that share caches, and hardened caches, have a [`HotStub`]: the same bytes, and `Sync`.
//!
//! Called by `heap`, `hardened` and the other files of `cache`.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;

use crate::address_map::{self, CLASS_STEP, Entry, MAP, SLAB_KINDS};
use crate::remote::Block;
use crate::request::{Origin, Return, Said};
use crate::size_class::{self, CLASSES, SLAB_MAX, UNIT_SHIFT};
use crate::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The free blocks of one class: 16 bytes, so that an entry's kind is the offset of its list.
///
/// `room` is plain memory, so that the compiler may count in one instruction. The head is an
/// atomic: the heads of the per-CPU entry's lists change while other threads read them.
#[repr(C)]
pub(crate) struct List {
    pub(super) head: Head,
    /// How many more blocks the list takes. Below zero: the list is too long.
    pub(super) room: Cell<i32>,
    /// The class's reciprocal, here so that `free` needs no other table.
    pub(super) reciprocal: u32,
}

/// The first block of a list. Its loads and stores compile to plain loads and stores.
pub(super) struct Head(AtomicPtr<Block>);

impl Head {
    const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> *mut Block {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn set(&self, block: *mut Block) {
        self.0.store(block, Ordering::Relaxed);
    }

    /// Call this only for the calling thread's list.
    pub(super) fn replace(&self, block: *mut Block) -> *mut Block {
        let before = self.get();
        self.set(block);
        before
    }
}

const _: () = assert!(size_of::<List>() == CLASS_STEP);
// Offsets for the C layer's assembly.
const _: () = assert!(offset_of!(List, head) == 0);
const _: () = assert!(offset_of!(List, room) == 8);
const _: () = assert!(offset_of!(List, reciprocal) == 12);

impl List {
    #[inline(always)]
    pub(crate) fn pop(&self) -> *mut Block {
        match self.pop_open() {
            Ok(block) => block,
            Err(_) => ptr::null_mut(),
        }
    }

    /// Takes out the newest block. `Err(false)` if there is none. `Err(true)` if the list is closed
    /// in favour of the CPU's arrays.
    #[inline(always)]
    pub(crate) fn pop_open(&self) -> Result<*mut Block, bool> {
        let block = self.head.get();
        if block.addr().cast_signed() <= 0 {
            return Err(block.addr().cast_signed() < 0);
        }
        // SAFETY: blocks in a list are free, linked, and this thread's.
        self.head.set(unsafe { Block::next(block) });
        self.room.set(self.room.get() + 1);
        Ok(block)
    }

    /// Puts a block in. Returns whether the list is too long now.
    ///
    /// # Safety
    ///
    /// The block is of the list's class and owner, and free from now on.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn push(&self, block: *mut Block) -> bool {
        // SAFETY: the caller gives the block away.
        unsafe { Block::set_next(block, self.head.get()) };
        self.head.set(block);
        self.room.set(self.room.get() - 1);
        self.room.get() < 0
    }

    /// Whether a slot begins `offset` bytes into a slab of the list's class.
    #[inline(always)]
    pub(crate) fn is_slot_start(&self, offset: u32) -> bool {
        size_class::is_slot_start(offset, self.reciprocal)
    }
}

/// Bits that a stub changes in the common owner's tag. So the mismatch of a common slab's entry
/// says where the block goes: to a shared cache, or to the CPU's arrays.
pub(crate) const BIASED_TO_SHARED: usize = 1 << 30;
pub(crate) const BIASED_TO_CPU: usize = 1 << 31;

/// The lists of the per-CPU entry are closed in favour of the CPU's arrays. Their heads are
/// negative: the place of a thread's rseq area, less this. Other closed lists have null heads.
pub(crate) const AREA_BIAS: usize = 0x7fff_0000;

/// A tag mismatch: an address map entry, exclusive-ored with the tag of a hot part. For the
/// thread's own slabs, it is the offset of a list.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Mismatch(usize);

impl Mismatch {
    /// For an address beyond the limit, whose entry is unknown.
    const UNKNOWN: Self = Self(BIASED_TO_SHARED - 1);

    /// Whether the address lies in a slab of the tag's owner.
    #[inline(always)]
    pub(crate) fn is_mine(self) -> bool {
        self.0 < SLAB_KINDS
    }

    /// Whether the address lies in a common slab, and the thread uses its CPU's arrays.
    #[inline(always)]
    pub(crate) fn is_to_cpu(self) -> bool {
        // One signed compare: the mismatches of other owners' entries are not negative.
        (self.0 as i32) < i32::MIN + SLAB_KINDS as i32
    }

    /// Whether the address lies in a common slab, and the thread has a shared cache.
    #[inline(always)]
    pub(crate) fn is_to_shared(self) -> bool {
        self.0.wrapping_sub(BIASED_TO_SHARED) < SLAB_KINDS
    }

    /// The offset of the shared cache's list that the block goes to, if [`Mismatch::is_to_shared`].
    #[inline(always)]
    pub(crate) fn shared_list(self) -> usize {
        // The bias is a constant, so it becomes a part of the list's address.
        self.0 - BIASED_TO_SHARED
    }

    pub(crate) fn class(self) -> usize {
        (self.0 & (BIASED_TO_SHARED - 1)) / CLASS_STEP
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    #[inline(always)]
    pub(super) fn without(self, tag: usize) -> Self {
        Self(self.0 ^ tag)
    }

    #[inline(always)]
    pub(crate) fn bits(self) -> usize {
        self.0
    }

    /// # Safety
    ///
    /// `bits` comes from [`Mismatch::bits`].
    pub(crate) unsafe fn of(bits: usize) -> Self {
        Self(bits)
    }
}

/// A batch of remote frees is sent at this many blocks, or at this many bytes.
pub(super) const BATCH: u64 = 32;
const BATCH_BYTES: u64 = 64 << 10;

/// The weight of a block in a batch: one block in the upper half, its bytes in the lower half.
static WEIGHTS: [u64; CLASSES] = {
    let mut weights = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        weights[class] = 1 << 32 | size_class::size(class) as u64;
        class += 1;
    }
    weights
};
/// The weight of a due batch has one of these bits. Neither half exceeds twice its bound.
const DUE: u64 = BATCH << 32 | BATCH_BYTES;
const _: () = assert!(BATCH.is_power_of_two() && BATCH_BYTES.is_power_of_two());
const _: () = assert!(SLAB_MAX as u64 <= BATCH_BYTES);

/// Blocks that will be sent to their owner. If all fields are zero, the batch is empty.
#[repr(C)]
pub(super) struct Outgoing {
    /// The tag of the batch's owner, exclusive-ored with the cache's own tag. A mismatch,
    /// exclusive-ored with this, is the offset of a list if, and only if, the batch's owner owns
    /// the slab. Zero if the batch is empty, or the hot part is no cache's.
    pub(super) tag: Cell<usize>,
    pub(super) head: Cell<*mut Block>,
    pub(super) tail: Cell<*mut Block>,
    /// Sum of [`WEIGHTS`]. Only the cache's thread writes it; statistics read it.
    weight: AtomicU64,
    pub(super) owner: Cell<u32>,
}

impl Outgoing {
    pub(super) const fn new() -> Self {
        Self {
            tag: Cell::new(0),
            head: Cell::new(ptr::null_mut()),
            tail: Cell::new(ptr::null_mut()),
            weight: AtomicU64::new(0),
            owner: Cell::new(0),
        }
    }

    pub(super) fn count(&self) -> usize {
        (self.weight.load(Ordering::Relaxed) >> 32) as usize
    }

    pub(super) fn bytes(&self) -> usize {
        self.weight.load(Ordering::Relaxed) as u32 as usize
    }

    /// Puts a block in. Returns whether the batch is due to be sent.
    ///
    /// # Safety
    ///
    /// The block is of `class`, of a slab of the batch's owner, and the caller gives it away.
    /// `tail` is set, and the batch is the calling thread's.
    #[inline(always)]
    #[must_use]
    pub(super) unsafe fn push(&self, class: usize, block: *mut Block) -> bool {
        debug_assert!(!self.tail.get().is_null());
        // SAFETY: the caller gives the block away.
        unsafe { Block::set_next(block, self.head.get()) };
        self.head.set(block);
        let weight = self.weight.load(Ordering::Relaxed) + WEIGHTS[class];
        self.weight.store(weight, Ordering::Relaxed);
        weight & DUE != 0
    }

    pub(super) fn forget(&self) {
        self.tag.set(0);
        self.head.set(ptr::null_mut());
        self.tail.set(ptr::null_mut());
        self.weight.store(0, Ordering::Relaxed);
    }
}

#[repr(C, align(64))]
pub(crate) struct Hot {
    descriptor: [u64; 4],
    pub(super) lists: [List; CLASSES],
    /// The window's base, and the number of the window's units that this cache knows. All slabs of
    /// the cache lie below, unless it is 0 (`know_nothing`). Other threads change only a
    /// [`HotStub`]'s limit.
    base: Cell<*mut u8>,
    limit: AtomicUsize,
    /// The owner's id, shifted as in an entry. A whole word: an entry is widened as it is loaded.
    pub(super) tag: usize,
    /// The same, or the tag of no owner if sized frees must be passed on (`forward_sized_frees`).
    sized_tag: Cell<usize>,
    /// A stub has none.
    pub(super) outgoing: Outgoing,
    /// An atomic, because a stub's table changes while other threads read it.
    serve: AtomicPtr<Serve>,
}

/// A table of functions for the calls that the lists do not serve.
///
/// Each way to serve has a static table (`heap::start`). So a function of a table knows what kind
/// `hot` is, and does not check the process's mode.
#[repr(C)]
pub(crate) struct Serve {
    /// Serves `malloc(size)` if the list of the size's class, at `offset` in `hot`, is empty.
    pub(crate) malloc: extern "C" fn(size: usize, hot: &Hot, offset: usize) -> *mut u8,
    /// Serves `free` for a block that neither `hot` nor the outgoing batch's owner owns. `mismatch`
    /// is the tag mismatch of the entry of the block's unit with `hot`.
    pub(crate) free: unsafe extern "C" fn(block: *mut u8, hot: &Hot, mismatch: Mismatch),
    /// Serves `free` for an address whose unit `hot` does not know, or at which no slot begins.
    pub(crate) unknown: unsafe extern "C" fn(block: *mut u8, hot: &Hot, any: usize, unit: usize),
    /// Serves a call for a large block or for no bytes, without an alignment.
    pub(crate) large: fn(size: usize, hot: &Hot, origin: Origin) -> *mut u8,
    /// Serves any other call for memory. Returns null, with `errno` set, if there is no memory.
    pub(crate) allocate:
        fn(size: usize, align: usize, zero: bool, origin: Origin, hot: &Hot) -> *mut u8,
    /// Serves any other call that frees a block. `said` tells whether `size` and `align` count.
    /// `mismatch` is as in `free`, or says that the unit's entry is unknown. Null does nothing.
    pub(crate) give_back: unsafe fn(
        block: *mut u8,
        hot: &Hot,
        mismatch: Mismatch,
        said: Said,
        size: usize,
        align: usize,
    ),
    pub(crate) resize: unsafe fn(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8,
    /// The variant that may draw samples or guarded blocks, or this table itself.
    pub(crate) drawn: &'static Serve,
    pub(crate) plain: &'static Serve,
}

impl Serve {
    /// Frees a block as the call describes it. Null does nothing.
    ///
    /// # Safety
    ///
    /// As `free`. `hot` leads to this table.
    #[inline(always)]
    pub(crate) unsafe fn take_back(&self, block: *mut u8, hot: &Hot, what: Return) {
        let (size, align) = (what.size, what.align);
        let said = Said {
            call: what.call,
            origin: what.origin,
            size: size.is_some(),
            align: align.is_some(),
        };
        // SAFETY: the caller gives the block away, if it is one, and `hot` leads to this table.
        unsafe {
            (self.give_back)(
                block,
                hot,
                Mismatch::UNKNOWN,
                said,
                size.unwrap_or(0),
                align.unwrap_or(0),
            )
        }
    }
}

/// Which list the mismatch of a common block's entry names, for threads that read a stub.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Common {
    Nowhere,
    ToShared,
    ToCpu,
}

const NOBODY: usize = Entry::tag(address_map::NOBODY) as usize;
// No entry and no cache has the bit `BIASED_TO_SHARED`. Only a stub sets it.
const _: () = assert!(Entry::tag(address_map::COMMON) < BIASED_TO_SHARED as u32);

impl Hot {
    /// The lists of a thread that has no cache: empty, and of no owner.
    pub(crate) const fn sentinel(serve: &'static Serve) -> Self {
        Self {
            descriptor: [0; 4],
            lists: [const { List { head: Head::new(), room: Cell::new(0), reciprocal: 0 } };
                CLASSES],
            base: Cell::new(ptr::null_mut()),
            limit: AtomicUsize::new(0),
            tag: NOBODY,
            sized_tag: Cell::new(NOBODY),
            outgoing: Outgoing::new(),
            serve: AtomicPtr::new(ptr::from_ref(serve).cast_mut()),
        }
    }

    pub(crate) const LISTS: usize = offset_of!(Hot, lists);
}

// Offsets for assembly: see `heap::fast` and `arrays`.
#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
impl Hot {
    pub(crate) const BASE: usize = offset_of!(Hot, base);
    pub(crate) const LIMIT: usize = offset_of!(Hot, limit);
    pub(crate) const TAG: usize = offset_of!(Hot, tag);
    pub(crate) const SERVE: usize = offset_of!(Hot, serve);
    /// The offset of a list's reciprocal, relative to the list's offset.
    pub(crate) const RECIPROCAL: usize = Self::LISTS + offset_of!(List, reciprocal);
}

/// A hot part that always misses: its lists stay empty, and no slab belongs to it. A stub knows the
/// window, so the mismatch of a common block's entry can name a list ([`Common`]).
///
/// Many threads read a stub at once, as a [`Hot`], through their fast words. From then on only its
/// limit, its table and (in the per-CPU entry) its heads change, and these are atomics. (For
/// `forward_sized` there is no other thread.)
#[repr(transparent)]
pub(crate) struct HotStub(Hot);

// The fast paths and assembly use the offsets of `Hot` for a `HotStub`.
const _: () = assert!(size_of::<HotStub>() == size_of::<Hot>());
const _: () = assert!(align_of::<HotStub>() == align_of::<Hot>());
const _: () = assert!(offset_of!(HotStub, 0) == 0);

// SAFETY: `become_stub` writes the stub's cells while no other thread knows the stub, and
// `forward_sized` while there is no other thread. Threads that reach the stub by a fast word write
// no cell. `pop` takes no block from an empty list. `push` takes only blocks of the part's owner,
// and a stub's owner has none. `send_along` does nothing: the outgoing batch's tag stays 0, and no
// mismatch of a stub is a list.
unsafe impl Sync for HotStub {}

impl HotStub {
    /// Makes this hot part of zeros a stub. All heads become `head`: null, or negative. `readable`
    /// is the number of entries that can be read from now on.
    pub(super) fn become_stub(
        &mut self,
        serve: &'static Serve,
        common: Common,
        readable: usize,
        forward_sized: bool,
        head: usize,
    ) {
        let hot = &mut self.0;
        let tag = Entry::tag(address_map::COMMON) as usize;
        hot.tag = match common {
            Common::Nowhere => NOBODY,
            Common::ToShared => tag ^ BIASED_TO_SHARED,
            Common::ToCpu => tag ^ BIASED_TO_CPU,
        };
        for (class, list) in hot.lists.iter_mut().enumerate() {
            list.reciprocal = size_class::reciprocal(class);
        }
        hot.forward_sized(forward_sized);
        hot.serve_by(serve);
        hot.base.set(MAP.base());
        hot.limit.store(readable, Ordering::Relaxed);
        self.set_heads(head);
    }

    /// Makes this hot part of zeros a stub that knows no unit: the hardened heap gets every call.
    pub(crate) fn become_hardened(&mut self, serve: &'static Serve) {
        self.become_stub(serve, Common::Nowhere, 0, false, 0);
    }

    /// `head` is null, or negative.
    pub(super) fn set_heads(&self, head: usize) {
        for list in &self.0.lists {
            list.head.set(ptr::without_provenance_mut(head));
        }
    }

    /// Lowers the limit, because the table beyond it is about to go. Threads may read the old limit
    /// or the new one: no program frees a block beyond the new limit.
    pub(super) fn lower_limit(&self, readable: usize) {
        self.0.limit.fetch_min(readable, Ordering::Relaxed);
    }

    /// # Safety
    ///
    /// No other thread uses the heap during the call.
    pub(super) unsafe fn forward_sized(&self) {
        self.0.forward_sized(true);
    }

    pub(super) fn draw_calls(&self, drawn: bool) {
        self.0.draw_calls(drawn);
    }

    /// A thread arms the sequence with the address of this stub.
    pub(super) fn describe_sequence(&mut self, descriptor: [u64; 4]) {
        self.0.descriptor = descriptor;
    }
}

impl Hot {
    pub(super) fn forward_sized(&self, forward: bool) {
        self.sized_tag.set(if forward { NOBODY } else { self.tag });
    }

    #[inline(always)]
    pub(crate) fn serve(&self) -> &'static Serve {
        // SAFETY: set, to a static table, before a fast word leads here.
        unsafe { &*self.serve.load(Ordering::Relaxed) }
    }

    pub(crate) fn serve_by(&self, serve: &'static Serve) {
        self.serve.store(ptr::from_ref(serve).cast_mut(), Ordering::Relaxed);
    }

    /// Switches to the table that draws, or back. Does nothing before the cache has a table.
    pub(super) fn draw_calls(&self, drawn: bool) {
        if !self.serve.load(Ordering::Relaxed).is_null() {
            let serve = self.serve();
            self.serve_by(if drawn { serve.drawn } else { serve.plain });
        }
    }

    /// The list at a byte offset: a request's size less one, rounded down to a multiple of 16.
    ///
    /// # Safety
    ///
    /// `offset` is a multiple of `CLASS_STEP` below `SLAB_KINDS`.
    #[inline(always)]
    pub(crate) unsafe fn list_at(&self, offset: usize) -> &List {
        // SAFETY: by the contract a list begins there.
        let list = unsafe { ptr::from_ref(self).cast::<u8>().add(Self::LISTS + offset) };
        // SAFETY: one of the lists, which live as long as the hot part.
        unsafe { &*list.cast::<List>() }
    }

    /// The tag mismatch of the entry of the unit that `address` lies in.
    #[inline(always)]
    pub(crate) fn mismatch_of(&self, address: usize) -> Mismatch {
        let unit = self.unit_of(address);
        if !self.knows(unit) {
            return Mismatch::UNKNOWN;
        }
        // SAFETY: below the limit, so there is an entry to read.
        Mismatch(unsafe { self.entry_of(unit) } ^ self.tag)
    }

    #[inline(always)]
    pub(crate) fn is_large_head(&self, mismatch: Mismatch) -> bool {
        mismatch.0 ^ self.tag == Entry::LARGE_HEAD.0 as usize
    }

    #[inline(always)]
    pub(crate) fn entry(&self, mismatch: Mismatch) -> Entry {
        Entry((mismatch.0 ^ self.tag) as u32)
    }

    /// [`Hot::mismatch_of`] with the map's limit in place of this part's.
    pub(crate) fn mismatch_by_map(&self, address: usize) -> Mismatch {
        let unit = self.unit_of(address);
        if unit >= MAP.limit() {
            return Mismatch::UNKNOWN;
        }
        // SAFETY: below the map's limit, so there is an entry to read.
        Mismatch(unsafe { self.entry_of(unit) } ^ self.tag)
    }

    /// `mismatch`, or [`Hot::mismatch_by_map`] if the unit was unknown.
    #[inline(always)]
    pub(crate) fn known(&self, mismatch: Mismatch, address: usize) -> Mismatch {
        if mismatch.0 == Mismatch::UNKNOWN.0 { self.mismatch_by_map(address) } else { mismatch }
    }

    /// [`Hot::mismatch_of`], except that the mismatch names no list if sized frees are passed on.
    #[inline(always)]
    pub(crate) fn mismatch_of_sized(&self, address: usize) -> Mismatch {
        let unit = self.unit_of(address);
        if !self.knows(unit) {
            return Mismatch::UNKNOWN;
        }
        // SAFETY: below the limit, so there is an entry to read.
        Mismatch(unsafe { self.entry_of(unit) } ^ self.sized_tag.get())
    }

    /// # Safety
    ///
    /// [`Mismatch::is_mine`].
    #[inline(always)]
    pub(crate) unsafe fn list_of(&self, mismatch: Mismatch) -> &List {
        // SAFETY: below `SLAB_KINDS` all kinds are slabs', which are multiples of the step.
        unsafe { self.list_at(mismatch.0) }
    }

    /// # Safety
    ///
    /// `unit` is below this part's limit.
    #[inline(always)]
    unsafe fn entry_of(&self, unit: usize) -> usize {
        // SAFETY: the unit has an entry, as the caller promises, and the base is the map's.
        unsafe { MAP.entry_from(self.base.get(), unit) }.0 as usize
    }

    #[inline(always)]
    fn knows(&self, unit: usize) -> bool {
        // (For an atomic load, the compiler emits no compare with memory.)
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: an aligned load of the limit, like a relaxed atomic one.
        unsafe {
            core::arch::asm!(
                "cmp {unit}, qword ptr [{hot} + {limit}]",
                "jae {beyond}",
                unit = in(reg) unit,
                hot = in(reg) self,
                limit = const offset_of!(Hot, limit),
                beyond = label { return false },
                options(readonly, nostack),
            );
            true
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            unit < self.limit.load(Ordering::Relaxed)
        }
    }

    #[inline(always)]
    pub(crate) fn unit_of(&self, address: usize) -> usize {
        address.wrapping_sub(self.base.get().addr()) >> UNIT_SHIFT
    }

    #[inline(always)]
    pub(crate) fn list(&self, class: usize) -> &List {
        &self.lists[class]
    }

    /// Call this before another thread knows the cache.
    pub(super) fn know_window(&mut self) {
        self.base.set(MAP.base());
        self.know_nothing(false);
    }

    /// Reads the window's limit again, unless the cache knows no block. The window only grows.
    pub(super) fn raise_limit(&self) {
        if self.limit.load(Ordering::Relaxed) != 0 {
            self.limit.store(MAP.limit(), Ordering::Relaxed);
        }
    }

    /// Makes `free` take the slow path with every block, or ends that.
    pub(super) fn know_nothing(&self, nothing: bool) {
        self.limit.store(if nothing { 0 } else { MAP.limit() }, Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    extern crate std;

    pub(crate) static NOTHING: Serve = {
        extern "C" fn malloc(_size: usize, _hot: &Hot, _offset: usize) -> *mut u8 {
            ptr::null_mut()
        }
        extern "C" fn free(_block: *mut u8, _hot: &Hot, _mismatch: Mismatch) {}
        extern "C" fn unknown(_block: *mut u8, _hot: &Hot, _any: usize, _unit: usize) {}
        Serve {
            malloc,
            free,
            unknown,
            large: |_, _, _| ptr::null_mut(),
            allocate: |_, _, _, _, _| ptr::null_mut(),
            give_back: |_, _, _, _, _, _| (),
            resize: |_, _, _, _| ptr::null_mut(),
            drawn: &NOTHING,
            plain: &NOTHING,
        }
    };

    fn zeros() -> Hot {
        Hot::sentinel(&NOTHING)
    }

    /// Compiles only if `Hot` is not `Sync`: then there is one way to read `Hot as Exclusive<_>`.
    #[test]
    fn a_threads_own_cannot_be_shared_and_a_closed_one_can() {
        trait Exclusive<A> {
            fn is_exclusive() {}
        }
        impl<T> Exclusive<()> for T {}
        impl<T: Sync> Exclusive<u8> for T {}
        <Hot as Exclusive<_>>::is_exclusive();
        fn is_shared<T: Sync>() {}
        is_shared::<HotStub>();
    }

    /// Miri finds a data race if readers or the writer treat the limit as plain memory.
    #[test]
    fn the_limit_of_a_closed_one_is_lowered_under_its_readers() {
        let mut stub = HotStub(zeros());
        stub.become_stub(&NOTHING, Common::ToShared, 0, false, 0);
        let stub = &stub;
        std::thread::scope(|threads| {
            threads.spawn(|| stub.lower_limit(0));
            let hot = &stub.0;
            for address in [0, 1 << 20] {
                assert!(!hot.mismatch_of(address).is_mine());
                assert!(!hot.mismatch_of_sized(address).is_mine());
            }
        });
        assert_eq!(stub.0.limit.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_limit_is_lowered_and_never_raised() {
        let mut stub = HotStub(zeros());
        stub.become_stub(&NOTHING, Common::ToShared, 7, false, 0);
        stub.lower_limit(9);
        assert!(stub.0.knows(6) && !stub.0.knows(7));
        stub.lower_limit(3);
        assert!(stub.0.knows(2) && !stub.0.knows(3));
    }
}
