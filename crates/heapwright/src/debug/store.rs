//! The store: it chooses the next bucket, and retires emptied buckets to the history.
//!
//! ```text
//!   open      a free bucket of the class, the lowest in its span; without one, a sparse
//!             bucket if much is idle (`sparse`); without that, a bucket of a new span
//!
//!   retire    all slots freed --> filled or guarded --> newest of the history (`history`)
//!             the history's oldest --> verified --> can be used again
//! ```
//!
//! Called by `heap`, and by `unprotect`, under the store's lock.

use core::ops::Range;
use core::ptr;

use crate::address_map::Entry;
use crate::chunk::{self, Want};
use crate::options::debug::Guard;
use crate::os::SYSTEM;
use crate::os::{self, Memory as _};
use crate::size_class::{CLASSES, UNIT};
use crate::sync::atomic::{AtomicUsize, Ordering};

use super::budget::Allowance;
use super::bytes;
use super::history::{History, guarded_range, is_to_be_filled, repair, verify};
use super::poisoned;
use super::shape::{self, BUCKETS, PAGE, Shape};
use super::side::{LARGEST, Side};
use super::slot::Word;
use super::span::{BucketRef, Form, Memory, Span, Stage};
use super::sparse::{self, SparseBuckets};

/// Spans with a bucket to open have a list for each class, one for [`SAMPLED`], and one for each
/// number of units of [`LARGE`] spans.
const SAMPLED: usize = CLASSES;
const LARGE: usize = CLASSES + 1;
/// Large spans up to this many units are reused whole.
const REUSED_UNITS: usize = 16;
const LISTS: usize = LARGE + REUSED_UNITS + 1;
/// The history's default budget is `sparse::spared` minus the memory of open buckets, clamped to
/// these shares of the open bytes.
const BUDGET_LEAST: usize = 2 << 20;
const BUDGET_LEAST_SHARE: usize = 16;
const BUDGET_MOST_SHARE: usize = 4;
/// So many retired buckets of each list are guarded first, and then one in [`GUARD_ONE_IN`].
const GUARD_FIRST: u32 = 4;
const GUARD_ONE_IN: u32 = 64;
/// The most unused spans that each list keeps.
const SPARE_SPANS: u32 = 1;

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) guard: Guard,
    pub(crate) touches: bool,
    pub(crate) fills: bool,
    /// Whether large blocks have guards at their ends, independent of `guard`.
    pub(crate) ends: bool,
    /// Bytes that the history and all records may cost; 0 if the open and live bytes decide.
    pub(crate) memory: usize,
    pub(crate) slots: usize,
    /// Whether emptied buckets are remembered for ever.
    pub(crate) retain: bool,
}

/// The units of a heap's spans, for sweeps. Written under the store's lock, read without it.
pub(crate) struct Units {
    first: AtomicUsize,
    end: AtomicUsize,
}

impl Units {
    pub(crate) const fn new() -> Self {
        Self { first: AtomicUsize::new(usize::MAX), end: AtomicUsize::new(0) }
    }

    pub(crate) fn all(&self) -> Range<usize> {
        let end = self.end.load(Ordering::Acquire);
        self.first.load(Ordering::Relaxed).min(end)..end
    }

    /// Returns the unit after `unit`. The first unit follows the last one.
    pub(crate) fn after(&self, unit: usize) -> usize {
        let all = self.all();
        if all.contains(&(unit + 1)) { unit + 1 } else { all.start }
    }

    fn add(&self, span: &Span) {
        let all = self.all();
        if all.is_empty() || span.unit() < all.start {
            self.first.store(span.unit(), Ordering::Relaxed);
        }
        self.end.store(all.end.max(span.unit() + span.units()), Ordering::Release);
    }

    fn forget(&self) {
        self.end.store(0, Ordering::Relaxed);
        self.first.store(usize::MAX, Ordering::Relaxed);
    }
}

static NO_UNITS: Units = Units::new();

