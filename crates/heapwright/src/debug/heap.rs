//! A debug heap: blocks handed out, taken back, and judged.
//!
//! ```text
//!   allocate   stack --> sampled? --> a page between guards
//!                |  \--> large?   --> a span between guards
//!                v
//!              current bucket of the class --> next slot --> record, slack
//!
//!   free       address --> span --> bucket, slot --> record: live? (else: finding)
//!              right call, size, alignment? bytes around it as they were?
//!              filled; the bucket's last? --> retired
//! ```
//!
//! Nothing is locked but the store, once a bucket. Two threads that free one block
//! at once meet at the record's word; one of them is told. Who frees the last block
//! of a bucket has it alone.
//!
//! A finding is reported and the program goes on wherever that is no worse than
//! what the program did itself: a wrong free is not done, a mismatched one is done
//! rightly, damaged bytes are put right so that they are reported once.
//!
//! Called by `debug`'s doors.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

use crate::address_map::MAP;
use crate::chunk::metadata;
use crate::desks::{self, DESKS};
#[cfg(feature = "lookups")]
use crate::options::debug::Lookup;
use crate::options::debug::{Config, Guard};
use crate::os;
use crate::size_class::MIN_ALIGN;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::text::Line;

use heapwright_record::debug::{Access, Call, Finding, FindingKind, Moment, Origin, Region};

use super::bytes::{self, Damage};

use super::hot::{self, Hot};
use super::report::Reporter;
use super::sample::{Side, Sites};
use super::scope;
use super::seat::{Mine, Seat, system_thread};
use super::shape::{self, PAGE};
use super::slot::{State, Word};
use super::span::{BucketRef, Form, Found, Place, Span, Stage};
use super::store::{self, Limits, Opened, Store};
use super::table::Table;
use super::threads::Threads;

/// A request.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) zero: bool,
    pub(crate) origin: Origin,
    pub(crate) call: Call,
}

/// A block given back: what the caller says it knows of it.
#[derive(Clone, Copy)]
pub(crate) struct Return {
    pub(crate) call: Call,
    pub(crate) origin: Origin,
    pub(crate) size: Option<usize>,
    pub(crate) align: Option<usize>,
}

/// How many units one step of the sweep passes, at most.
const SWEEP_UNITS: usize = 64;
/// Milliseconds that the last look waits for the store.
pub(super) const PATIENCE: u64 = 200;
/// Bytes that stacks may take, at least.
const STACKS_LEAST: usize = 256 << 20;
/// Bytes looked at on each side of what is not otherwise bounded.
const NEAR: usize = 64;

/// A debug heap.
pub(crate) struct Heap {
    id: AtomicU32,
    depth: AtomicUsize,
    config: Lock<Config>,
    /// What of the configuration every operation asks.
    rules: Rules,
    store: Lock<Store>,
    seats: [AtomicPtr<Seat>; DESKS],
    common: AtomicPtr<Seat>,
    common_order: Lock<()>,
    sequence: AtomicU32,
    /// Open sampled pages and open bytes, as the store last said.
    pages: AtomicUsize,
    open_bytes: AtomicUsize,
    peak_live: AtomicU64,
    sites: Sites,
    pub(super) hot: Hot,
    /// Blocks in another allocator's memory: see `checked`.
    pub(super) table: Lock<Table>,
    pub(crate) threads: Threads,
    pub(crate) reporter: Reporter,
}

/// Switches, in one place that is only read.
struct Rules {
    guard: AtomicU32,
    fill: AtomicBool,
    canary: AtomicBool,
    double_free: AtomicBool,
    mismatch: AtomicBool,
    size: AtomicBool,
    limit: AtomicUsize,
    /// Another lookup policy than the address map is measured.
    #[cfg(feature = "lookups")]
    looks_up: AtomicBool,
}

const GUARD_NEVER: u32 = 0;
const GUARD_SAMPLE: u32 = 1;
const GUARD_ALL: u32 = 2;

/// The caller's seat, entered. One word, because it is made at every call.
pub(crate) struct Seated {
    seat: &'static Seat,
}

impl Drop for Seated {
    #[inline]
    fn drop(&mut self) {
        self.seat.leave();
    }
}

impl Seated {
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the seat is entered, once")]
    pub(crate) fn mine(&self) -> &mut Mine {
        // SAFETY: entered, and callers keep no two such references at a time.
        unsafe { self.seat.mine() }
    }
}

impl Heap {
    /// A heap of nothing; [`Heap::begin`] makes it one.
    pub(crate) const fn new() -> Self {
        Self {
            id: AtomicU32::new(0),
            depth: AtomicUsize::new(0),
            config: Lock::new(Config::DEFAULT),
            rules: Rules {
                guard: AtomicU32::new(GUARD_SAMPLE),
                fill: AtomicBool::new(true),
                canary: AtomicBool::new(true),
                double_free: AtomicBool::new(true),
                mismatch: AtomicBool::new(true),
                size: AtomicBool::new(true),
                limit: AtomicUsize::new(usize::MAX),
                #[cfg(feature = "lookups")]
                looks_up: AtomicBool::new(false),
            },
            store: Lock::new(Store::new()),
            seats: [const { AtomicPtr::new(ptr::null_mut()) }; DESKS],
            common: AtomicPtr::new(ptr::null_mut()),
            common_order: Lock::new(()),
            sequence: AtomicU32::new(0),
            pages: AtomicUsize::new(0),
            open_bytes: AtomicUsize::new(0),
            peak_live: AtomicU64::new(0),
            sites: Sites::new(),
            hot: Hot::new(),
            table: Lock::new(Table::new()),
            threads: Threads::new(),
            reporter: Reporter::new(),
        }
    }

