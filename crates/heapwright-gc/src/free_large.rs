//! Free pages of large objects. They wait for the next large objects, in lists by footprint, under
//! the lock of the page lists.
//!
//! ```text
//!   first  | 4 KiB | 8 KiB | ... | 256 KiB |     the newest page of each footprint
//!   any    a bit for each list that has a page
//! ```
//!
//! Part of `page_lists`; filled by `large`.

use heapwright_substrate::size_class::UNIT;

use super::page::Page;
use super::pages::Pages;

/// Bytes by which the footprints of adjacent lists differ.
const GRAIN: usize = 4 << 10;
pub(super) const GRAINS: usize = UNIT / GRAIN;
/// Grains of the largest page that waits: 256 KiB.
pub(super) const MOST: usize = 64;
/// A page may have up to one part in this many more memory than its object needs.
pub(super) const WASTE: usize = 8;

pub(super) struct FreeLarge {
    first: [usize; MOST],
    /// Which lists have pages, as bits.
    any: u64,
    bytes: usize,
    /// The fewest bytes since the last call of `unneeded`.
    low: usize,
}

/// The lists of `from..to` grains, as bits.
fn lists(from: usize, to: usize) -> u64 {
    let below = |grains: usize| match grains {
        0..MOST => (1 << grains) - 1,
        _ => u64::MAX,
    };
    below(to.saturating_sub(1)) & !below(from.saturating_sub(1))
}

impl FreeLarge {
    pub(super) const NONE: Self = Self { first: [0; MOST], any: 0, bytes: 0, low: 0 };

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn suits(page: &Page) -> bool {
        page.units.get() <= MOST / GRAINS
    }

    fn list_of(page: &Page) -> usize {
        page.footprint().div_ceil(GRAIN) - 1
    }

    pub(super) fn put(&mut self, page: &Page) {
        let list = Self::list_of(page);
        page.next.set(self.first[list]);
        self.first[list] = page.number.get();
        self.any |= 1 << list;
        self.bytes += page.footprint();
    }

    /// Takes the newest page of a list. `choose` picks one of the lists in `among` that have pages.
    pub(super) fn take<'a>(
        &mut self,
        pages: &'a Pages,
        among: u64,
        choose: fn(u64) -> u32,
    ) -> Option<&'a Page> {
        let among = self.any & among;
        if among == 0 {
            return None;
        }
        let list = choose(among) as usize;
        let page = pages.get(self.first[list])?;
        self.first[list] = page.next.get();
        if page.next.get() == 0 {
            self.any &= !(1 << list);
        }
        self.bytes -= page.footprint();
        self.low = self.low.min(self.bytes);
        Some(page)
    }

    /// Takes a page of `units` units for an object that needs `bytes` bytes. Prefers a page with at
    /// least `bytes` bytes of memory, and at most an eighth more. Otherwise takes one with less.
    pub(super) fn take_for<'a>(
        &mut self,
        pages: &'a Pages,
        units: usize,
        bytes: usize,
    ) -> Option<&'a Page> {
        let (grains, end) = (bytes.div_ceil(GRAIN), units * GRAINS + 1);
        let fits = lists(grains, end.min(grains + grains / WASTE + 1));
        self.take(pages, fits, u64::trailing_zeros)
            .or_else(|| self.take(pages, lists(end - GRAINS, grains), |lists| lists.ilog2()))
    }

    /// Takes a page of `units` units with at least `bytes` bytes.
    pub(super) fn take_larger<'a>(
        &mut self,
        pages: &'a Pages,
        units: usize,
        bytes: usize,
    ) -> Option<&'a Page> {
        let all = lists(bytes.div_ceil(GRAIN), units * GRAINS + 1);
        self.take(pages, all, u64::trailing_zeros)
    }

    /// Takes a page of the list with the largest footprint.
    pub(super) fn take_any<'a>(&mut self, pages: &'a Pages) -> Option<&'a Page> {
        self.take(pages, u64::MAX, |lists| lists.ilog2())
    }

    /// Returns how many bytes were not needed since the last call.
    pub(super) fn unneeded(&mut self) -> usize {
        core::mem::replace(&mut self.low, self.bytes)
    }
}
