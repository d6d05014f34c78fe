//! Finding: which page, slot and object of a heap an address lies in.
//!
//! ```text
//!   address --map--> unit's entry: of this heap? --> head unit --record--> page --/ slot--> slot
//!                                                                                           |
//!                                      cursor and bits of the page (see `held`) --> an object?
//! ```
//!
//! Every lookup takes constant time and no lock, for any address: a conservative stack scan looks
//! up every word. If a page is made or goes at the same time, nothing is found. Part of `space`.

use heapwright_substrate::address_map::{Entry, Kind as UnitKind, MAP};

use super::layout::{KINDS, LARGE, PAGE_LISTS};
use super::page::Page;
use super::space::Space;

pub(super) struct PageSlot {
    pub(super) start: usize,
    pub(super) size: usize,
    pub(super) holds: bool,
}

/// Returns the unit and the page list of an address, if its entry has `tag`.
#[inline]
pub(super) fn list_of(address: usize, tag: u32) -> Option<(usize, usize)> {
    let (unit, entry): (usize, Entry) = MAP.lookup(address);
    let page_list = entry.page_list(tag);
    (page_list < PAGE_LISTS).then_some((unit, page_list))
}

impl Space {
    /// Returns the first unit of the page that an address lies in, if the page is this heap's.
    pub(super) fn head_of(&self, address: usize) -> Option<usize> {
        let (unit, entry) = MAP.lookup(address);
        let head = match entry.kind() {
            UnitKind::CollectedRest(head) => head,
            _ => unit,
        };
        list_of(MAP.address_of(head).addr(), self.tag()).map(|_| head)
    }

    /// The page that an address lies in, if the page is this heap's.
    pub(super) fn page_of(&self, address: usize) -> Option<&Page> {
        self.pages.at_unit(self.head_of(address)?)
    }

    /// Does not find objects that were allocated in a region since `Mutator::settle`.
    pub(super) fn find(&self, address: *const u8) -> Option<*mut u8> {
        self.find_if(address, |page, start| self.holds(page, start))
    }

    /// Also finds objects in regions. `is_fresh` says whether a region has handed out a slot.
    pub(super) fn find_or(
        &self,
        address: *const u8,
        is_fresh: impl FnOnce(&Page, *mut u8) -> bool,
    ) -> Option<*mut u8> {
        self.find_if(address, |page, start| {
            page.held.holds_or(page.marks(), self.cycle.counter(), start, || {
                is_fresh(page, page.base().wrapping_add(start))
            })
        })
    }

    fn find_if(
        &self,
        address: *const u8,
        holds: impl FnOnce(&Page, usize) -> bool,
    ) -> Option<*mut u8> {
        let head = self.head_of(address.addr())?;
        let slot = self.slot_at(head, address.addr(), holds)?;
        slot.holds.then(|| MAP.address_of(head).wrapping_add(slot.start))
    }

    /// Returns the slot of an address in the page that begins at unit `head`. `holds` says whether
    /// the slot holds an object. `None` if the page is made, or goes, at the same time.
    pub(super) fn slot_at(
        &self,
        head: usize,
        address: usize,
        holds: impl FnOnce(&Page, usize) -> bool,
    ) -> Option<PageSlot> {
        let page = self.pages.at_unit(head)?;
        let seen = page.held.look()?;
        let start = Self::start_in(page, head, address)?;
        let found = PageSlot { start, size: page.slot.get(), holds: holds(page, start) };
        page.held.is_still(seen).then_some(found)
    }

    /// Returns the page that begins at unit `head`, and the start of the slot that an address lies
    /// in. The world must be stopped.
    pub(super) fn slot_in(&self, head: usize, address: usize) -> Option<(&Page, usize)> {
        let page = self.pages.at_unit(head)?;
        page.held.look()?;
        Some((page, Self::start_in(page, head, address)?))
    }

    fn start_in(page: &Page, head: usize, address: usize) -> Option<usize> {
        // The unit's record may still name the page of its last owner.
        if page.unit.get() != head {
            return None;
        }
        page.slot_of(address.checked_sub(MAP.address_of(head).addr())?)
    }

    /// An object that the coming sweep frees does not count. May run during the page's sweep.
    pub(super) fn holds(&self, page: &Page, offset: usize) -> bool {
        page.held.holds(page.marks(), self.cycle.counter(), offset)
    }

    /// Bytes of the slot of an object of the heap.
    pub(super) fn size_of(&self, object: *const u8) -> usize {
        let (unit, entry) = MAP.lookup(object.addr());
        match entry.page_list(self.tag()) {
            page_list if page_list / KINDS == LARGE => self.large_size(unit),
            page_list if page_list < PAGE_LISTS => self.slot(page_list),
            _ => 0,
        }
    }

    #[cold]
    pub(super) fn large_size(&self, unit: usize) -> usize {
        self.pages.at_unit(unit).map_or(0, |page| page.slot.get())
    }

    #[cold]
    pub(super) fn large_footprint(&self, unit: usize) -> usize {
        self.pages.at_unit(unit).map_or(0, Page::footprint)
    }

    /// Returns the page and offset of an address, if an object of the heap begins there.
    pub(super) fn object_at(&self, address: *const u8) -> Option<(&Page, usize)> {
        if self.find(address)?.addr() != address.addr() {
            return None;
        }
        let unit = MAP.unit_of(address.addr());
        let page = self.pages.at_unit(unit)?;
        Some((page, address.addr() - page.base().addr()))
    }
}
