//! Resizing: `realloc` makes a new block, so that accesses to the old one are found.
//!
//! ```text
//!   live block --> large, or resized before at this place, and less than doubles or halves?
//!      |              stays in its span:  | guard | ... block ...|canary| guard ...... |
//!      |                                                 room ----------^ moves
//!      |              or in its slot:     | ... block ... | slack |
//!      v
//!   a new block --> both large: whole pages are moved, the rest is copied     else: all is copied
//!      |
//!      v
//!   the old one is freed (see `deallocate`)
//! ```
//!
//! A block that grows in small steps would be copied each time. So a block that grows for the
//! second time at one place gets room for half as much again. A large block gets such room when it
//! first grows. Other resizes move the block, so a stale pointer leads to a freed block. With
//! `guard=all` every resize moves the block. If freed blocks are kept for ever, every resize moves
//! a block that has its own span. Called by `debug`'s entry points.

use core::ptr;

use crate::memory_limit;
use crate::os;
use crate::request::{Request, Return};
use crate::size_class::MIN_ALIGN;
use crate::sync::atomic::Ordering;

use super::super::bytes;
use super::super::shape::PAGE;
use super::super::slot::Word;
use super::super::span::{Form, Place, Span};
use super::Heap;
use super::deallocate::slot_of;
use super::enter::EnteredState;
use super::findings::Here;
use super::poison::clear_poison;

/// A block above this size moves by pages if it must move. Smaller blocks are copied.
const LARGE: usize = 512 << 10;

impl Heap {
    /// Resizes a block, or returns null. Makes a new block for a wrong pointer, after a report.
    ///
    /// # Safety
    ///
    /// As for `realloc`.
    pub(crate) unsafe fn realloc(
        &'static self,
        span: &'static Span,
        address: usize,
        what: Return,
        request: Request,
    ) -> *mut u8 {
        let Some(mut entered) = self.enter() else { return ptr::null_mut() };
        let here = self.here(&mut entered, address, what);
        let slot = slot_of(span, address);
        let Some((place, word)) = slot.filter(|(place, word)| place.is_live_at(*word, address))
        else {
            // The program continues with a new block, as for a null pointer.
            self.no_block(&mut entered, slot, here);
            let new = self.place(&mut entered, request, here.stack);
            self.fill_undefined(new, request, 0, here.stack);
            entered.keep_if_asked(new);
            return new;
        };
        let is_large = span.form() == Form::Large && place.size(word).min(request.size) > LARGE;
        let had = place.size(word);
        let is_again = place.record().made_at.load(Ordering::Relaxed) == here.stack;
        let stays = match span.form() {
            Form::Large if is_large || is_again => {
                self.resize_in_place(&mut entered, place, word, here, request)
            }
            Form::Small if is_again => {
                self.resize_in_slot(&mut entered, place, word, here, request)
            }
            _ => false,
        };
        if stays {
            self.fill_undefined(place.block(), request, had, here.stack);
            entered.keep_if_asked(place.block());
            return place.block();
        }
        // SAFETY: the caller promises that the block is theirs.
        let new = unsafe {
            self.make_alike(&mut entered, place, word, here, request, (is_large, is_again))
        };
        if new.is_null() {
            // A block that shrinks keeps its old size, unless the caller's free names the size.
            let stays = request.size <= had
                && what.size.is_none()
                && place.block().addr().is_multiple_of(request.align.max(1));
            return if stays { place.block() } else { new };
        }
        self.fill_undefined(new, request, had, here.stack);
        entered.keep_if_asked(new);
        // SAFETY: the new block has the bytes, and the caller promises not to use the old one.
        unsafe { self.deallocate(&mut entered, span, here) };
        new
    }

    /// Copies the block at `place`, which stays live, to a new one. Returns null without memory.
    ///
    /// # Safety
    ///
    /// The block is the caller's; afterwards it is only freed.
    unsafe fn make_alike(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
        request: Request,
        (is_large, is_again): (bool, bool),
    ) -> *mut u8 {
        let (old, had) = (place.block(), place.size(word));
        let size = had.min(request.size);
        let into = old.addr() % PAGE;
        let is_aligned = request.align <= PAGE && into.is_multiple_of(request.align.max(MIN_ALIGN));
        if !is_large || !is_aligned || memory_limit::is_in_sandbox() {
            let grows_a_little = request.size > had && request.size - had <= had / 2;
            let new = if is_again && grows_a_little {
                self.place_with_spare(entered, request, here.stack, request.size / 2)
            } else {
                self.place(entered, request, here.stack)
            };
            if !new.is_null() {
                // SAFETY: the caller's block and a new one, both with this many bytes.
                unsafe { ptr::copy_nonoverlapping(old, new, size) };
            }
            return new;
        }
        let spare = if request.size > had { request.size / 2 } else { 0 };
        // If pages could not be moved, the second try copies the bytes.
        for _ in 0..2 {
            let new = self.place_like(entered, request, here.stack, into, spare);
            // SAFETY: both blocks have this many bytes; the old one is the caller's, the new one
            // ours.
            if new.is_null() || unsafe { os::move_bytes(old, new, size, LARGE) }.is_some() {
                return new;
            }
            self.give_up(entered, new);
        }
        ptr::null_mut()
    }

