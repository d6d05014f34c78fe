//! Chooses the place of a new block.
//!
//! ```text
//!   stack --> is due, or there is time? --> a page between guards
//!     |  \--> large?   --> a span between guards
//!     v
//!   will it live long?  --> one of the class's two current buckets
//!                       --> next slot --> record, slack
//!                |  none left
//!                v
//!   a new bucket; the sweep checks one more bucket              (under the store's lock)
//! ```
//!
//! Called by `debug`'s entry points and by `resize`.

use core::ptr::{self, NonNull};

use heapwright_record::debug::Call;

use crate::cache::draw::{self, Draw};
use crate::request::Request;
use crate::size_class::{MIN_ALIGN, UNIT};
use crate::stacks::{self, Stack};
use crate::sync::atomic::Ordering;

use super::super::bytes;
use super::super::flagged;
use super::super::leaks;
use super::super::lifetime::Lifetime;
use super::super::sample::Side;
use super::super::shape::{self, PAGE};
use super::super::slot::Word;
use super::super::span::{Form, Place};
use super::super::store::{Opened, Store};
use super::super::thread_state::Mine;
use super::enter::EnteredState;
use super::late::Late;
use super::{GUARD_ALL, GUARD_NEVER, GUARD_SAMPLE, Heap};

impl Heap {
    /// Serves a request. Returns null without memory, or at the limit.
    #[inline]
    pub(crate) fn allocate(&'static self, request: Request) -> *mut u8 {
        self.allocate_for(request.call(), request)
    }

    /// Like [`Heap::allocate`], for a call that does more than make a block, such as `realloc`.
    #[inline]
    pub(crate) fn allocate_for(&'static self, call: Call, request: Request) -> *mut u8 {
        let Some(mut entered) = self.enter() else { return ptr::null_mut() };
        let mine = entered.mine();
        let stack = mine.stack(self.depth.load(Ordering::Relaxed));
        let block = self.place(&mut entered, request, stack);
        self.fill_undefined(block, request, 0, stack);
        entered.keep_if_asked(block);
        if self.reporter.logs() {
            self.log(call, block, request.size, stack);
        }
        block
    }

    pub(super) fn place(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
    ) -> *mut u8 {
        if self.is_over_limit(request.size) {
            return ptr::null_mut();
        }
        match self.draw(stack) {
            Some(side) => self.place_guarded(entered, request, stack, side),
            None => self.place_small(entered, request, stack),
        }
    }

    #[inline]
    pub(super) fn is_over_limit(&self, size: usize) -> bool {
        let limit = self.rules.limit.load(Ordering::Relaxed);
        limit != usize::MAX && self.live_bytes() as usize + size > limit
    }

    #[inline]
    fn draw(&self, stack: u32) -> Option<Side> {
        match self.rules.guard.load(Ordering::Relaxed) {
            GUARD_NEVER => None,
            GUARD_ALL => Some(self.sites.turn(stack)),
            _ => {
                self.flag_if_known(stack);
                let advances =
                    || self.advances.advance(stacks::frames(Stack(stack)), stacks::module_range);
                self.sites.draw(stack, self.budget.allowance(), advances, || {
                    (self.pages.load(Ordering::Relaxed), self.open_bytes.load(Ordering::Relaxed))
                })
            }
        }
    }

    pub(in crate::debug) fn forget_modules(&self) {
        self.advances.forget(stacks::module_range);
    }

    #[inline]
    fn flag_if_known(&self, stack: u32) {
        if !self.flagged.is_empty()
            && self.sites.is_new(stack)
            && let Some(side) = self.flagged.side(flagged::key(stack))
        {
            self.sites.flag(stack, side);
        }
    }

    /// Serves a request with a guarded block, or returns `None` as `guards::sample` does. Open
    /// buckets take at most `most` bytes of addresses.
    #[cold]
    #[inline(never)]
    pub(in crate::debug) fn allocate_guarded(
        &'static self,
        request: Request,
        draw: Draw,
        most: usize,
    ) -> Option<NonNull<u8>> {
        let is_page = request.size <= PAGE && request.align <= PAGE;
        let before = request.align.saturating_sub(PAGE);
        let room = request.size.max(1).checked_next_multiple_of(PAGE)?.checked_add(before)?;
        let takes = if is_page { 2 * PAGE } else { (room + 2 * PAGE).next_multiple_of(UNIT) };
        if self.open_bytes.load(Ordering::Relaxed).saturating_add(takes) > most {
            return None;
        }
        let mut entered = self.enter()?;
        let stack = entered.mine().stack(self.depth.load(Ordering::Relaxed));
        self.flag_if_known(stack);
        if draw == Draw::IfNew && !self.sites.is_flagged(stack) && !self.sites.is_new(stack) {
            return None;
        }
        if !draw::take_turn() {
            return None;
        }
        let opened = self.open_by(entered.mine().thread, |store, late| {
            let mut found = |bucket, damage| late.push_in(bucket, damage);
            if is_page {
                store.open_sampled(&mut found)
            } else {
                store.open_large((room, 0), request.align, &mut found)
            }
        })?;
        let side = self.sites.take_turn(stack);
        let room = if is_page { PAGE } else { room };
        NonNull::new(self.hand_out_alone(&mut entered, request, stack, side, opened, room))
    }

