//! The space: a heap's pages, where they come from, and where they go to.
//!
//! ```text
//!   chunk --new_page--> in use --swept, no object--> empty --take_empty--> in use, of any pool
//!     ^                   |                            |
//!     +---- release ------+                            +--not needed for a purge delay--> kernel
//!      evacuated, or very large                                          decay, trim
//! ```
//!
//! [`Space`] owns the records and lists of all pages, the accounts that limit their number
//! (`pacing`, `sizing`), and the phase of collections (`phase`). Records and lists change under the
//! lock of the lists. The thread that has claimed a page may also change its record.
//!
//! This is the lowest part of a heap. It knows no other part, and others call it. `find` and
//! `marks` map addresses to objects, `placement` says which move, `large` serves large objects.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use heapwright_substrate::address_map::{Entry, MAP};
use heapwright_substrate::chunk::{self, Want};
use heapwright_substrate::os;
use heapwright_substrate::purge_delay;
use heapwright_substrate::runs;
use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::bits;
use super::cell::Num;
use super::growth::Target;
use super::held::State;
use super::layout::{self, KINDS, PAGE_LISTS, Sizes};
use super::locks::With;
use super::options::{self, Options};
use super::pacing::Pacing;
use super::page::Page;
use super::page_lists::PageLists;
use super::pages::Pages;
use super::phase::Cycle;
use super::sizing::Sizing;

/// If a slot size has at least this many pages, its new pages are populated in one call each, without
/// page faults. That saves a third of the cost, but parts of the last page may never be used.
const USED_WHOLE: usize = 64;

/// Size of the largest object that a program probably touches as a whole.
const TOUCHED_WHOLE: usize = 4 << 10;

/// A decay gives back up to this many empty pages. If decays were missed, it gives back more, but
/// never more than `LOOKS` times as many.
const DECAYS: usize = 128;
const LOOKS: usize = 32;
/// A decay gives back this many times more pages if the heap has taken none since the last decay.
const IDLE: usize = 8;
/// Pages that are given to the kernel under one lock.
const PURGED_AT_A_TIME: usize = 32;

struct Setup {
    options: Options,
    sizes: Sizes,
}

/// The memory of one heap. All-zero bytes: an unused space.
pub(super) struct Space {
    setup: UnsafeCell<MaybeUninit<Setup>>,
    tag: AtomicU32,
    id: Num,
    pub(super) cycle: Cycle,
    pub(super) pacing: Pacing,
    pub(super) sizing: Sizing,
    pub(super) pages: Pages,
    pub(super) lists: Lock<PageLists>,
}

// SAFETY: the setup is written before any other thread knows the space, and after all have
// forgotten it. All else is atomics and locks.
unsafe impl Sync for Space {}

#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) heap: u32,
    pub(super) page_list: usize,
    /// Bytes of a slot; for a large object, the requested size.
    pub(super) slot: usize,
    /// The heap's last cycle. The page counts as swept in this cycle.
    pub(super) cycle: usize,
    /// The limit of the heap's bytes.
    pub(super) limit: usize,
    /// Whether a large object's memory must be zero.
    pub(super) zero: bool,
}

impl Wanted {
    pub(super) fn entry(&self) -> Entry {
        Entry::collected(self.heap, self.page_list)
    }

    pub(super) fn open(&self, page: &Page, run: &chunk::Run, units: usize) {
        MAP.record(run.unit).heap.store(page.number.get() as u32, Ordering::Relaxed);
        page.open(run.unit, units, self.page_list, self.slot, run.zero, self.cycle);
    }
}

impl Space {
    /// Begins to use the space, for the heap with this id.
    ///
    /// # Safety
    ///
    /// Nobody else knows the space yet.
    pub(super) unsafe fn begin(&self, id: u32, options: Options) {
        let setup = Setup { options, sizes: Sizes::of(options.layout) };
        // SAFETY: by the contract.
        unsafe { (*self.setup.get()).write(setup) };
        let mut lists = self.lists.lock();
        // Clears the lists piece by piece: they are too large for a stack.
        lists.clear();
        for (pool, of) in lists.pool.iter_mut().enumerate() {
            of.slot = self.sizes().slot(pool);
        }
        drop(lists);
        self.id.set(id as usize);
        self.tag.store(Entry::tag(id), Ordering::Relaxed);
        self.sizing.begin();
    }

    /// Ends the use of the space. The caller has given all pages back. No thread may use the space.
    pub(super) fn end(&self) {
        self.pages.end();
        self.sizing.end();
        self.cycle.end();
        self.pacing.end();
    }

    #[inline]
    fn setup(&self) -> &Setup {
        // SAFETY: `begin` wrote the setup before any other thread knew the space.
        let setup = unsafe { &*self.setup.get() };
        // SAFETY: `begin` wrote the setup before any other thread knew the space.
        unsafe { setup.assume_init_ref() }
    }

    pub(super) fn options(&self) -> &Options {
        &self.setup().options
    }

