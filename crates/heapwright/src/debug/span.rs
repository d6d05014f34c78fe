//! Spans: runs of units for debugged blocks, and their records.
//!
//! ```text
//!   shape    in the window                                        blocks
//!   small    one unit: buckets of equal slots (see `shape`)       up to 28 KiB
//!   sampled  one unit: | guard | page | guard | page | ... |      one to a page, up to 4 KiB
//!   large    n units:  | guard | pages ............. | guard |    one
//!
//!   record, in side memory: | head | bucket 0 .. 15 | slot 0 | slot 1 | ... |
//! ```
//!
//! The unit's row in the address map's side bitmaps holds the record's address. So two loads and a
//! multiplication lead from an address to its slot, whether the slot is in use, freed, guarded, or
//! without memory.
//!
//! A bucket's life:
//!
//! ```text
//!   UNOPENED -> OPEN (slots are handed out, forward only) -> all freed: EMPTIED
//!                 ^                                             |
//!                 |                        in the history: FILLED or GUARDED
//!                 +------------------ REUSABLE <---evicted------+
//! ```
//!
//! `live` counts slots that are not freed, also those not handed out yet. So it reaches zero once,
//! and the thread that frees the last slot retires the bucket. Called by most of `debug`. Links and
//! stages change under the store's lock.

use core::ptr;

use crate::address_map::{Entry, Kind, MAP};
use crate::size_class::UNIT;
use crate::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use super::shape::{BUCKETS, PAGE, Shape, WATCHED};
use super::slot::{SIZE_IN_SPAN, Slot, State, Word};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Form {
    Gone = 0,
    /// Buckets of several slots.
    Small = 1,
    /// Blocks alone on a page between guards.
    Sampled = 2,
    /// One block between guards.
    Large = 3,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Stage {
    Unopened = 0,
    /// Some or all slots are handed out.
    Open = 1,
    /// All slots are freed. The bucket is filled, and verified when it leaves the history.
    Filled = 2,
    /// All slots are freed. The pages hold nothing, and may be guarded.
    Guarded = 3,
    /// Out of the history.
    Reusable = 4,
    /// All slots are freed. The thread that freed the last slot will fill or guard the bucket.
    Emptied = 5,
}

/// The contents of a bucket's memory while no slot is handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Memory {
    Pattern = 0,
    /// Zeros: the memory was never used, or its pages went back.
    Zero = 1,
    /// Guarded; reads as zero after the guard is removed.
    Guarded = 2,
}

/// See `poisoned`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Poison {
    /// No byte is poisoned, and no bits are there for it.
    Never = 0,
    /// There are bits, and some may be ones.
    Some = 1,
    /// There are bits, which are all zero.
    Gone = 2,
}

#[repr(C)]
pub(crate) struct Bucket {
    pub(crate) live: AtomicU16,
    stage: AtomicU8,
    memory: AtomicU8,
    /// Sampled: bytes from the slot's start to the block's.
    pub(crate) offset: AtomicU16,
    /// The number of forks before the bucket was opened, or before a forked child took it over.
    pub(crate) epoch: AtomicU16,
    /// The next bucket of a list, with its number in the low bits; see [`BucketRef`].
    pub(crate) next: AtomicPtr<Span>,
    /// Large: bytes from the slot's start to the guard behind the block.
    pub(crate) room: AtomicUsize,
}

#[repr(C, align(64))]
pub(crate) struct Span {
    form: AtomicU8,
    class: AtomicU8,
    /// A bit for each bucket that can be opened.
    pub(crate) free: AtomicU16,
    unit: AtomicU32,
    units: AtomicU32,
    shift: AtomicU32,
    lead: AtomicU32,
    slot: AtomicU32,
    reciprocal: AtomicU32,
    slots: AtomicU32,
    /// Large: bytes requested.
    pub(crate) size: AtomicUsize,
    /// Large: bytes from the slot's start to the block's.
    pub(crate) offset: AtomicUsize,
    pub(crate) heap: AtomicU32,
    poison: AtomicU32,
    records: AtomicPtr<Slot>,
    /// The neighbours in the list of spans of its class with a bucket to open.
    pub(crate) next: AtomicPtr<Span>,
    pub(crate) prev: AtomicPtr<Span>,
    pub(crate) buckets: [Bucket; BUCKETS],
    /// In a filled large span of the history, a bit for each page with the pattern. All ones stand
    /// for the whole room of any length.
    pub(crate) filled: AtomicU64,
    _rest: [AtomicU32; 10],
}