    #[inline]
    fn place_small(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
    ) -> *mut u8 {
        let Some(class) = shape::class_for(request.size, request.align) else {
            let side = self.sites.turn(stack);
            return self.place_large(entered, request, stack, side);
        };
        self.place_in_slot(entered, request, stack, class)
    }

    /// Places a block that can later grow by `spare` bytes. A block with a due guard cannot grow.
    pub(super) fn place_with_spare(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
        spare: usize,
    ) -> *mut u8 {
        if self.is_over_limit(request.size) {
            return ptr::null_mut();
        }
        if let Some(side) = self.draw(stack) {
            return self.place_guarded(entered, request, stack, side);
        }
        match shape::class_for(request.size.saturating_add(spare), request.align) {
            Some(class) => self.place_in_slot(entered, request, stack, class),
            None => {
                let before = request.align.saturating_sub(PAGE);
                self.place_in_room(entered, request, stack, Side::Left, (before, spare))
            }
        }
    }

    #[inline(always)]
    fn place_in_slot(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
        class: usize,
    ) -> *mut u8 {
        let mine = entered.mine();
        let lifetime = mine.lifetimes.made(stack, class);
        if mine.current[class][lifetime as usize].left == 0 && !self.open(mine, class, lifetime) {
            return ptr::null_mut();
        }
        let sequence = mine.sequence(&self.sequence);
        let thread = mine.thread;
        let current = &mut mine.current[class][lifetime as usize];
        let block = current.at;
        // SAFETY: a slot is left, so its record is among the span's records.
        let record = unsafe { &*current.record };
        current.at = block.wrapping_add(current.size as usize);
        current.record = current.record.wrapping_add(1);
        current.left -= 1;
        let slack = current.size as usize - request.size;
        if current.lacks_pattern && self.rules.canary.load(Ordering::Relaxed) {
            // SAFETY: only this thread may hand out the slot.
            unsafe { bytes::fill(block.wrapping_add(request.size), slack) };
        }
        if request.zero && !current.zero {
            // SAFETY: only this thread may hand out the slot, which holds this many bytes.
            unsafe { block.write_bytes(0, request.size) };
        }
        let word = Word::live(request.size, request.align, request.maker() as u8, thread);
        record.hand_out(stack, sequence, word);
        entered.state().count_made(request.size);
        block
    }

    /// Opens the next bucket of a class, and sweeps one other bucket.
    #[cold]
    fn open(&'static self, mine: &mut Mine, class: usize, lifetime: Lifetime) -> bool {
        if mine.current[class][lifetime as usize].has_gone_on() {
            return true;
        }
        // A signal handler may have interrupted a free in the bucket that would be reopened.
        let now = (!self.is_common(mine)).then(|| self.sequence_now());
        let opened = self.open_by(mine.thread, |store, late| {
            if store.limits.touches {
                self.sweep_step(store, late);
            }
            store.open_small(class, now, &mut |bucket, damage| late.push_in(bucket, damage))
        });
        let Some(Opened { bucket, zero }) = opened else { return false };
        let current = &mut mine.current[class][lifetime as usize];
        current.go_on(bucket, 0);
        current.size = bucket.span.shape().slot;
        current.zero = zero;
        // If freed blocks are not filled, only the slack holds the pattern.
        current.lacks_pattern = zero || !self.rules.fill.load(Ordering::Relaxed);
        current.left > 0
    }

    /// Calls `open` under the store's lock. Reports damage that it finds, for `thread`.
    fn open_by(
        &'static self,
        thread: u16,
        open: impl FnOnce(&mut Store, &mut Late) -> Option<Opened>,
    ) -> Option<Opened> {
        let mut late = Late::new();
        let opened = {
            let mut store = self.store.lock();
            let opened = open(&mut store, &mut late);
            self.note(&mut store);
            opened
        };
        self.report_late(thread, &late, Call::Retire);
        if self.spends() {
            self.budget.earn();
        }
        leaks::tick(self);
        opened
    }