pub(crate) struct Store {
    heap: u32,
    /// `None` before the heap begins, because a static's address would cost each process a page.
    units: Option<&'static Units>,
    pub(crate) limits: Limits,
    pub(crate) side: Side,
    available: [*mut Span; LISTS],
    spare: [u32; LISTS],
    retired: [u32; LISTS],
    history: History,
    sparse: SparseBuckets,
    pub(crate) open_bytes: usize,
    pub(crate) open_buckets: usize,
    /// The bytes of large spans in `open_bytes` that are guards, or addresses to grow into.
    spare_bytes: usize,
    pub(crate) live_bytes: u64,
    pub(crate) sampled_pages: usize,
    pub(crate) epoch: u16,
    sweep_at: (usize, usize),
}

// SAFETY: the memory behind the pointers only changes under the lock around the store.
unsafe impl Send for Store {}

pub(crate) struct Opened {
    pub(crate) bucket: BucketRef,
    pub(crate) zero: bool,
}

/// Receives a write after free in a bucket. Returns false without room for it. Then a later check
/// must find the write again.
pub(crate) type Verify<'a> = &'a mut dyn FnMut(BucketRef, bytes::Damage) -> bool;

impl Store {
    pub(crate) const fn new() -> Self {
        Self {
            heap: 0,
            units: None,
            limits: Limits {
                guard: Guard::Sample,
                touches: true,
                fills: true,
                ends: true,
                memory: 0,
                slots: usize::MAX,
                retain: false,
            },
            side: Side::new(),
            available: [ptr::null_mut(); LISTS],
            spare: [0; LISTS],
            retired: [0; LISTS],
            history: History::new(),
            sparse: SparseBuckets::new(),
            open_bytes: 0,
            open_buckets: 0,
            spare_bytes: 0,
            live_bytes: 0,
            sampled_pages: 0,
            epoch: 0,
            sweep_at: (0, 0),
        }
    }

    pub(crate) fn begin(&mut self, heap: u32, units: &'static Units, limits: Limits) {
        self.heap = heap;
        self.units = Some(units);
        self.limits = limits;
    }