    /// Returns how much memory the heap may have.
    pub(super) fn target(&self) -> Target {
        self.sizing.target(self.options().incremental)
    }

    #[inline]
    pub(super) fn sizes(&self) -> &Sizes {
        &self.setup().sizes
    }

    #[inline]
    pub(super) fn slot(&self, page_list: usize) -> usize {
        self.sizes().slot(page_list / KINDS)
    }

    /// The heap's id in the entries of its pages.
    pub(super) fn id(&self) -> u32 {
        self.id.get() as u32
    }

    #[inline]
    pub(super) fn tag(&self) -> u32 {
        self.tag.load(Ordering::Relaxed)
    }

    /// Returns whether the heap collects at every allocation.
    #[inline]
    pub(super) fn is_stressed(&self) -> bool {
        self.options().verify & options::STRESS != 0
    }

    /// Returns whether the heap is verified, and mistakes of the runtime are reported.
    #[inline]
    pub(super) fn is_verified(&self) -> bool {
        self.options().verify & (options::VERIFY_HEAP | options::VERIFY_BARRIERS) != 0
    }

    /// Returns whether objects of a page list arrive zeroed.
    pub(super) fn clears(&self, page_list: usize) -> bool {
        layout::is_traced(page_list) && !self.options().uncleared
    }

    /// Describes a page with slots of `slot` bytes, in a heap of at most `limit` bytes.
    pub(super) fn wanted(&self, page_list: usize, slot: usize, limit: usize) -> Wanted {
        let cycle = self.cycle.number();
        Wanted { heap: self.id(), page_list, slot, cycle, limit, zero: self.clears(page_list) }
    }

    /// Calls `with` for every page in use, page list by page list. The world must be stopped.
    pub(super) fn each_page(&self, mut with: impl FnMut(&Page) -> bool) -> bool {
        for page_list in 0..PAGE_LISTS {
            let mut number = self.lists.lock().first(page_list);
            while let Some(page) = self.pages.get(number) {
                number = page.next.get();
                if page.state() == State::InUse && !with(page) {
                    return false;
                }
            }
        }
        true
    }

    pub(super) fn bytes_now(&self) -> usize {
        self.pacing.with_external(self.lists.lock().bytes())
    }

    /// Notes that a page was claimed. Its free slots count as allocated.
    pub(super) fn note_claimed(&self, page: &Page) {
        self.pacing.add_allocated((page.slots() - page.live.get()) * page.slot.get());
        // All slots count as live until the page is released or swept, because the page may get
        // objects that are not old.
        page.live.set(page.slots());
    }

    /// Notes that a claimed page is released. Its free slots from byte `from` on were not used.
    pub(super) fn note_released(&self, page: &Page, from: usize) {
        let free = page.free_from(from);
        page.live.set(page.slots() - free / page.slot.get().max(1));
        self.pacing.sub_allocated(free);
    }
}

impl Space {
    /// Takes a new page of one unit. `None` without memory, or if the heap would then exceed `most`
    /// bytes (not counting external bytes of dead objects) or its limit.
    pub(super) fn new_page(&self, wanted: Wanted, most: usize) -> Option<&Page> {
        let mut lists = self.lists.lock();
        while !self.pacing.admits(lists.bytes() + UNIT, most, wanted.limit) {
            if !self.give_free_large(&mut lists) {
                return None;
            }
        }
        let page = self.pages.make()?;
        // Does not ask for `Dense`: under a new heap, huge pages cost more to clear than they save
        // in marking. (ci/gc.sh: splay takes 1.5 to 1.8 times as long, gcbench 0.85 times.)
        let Some(run) = runs::take(1, 1, Want::Any, wanted.entry(), |_| Entry::FREE) else {
            self.pages.give(page);
            return None;
        };
        wanted.open(page, &run, 1);
        lists.add(&self.pages, page);
        lists.claim(page);
        let used_whole =
            lists.pool[page.pool()].pages >= USED_WHOLE && wanted.slot <= TOUCHED_WHOLE;
        self.pacing.note_pages(lists.bytes());
        drop(lists);
        if run.zero && used_whole {
            // SAFETY: the run was just taken, in whole system pages or more.
            unsafe { os::populate(page.base(), UNIT) };
        }
        Some(page)
    }

    pub(super) fn take_empty(&self, wanted: Wanted) -> Option<&Page> {
        let mut lists = self.lists.lock();
        let page = lists.take_empty(&self.pages)?;
        lists.took_empty = true;
        MAP.set_entries(page.unit.get(), 1, wanted.entry());
        page.assign(wanted.page_list, wanted.slot, wanted.cycle);
        lists.add(&self.pages, page);
        lists.claim(page);
        Some(page)
    }

    /// Gives a page's units back. The record stays.
    pub(super) fn give_units(page: &Page) {
        Self::close(page);
        runs::give(page.unit.get(), page.units.get());
    }