const _: () = assert!(size_of::<Span>() == 512 && size_of::<Bucket>() == 24);

/// One bucket of a span: a pointer with a number in its low bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketRef {
    pub(crate) span: &'static Span,
    pub(crate) index: usize,
}

impl PartialEq for Span {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Span {}

impl BucketRef {
    pub(crate) fn pack(self) -> *mut Span {
        ptr::from_ref(self.span).cast_mut().map_addr(|at| at | self.index)
    }

    pub(crate) fn unpack(word: *mut Span) -> Option<Self> {
        let index = word.addr() % 64;
        // SAFETY: the pointer is null or a packed span; spans' memory stays readable for ever.
        let span = unsafe { word.map_addr(|at| at & !63).as_ref() }?;
        Some(Self { span, index })
    }

    pub(crate) fn record(self) -> &'static Bucket {
        &self.span.buckets[self.index]
    }

    /// Returns the bucket's first byte, with the window's provenance.
    pub(crate) fn start(self) -> *mut u8 {
        self.span.start().wrapping_add(self.index * self.span.bucket_bytes())
    }

    pub(crate) fn slots(self) -> impl Iterator<Item = Place> {
        (0..self.span.slots_a_bucket()).map(move |slot| Place { bucket: self, slot })
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) bucket: BucketRef,
    pub(crate) slot: usize,
}

impl Place {
    #[inline]
    pub(crate) fn record(self) -> &'static Slot {
        // SAFETY: side memory was taken for all slots of all buckets; zero is valid.
        unsafe { &*self.records() }
    }

    /// Returns the record as a pointer, which also reaches the records of the bucket's later slots.
    #[inline]
    pub(crate) fn records(self) -> *const Slot {
        self.bucket.span.slot_record(self.bucket.index, self.slot)
    }

    #[inline]
    pub(crate) fn slot_start(self) -> *mut u8 {
        let shape = self.bucket.span.shape();
        self.bucket.span.start().wrapping_add(shape.slot_at(self.bucket.index, self.slot))
    }

    /// Returns the block's first byte. Call this only after the slot was handed out.
    #[inline]
    pub(crate) fn block(self) -> *mut u8 {
        match self.bucket.span.form() {
            Form::Small => self.slot_start(),
            _ => self.slot_start().wrapping_add(self.offset()),
        }
    }

    /// Returns whether a live block begins at `address`, which is in this slot with this word.
    #[inline]
    pub(crate) fn is_live_at(self, word: Word, address: usize) -> bool {
        word.state() == State::Live && self.block().addr() == address
    }

    fn offset(self) -> usize {
        match self.bucket.span.form() {
            Form::Small => 0,
            Form::Large => self.bucket.span.offset.load(Ordering::Relaxed),
            _ => self.bucket.record().offset.load(Ordering::Relaxed).into(),
        }
    }

    pub(crate) fn set_offset(self, offset: usize) {
        match self.bucket.span.form() {
            Form::Large => self.bucket.span.offset.store(offset, Ordering::Relaxed),
            _ => self.bucket.record().offset.store(offset as u16, Ordering::Relaxed),
        }
    }

    #[inline]
    pub(crate) fn is_unused(self) -> bool {
        self.record().word() == Word::UNUSED
    }

    /// Returns the numbers of bytes before the block, in the block, and checked behind the block.
    pub(crate) fn parts(self, size: usize) -> (usize, usize, usize) {
        let before = self.offset();
        let room = match self.bucket.span.form() {
            Form::Small => self.bucket.span.slot_bytes(),
            Form::Large => self.bucket.record().room.load(Ordering::Relaxed),
            _ => PAGE,
        };
        (before, size, room.saturating_sub(before + size))
    }

    /// Returns the checked bytes before the block. A small block has such bytes only in its
    /// bucket's first slot. The bytes before another slot are its neighbour's slack.
    pub(crate) fn near(self) -> usize {
        let span = self.bucket.span;
        match span.form() {
            Form::Small if self.slot == 0 => span.shape().lead_watched(),
            Form::Small => 0,
            Form::Large => self.offset().min(WATCHED),
            _ => self.offset(),
        }
    }

    #[inline]
    pub(crate) fn size(self, word: Word) -> usize {
        match word.size() {
            SIZE_IN_SPAN => self.bucket.span.size.load(Ordering::Relaxed),
            size => size,
        }
    }
}