    fn units(&self) -> &'static Units {
        self.units.unwrap_or(&NO_UNITS)
    }

    /// Opens a bucket of a class. Without `now`, the sequence number, reopens no sparse bucket.
    pub(crate) fn open_small(
        &mut self,
        class: usize,
        now: Option<u32>,
        found: Verify<'_>,
    ) -> Option<Opened> {
        if self.available[class].is_null()
            && let Some(now) = now
            && let Some(bucket) = self.reopen_sparse(class, now, found)
        {
            return Some(Opened { bucket, zero: false });
        }
        let make = |store: &mut Self| {
            let shape = shape::of(class, store.limits.slots);
            store.new_span(Form::Small, class, &shape, 1)
        };
        let span = self.available(class, found, make)?;
        let opened = match self.open(span, class) {
            Some(opened) => opened,
            // The kernel did not remove a guard. A new span has none.
            None => {
                let span = make(self)?;
                self.link(span, class);
                self.open(span, class)?
            }
        };
        let shape = opened.bucket.span.shape();
        if opened.zero && self.limits.touches {
            let start = opened.bucket.start();
            let lead = shape.lead_watched();
            // SAFETY: the bucket is ours to open; the lead is in it.
            unsafe { bytes::fill(start.wrapping_add(shape.lead as usize - lead), lead) };
            let (tail, length) = shape.tail();
            // SAFETY: the bytes behind the bucket's last slot; the bucket is ours to open.
            unsafe { bytes::fill(start.wrapping_add(tail), length) };
        }
        for place in opened.bucket.slots() {
            place.record().set(Word::UNUSED);
        }
        opened.bucket.record().live.store(shape.slots as u16, Ordering::Relaxed);
        Some(opened)
    }

    fn reopen_sparse(&mut self, class: usize, now: u32, found: Verify<'_>) -> Option<BucketRef> {
        if self.limits.retain || self.memory_bytes() <= sparse::spared(self.live_bytes) {
            return None;
        }
        let bucket =
            self.sparse.reopen((self.heap, self.units()), class, now, self.limits.fills, found)?;
        bucket.record().epoch.store(self.epoch, Ordering::Relaxed);
        Some(bucket)
    }

    pub(crate) fn has_ends(&self) -> bool {
        self.limits.ends
    }

    pub(crate) fn open_sampled(&mut self, found: Verify<'_>) -> Option<Opened> {
        let shape = Shape {
            shift: (2 * PAGE).trailing_zeros(),
            lead: PAGE as u32,
            slot: PAGE as u32,
            reciprocal: (1u64 << 32).div_ceil(PAGE as u64) as u32,
            slots: 1,
        };
        if os::kernel_page_size() != PAGE {
            return None;
        }
        let span = self.available(SAMPLED, found, |store| {
            let span = store.new_span(Form::Sampled, 0, &shape, 1)?;
            // SAFETY: the span was just made, and nothing is in it.
            if unsafe { os::guard(span.start(), UNIT) } {
                span.buckets.iter().for_each(|bucket| bucket.set_memory(Memory::Guarded));
                return Some(span);
            }
            store.release(span);
            None
        })?;
        let opened = self.open(span, SAMPLED)?;
        opened.bucket.slots().for_each(|place| place.record().set(Word::UNUSED));
        opened.bucket.record().live.store(1, Ordering::Relaxed);
        self.sampled_pages += 1;
        Some(opened)
    }

    /// Opens a span for one block: `room` bytes (whole pages) between two guards. The block can
    /// later grow by `spare` bytes. `align` only matters if it is more than a unit.
    pub(crate) fn open_large(
        &mut self,
        (room, spare): (usize, usize),
        align: usize,
        found: Verify<'_>,
    ) -> Option<Opened> {
        if os::is_more_than_there_is(room) {
            return None;
        }
        let spare = if self.may_stay() { spare } else { 0 };
        let units = room.checked_add(spare)?.checked_add(2 * PAGE)?.div_ceil(UNIT);
        let list = LARGE + units.min(REUSED_UNITS + 1) - 1;
        let shape = Shape { shift: 0, lead: PAGE as u32, slot: 0, reciprocal: 0, slots: 1 };
        let reused = units <= REUSED_UNITS && align <= UNIT;
        let span = if reused {
            self.available(list, found, |store| store.new_span(Form::Large, units, &shape, units))
        } else {
            self.new_large(&shape, units, align, found)
        }?;
        let was_guarded = span.buckets[0].memory() == Memory::Guarded;
        let part = (span.start().wrapping_add(PAGE), room);
        let (opened, is_bare) = match self.open_part(span, list, part) {
            Some(opened) => (opened, false),
            // A kernel near its limit of mappings refuses a hole in a guard. The whole guard goes.
            None => (self.open(span, list)?, true),
        };
        let record = opened.bucket.record();
        let area = span.start().wrapping_add(PAGE);
        let had = record.room.swap(room, Ordering::Relaxed);
        self.spare_bytes += span.bucket_bytes() - room;
        let at = |offset: usize| area.wrapping_add(offset);
        let all = span.units() * UNIT - 2 * PAGE;
        if !self.limits.ends {
            if !opened.zero && had < room {
                // SAFETY: the span is ours.
                unsafe { bytes::fill(at(had), room - had) };
            }
        } else if had == 0 || is_bare {
            // The span is new, or has no guard. SAFETY: the span is ours and holds nothing.
            unsafe { os::guard(span.start(), PAGE) };
            // SAFETY: the pages behind the room, in a span that is ours and holds nothing.
            unsafe { os::guard(at(room), all - room + PAGE) };
        } else if was_guarded {
            // The whole span was guarded; `open_part` removed the guard in the room's place.
        } else if had < room {
            // The guards at the span's ends stayed. SAFETY: pages of the span, which is ours, not
            // in use yet.
            if unsafe { !os::unguard(at(had), room - had) } {
                record.set_memory(if opened.zero { Memory::Zero } else { Memory::Pattern });
                self.close(opened.bucket);
                record.room.store(had, Ordering::Relaxed);
                self.make_available(opened.bucket, list);
                return None;
            }
            if !opened.zero {
                // SAFETY: bytes of the room, in a span that is ours, no longer guarded.
                unsafe { bytes::fill(at(had), room - had) };
            }
        } else if had > room {
            // SAFETY: pages of the span, which is ours and holds nothing.
            unsafe { os::guard(at(room), had - room) };
        }
        opened.bucket.slots().for_each(|place| place.record().set(Word::UNUSED));
        record.live.store(1, Ordering::Relaxed);
        Some(opened)
    }

    /// Returns whether a block may be resized in place.
    fn may_stay(&self) -> bool {
        self.limits.guard != Guard::All && !self.limits.retain
    }

    /// Returns whether [`Store::resize_large`] can give this much room.
    pub(crate) fn has_room(&self, bucket: BucketRef, room: usize) -> bool {
        let had = bucket.record().room.load(Ordering::Relaxed);
        self.may_stay()
            && room <= bucket.span.units() * UNIT - 2 * PAGE
            && !os::is_more_than_there_is(room.saturating_sub(had))
    }

    /// Changes the room of a large span's block to `room` bytes, which [`Store::has_room`] must
    /// allow. The guard moves to the new end. Returns false if the kernel refused.
    pub(crate) fn resize_large(&mut self, bucket: BucketRef, room: usize) -> bool {
        let span = bucket.span;
        let had = bucket.record().room.load(Ordering::Relaxed);
        let at = |offset: usize| span.start().wrapping_add(PAGE + offset);
        if self.limits.ends && room > had {
            // SAFETY: unused pages of the span behind its room.
            if unsafe { !os::unguard(at(had), room - had) } {
                return false;
            }
        } else if room < had {
            // SAFETY: pages of the span that no longer belong to the block.
            let is_guarded = self.limits.ends && unsafe { os::guard(at(room), had - room) };
            // Without a guard the pages go back, because the pattern is only checked in the room.
            if !is_guarded {
                // SAFETY: unused pages behind the room. (If the kernel refuses, no check reads
                // them.)
                unsafe { SYSTEM.decommit(at(room), had - room) };
            }
        }
        bucket.record().room.store(room, Ordering::Relaxed);
        self.spare_bytes = self.spare_bytes + had - room;
        true
    }

    fn new_large(
        &mut self,
        shape: &Shape,
        units: usize,
        align: usize,
        found: Verify<'_>,
    ) -> Option<&'static Span> {
        let align_units = (align / UNIT).max(1);
        let made =
            self.new_aligned_span(Form::Large, 0, shape, units, align_units).or_else(|| {
                self.forget_all(found);
                self.new_aligned_span(Form::Large, 0, shape, units, align_units)
            })?;
        self.link(made, Self::list_of(made));
        Some(made)
    }

    /// Returns the first span of a list, or a new span. Without memory, empties the history first.
    fn available(
        &mut self,
        list: usize,
        found: Verify<'_>,
        make: impl Fn(&mut Self) -> Option<&'static Span>,
    ) -> Option<&'static Span> {
        // SAFETY: null, or a span of the list; spans' memory stays readable.
        if let Some(span) = unsafe { self.available[list].as_ref() } {
            return Some(span);
        }
        if let Some(span) = make(self) {
            self.link(span, list);
            return Some(span);
        }
        if list == SAMPLED {
            // The caller takes a place without a guard instead.
            return None;
        }
        self.forget_all(found);
        // SAFETY: null, or a span of the list, whose memory stays readable.
        if let Some(span) = unsafe { self.available[list].as_ref() } {
            return Some(span);
        }
        let span = make(self)?;
        self.link(span, list);
        Some(span)
    }

    fn new_span(
        &mut self,
        form: Form,
        class: usize,
        shape: &Shape,
        units: usize,
    ) -> Option<&'static Span> {
        self.new_aligned_span(form, class, shape, units, 1)
    }

    fn new_aligned_span(
        &mut self,
        form: Form,
        class: usize,
        shape: &Shape,
        units: usize,
        align_units: usize,
    ) -> Option<&'static Span> {
        let buckets = if form == Form::Small { shape.buckets() } else { BUCKETS };
        let bytes = Span::bytes_with(buckets * shape.slots as usize);
        debug_assert!(bytes <= LARGEST);
        let record = self.side.take(bytes);
        if record.is_null() {
            return None;
        }
        let dense = form == Form::Small && self.limits.touches && self.open_bytes >= DENSE_FROM;
        let want = if dense { Want::Dense } else { Want::Zero };
        let Some(run) = chunk::take(units, align_units, want, Entry::DEBUG, Entry::debug_rest)
        else {
            // SAFETY: the record was just taken with this size.
            unsafe { self.side.give(record, bytes) };
            return None;
        };
        // SAFETY: zeroed side memory for all slots; the units were taken with debug entries.
        let span = unsafe { Span::make(record, form, class, shape, (run.unit, units), self.heap) };
        let all = (1u32 << span.bucket_count()) - 1;
        span.free.store(all as u16, Ordering::Relaxed);
        // SAFETY: the run was just taken; no other code uses it.
        let zero = run.zero
            || form != Form::Small && unsafe { SYSTEM.decommit(span.start(), units * UNIT) };
        for bucket in &span.buckets {
            bucket.set_memory(if zero { Memory::Zero } else { Memory::Pattern });
        }
        if !zero {
            // SAFETY: the run was just taken; no other code uses it, and the span has its units.
            unsafe { bytes::fill(span.start(), units * UNIT) };
        }
        self.units().add(span);
        Some(span)
    }

    fn link(&mut self, span: &'static Span, list: usize) {
        let first = self.available[list];
        let this = ptr::from_ref(span).cast_mut();
        span.next.store(first, Ordering::Relaxed);
        span.prev.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: null, or a span of the list.
        if let Some(first) = unsafe { first.as_ref() } {
            first.prev.store(this, Ordering::Relaxed);
        }
        self.available[list] = this;
    }

    fn unlink(&mut self, span: &'static Span, list: usize) {
        let next = span.next.load(Ordering::Relaxed);
        let prev = span.prev.load(Ordering::Relaxed);
        // SAFETY: null, or a span of the list.
        match unsafe { prev.as_ref() } {
            Some(prev) => prev.next.store(next, Ordering::Relaxed),
            None => self.available[list] = next,
        }
        // SAFETY: null, or the next span in the list.
        if let Some(next) = unsafe { next.as_ref() } {
            next.prev.store(prev, Ordering::Relaxed);
        }
    }

    /// Opens the first free bucket of a span, which must have one. Returns `None`, and changes
    /// nothing, if the kernel did not remove the bucket's guard.
    fn open(&mut self, span: &'static Span, list: usize) -> Option<Opened> {
        self.open_part(span, list, guarded_range(first_free(span)))
    }

    /// Opens a part of the bucket. The other part of a guarded bucket stays guarded.
    fn open_part(
        &mut self,
        span: &'static Span,
        list: usize,
        (from, length): (*mut u8, usize),
    ) -> Option<Opened> {
        let free = span.free.load(Ordering::Relaxed);
        let bucket = first_free(span);
        let record = bucket.record();
        if record.memory() == Memory::Guarded {
            // SAFETY: the bucket is ours to open.
            if unsafe { !os::unguard(from, length) } {
                return None;
            }
        }
        if free.count_ones() as usize == span.bucket_count() && self.spare[list] > 0 {
            self.spare[list] -= 1;
        }
        let left = free & (free - 1);
        span.free.store(left, Ordering::Relaxed);
        if left == 0 {
            self.unlink(span, list);
        }
        record.set_stage(Stage::Open);
        record.epoch.store(self.epoch, Ordering::Relaxed);
        self.open_bytes += span.bucket_bytes();
        self.open_buckets += 1;
        let zero = record.memory() != Memory::Pattern;
        record.set_memory(Memory::Pattern);
        Some(Opened { bucket, zero })
    }

    fn close(&mut self, bucket: BucketRef) {
        let span = bucket.span;
        self.open_bytes -= span.bucket_bytes();
        self.open_buckets -= 1;
        if span.form() == Form::Large {
            self.spare_bytes -= span.bucket_bytes() - bucket.record().room.load(Ordering::Relaxed);
        }
    }

    /// Returns the bytes of memory that open buckets may take, without guards and unused addresses.
    fn memory_bytes(&self) -> usize {
        self.open_bytes - self.spare_bytes - self.sampled_pages * PAGE
    }

    fn list_of(span: &Span) -> usize {
        match span.form() {
            Form::Small => span.class(),
            Form::Sampled => SAMPLED,
            _ => LARGE + span.units().min(REUSED_UNITS + 1) - 1,
        }
    }

    /// Takes a bucket with only freed slots out of use. Returns whether to guard the bucket instead
    /// of filling it. Some buckets of each list are always guarded, and others if there is time.
    pub(crate) fn empty(&mut self, bucket: BucketRef, allowance: Allowance) -> bool {
        bucket.record().set_stage(Stage::Emptied);
        let span = bucket.span;
        if os::kernel_page_size() != PAGE {
            return false;
        }
        let list = Self::list_of(span);
        self.retired[list] = self.retired[list].wrapping_add(1);
        let number = self.retired[list];
        match (self.limits.guard, span.form()) {
            (Guard::Never, _) => false,
            (_, Form::Sampled) | (Guard::All, _) => true,
            (_, form) => {
                let has_time = match form {
                    // Without fill and guard, no write to a freed block would be seen.
                    Form::Large => allowance != Allowance::None || !is_to_be_filled(bucket),
                    // Beyond this many bytes, new spans use huge pages, which a guard splits.
                    _ => allowance.is_generous() && self.open_bytes < DENSE_FROM,
                };
                has_time || number <= GUARD_FIRST || number.is_multiple_of(GUARD_ONE_IN)
            }
        }
    }

    pub(crate) fn retire(&mut self, bucket: BucketRef, left: Memory, found: Verify<'_>) {
        self.close(bucket);
        if bucket.span.form() == Form::Sampled {
            self.sampled_pages -= 1;
        }
        let record = bucket.record();
        record.set_stage(if left == Memory::Pattern { Stage::Filled } else { Stage::Guarded });
        record.set_memory(left);
        self.history.push(bucket);
        let budget = match self.limits.memory {
            _ if self.limits.retain => usize::MAX,
            0 => {
                let spared = sparse::spared(self.live_bytes).saturating_sub(self.memory_bytes());
                let open = self.open_bytes;
                BUDGET_LEAST.max(spared.clamp(open / BUDGET_LEAST_SHARE, open / BUDGET_MOST_SHARE))
            }
            memory => memory.saturating_sub(self.side.used()),
        };
        while self.history.bytes() > budget && self.forget_oldest(found) {}
    }

    fn forget_oldest(&mut self, found: Verify<'_>) -> bool {
        let Some(bucket) = self.history.pop() else { return false };
        if self.limits.fills
            && bucket.record().stage() == Stage::Filled
            // SAFETY: it was filled when retired, and is not guarded now.
            && let Some(damage) = unsafe { verify(bucket) }
        {
            found(bucket, damage);
            // SAFETY: it was filled when retired, is unused, and is not guarded now.
            unsafe { repair(bucket, damage) };
        }
        self.make_available(bucket, Self::list_of(bucket.span));
        true
    }

    fn forget_all(&mut self, found: Verify<'_>) {
        while self.forget_oldest(found) {}
        for list in 0..LISTS {
            let mut at = self.available[list];
            // SAFETY: null, or a span of the list.
            while let Some(span) = unsafe { at.as_ref() } {
                at = span.next.load(Ordering::Relaxed);
                if span.free.load(Ordering::Relaxed).count_ones() as usize == span.bucket_count() {
                    self.unlink(span, list);
                    self.release(span);
                }
            }
            self.spare[list] = 0;
        }
    }

    fn make_available(&mut self, bucket: BucketRef, list: usize) {
        let span = bucket.span;
        bucket.record().set_stage(Stage::Reusable);
        let before = span.free.load(Ordering::Relaxed);
        let now = before | 1 << bucket.index;
        span.free.store(now, Ordering::Relaxed);
        if before == 0 {
            self.link(span, list);
        }
        if now.count_ones() as usize == span.bucket_count() {
            let is_reused = list < LARGE + REUSED_UNITS;
            if self.spare[list] < SPARE_SPANS && is_reused {
                self.spare[list] += 1;
            } else {
                self.unlink(span, list);
                self.release(span);
            }
        }
    }

    fn release(&mut self, span: &'static Span) {
        let (unit, units) = (span.unit(), span.units());
        let bytes = Self::record_bytes(span);
        let used = &span.buckets[..span.bucket_count()];
        let empty = used.iter().all(|bucket| bucket.memory() != Memory::Pattern);
        if span.form() != Form::Small || used.iter().any(|b| b.memory() == Memory::Guarded) {
            // SAFETY: the span is not in use.
            if unsafe { !os::unguard(span.start(), units * UNIT) } {
                // The span cannot be used with its guard, so it is lost.
                return;
            }
        }
        if span.has_bits() {
            poisoned::forget(&mut self.side, span);
        }
        span.end();
        chunk::give_moved(unit, units, if empty { units * UNIT } else { 0 });
        let record = span.side_memory();
        // SAFETY: the address map forgot the span.
        unsafe { self.side.give(record, bytes) };
    }

    /// Releases a span with any contents, at the heap's end.
    pub(crate) fn release_whatever(&mut self, span: &'static Span) {
        for bucket in &span.buckets[..span.bucket_count()] {
            // The span's memory may hold anything.
            if bucket.stage() == Stage::Open && bucket.memory() != Memory::Guarded {
                bucket.set_memory(Memory::Pattern);
            }
        }
        self.release(span);
    }

    /// Forgets all spans. Call this after their release. Side memory stays.
    pub(crate) fn forget(&mut self) {
        self.available = [ptr::null_mut(); LISTS];
        self.spare = [0; LISTS];
        self.retired = [0; LISTS];
        self.history = History::new();
        self.sparse = SparseBuckets::new();
        (self.open_bytes, self.open_buckets, self.sampled_pages) = (0, 0, 0);
        (self.spare_bytes, self.live_bytes) = (0, 0);
        self.sweep_at = (0, 0);
        self.units().forget();
    }

    fn record_bytes(span: &Span) -> usize {
        let buckets = if span.form() == Form::Small { span.bucket_count() } else { BUCKETS };
        Span::bytes_with(buckets * span.slots_a_bucket())
    }

    pub(crate) fn history(&self) -> usize {
        self.history.bytes()
    }

    /// Returns the next bucket for the sweep, within `most` units.
    pub(crate) fn next_for_sweep(&mut self, most: usize) -> Option<BucketRef> {
        for _ in 0..most {
            let (unit, index) = self.sweep_at;
            if let Some(span) = Span::heading(unit, self.heap)
                && index < span.bucket_count()
            {
                self.sweep_at = (unit, index + 1);
                return Some(BucketRef { span, index });
            }
            self.sweep_at = (self.units().after(unit), 0);
        }
        None
    }
}

fn first_free(span: &'static Span) -> BucketRef {
    BucketRef { span, index: span.free.load(Ordering::Relaxed).trailing_zeros() as usize }
}

/// Open bytes from which new spans may lie in huge pages.
const DENSE_FROM: usize = 4 << 20;