    /// Begins, with an id that no other heap has.
    pub(crate) fn begin(&self, id: u32, config: &Config) {
        self.id.store(id, Ordering::Relaxed);
        self.depth.store(config.traces.min(64), Ordering::Relaxed);
        let detect = config.detect;
        let guard = match config.guard {
            _ if !detect.guard || config.never_unmap => GUARD_NEVER,
            Guard::Never => GUARD_NEVER,
            Guard::Sample => GUARD_SAMPLE,
            Guard::All => GUARD_ALL,
        };
        self.rules.guard.store(guard, Ordering::Relaxed);
        self.rules.fill.store(detect.fill, Ordering::Relaxed);
        self.rules.canary.store(detect.canary, Ordering::Relaxed);
        self.rules.double_free.store(detect.double_free, Ordering::Relaxed);
        self.rules.mismatch.store(detect.mismatch, Ordering::Relaxed);
        self.rules.size.store(detect.size, Ordering::Relaxed);
        let limit = if config.limit == 0 { usize::MAX } else { config.limit };
        self.rules.limit.store(limit, Ordering::Relaxed);
        // Stacks have a budget, too: few programs have so many that it matters.
        crate::stacks::limit(config.memory.max(STACKS_LEAST));
        #[cfg(feature = "lookups")]
        self.rules.looks_up.store(config.lookup != Lookup::Map, Ordering::Relaxed);
        *self.config.lock() = *config;
        self.reporter.begin(config);
        let limits = Limits {
            guard: match guard {
                GUARD_NEVER => Guard::Never,
                GUARD_ALL => Guard::All,
                _ => Guard::Sample,
            },
            memory: config.memory,
            touches: detect.fill || detect.canary,
            fills: detect.fill,
            ends: detect.guard,
            slots: config.slots.clamp(1, 4096),
            retain: config.retain,
            #[cfg(feature = "lookups")]
            lookup: config.lookup,
        };
        self.store.lock().begin(id, limits);
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// What it was begun with.
    pub(super) fn config(&self) -> Config {
        *self.config.lock()
    }

    // ---- seats ---------------------------------------------------------

    /// Sits the calling thread down. `None`: there is no memory for its seat.
    #[inline]
    pub(crate) fn sit(&'static self) -> Option<Seated> {
        let desk = desks::mine();
        if desk < DESKS {
            // SAFETY: null, or a seat, which is never freed.
            let seat = unsafe { self.seats[desk].load(Ordering::Relaxed).as_ref() };
            if let Some(seat) = seat
                && seat.enter()
            {
                let seated = Seated { seat };
                let sitting = desks::sitting(desk);
                if seated.mine().is_new(sitting) {
                    self.welcome(&seated, sitting);
                }
                return Some(seated);
            }
        }
        self.sit_slow(desk)
    }

    #[cold]
    fn sit_slow(&'static self, desk: usize) -> Option<Seated> {
        let desk = if desk < DESKS { Some(desk) } else { desks::take() };
        if let Some(desk) = desk
            && self.seats[desk].load(Ordering::Relaxed).is_null()
        {
            let seat = Self::make_seat()?;
            self.seats[desk].store(seat, Ordering::Release);
            return self.sit();
        }
        if let Some(desk) = desk
            // SAFETY: not null (above), and never freed.
            && unsafe { &*self.seats[desk].load(Ordering::Relaxed) }.enter()
        {
            // SAFETY: as above.
            let seat = unsafe { &*self.seats[desk].load(Ordering::Relaxed) };
            let seated = Seated { seat };
            self.welcome(&seated, desks::sitting(desk));
            return Some(seated);
        }
        // Nobody's desk, or a signal handler above its own thread's call.
        let owes = self.common_order.acquire();
        if self.common.load(Ordering::Relaxed).is_null()
            && let Some(seat) = Self::make_seat()
        {
            self.common.store(seat, Ordering::Release);
        }
        // SAFETY: null, or a seat, which is never freed.
        let Some(seat) = (unsafe { self.common.load(Ordering::Relaxed).as_ref() }) else {
            if owes {
                // SAFETY: taken above.
                unsafe { self.common_order.release() };
            }
            return None;
        };
        seat.enter();
        if owes {
            seat.owe(&self.common_order);
        }
        let seated = Seated { seat };
        // Whoever comes is another thread than the last one, or is not.
        let thread = system_thread();
        if seated.mine().is_new(thread) {
            self.welcome_again(&seated, thread);
        }
        Some(seated)
    }

    fn make_seat() -> Option<*mut Seat> {
        let seat = metadata::alloc(size_of::<Seat>(), align_of::<Seat>());
        // Zeroed memory is a seat that nobody sat in.
        (!seat.is_null()).then_some(seat.cast())
    }

    /// Sits a thread down that may have been here before.
    #[cold]
    fn welcome_again(&self, seated: &Seated, thread: u32) {
        match self.threads.known(thread) {
            Some(number) => seated.mine().sit(thread, number),
            None => self.welcome(seated, thread),
        }
    }

    #[cold]
    fn welcome(&self, seated: &Seated, sitting: u32) {
        let number = self.threads.number_of(system_thread(), scope::of_this_thread());
        seated.mine().sit(sitting, number);
    }

    /// The calling thread's blocks are from now on those of the check `scope`: it gets
    /// another number.
    pub(super) fn enter_scope(&'static self, scope: u32) {
        let desk = desks::mine();
        let Some(seat) = self.seats.get(desk) else { return };
        // SAFETY: null, or a seat, which is never freed.
        let Some(seat) = (unsafe { seat.load(Ordering::Relaxed).as_ref() }) else { return };
        if seat.enter() {
            let seated = Seated { seat };
            // One who is new here is asked when it comes.
            if !seated.mine().is_new(desks::sitting(desk)) {
                seated.mine().thread = self.threads.number_of(system_thread(), scope);
            }
        }
    }

    /// Whether anything was ever asked of the heap, since it began.
    pub(super) fn is_in_use(&'static self) -> bool {
        self.made() > 0 || self.table.lock().handed_out > 0
    }

    /// Calls `visit` with the memory of the live block that begins at `address`; it
    /// cannot go back meanwhile. False: there is none.
    pub(super) fn with_live(
        &'static self,
        address: usize,
        visit: &mut dyn FnMut(*mut u8, usize),
    ) -> bool {
        if let Some(span) = Span::of(address)
            && span.heap.load(Ordering::Relaxed) == self.id()
        {
            let _store = self.store.lock();
            let Found::Slot(place) = span.locate(address) else { return false };
            let word = place.record().word();
            let is_live = word.state() == State::Live
                && place.bucket.record().stage() == Stage::Open
                && place.block().addr() == address;
            if is_live {
                visit(place.block(), place.size(word));
            }
            return is_live;
        }
        let table = self.table.lock();
        match table.live_at(address) {
            Some(entry) => {
                visit(entry.block(), entry.size);
                true
            }
            None => false,
        }
    }

    /// Calls `visit` with the address, the size and the thread's number of every live
    /// block, those in another allocator's memory as well.
    pub(super) fn each_block(&'static self, visit: &mut dyn FnMut(usize, usize, u32)) {
        self.each_live(|place, word, _| {
            visit(place.block().addr(), place.size(word), u32::from(word.made_by()));
        });
        let made = self.table.lock().made();
        for index in 0..made {
            let table = self.table.lock();
            if index >= table.made() {
                return;
            }
            let entry = table.get(index);
            drop(table);
            if entry.state == super::table::State::Live {
                visit(entry.block().addr(), entry.size, u32::from(entry.made_by));
            }
        }
    }

    /// Tells of the block at `address`, if it still is one, as a leak.
    pub(super) fn tell_leak_at(&'static self, address: usize) {
        if let Some(span) = Span::of(address) {
            if let Found::Slot(place) = span.locate(address) {
                self.tell_leak(place, place.record().word());
            }
            return;
        }
        let entry = self.table.lock().live_at(address);
        if let Some(entry) = entry {
            super::checked::tell_leak(self, &entry);
        }
    }

    // ---- allocation ----------------------------------------------------

    /// Serves a request. Null: there is no memory, or the limit is reached.
    #[inline]
    pub(crate) fn allocate(&'static self, request: Request) -> *mut u8 {
        let Some(seated) = self.sit() else { return ptr::null_mut() };
        let mine = seated.mine();
        let stack = mine.stack(self.depth.load(Ordering::Relaxed));
        let block = self.place(&seated, request, stack);
        if self.reporter.logs() {
            self.log(request.call, block, request.size, stack);
        }
        block
    }

    fn place(&'static self, seated: &Seated, request: Request, stack: u32) -> *mut u8 {
        let limit = self.rules.limit.load(Ordering::Relaxed);
        if limit != usize::MAX && self.live_bytes() as usize + request.size > limit {
            return ptr::null_mut();
        }
        let block = match self.draw(stack) {
            Some(side) => self.place_guarded(seated, request, stack, side),
            None => self.place_small(seated, request, stack),
        };
        if !block.is_null() {
            seated.seat.count_made(request.size);
        }
        block
    }

    #[inline]
    fn draw(&self, stack: u32) -> Option<Side> {
        match self.rules.guard.load(Ordering::Relaxed) {
            GUARD_NEVER => None,
            GUARD_ALL => Some(self.sites.turn(stack)),
            _ if !self.hot.is_empty()
                && self.sites.is_new(stack)
                && self.hot.has(hot::key(stack)) =>
            {
                self.sites.heat(stack);
                Some(Side::Right)
            }
            _ => self.sites.draw(stack, || {
                (self.pages.load(Ordering::Relaxed), self.open_bytes.load(Ordering::Relaxed))
            }),
        }
    }

    /// A slot of a bucket.
    #[inline]
    fn place_small(&'static self, seated: &Seated, request: Request, stack: u32) -> *mut u8 {
        let Some(class) = shape::class_for(request.size, request.align) else {
            let side = self.sites.turn(stack);
            return self.place_large(seated, request, stack, side);
        };
        let mine = seated.mine();
        if mine.current[class].left == 0 && !self.open(mine, class) {
            return ptr::null_mut();
        }
        let sequence = mine.sequence(&self.sequence);
        let thread = mine.thread;
        let current = &mut mine.current[class];
        let block = current.at;
        // SAFETY: a slot is left, so its record is in the span's.
        let record = unsafe { &*current.record };
        current.at = block.wrapping_add(current.size as usize);
        current.record = current.record.wrapping_add(1);
        current.left -= 1;
        let slack = current.size as usize - request.size;
        if current.lacks_pattern && self.rules.canary.load(Ordering::Relaxed) {
            // SAFETY: the slot is this thread's to hand out, as for all that follow.
            unsafe { bytes::fill(block.wrapping_add(request.size), slack) };
        }
        if request.zero && !current.zero {
            // SAFETY: as above.
            unsafe { block.write_bytes(0, request.size) };
        }
        let word = Word::live(request.size, request.align, request.origin as u8, thread);
        record.hand_out(stack, sequence, word);
        block
    }

    /// Opens the next bucket of a class, and looks after another one.
    #[cold]
    fn open(&'static self, mine: &mut Mine, class: usize) -> bool {
        let mut late = Late::new();
        let opened = {
            let mut store = self.store.lock();
            if store.limits.touches {
                self.sweep_step(&mut store, &mut late);
            }
            let opened = store.open_small(class, &mut |bucket, damage| late.note(bucket, damage));
            self.note(&store);
            opened
        };
        self.report_late(mine.thread, &late, Call::Retire);
        let Some(Opened { bucket, zero }) = opened else { return false };
        let first = super::span::Place { bucket, slot: 0 };
        let current = &mut mine.current[class];
        current.at = first.slot_start();
        current.record = first.records();
        current.left = bucket.span.slots_a_bucket() as u32;
        current.size = bucket.span.shape().slot;
        current.zero = zero;
        // Where freed blocks are not filled, only what they had behind them is.
        current.lacks_pattern = zero || !self.rules.fill.load(Ordering::Relaxed);
        true
    }

    fn note(&self, store: &Store) {
        self.pages.store(store.sampled_pages, Ordering::Relaxed);
        self.open_bytes.store(store.open_bytes, Ordering::Relaxed);
    }

    /// A page, or a span, between guards.
    #[cold]
    fn place_guarded(
        &'static self,
        seated: &Seated,
        request: Request,
        stack: u32,
        side: Side,
    ) -> *mut u8 {
        if request.size > PAGE || request.align > PAGE {
            return self.place_large(seated, request, stack, side);
        }
        let mut late = Late::new();
        let opened = {
            let mut store = self.store.lock();
            let opened = store.open_sampled(&mut |bucket, damage| late.note(bucket, damage));
            self.note(&store);
            opened
        };
        self.report_late(seated.mine().thread, &late, Call::Retire);
        match opened {
            Some(opened) => self.hand_out_alone(seated, request, stack, side, opened, PAGE),
            // Where pages are not 4 KiB, or the kernel has no more guards to give.
            None if shape::class_for(request.size, request.align).is_some() => {
                self.place_unsampled(seated, request, stack)
            }
            None => ptr::null_mut(),
        }
    }

    fn place_unsampled(&'static self, seated: &Seated, request: Request, stack: u32) -> *mut u8 {
        self.place_small(seated, request, stack)
    }

    /// A span of its own.
    #[cold]
    fn place_large(
        &'static self,
        seated: &Seated,
        request: Request,
        stack: u32,
        side: Side,
    ) -> *mut u8 {
        // The first byte of a span's room is a page into it; an alignment beyond
        // that is reached by going further.
        let before = request.align.saturating_sub(PAGE);
        let Some(room) = request.size.max(1).checked_next_multiple_of(PAGE) else {
            return ptr::null_mut();
        };
        let Some(room) = room.checked_add(before) else { return ptr::null_mut() };
        let mut late = Late::new();
        let opened = {
            let mut store = self.store.lock();
            let opened = store.open_large(room, request.align, &mut |bucket, damage| {
                late.note(bucket, damage);
            });
            self.note(&store);
            opened
        };
        self.report_late(seated.mine().thread, &late, Call::Retire);
        let Some(opened) = opened else { return ptr::null_mut() };
        self.hand_out_alone(seated, request, stack, side, opened, room)
    }

    /// Places a block in the room between two guards.
    fn hand_out_alone(
        &'static self,
        seated: &Seated,
        request: Request,
        stack: u32,
        side: Side,
        Opened { bucket, zero }: Opened,
        room: usize,
    ) -> *mut u8 {
        let align = request.align.max(MIN_ALIGN);
        let place = Place { bucket, slot: 0 };
        let start = place.slot_start();
        let lowest = start.addr().next_multiple_of(align) - start.addr();
        // A block of no bytes has an address of its own, too.
        let highest = ((start.addr() + room - request.size.max(1)) & !(align - 1)) - start.addr();
        let offset = match side {
            Side::Left => lowest,
            Side::Right => highest.max(lowest),
        };
        place.set_offset(offset);
        bucket.span.size.store(request.size, Ordering::Relaxed);
        let block = start.wrapping_add(offset);
        let (before, _, behind) = place.parts(request.size);
        if zero {
            let near = before.min(if bucket.span.form() == Form::Large { NEAR } else { PAGE });
            // SAFETY: the room is ours, as for all that follow.
            unsafe { bytes::fill(block.wrapping_sub(near), near) };
            // SAFETY: as above.
            unsafe { bytes::fill(block.wrapping_add(request.size), behind) };
        } else {
            // SAFETY: as above.
            unsafe { bytes::fill(block.wrapping_sub(before.min(NEAR)), before.min(NEAR)) };
            // SAFETY: as above.
            unsafe { bytes::fill(block.wrapping_add(request.size), behind) };
            if request.zero {
                // SAFETY: as above.
                unsafe { block.write_bytes(0, request.size) };
            }
        }
        let mine = seated.mine();
        let sequence = mine.sequence(&self.sequence);
        let size = if bucket.span.form() == Form::Large { usize::MAX } else { request.size };
        let word = Word::live(size, request.align, request.origin as u8, mine.thread);
        place.record().hand_out(stack, sequence, word);
        block
    }

    // ---- free ----------------------------------------------------------

    /// Takes a block back that lies in `span`, or says what is wrong with it.
    ///
    /// # Safety
    ///
    /// If the block is in use, nobody uses it afterwards.
    #[inline]
    pub(crate) unsafe fn free(&'static self, span: &'static Span, address: usize, what: Return) {
        let Some(seated) = self.sit() else { return };
        let mine = seated.mine();
        let stack = mine.stack(self.depth.load(Ordering::Relaxed));
        // SAFETY: the same contract.
        unsafe { self.take_back(&seated, span, address, what, stack) };
        if self.reporter.logs() {
            self.log(what.call, ptr::without_provenance_mut(address), 0, stack);
        }
    }

    /// # Safety
    ///
    /// As [`Heap::free`].
    unsafe fn take_back(
        &'static self,
        seated: &Seated,
        span: &'static Span,
        address: usize,
        what: Return,
        stack: u32,
    ) {
        let here = Here { address, what, stack };
        let Some(place) = span.small_slot_at(address) else {
            // SAFETY: the same contract.
            return unsafe { self.take_other(seated, span, here) };
        };
        #[cfg(feature = "lookups")]
        let place = self.looked_up(place, address);
        let word = place.record().word();
        if word.state() != State::Live {
            return self.not_live(seated, place, word, here);
        }
        // One thread needs no locked instructions: half of the time they would take.
        let alone = os::is_single_threaded();
        let freeing = word.freeing(seated.mine().thread);
        if let Err(now) = place.record().exchange_as(alone, word, freeing) {
            return self.not_live(seated, place, now, here);
        }
        let sequence = seated.mine().sequence(&self.sequence);
        let record = place.record();
        record.freed_at.store(stack, Ordering::Relaxed);
        record.freed.store(sequence, Ordering::Relaxed);
        let size = word.size();
        self.judge_call(seated, place, word, size, here);
        let mut fills = size;
        if self.rules.canary.load(Ordering::Relaxed) {
            self.judge_small_edges(seated, place, word, here);
        } else {
            // Nobody has given it the pattern yet.
            fills = span.slot_bytes();
        }
        seated.seat.count_freed(size);
        if self.rules.fill.load(Ordering::Relaxed) {
            // SAFETY: the slot is nobody's any more.
            unsafe { bytes::fill(MAP.base().with_addr(address), fills) };
        }
        record.set(freeing.freed());
        if place.bucket.record().free_one(alone) {
            // SAFETY: all of the bucket's blocks were taken back.
            unsafe { self.retire(seated, place.bucket) };
        }
    }

    /// [`Heap::take_back`] of what is no small block's start.
    ///
    /// # Safety
    ///
    /// As [`Heap::free`].
    #[inline(never)]
    unsafe fn take_other(&'static self, seated: &Seated, span: &'static Span, here: Here) {
        let Found::Slot(place) = span.locate(here.address) else {
            return self.not_a_block(seated, span, here);
        };
        let word = place.record().word();
        if word.state() != State::Live || place.block().addr() != here.address {
            return self.not_live(seated, place, word, here);
        }
        let freeing = word.freeing(seated.mine().thread);
        if let Err(now) = place.record().exchange(word, freeing) {
            return self.not_live(seated, place, now, here);
        }
        let sequence = seated.mine().sequence(&self.sequence);
        let record = place.record();
        record.freed_at.store(here.stack, Ordering::Relaxed);
        record.freed.store(sequence, Ordering::Relaxed);
        let size = place.size(word);
        self.judge_call(seated, place, word, size, here);
        if self.rules.canary.load(Ordering::Relaxed) {
            self.judge_lone_edges(seated, place, word, size, here);
        }
        seated.seat.count_freed(size);
        record.set(freeing.freed());
        place.bucket.record().live.store(0, Ordering::Relaxed);
        // SAFETY: the bucket's only block was taken back.
        unsafe { self.retire(seated, place.bucket) };
    }

    /// The slot that an address is in, its bucket found by the policy that is measured.
    #[cfg(feature = "lookups")]
    fn looked_up(&'static self, place: Place, address: usize) -> Place {
        if !self.rules.looks_up.load(Ordering::Relaxed) || place.bucket.span.form() != Form::Small {
            return place;
        }
        Place { bucket: self.store.lock().look_up(place.bucket, address), ..place }
    }

    /// Retires a bucket that was emptied.
    ///
    /// # Safety
    ///
    /// No slot of the bucket is in use or can be handed out.
    #[cold]
    unsafe fn retire(&'static self, seated: &Seated, bucket: BucketRef) {
        let mut late = Late::new();
        let wants = self.store.lock().empty(bucket);
        let fills = self.rules.fill.load(Ordering::Relaxed);
        if bucket.span.form() == Form::Small && fills && wants {
            // The last look before the bytes are gone. (A filled bucket's is later.)
            // SAFETY: all its slots were filled.
            if let Some(damage) = unsafe { store::verify(bucket) } {
                late.note(bucket, damage);
            }
        }
        // SAFETY: the bucket is nobody's, and not yet in the history.
        let left = unsafe { store::leave(bucket, wants) };
        {
            let mut store = self.store.lock();
            store.retire(bucket, left, &mut |bucket, damage| late.note(bucket, damage));
            self.note(&store);
        }
        if fills {
            self.report_late(seated.mine().thread, &late, Call::Retire);
        }
    }

    // ---- what is wrong -------------------------------------------------

    /// Whether the call, the size and the alignment are those the block was made with.
    #[inline]
    fn judge_call(
        &'static self,
        seated: &Seated,
        place: Place,
        word: Word,
        size: usize,
        here: Here,
    ) {
        let what = here.what;
        let origin = Origin::from_u8(word.origin());
        let wrong_call = family(origin) != family(what.origin);
        let wrong_size = what.size.is_some_and(|given| given != size);
        // A delete that gives no alignment is that of a new that was given none.
        let plain =
            if word.align() > MIN_ALIGN && is_of_cxx(what.origin) { Some(MIN_ALIGN) } else { None };
        let given_align = what.align.or(plain);
        let wrong_align = given_align.is_some_and(|given| given.min(1 << 31) != word.align());
        if !(wrong_call || wrong_size || wrong_align) {
            return;
        }
        let kind = if wrong_call && self.rules.mismatch.load(Ordering::Relaxed) {
            FindingKind::AllocatorMismatch
        } else if !wrong_call && self.rules.size.load(Ordering::Relaxed) {
            if wrong_size { FindingKind::SizeMismatch } else { FindingKind::AlignmentMismatch }
        } else {
            return;
        };
        let given_align = given_align.unwrap_or(0) as u64;
        let finding = Finding { kind, given_align, ..self.about(seated, place, word, here) };
        self.report(finding);
    }

    /// Whether the bytes around a slot's block are as they were.
    #[inline(always)]
    fn judge_small_edges(&'static self, seated: &Seated, place: Place, word: Word, here: Here) {
        let slot_size = place.bucket.span.slot_bytes();
        let block = MAP.base().with_addr(here.address);
        let slack = slot_size - word.size();
        // SAFETY: a slot has sixteen bytes or more, and is not guarded while live.
        let well = slack <= 16 && unsafe { bytes::ends_well(block.wrapping_add(slot_size), slack) };
        if !well {
            self.judge_slack(seated, place, word, here);
        }
        if place.slot == 0 {
            return self.judge_lead(seated, place, word, here);
        }
        let neighbour = Place { slot: place.slot - 1, ..place };
        let its = neighbour.record().word();
        // The last bytes of the neighbour's slack: all of it is looked at when the
        // neighbour comes back.
        let its_slack = (slot_size - its.size()).min(16);
        // SAFETY: the neighbour's slot is before this one, and of the same size.
        if !unsafe { bytes::ends_well(block, its_slack) } {
            self.judge_neighbour(seated, place, word, its_slack, here);
        }
    }

    /// All of the slack behind a slot's block.
    #[inline(never)]
    fn judge_slack(&'static self, seated: &Seated, place: Place, word: Word, here: Here) {
        let size = word.size();
        let slack = place.bucket.span.slot_bytes() - size;
        let end = place.block().wrapping_add(size);
        // SAFETY: the slack is in the slot, which is not guarded while it is live.
        if let Some(damage) = unsafe { bytes::check(end, slack) } {
            self.overflowed(seated, place, word, size, damage, here);
        }
    }

    /// What lies before a bucket's first slot.
    #[inline(never)]
    fn judge_lead(&'static self, seated: &Seated, place: Place, word: Word, here: Here) {
        let lead = (place.bucket.span.shape().lead as usize).min(NEAR);
        let from = place.block().wrapping_sub(lead);
        // SAFETY: the lead is before the first slot, and filled.
        if let Some(damage) = unsafe { bytes::check(from, lead) } {
            self.underflowed(seated, place, word, damage, lead, here);
        }
    }

    /// The slack of the block before changed: who wrote there?
    #[cold]
    fn judge_neighbour(
        &'static self,
        seated: &Seated,
        place: Place,
        word: Word,
        near: usize,
        here: Here,
    ) {
        let neighbour = Place { slot: place.slot - 1, ..place };
        let its = neighbour.record().word();
        if matches!(its.state(), State::Unused | State::Freeing) {
            return;
        }
        let (_, its_size, its_slack) = neighbour.parts(neighbour.size(its));
        let from = place.block().wrapping_sub(near);
        // SAFETY: the neighbour's slack is before this slot.
        let Some(damage) = (unsafe { bytes::check(from, near) }) else { return };
        if near == its_slack && damage.first == 0 {
            // From the neighbour's last byte on: it was the neighbour.
            let here = Here { address: neighbour.block().addr(), ..here };
            self.overflowed(seated, neighbour, its, its_size, damage, here);
        } else {
            self.underflowed(seated, place, word, damage, near, here);
        }
    }

    /// Whether the bytes around a block that stands alone are as they were.
    fn judge_lone_edges(
        &'static self,
        seated: &Seated,
        place: Place,
        word: Word,
        size: usize,
        here: Here,
    ) {
        let (before, _, behind) = place.parts(size);
        let end = place.block().wrapping_add(size);
        // SAFETY: the room is not guarded while the block is live.
        if let Some(damage) = unsafe { bytes::check(end, behind) } {
            self.overflowed(seated, place, word, size, damage, here);
        }
        let near = before.min(if place.bucket.span.form() == Form::Large { NEAR } else { PAGE });
        let from = place.block().wrapping_sub(near);
        // SAFETY: as above, of what is before the block.
        if let Some(damage) = unsafe { bytes::check(from, near) } {
            self.underflowed(seated, place, word, damage, near, here);
        }
    }

    #[cold]
    fn overflowed(
        &'static self,
        seated: &Seated,
        place: Place,
        word: Word,
        size: usize,
        damage: Damage,
        here: Here,
    ) {
        let end = place.block().wrapping_add(size);
        let (_, _, behind) = place.parts(size);
        // Nearer to the next block's start than to this one's end, and apart from it:
        // a write before the next one.
        let gap_behind = behind - (damage.first + damage.length);
        let next = Place { slot: place.slot + 1, ..place };
        if damage.first > gap_behind
            && gap_behind == 0
            && place.bucket.span.form() == Form::Small
            && next.slot < place.bucket.span.slots_a_bucket()
            && next.record().word().state() != State::Unused
        {
            let its = next.record().word();
            let from_next = behind - damage.first;
            let damage = Damage { first: 0, ..damage };
            return self.underflowed(seated, next, its, damage, from_next, here);
        }
        // SAFETY: the slack is ours; put right, so that it is reported once.
        unsafe { bytes::fill(end, behind) };
        self.heat(place.record().made_at.load(Ordering::Relaxed), FindingKind::Overflow);
        self.report(Finding {
            kind: FindingKind::Overflow,
            access: Access::Write,
            offset: (size + damage.first) as i64,
            length: damage.length as u64,
            value: damage.value,
            pointer: end.addr() as u64 + damage.first as u64,
            ..self.about(seated, place, word, here)
        });
    }

    /// `damage` begins `near - damage.first` bytes before the block.
    #[cold]
    fn underflowed(
        &'static self,
        seated: &Seated,
        place: Place,
        word: Word,
        damage: Damage,
        near: usize,
        here: Here,
    ) {
        let from = place.block().wrapping_sub(near);
        // SAFETY: the bytes before the block are ours; put right, to be reported once.
        unsafe { bytes::fill(from, near) };
        self.heat(place.record().made_at.load(Ordering::Relaxed), FindingKind::Underflow);
        self.report(Finding {
            kind: FindingKind::Underflow,
            access: Access::Write,
            offset: damage.first as i64 - near as i64,
            length: damage.length as u64,
            value: damage.value,
            pointer: (from.addr() + damage.first) as u64,
            ..self.about(seated, place, word, here)
        });
    }

    /// The address is in a slot, and no live block begins there.
    #[cold]
    fn not_live(&'static self, seated: &Seated, place: Place, word: Word, here: Here) {
        let block = place.block().addr();
        let is_start = block == here.address;
        let is_realloc = matches!(here.what.call, Call::Realloc | Call::RustRealloc);
        let kind = match (word.state(), is_start) {
            (State::Unused, _) => {
                let region = Region::Nothing;
                let kind = invalid(is_realloc);
                let found = Finding { kind, region, ..self.nowhere(seated, here) };
                return self.report(found);
            }
            (State::Freed | State::Freeing, true) if here.what.call == Call::UsableSize => {
                FindingKind::UseAfterFree
            }
            (State::Freed | State::Freeing, true) if is_realloc => FindingKind::ReallocAfterFree,
            (State::Freed | State::Freeing, true) => FindingKind::DoubleFree,
            _ if is_realloc => FindingKind::InvalidRealloc,
            _ => FindingKind::InteriorFree,
        };
        if matches!(kind, FindingKind::DoubleFree | FindingKind::ReallocAfterFree)
            && !self.rules.double_free.load(Ordering::Relaxed)
        {
            return;
        }
        self.report(Finding { kind, ..self.about(seated, place, word, here) });
    }

    /// The address is in a lead, a tail or a guard.
    #[cold]
    fn not_a_block(&'static self, seated: &Seated, _span: &'static Span, here: Here) {
        let is_realloc = matches!(here.what.call, Call::Realloc | Call::RustRealloc);
        let kind = invalid(is_realloc);
        let region = Region::Nothing;
        self.report(Finding { kind, region, ..self.nowhere(seated, here) });
    }

    /// A pointer that is no debug heap's: of `region`.
    #[cold]
    pub(crate) fn foreign(&'static self, address: usize, what: Return, region: Region) {
        let Some(seated) = self.sit() else { return };
        let stack = seated.mine().stack(self.depth.load(Ordering::Relaxed));
        let is_realloc = matches!(what.call, Call::Realloc | Call::RustRealloc);
        let here = Here { address, what, stack };
        self.report(Finding { kind: invalid(is_realloc), region, ..self.nowhere(&seated, here) });
    }

    fn nowhere(&'static self, seated: &Seated, here: Here) -> Finding {
        let mine = seated.mine();
        Finding {
            call: here.what.call,
            pointer: here.address as u64,
            here: Moment {
                stack: here.stack,
                thread: u32::from(mine.thread),
                sequence: u64::from(mine.sequence(&self.sequence)),
                ns: self.reporter.now(),
            },
            ..Finding::default()
        }
    }

    /// What is known of a block, and of where it was found out.
    fn about(&'static self, seated: &Seated, place: Place, word: Word, here: Here) -> Finding {
        let whence = self.nowhere(seated, here);
        let block = of_block(place, word);
        Finding {
            call: whence.call,
            pointer: whence.pointer,
            here: whence.here,
            offset: here.address as i64 - block.block as i64,
            given_size: here.what.size.unwrap_or(0) as u64,
            given_align: here.what.align.unwrap_or(0) as u64,
            ..block
        }
    }

    /// Something was found late in a block that `stack` asked for: its blocks are
    /// guarded from now on, in this run and, through the record, in the next.
    #[cold]
    fn heat(&self, stack: u32, kind: FindingKind) {
        if stack != 0 {
            self.sites.heat(stack);
            self.reporter.record_site(hot::key(stack), kind);
        }
    }

    pub(super) fn report(&self, finding: Finding) {
        self.reporter.report(&finding, &self.threads);
    }

    /// Damage that was found under the store's lock, once that is free.
    #[inline]
    fn report_late(&'static self, thread: u16, late: &Late, call: Call) {
        for finding in late.iter() {
            self.report_one_late(thread, finding, call);
        }
    }

    #[cold]
    fn report_one_late(&'static self, thread: u16, finding: &Finding, call: Call) {
        let is_edge = matches!(finding.kind, FindingKind::Overflow | FindingKind::Underflow);
        if is_edge && !self.rules.canary.load(Ordering::Relaxed) {
            return;
        }
        let here =
            Moment { thread: u32::from(thread), ns: self.reporter.now(), ..Moment::default() };
        self.heat(finding.allocated.stack, finding.kind);
        self.report(Finding { call, here, ..*finding });
    }

    // ---- questions and changes -----------------------------------------

    /// Bytes the program asked for of the block at `address`; a finding and `None`
    /// where no live block begins there.
    pub(crate) fn size_of(
        &'static self,
        span: &'static Span,
        address: usize,
        what: Return,
    ) -> Option<usize> {
        if let Found::Slot(place) = span.locate(address) {
            let word = place.record().word();
            if word.state() == State::Live && place.block().addr() == address {
                return Some(place.size(word));
            }
        }
        let seated = self.sit()?;
        let stack = seated.mine().stack(self.depth.load(Ordering::Relaxed));
        let here = Here { address, what, stack };
        match span.locate(address) {
            Found::Slot(place) => self.not_live(&seated, place, place.record().word(), here),
            _ => self.not_a_block(&seated, span, here),
        }
        None
    }

    /// Moves a block to a new one of another size; always moves. Null: there is no
    /// memory, and the old one is as it was; or there is no such block.
    ///
    /// # Safety
    ///
    /// As `realloc`.
    pub(crate) unsafe fn realloc(
        &'static self,
        span: &'static Span,
        address: usize,
        what: Return,
        request: Request,
    ) -> *mut u8 {
        let Some(seated) = self.sit() else { return ptr::null_mut() };
        let stack = seated.mine().stack(self.depth.load(Ordering::Relaxed));
        let here = Here { address, what, stack };
        let old = match span.locate(address) {
            Found::Slot(place) => Some((place, place.record().word())),
            _ => None,
        };
        let live = old.filter(|&(place, word)| {
            word.state() == State::Live && place.block().addr() == address
        });
        let Some((place, word)) = live else {
            // Reported; the program goes on with a new block, as if it had given none.
            match old {
                Some((place, word)) => self.not_live(&seated, place, word, here),
                None => self.not_a_block(&seated, span, here),
            }
            return self.place(&seated, request, stack);
        };
        let size = place.size(word);
        let new = self.place(&seated, request, stack);
        if new.is_null() {
            return new;
        }
        // SAFETY: by the contract the old block is the caller's, the new one is ours,
        // and both have as many bytes.
        unsafe { ptr::copy_nonoverlapping(place.block(), new, size.min(request.size)) };
        // SAFETY: the same contract.
        unsafe { self.take_back(&seated, span, address, what, stack) };
        new
    }

    // ---- sweeps --------------------------------------------------------

    /// Looks after one more bucket of the heap: blocks' slack, freed blocks' fill.
    fn sweep_step(&'static self, store: &mut Store, late: &mut Late) {
        if let Some(bucket) = store.next_for_sweep(SWEEP_UNITS) {
            self.sweep_bucket(bucket, late);
        }
    }

    /// The store's lock is held, so no bucket is retired or guarded meanwhile.
    fn sweep_bucket(&'static self, bucket: BucketRef, late: &mut Late) {
        let canary = self.rules.canary.load(Ordering::Relaxed);
        let fill = self.rules.fill.load(Ordering::Relaxed);
        if bucket.record().stage() != Stage::Open {
            return;
        }
        for place in bucket.slots() {
            let record = place.record();
            let (word, sequence) = (record.word(), record.made.load(Ordering::Relaxed));
            let size = place.size(word);
            let (before, _, behind) = place.parts(size);
            let end = place.block().wrapping_add(size);
            let look = |from: *mut u8, length: usize| {
                // SAFETY: an open bucket's slots are not guarded while the store
                // is locked, and the lead of a first slot is not either.
                unsafe { bytes::check(from, length) }.map(|damage| (from, damage))
            };
            let ahead = match bucket.span.form() {
                Form::Small if place.slot == 0 => (bucket.span.shape().lead as usize).min(NEAR),
                Form::Small => 0,
                Form::Large => before.min(NEAR),
                _ => before,
            };
            let found = match word.state() {
                State::Live if canary => {
                    look(end, behind).or_else(|| look(place.block().wrapping_sub(ahead), ahead))
                }
                State::Freed if fill && bucket.span.form() == Form::Small => {
                    look(place.block(), size + behind)
                }
                _ => None,
            };
            if let Some((from, damage)) = found
                // It was not freed and its bucket opened again meanwhile.
                && record.word() == word
                && record.made.load(Ordering::Relaxed) == sequence
                && late.push(bucket, from.addr() + damage.first, damage)
            {
                // SAFETY: the pattern's bytes, put right to be reported once.
                unsafe { bytes::fill(from.wrapping_add(damage.first), damage.length) };
            }
        }
    }

    /// Looks after everything, for the last time or because somebody asks.
    pub(crate) fn sweep_all(&'static self, call: Call) {
        let mut unit = 0;
        while unit < MAP.limit() {
            let mut late = Late::new();
            {
                // The process may end in a signal handler that interrupted the heap.
                let Some(_store) = self.store.lock_soon(PATIENCE) else { return };
                for _ in 0..SWEEP_UNITS {
                    if unit >= MAP.limit() || late.is_full() {
                        break;
                    }
                    let at = MAP.address_of(unit).addr();
                    if let Some(span) = Span::of(at)
                        && span.unit() == unit
                        && span.heap.load(Ordering::Relaxed) == self.id()
                    {
                        for index in 0..span.bucket_count() {
                            self.sweep_bucket(BucketRef { span, index }, &mut late);
                        }
                        self.verify_retired(span, &mut late);
                    }
                    unit += 1;
                }
            }
            self.report_late(0, &late, call);
        }
    }

    /// Verifies the filled buckets of a span that wait in the history.
    fn verify_retired(&'static self, span: &'static Span, late: &mut Late) {
        if !self.rules.fill.load(Ordering::Relaxed) {
            return;
        }
        for index in 0..span.bucket_count() {
            let bucket = BucketRef { span, index };
            if bucket.record().stage() == Stage::Filled
                // SAFETY: filled, and not guarded while the store is locked.
                && let Some(damage) = unsafe { store::verify(bucket) }
                && late.push_in(bucket, damage)
            {
                let (from, _) = store::extent(bucket);
                // SAFETY: nobody's bytes.
                unsafe { bytes::fill(from.wrapping_add(damage.first), damage.length) };
            }
        }
    }

    /// Calls `visit` with every live block: its place, word and sequence number.
    pub(crate) fn each_live(&'static self, mut visit: impl FnMut(Place, Word, u32)) {
        for unit in 0..MAP.limit() {
            let at = MAP.address_of(unit).addr();
            let Some(span) = Span::of(at) else { continue };
            if span.unit() != unit || span.heap.load(Ordering::Relaxed) != self.id() {
                continue;
            }
            for index in 0..span.bucket_count() {
                let bucket = BucketRef { span, index };
                if bucket.record().stage() != Stage::Open {
                    continue;
                }
                for place in bucket.slots() {
                    let word = place.record().word();
                    if word.state() == State::Live {
                        visit(place, word, place.record().made.load(Ordering::Relaxed));
                    }
                }
            }
        }
    }

    /// Tells of a block that was never freed.
    #[cold]
    pub(super) fn tell_leak(&'static self, place: Place, word: Word) {
        let block = of_block(place, word);
        let pointer = block.block;
        self.report(Finding { kind: FindingKind::Leak, call: Call::Exit, pointer, ..block });
    }

    /// An operation on a block that is not ours: the caller's stack, its thread, the
    /// next sequence number. `None`: there is no memory for the thread's seat.
    #[inline(always)]
    pub(super) fn moment(&'static self) -> Option<Moment> {
        let seated = self.sit()?;
        let mine = seated.mine();
        let stack = mine.stack(self.depth.load(Ordering::Relaxed));
        let sequence = u64::from(mine.sequence(&self.sequence));
        Some(Moment { stack, thread: u32::from(mine.thread), sequence, ns: self.reporter.now() })
    }

    /// The stack of what a signal interrupted, the thread, and a sequence number.
    #[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
    pub(super) fn moment_of_context(&'static self, context: *mut c_void) -> (u32, u32, u64) {
        let Some(seated) = self.sit() else { return (0, 0, 0) };
        let mine = seated.mine();
        let depth = self.depth.load(Ordering::Relaxed).max(1);
        let stack = if context.is_null() {
            0
        } else {
            // SAFETY: the caller has it from a signal handler.
            unsafe { crate::stacks::of_context(&mut mine.scratch, depth, context) }.0
        };
        let sequence = mine.sequence(&self.sequence);
        (stack, u32::from(mine.thread), u64::from(sequence))
    }

    /// Ends the heap: all of its memory goes back, and nothing is remembered.
    pub(super) fn clear(&'static self) {
        let mut store = self.store.lock();
        for unit in 0..MAP.limit() {
            let at = MAP.address_of(unit).addr();
            if let Some(span) = Span::of(at)
                && span.unit() == unit
                && span.heap.load(Ordering::Relaxed) == self.id()
            {
                store.release_whatever(span);
            }
        }
        store.forget();
        drop(store);
        for seat in &self.seats {
            // SAFETY: null, or a seat, which is never freed.
            if let Some(seat) = unsafe { seat.load(Ordering::Relaxed).as_ref() } {
                // SAFETY: nobody uses the heap any more.
                unsafe { seat.mine() }.forget_buckets();
                seat.count_nothing();
            }
        }
        // SAFETY: as above.
        if let Some(seat) = unsafe { self.common.load(Ordering::Relaxed).as_ref() } {
            // SAFETY: as above.
            unsafe { seat.mine() }.forget_buckets();
            seat.count_nothing();
        }
        self.table.lock().clear();
        self.reporter.forget();
    }

    // ---- counts --------------------------------------------------------

    fn sum(&self, of: impl Fn(&Seat) -> u64) -> u64 {
        let common = self.common.load(Ordering::Acquire);
        let seats = self.seats.iter().map(|seat| seat.load(Ordering::Acquire));
        // SAFETY: null, or a seat, which is never freed.
        seats.chain([common]).filter_map(|seat| unsafe { seat.as_ref() }).map(of).sum()
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        // In this order: what is freed in between does not make it less than nothing.
        let freed = self.sum(|seat| seat.freed_bytes.load(Ordering::Relaxed));
        self.sum(|seat| seat.made_bytes.load(Ordering::Relaxed)).saturating_sub(freed)
    }

    /// The most bytes that were live when somebody looked.
    pub(crate) fn peak(&self) -> u64 {
        self.peak_live.fetch_max(self.live_bytes(), Ordering::Relaxed).max(self.live_bytes())
    }

    pub(crate) fn made_bytes(&self) -> u64 {
        self.sum(|seat| seat.made_bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn made(&self) -> u64 {
        self.sum(|seat| seat.made.load(Ordering::Relaxed))
    }

    pub(crate) fn freed(&self) -> u64 {
        self.sum(|seat| seat.freed.load(Ordering::Relaxed))
    }

    /// A line of figures, for who asked for statistics at exit.
    pub(super) fn tell_figures(&'static self) {
        let (mut captures, mut memo_hits, mut depot_hits, mut rules) = (0, 0, 0, 0);
        let (mut stacks, mut stack_bytes) = (0, 0);
        for seat in &self.seats {
            // SAFETY: null, or a seat, which is never freed.
            let Some(seat) = (unsafe { seat.load(Ordering::Acquire).as_ref() }) else { continue };
            // SAFETY: other threads may be in theirs; what is read are counts, and the
            // process is about to end.
            let counts = unsafe { seat.mine() }.scratch.counts();
            captures += counts.captures as usize;
            memo_hits += counts.memo_hits as usize;
            depot_hits += counts.depot_hits as usize;
            rules += counts.rule_misses as usize;
            (stacks, stack_bytes) = (counts.stacks as usize, counts.bytes as usize);
        }
        let (buckets, bytes, records, history) = {
            let Some(store) = self.store.lock_soon(PATIENCE) else { return };
            (store.open_buckets, store.open_bytes, store.side.used(), store.history())
        };
        let live = self.made().wrapping_sub(self.freed()) as usize;
        let line = Line::new().text("debug: buckets=").number(buckets);
        let line = line.text(" bucket_bytes=").number(bytes).text(" live=").number(live);
        let line = line.text(" record_bytes=").number(records);
        let line = line.text(" history_bytes=").number(history);
        let line = line.text(" threads=").number(self.threads.count() as usize);
        let line = line.text(" captures=").number(captures);
        let line = line.text(" memo_hits=").number(memo_hits);
        let line = line.text(" depot_hits=").number(depot_hits);
        let line = line.text(" rules=").number(rules);
        let line = line.text(" stacks=").number(stacks);
        line.text(" stack_bytes=").number(stack_bytes).write_with(super::report::emit);
    }

    /// Buckets that are open, and bytes of records in use.
    pub(crate) fn buckets(&self) -> (usize, usize) {
        let store = self.store.lock();
        (store.open_buckets, store.side.used())
    }

    #[cold]
    fn log(&self, call: Call, block: *mut u8, size: usize, stack: u32) {
        self.reporter.log(call, block.addr(), size, stack);
    }

    /// What no request ever looks for: the open buckets of small spans, how many of
    /// them have slots to hand out, and how many of those are no seat's current
    /// bucket, or are one's with another number of slots left. Nobody uses the heap
    /// meanwhile.
    #[cfg(test)]
    pub(super) fn open_buckets(&'static self) -> (usize, usize, usize) {
        let (mut open, mut with_slots, mut unknown) = (0, 0, 0);
        let common = self.common.load(Ordering::Acquire);
        let _store = self.store.lock();
        for unit in 0..MAP.limit() {
            let at = MAP.address_of(unit).addr();
            let Some(span) = Span::of(at) else { continue };
            if span.heap.load(Ordering::Relaxed) != self.id() || span.form() != Form::Small {
                continue;
            }
            for index in 0..span.bucket_count() {
                let bucket = BucketRef { span, index };
                if bucket.record().stage() != Stage::Open {
                    continue;
                }
                open += 1;
                let unused = |place: &Place| place.record().word().state() == State::Unused;
                let left = bucket.slots().filter(unused).count();
                if left == 0 {
                    continue;
                }
                with_slots += 1;
                let seats = self.seats.iter().map(|seat| seat.load(Ordering::Relaxed));
                // SAFETY: null, or a seat, which is never freed.
                let mut seats = seats.chain([common]).filter_map(|seat| unsafe { seat.as_ref() });
                let next = Place { bucket, slot: span.slots_a_bucket() - left }.slot_start();
                let is_current = seats.any(|seat| {
                    // SAFETY: nobody uses the heap now.
                    let current = &unsafe { seat.mine() }.current[span.class()];
                    current.left as usize == left && current.at == next
                });
                unknown += usize::from(!is_current);
            }
        }
        (open, with_slots, unknown)
    }

    // ---- fork ----------------------------------------------------------

    /// Takes the locks. See `fork`.
    pub(crate) fn before_fork(&self) {
        // In the order in which they are taken otherwise: who reports may sit in the
        // common seat.
        self.common_order.acquire();
        self.table.acquire();
        self.store.acquire();
        self.reporter.before_fork();
    }

    /// Gives them back.
    ///
    /// # Safety
    ///
    /// Follows [`Heap::before_fork`] in the forking thread or its copy.
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: the same contract, as for all that follow.
        unsafe { self.reporter.after_fork() };
        // SAFETY: as above.
        unsafe { self.store.release() };
        // SAFETY: as above.
        unsafe { self.table.release() };
        // SAFETY: as above.
        unsafe { self.common_order.release() };
    }

    /// In the child: other threads' seats are forgotten, for they may have been
    /// in the middle of something. What is left in their current buckets is lost.
    /// The child of a process of one thread goes on in all of it.
    pub(crate) fn in_child(&self, alone: bool) {
        self.reporter.in_child();
        if alone {
            return;
        }
        let mine = desks::mine();
        for (desk, seat) in self.seats.iter().enumerate() {
            // SAFETY: null, or a seat, which is never freed.
            let Some(seat) = (unsafe { seat.load(Ordering::Relaxed).as_ref() }) else { continue };
            if desk != mine {
                seat.leave();
                // SAFETY: its thread does not exist here.
                unsafe { seat.mine() }.forget_buckets();
            }
        }
    }
}

/// Which call was given which address.
#[derive(Clone, Copy)]
struct Here {
    address: usize,
    what: Return,
    stack: u32,
}

const fn invalid(is_realloc: bool) -> FindingKind {
    if is_realloc { FindingKind::InvalidRealloc } else { FindingKind::InvalidFree }
}

const fn is_of_cxx(origin: Origin) -> bool {
    matches!(origin, Origin::New | Origin::NewArray)
}

/// Origins whose blocks go back by the same calls.
const fn family(origin: Origin) -> u8 {
    match origin {
        Origin::Aligned => Origin::Malloc as u8,
        other => other as u8,
    }
}

/// What was found under the store's lock, to be reported when that is free. Whole
/// findings, because a bucket may be another's by then.
struct Late {
    found: [MaybeUninit<Finding>; 8],
    count: usize,
}

impl Late {
    #[inline]
    const fn new() -> Self {
        Self { found: [const { MaybeUninit::uninit() }; 8], count: 0 }
    }

    /// Damage in an emptied bucket whose bytes will be lost: told if there is room.
    #[cold]
    fn note(&mut self, bucket: BucketRef, damage: Damage) {
        let _ = self.push_in(bucket, damage);
    }

    /// Damage in an emptied bucket, counted from the start of its extent.
    #[cold]
    fn push_in(&mut self, bucket: BucketRef, damage: Damage) -> bool {
        self.push(bucket, store::extent(bucket).0.addr() + damage.first, damage)
    }

    /// Damage at an address.
    ///
    /// False: there is no room, and it must be found again.
    #[cold]
    fn push(&mut self, bucket: BucketRef, address: usize, damage: Damage) -> bool {
        let Some(place) = self.found.get_mut(self.count) else { return false };
        place.write(found_at(bucket, address, damage));
        self.count += 1;
        true
    }

    fn is_full(&self) -> bool {
        self.count == self.found.len()
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = &Finding> {
        // SAFETY: the first `count` were written.
        self.found[..self.count].iter().map(|finding| unsafe { finding.assume_init_ref() })
    }
}

/// What changed bytes in a bucket are: a write into a freed block, beyond a block, or
/// before one.
fn found_at(bucket: BucketRef, address: usize, damage: Damage) -> Finding {
    let last = bucket.span.slots_a_bucket() - 1;
    let middle = bucket.start().addr() + bucket.span.bucket_bytes() / 2;
    let mut place = match bucket.span.locate(address) {
        Found::Slot(place) => place,
        _ => Place { bucket, slot: if address < middle { 0 } else { last } },
    };
    let mut word = place.record().word();
    let mut kind = FindingKind::WriteAfterFree;
    let end = place.block().addr() + place.size(word);
    if address < place.block().addr() {
        kind = FindingKind::Underflow;
    } else if address >= end {
        kind = FindingKind::Overflow;
        // Not the first byte behind the block, but the last before the next one?
        let (_, _, behind) = place.parts(place.size(word));
        let next = Place { slot: place.slot + 1, ..place };
        if bucket.span.form() == Form::Small
            && place.slot < last
            && address + damage.length == end + behind
            && address - end > damage.length
            && next.record().word().state() != State::Unused
        {
            kind = FindingKind::Underflow;
            place = next;
            word = place.record().word();
        }
    }
    Finding {
        kind,
        access: Access::Write,
        value: damage.value,
        length: damage.length as u64,
        pointer: address as u64,
        offset: address as i64 - place.block().addr() as i64,
        ..of_block(place, word)
    }
}

/// What is remembered of a block.
pub(super) fn of_block(place: Place, word: Word) -> Finding {
    let record = place.record();
    let moment = |stack: u32, thread: u16, sequence: u32| Moment {
        stack,
        thread: u32::from(thread),
        sequence: u64::from(sequence),
        ns: 0,
    };
    let mut finding = Finding {
        origin: Origin::from_u8(word.origin()),
        region: Region::Block,
        block: place.block().addr() as u64,
        size: place.size(word) as u64,
        align: word.align() as u64,
        allocated: moment(
            record.made_at.load(Ordering::Relaxed),
            word.made_by(),
            record.made.load(Ordering::Relaxed),
        ),
        ..Finding::default()
    };
    if word.state() != State::Live {
        finding.freed = moment(
            record.freed_at.load(Ordering::Relaxed),
            word.freed_by(),
            record.freed.load(Ordering::Relaxed),
        );
    }
    finding
}