    fn close(page: &Page) {
        page.held.close(State::None);
        bits::clear_words(page.marks(), page.words());
    }

    /// Gives back a claimed page without live objects at once: an evacuated page, or a very large
    /// one. Other pages wait in the list of empty pages. A page with more bytes than the heap may
    /// allocate before its next collection goes to the kernel.
    pub(super) fn release(&self, page: &Page) {
        let mut lists = self.lists.lock();
        lists.remove(&self.pages, page);
        self.pacing.note_pages(lists.bytes());
        if page.units.get() * UNIT <= self.pacing.allowance() || purge_delay::purge_ms() < 0 {
            Self::give_units(page);
            return self.pages.give(page);
        }
        drop(lists);
        Self::close(page);
        // SAFETY: the page has no objects, and is in no list. The caller has claimed it.
        unsafe { runs::give_purged(page.unit.get(), page.units.get()) };
        let _lists = self.lists.lock();
        self.pages.give(page);
    }

    /// Gives one empty page back. Returns false if there is none.
    pub(super) fn give_empty(&self, lists: &mut PageLists) -> bool {
        let Some(page) = lists.take_empty(&self.pages) else { return false };
        self.pacing.note_pages(lists.bytes());
        Self::give_units(page);
        self.pages.give(page);
        true
    }

    /// Gives a page to the kernel. The page must be in no list any more.
    pub(super) fn purge(&self, lists: &PageLists, page: &Page) {
        self.pacing.note_pages(lists.bytes());
        Self::close(page);
        // SAFETY: the page is this heap's, has no objects and is in no list. So nobody uses it.
        unsafe { runs::give_purged(page.unit.get(), page.units.get()) };
        self.pages.give(page);
    }

    /// Gives up to `most` pages to the kernel, as long as more than `keep` bytes are left. Empty
    /// pages go first, and then waiting pages of large objects. Returns their bytes. Gives up the
    /// lock after a few pages, for other threads.
    fn purge_some(&self, keep: usize, most: usize) -> usize {
        let (mut given, mut pages) = (0, 0);
        while pages < most {
            let mut lists = self.lists.lock();
            let end = most.min(pages + PURGED_AT_A_TIME);
            while pages < end && lists.empty_bytes() > keep {
                let before = lists.empty_bytes();
                let page = lists.take_empty(&self.pages);
                let Some(page) = page.or_else(|| lists.free_large.take_any(&self.pages)) else {
                    break;
                };
                self.purge(&lists, page);
                given += before - lists.empty_bytes();
                pages += 1;
            }
            if pages < end {
                break;
            }
        }
        given
    }

    /// Gives the kernel empty pages that nobody needed for a while. Any thread may call this, even
    /// a thread that has nothing to do with the heap. So the call does not wait for the lock.
    pub(super) fn decay(&self) {
        let Some(delay) = purge_delay::purge_delay().map(purge_delay::interval) else { return };
        let now = os::coarse_ms();
        let Some(mut lists) = self.lists.try_lock() else { return };
        let waited = chunk::waited(lists.empty_since, now);
        if waited < delay {
            return;
        }
        // Gives more pages if the last decay was long ago, or if the heap took no page since.
        let looks = usize::try_from(waited / delay.max(1)).unwrap_or(1).clamp(1, LOOKS);
        let idle = if lists.took_empty { 1 } else { IDLE };
        let most = DECAYS * looks.max(idle);
        self.give_unneeded(&mut lists, most);
        for _ in 0..lists.empty_low.min(most) {
            let Some(page) = lists.take_empty(&self.pages) else { break };
            self.purge(&lists, page);
        }
        lists.note_look(now);
    }

    /// Notes that the sweep is over, and restarts the wait before a decay for the pages that are
    /// empty now.
    pub(super) fn end_sweep(&self) {
        let mut lists = self.lists.lock();
        lists.note_look(os::coarse_ms());
        _ = lists.free_large.unneeded();
    }

    /// Gives the kernel the empty pages that the heap cannot use before its next collection.
    pub(super) fn purge_beyond_allowance(&self) {
        if purge_delay::purge_delay().is_some() {
            self.purge_some(self.pacing.allowance(), usize::MAX);
        }
    }

    /// Gives the kernel all empty pages. Also gives it the process's free runs, which may have
    /// memory of dead large objects. Returns the bytes of the heap's pages that the kernel took.
    pub(super) fn trim(&self) -> usize {
        let mut lists = self.lists.lock();
        let bytes = lists.empty_bytes();
        while self.give_empty(&mut lists) || self.give_free_large(&mut lists) {}
        lists.empty_low = 0;
        drop(lists);
        bytes.min(chunk::purge_all(0))
    }

    /// Forgets the empty pages, at the heap's end. So no other thread gives such a page back.
    pub(super) fn forget_empty(&self) {
        self.lists.lock().forget_empty();
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        self.sizing.each_lock(with);
        with(&self.lists);
    }
}
