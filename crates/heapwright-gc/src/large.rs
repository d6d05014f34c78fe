//! Large objects: pages of one slot and of as many units as needed. Only touched parts have memory.
//!
//! ```text
//!   33,000 bytes   | object ................ | never touched      |  one unit: 64 KiB of addresses
//!                  |<---- footprint: 36 KiB, counted ------>|        whole system pages
//!
//!   dies --swept--> waits, by footprint --> the next object of about its size: no system call
//!                     | | | | | | | | |     unused for a purge delay, or in the way: chunk
//! ```
//!
//! Address space costs nothing, so an object takes whole units. The heap's limit and pace count the
//! bytes that may be in memory: the largest footprint that any object in the page has had. A run
//! that the chunk used before may have memory everywhere. The memory behind the object goes back at
//! once if it is at least an eighth of the object, or if the limit leaves no room.
//!
//! When a large object dies, its page waits in a list by footprint, if it has at most four units. A
//! new object takes a page whose footprint is at most an eighth larger than needed. Otherwise it
//! takes a page with less memory and the same number of units. If there is none, it takes a new
//! run. If the limit forbids that, it takes any page with enough memory and that number of units.
//! Waiting pages count like empty pages, and are given back to make room for pages of small
//! objects. (Segregated fits, Wilson et al., 1995, by memory instead of addresses.) Part of `space`
//! and `page_lists`.

use core::ptr;

use heapwright_substrate::address_map::{Entry, MAP, MAX_UNITS};
use heapwright_substrate::chunk::{self, Want};
use heapwright_substrate::os::{Memory, SYSTEM};
use heapwright_substrate::runs;
use heapwright_substrate::size_class::UNIT;

use super::free_large::{FreeLarge, GRAINS, MOST, WASTE};
use super::held::State;
use super::layout::LARGE;
use super::page::Page;
use super::page_lists::PageLists;
use super::space::{Space, Wanted};

pub(super) fn footprint(size: usize) -> usize {
    size.checked_next_multiple_of(SYSTEM.page_size()).unwrap_or(usize::MAX)
}

/// Returns whether a heap of at most `most` bytes can never hold an object of `size` bytes.
pub(super) fn is_too_large(size: usize, most: usize) -> bool {
    size / UNIT >= MAX_UNITS || footprint(size) > most
}

impl Space {
    pub(super) fn new_large(&self, wanted: Wanted) -> Option<&Page> {
        let size = wanted.slot;
        let units = size.checked_add(UNIT - 1)? / UNIT;
        let page = self
            .reuse(wanted, units, FreeLarge::take_for)
            .or_else(|| self.take_new(wanted, units, false))
            .or_else(|| self.reuse(wanted, units, FreeLarge::take_larger))
            .or_else(|| self.take_new(wanted, units, true))?;
        page.take_large();
        Some(page)
    }