    /// Moves the end of a large block and the guard behind it, or returns false.
    fn resize_in_place(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
        request: Request,
    ) -> bool {
        let had = place.size(word);
        let (before, ..) = place.parts(had);
        let Some(room) = (before + request.size).checked_next_multiple_of(PAGE) else {
            return false;
        };
        if !self.may_stay(place, had, request)
            || !self.store.lock().has_room(place.bucket, room)
            || !self.begin_resize(entered, place, word, had, here)
        {
            return false;
        }
        if self.rules.canary.load(Ordering::Relaxed) {
            self.judge_lone_edges(entered, place, word, here);
        }
        if !self.store.lock().resize_large(place.bucket, room) {
            place.record().set(word);
            return false;
        }
        if place.bucket.span.has_poison() {
            clear_poison(place, had);
        }
        place.bucket.span.size.store(request.size, Ordering::Relaxed);
        let (_, _, behind) = place.parts(request.size);
        // SAFETY: the bytes behind the block, in its room.
        unsafe { bytes::fill(place.block().wrapping_add(request.size), behind) };
        self.end_resize(entered, place, had, here, request, usize::MAX);
        self.note_peak();
        true
    }

    /// Moves the end of a small block within its slot, or returns false.
    fn resize_in_slot(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
        request: Request,
    ) -> bool {
        let had = word.size();
        if request.size >= place.bucket.span.slot_bytes()
            || !self.may_stay(place, had, request)
            || !self.begin_resize(entered, place, word, had, here)
        {
            return false;
        }
        let has_pattern = self.rules.canary.load(Ordering::Relaxed);
        if has_pattern {
            self.judge_small_edges(entered, place, word, here);
        }
        if place.bucket.span.has_poison() {
            clear_poison(place, had);
        }
        if has_pattern && request.size < had {
            let end = place.block().wrapping_add(request.size);
            // SAFETY: the end of the block, which the program gives up.
            unsafe { bytes::fill(end, had - request.size) };
        }
        self.end_resize(entered, place, had, here, request, request.size);
        true
    }

    /// Returns whether the block is aligned, less than doubles or halves, and stays in the limit.
    fn may_stay(&self, place: Place, had: usize, request: Request) -> bool {
        had.min(request.size) > had.max(request.size) / 2
            && !self.is_over_limit(request.size.saturating_sub(had))
            && place.block().addr().is_multiple_of(request.align.max(1))
    }

    /// Claims a block. Returns false if another thread frees the block (`deallocate` reports that).
    fn begin_resize(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        had: usize,
        here: Here,
    ) -> bool {
        let resizing = word.freeing(entered.mine().thread);
        let is_ours = place.record().exchange(word, resizing).is_ok();
        if is_ours {
            self.judge_call(entered, place, word, had, here);
        }
        is_ours
    }

    /// Hands a resized block out again. `size` is the size in the slot's word.
    fn end_resize(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        had: usize,
        here: Here,
        request: Request,
        size: usize,
    ) {
        if request.zero && request.size > had {
            // SAFETY: the block's new bytes, in its room.
            unsafe { place.block().wrapping_add(had).write_bytes(0, request.size - had) };
        }
        entered.state().count_freed(had);
        entered.state().count_made(request.size);
        let mine = entered.mine();
        let sequence = mine.sequence(&self.sequence);
        let word = Word::live(size, request.align, request.maker() as u8, mine.thread);
        place.record().hand_out(here.stack, sequence, word);
    }

    /// Abandons a large block whose addresses may no longer be ours.
    #[cold]
    fn give_up(&'static self, entered: &mut EnteredState, block: *mut u8) {
        let span = Span::of(block.addr());
        let Some((place, word)) = span.and_then(|span| slot_of(span, block.addr())) else { return };
        entered.state().count_freed(place.size(word));
        place.record().set(word.freeing(entered.mine().thread).freed());
    }
}