    pub(super) fn note(&self, store: &mut Store) {
        self.pages.store(store.sampled_pages, Ordering::Relaxed);
        self.open_bytes.store(store.open_bytes, Ordering::Relaxed);
        store.live_bytes = self.note_peak();
    }

    #[cold]
    fn place_guarded(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
        side: Side,
    ) -> *mut u8 {
        let spending = self.spends().then(|| self.budget.begins());
        let block = self.place_between_guards(entered, request, stack, side);
        if let Some(spending) = spending {
            self.budget.made(&spending);
        }
        block
    }

    pub(super) fn spends(&self) -> bool {
        self.rules.guard.load(Ordering::Relaxed) == GUARD_SAMPLE
    }

    fn place_between_guards(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
        side: Side,
    ) -> *mut u8 {
        if request.size > PAGE || request.align > PAGE {
            let block = self.place_large(entered, request, stack, side);
            if !block.is_null() || shape::class_for(request.size, request.align).is_none() {
                return block;
            }
            return self.place_small(entered, request, stack);
        }
        let opened = self.open_by(entered.mine().thread, |store, late| {
            store.open_sampled(&mut |bucket, damage| late.push_in(bucket, damage))
        });
        match opened {
            Some(opened) => self.hand_out_alone(entered, request, stack, side, opened, PAGE),
            // Pages are not 4 KiB, there is no memory, or the kernel refuses more guards.
            None => self.place_small(entered, request, stack),
        }
    }

    #[cold]
    fn place_large(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
        side: Side,
    ) -> *mut u8 {
        // The room begins one page into the span, so a larger alignment needs more bytes.
        let before = request.align.saturating_sub(PAGE);
        self.place_in_room(entered, request, stack, side, (before, 0))
    }

    /// Places a large block at the offset `into` in a page. The block can later grow by `spare`.
    pub(super) fn place_like(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
        into: usize,
        spare: usize,
    ) -> *mut u8 {
        if self.is_over_limit(request.size) {
            return ptr::null_mut();
        }
        self.place_in_room(entered, request, stack, Side::Into(into), (into, spare))
    }

    /// Places a block in its own span. The room has `before` more bytes, and can grow by `spare`.
    fn place_in_room(
        &'static self,
        entered: &mut EnteredState,
        request: Request,
        stack: u32,
        side: Side,
        (before, spare): (usize, usize),
    ) -> *mut u8 {
        let room = request.size.max(1).checked_add(before);
        let Some(room) = room.and_then(|room| room.checked_next_multiple_of(PAGE)) else {
            return ptr::null_mut();
        };
        let opened = self.open_by(entered.mine().thread, |store, late| {
            let mut found = |bucket, damage| late.push_in(bucket, damage);
            let opened = store.open_large((room, spare), request.align, &mut found);
            if opened.is_none() && spare > 0 {
                return store.open_large((room, 0), request.align, &mut found);
            }
            opened
        });
        let Some(opened) = opened else { return ptr::null_mut() };
        self.hand_out_alone(entered, request, stack, side, opened, room)
    }

    fn hand_out_alone(
        &'static self,
        entered: &mut EnteredState,
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
        // A block of size 0 also has a unique address.
        let highest = ((start.addr() + room - request.size.max(1)) & !(align - 1)) - start.addr();
        let offset = match side {
            Side::Left => lowest,
            Side::Right => highest.max(lowest),
            Side::Into(offset) => offset,
        };
        place.set_offset(offset);
        bucket.span.size.store(request.size, Ordering::Relaxed);
        let block = start.wrapping_add(offset);
        let (_, _, behind) = place.parts(request.size);
        let near = place.near();
        // SAFETY: the room is ours.
        unsafe { bytes::fill(block.wrapping_sub(near), near) };
        // SAFETY: the bytes behind the block belong to the room, which is ours.
        unsafe { bytes::fill(block.wrapping_add(request.size), behind) };
        if request.zero && !zero {
            // SAFETY: the block's bytes belong to the room, which is ours.
            unsafe { block.write_bytes(0, request.size) };
        }
        let mine = entered.mine();
        let sequence = mine.sequence(&self.sequence);
        let size = if bucket.span.form() == Form::Large { usize::MAX } else { request.size };
        let word = Word::live(size, request.align, request.maker() as u8, mine.thread);
        place.record().hand_out(stack, sequence, word);
        entered.state().count_made(request.size);
        self.note_peak();
        block
    }
}