    fn reuse(
        &self,
        wanted: Wanted,
        units: usize,
        take: for<'a> fn(&mut FreeLarge, &'a super::pages::Pages, usize, usize) -> Option<&'a Page>,
    ) -> Option<&Page> {
        let needs = footprint(wanted.slot);
        if units > MOST / GRAINS {
            return None;
        }
        let mut lists = self.lists.lock();
        let page = take(&mut lists.free_large, &self.pages, units, needs)?;
        let dirty = page.footprint();
        if !self.pacing.is_below(lists.bytes() + needs.max(dirty), wanted.limit) {
            lists.free_large.put(page);
            return None;
        }
        page.zero_from.set(needs.max(dirty));
        MAP.set_entries(page.unit.get(), 1, wanted.entry());
        page.assign(wanted.page_list, wanted.slot, wanted.cycle);
        // The first to look at the object is the sweep of a later collection. By then it is whole.
        lists.add(&self.pages, page);
        lists.claim(page);
        self.pacing.note_pages(lists.bytes());
        drop(lists);
        if wanted.zero {
            zero(page, dirty);
        }
        Some(page)
    }

    /// Takes a new run. If `give_way`, first gives back as many free pages as that needs.
    fn take_new(&self, wanted: Wanted, units: usize, give_way: bool) -> Option<&Page> {
        let needs = footprint(wanted.slot);
        let want = if wanted.zero { Want::Zero } else { Want::Any };
        let mut lists = self.lists.lock();
        // Nobody finds the object until it is whole: its slot is not taken before.
        let take = || runs::take(units, 1, want, wanted.entry(), Entry::collected_rest);
        let page = self.pages.make()?;
        let run = loop {
            let may = self.pacing.is_below(lists.bytes().saturating_add(needs), wanted.limit);
            if let Some(run) = may.then(take).flatten() {
                break run;
            }
            let gave =
                give_way && (self.give_free_large(&mut lists) || self.give_empty(&mut lists));
            if !gave {
                self.pages.give(page);
                return None;
            }
        };
        wanted.open(page, &run, units);
        let rest = units * UNIT - needs;
        // A small rest stays if the limit allows it: it is not worth a system call.
        let keeps_rest = !run.zero
            && rest < needs / WASTE
            && self.pacing.is_below(lists.bytes().saturating_add(units * UNIT), wanted.limit);
        page.zero_from.set(if keeps_rest { usize::MAX } else { needs });
        // Counts the page under the lock under which the limit was checked. Other threads check
        // while the object is being zeroed.
        lists.add(&self.pages, page);
        lists.claim(page);
        self.pacing.note_pages(lists.bytes());
        drop(lists);
        if !run.zero {
            if !keeps_rest && !gives_rest(page, needs) {
                // The kernel refuses. So the memory stays, whatever the limit says.
                let mut lists = self.lists.lock();
                page.zero_from.set(usize::MAX);
                lists.large_grows(page, rest);
                self.pacing.note_pages(lists.bytes());
            }
            if wanted.zero {
                zero(page, wanted.slot);
            }
        }
        Some(page)
    }

    /// Frees a claimed page whose object has died. The page waits for another object, or goes back.
    pub(super) fn retire(&self, page: &Page) {
        if !FreeLarge::suits(page) {
            return self.release(page);
        }
        let mut lists = self.lists.lock();
        lists.remove(&self.pages, page);
        page.held.close(State::Empty);
        lists.free_large.put(page);
    }

    /// Resizes the object of a page to `size` bytes. The number of units stays. New bytes are zero
    /// if `clears`. Returns false if the limit forbids it.
    fn resize_large(&self, page: &Page, size: usize, limit: usize, clears: bool) -> bool {
        let mut lists = self.lists.lock();
        let (has, needs) = (page.footprint(), footprint(size));
        if needs > has {
            if !self.pacing.is_below(lists.bytes() + needs - has, limit) {
                return false;
            }
            page.zero_from.set(needs);
            lists.large_grows(page, needs - has);
            self.pacing.note_pages(lists.bytes());
        }
        drop(lists);
        let (had, dirty) = (page.slot.get(), size.min(has));
        if clears && had < dirty {
            // Zeroes bytes of an earlier object, or of this object before it shrank. Nobody wrote
            // behind `has`.
            // SAFETY: the bytes are in the page of an object that the caller may change. Nobody
            // reads behind the object's end.
            unsafe { ptr::write_bytes(page.base().wrapping_add(had), 0, dirty - had) };
        }
        page.resize_large(size);
        true
    }

    /// Resizes an object to `size` bytes, in a heap of at most `limit` bytes. Returns whether the
    /// object now has at least `size` bytes.
    pub(super) fn resize(&self, object: *mut u8, size: usize, limit: usize) -> bool {
        let Some(page) = self.page_of(object.addr()) else { return false };
        let pool = self.sizes().pool(size);
        let in_place = || {
            let clears = self.clears(page.page_list.get());
            self.resize_large(page, size, limit, clears)
        };
        if page.is_large() && self.is_large_of(size, page.units.get()) && in_place() {
            return true;
        }
        if pool != page.pool() || page.is_large() {
            page.resized.set(1);
        }
        size <= page.slot.get()
    }

    pub(super) fn is_large_of(&self, size: usize, units: usize) -> bool {
        self.sizes().pool(size) == LARGE && size.div_ceil(UNIT) == units
    }

    pub(super) fn give_free_large(&self, lists: &mut PageLists) -> bool {
        let Some(page) = lists.free_large.take_any(&self.pages) else { return false };
        self.pacing.note_pages(lists.bytes());
        Self::give_units(page);
        self.pages.give(page);
        true
    }

    /// Gives the kernel up to `most` pages that nobody has needed since the last call.
    pub(super) fn give_unneeded(&self, lists: &mut PageLists, most: usize) {
        let keep = lists.free_large.bytes() - lists.free_large.unneeded();
        for _ in 0..most {
            if lists.free_large.bytes() <= keep {
                break;
            }
            let Some(page) = lists.free_large.take_any(&self.pages) else { break };
            self.purge(lists, page);
        }
    }
}

/// Zeroes the object of a page as far as it may not be zero: up to byte `dirty`.
fn zero(page: &Page, dirty: usize) {
    // SAFETY: the page was just taken, and nobody else knows its object.
    unsafe { ptr::write_bytes(page.base(), 0, dirty.min(page.slot.get())) };
}

/// Gives the kernel the memory behind a page's object. Returns whether all of it went.
fn gives_rest(page: &Page, needs: usize) -> bool {
    let rest = page.units.get() * UNIT - needs;
    // SAFETY: whole system pages at the end of a run that was just taken, which nobody uses.
    rest == 0 || unsafe { chunk::purge_pages(page.base().wrapping_add(needs), rest) } == rest
}