pub(crate) enum Found {
    Slot(Place),
    /// A gap between slots, or a guard, of this bucket.
    #[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
    Gap(BucketRef),
    /// Nothing: the address is outside of the span, or the span has ended.
    Nothing,
}

impl Span {
    pub(crate) const fn bytes_with(slots: usize) -> usize {
        size_of::<Self>() + slots * size_of::<Slot>()
    }

    /// Makes a span of `units` units from `unit` on, and adds it to the address map.
    ///
    /// # Safety
    ///
    /// `record` is zeroed side memory for the slots of `shape` in all buckets. The units are the
    /// caller's and have debug entries.
    pub(crate) unsafe fn make(
        record: *mut u8,
        form: Form,
        class: usize,
        shape: &Shape,
        (unit, units): (usize, usize),
        heap: u32,
    ) -> &'static Self {
        // SAFETY: zero is a valid span, and side memory stays mapped.
        let span = unsafe { &*record.cast::<Self>() };
        span.class.store(class as u8, Ordering::Relaxed);
        span.unit.store(unit as u32, Ordering::Relaxed);
        span.units.store(units as u32, Ordering::Relaxed);
        span.shift.store(shape.shift, Ordering::Relaxed);
        span.lead.store(shape.lead, Ordering::Relaxed);
        span.slot.store(shape.slot, Ordering::Relaxed);
        span.reciprocal.store(shape.reciprocal, Ordering::Relaxed);
        span.slots.store(shape.slots, Ordering::Relaxed);
        span.heap.store(heap, Ordering::Relaxed);
        let slots = record.wrapping_add(size_of::<Self>()).cast::<Slot>();
        span.records.store(slots, Ordering::Relaxed);
        span.form.store(form as u8, Ordering::Release);
        row(unit).store(ptr::from_ref(span).cast_mut(), Ordering::Release);
        span
    }

    /// Ends the span: the address map forgets it. The caller must change the units' entries next.
    pub(crate) fn end(&self) {
        row(self.unit()).store(ptr::null_mut(), Ordering::Release);
        self.form.store(Form::Gone as u8, Ordering::Release);
    }

    /// Returns the span of `address`. Does not touch the memory there.
    #[inline]
    pub(crate) fn of(address: usize) -> Option<&'static Self> {
        let (unit, entry) = MAP.lookup(address);
        Self::of_entry(unit, entry)
    }

    #[inline]
    pub(crate) fn of_entry(unit: usize, entry: Entry) -> Option<&'static Self> {
        let head = match entry.kind() {
            Kind::Debug => unit,
            Kind::DebugRest(head) => head,
            _ => return None,
        };
        // SAFETY: the pointer is null or a span, whose memory stays readable for ever.
        let span = unsafe { row(head).load(Ordering::Acquire).as_ref() }?;
        // Another thread may have just ended the span and reused its record.
        (span.unit() == head && span.form() != Form::Gone).then_some(span)
    }

    /// Returns the span of `heap` that begins at `unit`. The unit must be below the map's limit.
    pub(crate) fn heading(unit: usize, heap: u32) -> Option<&'static Self> {
        let span = Self::of(MAP.address_of(unit).addr())?;
        (span.unit() == unit && span.heap.load(Ordering::Relaxed) == heap).then_some(span)
    }

    pub(crate) fn all_buckets(&'static self) -> impl Iterator<Item = BucketRef> {
        (0..self.bucket_count()).map(move |index| BucketRef { span: self, index })
    }

    /// A fast case of [`Span::locate`]: the small slot that begins at an address.
    #[inline(always)]
    pub(crate) fn small_slot_at(&'static self, address: usize) -> Option<Place> {
        if self.form.load(Ordering::Acquire) != Form::Small as u8 {
            return None;
        }
        let shape = self.shape();
        let offset = address.wrapping_sub(self.start().addr());
        let (index, slot) = shape.locate(offset);
        let slot = slot?;
        if index >= BUCKETS || shape.slot_at(index, slot) != offset {
            return None;
        }
        Some(Place { bucket: BucketRef { span: self, index }, slot })
    }

    /// Returns whether a live block without poison certainly contains `bytes` bytes at `address`.
    /// The span begins at unit `head`. `is_rest` tells whether the address's unit has the entry
    /// [`Entry::debug_rest`] or [`Entry::DEBUG`]. False proves nothing.
    #[inline(always)]
    pub(crate) fn holds(head: usize, is_rest: bool, address: usize, bytes: usize) -> bool {
        // SAFETY: the pointer is null or a span, whose memory stays readable for ever.
        let Some(span) = (unsafe { row(head).load(Ordering::Acquire).as_ref() }) else {
            return false;
        };
        let form = span.form.load(Ordering::Acquire);
        let records = span.records.load(Ordering::Relaxed);
        if records.is_null() || span.has_poison() {
            return false;
        }
        if form == Form::Large as u8 {
            // SAFETY: side memory was taken for the record of the span's one slot; zero is valid.
            let is_live = unsafe { &*records }.word().state() == State::Live;
            let size = span.size.load(Ordering::Relaxed);
            let start = MAP.address_of(head).addr() + PAGE + span.offset.load(Ordering::Relaxed);
            let into = address.wrapping_sub(start);
            return is_live && into <= size && bytes <= size - into;
        }
        let is_sampled = form == Form::Sampled as u8;
        if is_rest || !is_sampled && form != Form::Small as u8 {
            return false;
        }
        let (shape, offset) = (span.shape(), address & (UNIT - 1));
        let (index, Some(slot)) = shape.locate(offset) else { return false };
        let record = records.wrapping_add(index * shape.slots as usize + slot);
        // SAFETY: side memory was taken for all slots of all buckets in the unit; zero is valid.
        let word = unsafe { &*record }.word();
        let before = if is_sampled {
            span.buckets[index % BUCKETS].offset.load(Ordering::Relaxed)
        } else {
            0
        };
        let start = shape.slot_at(index, slot) + usize::from(before);
        // For an address before the block the difference exceeds any block's size.
        let into = offset.wrapping_sub(start);
        word.state() == State::Live && into <= word.size() && bytes <= word.size() - into
    }

    /// Returns whether some bytes of the span may be poisoned.
    #[inline(always)]
    pub(crate) fn has_poison(&self) -> bool {
        self.poison.load(Ordering::Relaxed) == Poison::Some as u32
    }

    /// Returns whether some units of the span may have poison bits.
    pub(crate) fn has_bits(&self) -> bool {
        self.poison.load(Ordering::Relaxed) != Poison::Never as u32
    }

    pub(crate) fn set_poison(&self, poison: Poison) {
        self.poison.store(poison as u32, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn locate(&'static self, address: usize) -> Found {
        let Some(offset) = address.checked_sub(self.start().addr()) else { return Found::Nothing };
        if self.form() == Form::Large {
            let shape = self.shape();
            let bucket = BucketRef { span: self, index: 0 };
            return match offset.checked_sub(shape.lead as usize) {
                Some(into) if into < self.units() * UNIT - 2 * PAGE => {
                    Found::Slot(Place { bucket, slot: 0 })
                }
                _ => Found::Gap(bucket),
            };
        }
        let (index, slot) = self.shape().locate(offset);
        if index >= BUCKETS {
            return Found::Nothing;
        }
        let bucket = BucketRef { span: self, index };
        match slot {
            Some(slot) => Found::Slot(Place { bucket, slot }),
            None => Found::Gap(bucket),
        }
    }

    #[inline]
    pub(crate) fn form(&self) -> Form {
        match self.form.load(Ordering::Acquire) {
            1 => Form::Small,
            2 => Form::Sampled,
            3 => Form::Large,
            _ => Form::Gone,
        }
    }

    #[inline]
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            shift: self.shift.load(Ordering::Relaxed),
            lead: self.lead.load(Ordering::Relaxed),
            slot: self.slot.load(Ordering::Relaxed),
            reciprocal: self.reciprocal.load(Ordering::Relaxed),
            slots: self.slots.load(Ordering::Relaxed),
        }
    }

    /// Returns a small span's size class, or the units of a large span that is reused whole, or 0.
    pub(crate) fn class(&self) -> usize {
        self.class.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn unit(&self) -> usize {
        self.unit.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn units(&self) -> usize {
        self.units.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        MAP.address_of(self.unit())
    }

    pub(crate) fn bucket_bytes(&self) -> usize {
        match self.form() {
            Form::Large => self.units() * UNIT,
            _ => 1 << self.shift.load(Ordering::Relaxed),
        }
    }

    #[inline]
    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(crate) fn slots_a_bucket(&self) -> usize {
        self.slots.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn bucket_count(&self) -> usize {
        match self.form() {
            // While the span ends, a reader may see the old form and a new shape, hence the bound.
            Form::Small => self.shape().buckets().min(BUCKETS),
            // The last pair is left out: no guard of the span would follow its page.
            Form::Sampled => BUCKETS / 2 - 1,
            Form::Large => 1,
            Form::Gone => 0,
        }
    }

    #[inline]
    fn slot_record(&'static self, bucket: usize, slot: usize) -> *const Slot {
        let slots = self.records.load(Ordering::Relaxed);
        if slots.is_null() {
            // The span ended after the caller found it.
            return &GONE;
        }
        slots.wrapping_add(bucket * self.slots_a_bucket() + slot)
    }

    /// Returns the record's address as side memory returned it, valid for all bytes of the record.
    pub(crate) fn side_memory(&self) -> *mut u8 {
        self.records.load(Ordering::Relaxed).cast::<u8>().wrapping_sub(size_of::<Self>())
    }
}

/// The record of all slots of an ended span: not handed out.
static GONE: Slot = Slot::unused();

impl Bucket {
    /// Counts a slot as freed. Returns whether it was the last. `alone` tells that the process has
    /// one thread. The thread that frees the last slot sees all records and fills (release order).
    #[inline]
    pub(crate) fn free_one(&self, alone: bool) -> bool {
        if alone {
            let live = self.live.load(Ordering::Relaxed) - 1;
            self.live.store(live, Ordering::Relaxed);
            return live == 0;
        }
        self.live.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Counts freed slots as live again, or returns false if the bucket is being retired.
    pub(super) fn count_again(&self, slots: usize) -> bool {
        let more = |live: u16| (live > 0).then(|| live + slots as u16);
        self.live.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            1 => Stage::Open,
            2 => Stage::Filled,
            3 => Stage::Guarded,
            4 => Stage::Reusable,
            5 => Stage::Emptied,
            _ => Stage::Unopened,
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        match self.memory.load(Ordering::Relaxed) {
            0 => Memory::Pattern,
            1 => Memory::Zero,
            _ => Memory::Guarded,
        }
    }

    pub(crate) fn set_memory(&self, memory: Memory) {
        self.memory.store(memory as u8, Ordering::Relaxed);
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }
}

#[inline]
fn row(unit: usize) -> &'static AtomicPtr<Span> {
    // SAFETY: side bitmaps of units below the limit are committed, word-aligned, and zero unless a
    // slab uses them; a span's unit has no slab.
    unsafe { &*MAP.side_bitmap(unit).cast::<AtomicPtr<Span>>() }
}
