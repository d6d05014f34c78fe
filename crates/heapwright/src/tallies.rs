//! Tallies: exact counts of a thread's allocations between two of its calls (`hw_count_begin`,
//! `hw_count_end`).
//!
//! ```text
//!   begin     the thread's fast word leads to a front, so each call is observed (`heap::modes`)
//!   observed  allocated(request, block)  freed(block)  realloc_begins(block), realloc_ends(..)
//!   end       the fast word leads back to the thread's other front, or its hot part
//!
//!   a thread's   | level 0: sums, sites | level 1 | ...     level 1: a begin in another; at its
//!                                                           end its sums are added to level 0
//!                | blocks: address -> bytes requested       of blocks since the outermost begin
//! ```
//!
//! A block counts with its requested size. An older block, or another thread's block, counts with
//! the size that the heap knows: the requested size in `mode=debug` and `mode=hardened`, and the
//! usable size in fast mode. Another thread may free a counted block unnoticed, and its address may
//! be reused. So the heap's size is stored, too. If the heap later reports another size, that size
//! counts.
//!
//! A thread's counter lies at the thread's index, and belongs to the holder that began the count.
//! If a signal handler interrupts the thread in the counter, the handler's calls do not count.
//! Called by `heap`.

use core::cell::UnsafeCell;
use core::ptr;

use crate::cache::{CACHES, Use};
use crate::describe::{self, BlockState, Kind};
use crate::hooks;
use crate::os::{Memory, SYSTEM};
use crate::paged_table::{Keyed, Table};
use crate::registry::thread_index::{self, MOST_THREADS};
use crate::request::Request;
use crate::stacks::{self, Scratch, Stack};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
pub use crate::tally::Allocations;

const LEVELS: usize = 16;
const DEPTH: usize = 32;

static COUNTING: AtomicUsize = AtomicUsize::new(0);
static PLACES: [AtomicPtr<Place>; MOST_THREADS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_THREADS];

/// The reason that prevents a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotCount {
    /// There is no memory for the count.
    NoMemory,
    /// Another copy of the library, or another allocator, serves the process.
    NotServing,
    /// Sixteen counts are open in the thread already, or the call interrupted a call of a count.
    TooDeep,
}

#[inline(always)]
fn is_on() -> bool {
    COUNTING.load(Ordering::Relaxed) != 0
}

/// A block made since the outermost begin.
#[derive(Clone, Copy)]
struct Block {
    address: u64,
    size: u64,
    /// The size that the heap reported.
    known: u64,
}

// SAFETY: integers; the key is an address, which is not 0.
unsafe impl Keyed for Block {
    fn key(&self) -> u64 {
        self.address
    }
}

#[derive(Clone, Copy)]
struct Site {
    /// The stack's number plus 1.
    key: u64,
    allocations: u64,
    bytes: u64,
}

// SAFETY: integers; the key is not 0.
unsafe impl Keyed for Site {
    fn key(&self) -> u64 {
        self.key
    }
}

struct Level {
    counted: Allocations,
    sites: Table<Site>,
    keeps_sites: bool,
}

/// A thread's counter. The zero value counts nothing.
struct Counter {
    depth: usize,
    levels: [Level; LEVELS],
    blocks: Table<Block>,
    scratch: Scratch,
    /// Whether a block is being resized; the heap's own calls do not count.
    is_resizing: bool,
    /// The size of the block that is being resized, or `None` if the block does not count.
    resized: Option<usize>,
    has_lost: bool,
}

struct Place {
    /// The holder of the index that uses the counter.
    holder: AtomicU32,
    is_busy: AtomicBool,
    counter: UnsafeCell<Counter>,
}

impl Counter {
    fn innermost(&mut self) -> Option<&mut Level> {
        let level = self.depth.checked_sub(1).filter(|_| !self.is_resizing)?;
        self.levels.get_mut(level)
    }

    fn add(&mut self, call: Allocations) {
        if let Some(level) = self.innermost() {
            level.counted = level.counted.then(&call);
        }
    }

    fn add_to_site(&mut self, allocations: u64, bytes: u64) {
        if !self.levels[..self.depth].iter().any(|level| level.keeps_sites) {
            return;
        }
        let key = u64::from(stacks::here(&mut self.scratch, DEPTH).0) + 1;
        let Some(level) = self.innermost() else { return };
        if !level.add_to_site(Site { key, allocations, bytes }) {
            self.has_lost = true;
        }
    }

    fn remember(&mut self, address: usize, size: usize) {
        let known = size_of_block(address).unwrap_or(0) as u64;
        let made = Block { address: address as u64, size: size as u64, known };
        match self.blocks.get_or_put(made) {
            Some(block) => *block = made,
            None => self.has_lost = true,
        }
    }

    /// Forgets a freed block and returns its size, if known.
    fn forget(&mut self, address: usize) -> Option<usize> {
        let made = self.blocks.remove(address as u64);
        let size = size_of_block(address)?;
        let made = made.filter(|made| made.known == size as u64);
        Some(made.map_or(size, |made| made.size as usize))
    }

    fn made(&mut self, address: usize, size: usize) {
        if self.innermost().is_some() {
            self.add(Allocations::of_allocation(size));
            self.add_to_site(1, size as u64);
            self.remember(address, size);
        }
    }
}

impl Level {
    fn add_to_site(&mut self, new: Site) -> bool {
        let empty = Site { allocations: 0, bytes: 0, ..new };
        let Some(site) = self.sites.get_or_put(empty) else { return false };
        site.allocations += new.allocations;
        site.bytes += new.bytes;
        true
    }
}

/// Returns the size of a block as the heap knows it. Returns `None` if a free does not count: no
/// block is there, or the block belongs to a first-class heap, a pool or an arena.
fn size_of_block(address: usize) -> Option<usize> {
    let found = describe::describe(ptr::without_provenance(address));
    match found.kind {
        // For example, the block is the C library's own.
        Kind::Foreign => return Some(0),
        Kind::Small | Kind::Large
            if CACHES.get(found.owner).is_some_and(|heap| heap.owned_by() == Use::Heap) =>
        {
            return None;
        }
        Kind::Debug if hooks::is_owned(address) => return None,
        _ => {}
    }
    let is_block = found.block == address && found.state == BlockState::InUse;
    is_block.then_some(found.size)
}

fn place() -> Option<&'static Place> {
    let index = thread_index::mine();
    // SAFETY: null, or a place, which is never freed.
    let place = unsafe { PLACES.get(index)?.load(Ordering::Acquire).as_ref() }?;
    (place.holder.load(Ordering::Relaxed) == thread_index::holder(index)).then_some(place)
}

impl Place {
    /// Runs `what` on the counter. Returns `None` in a handler that interrupted such a run.
    fn with<T>(&self, what: impl FnOnce(&mut Counter) -> T) -> Option<T> {
        if self.is_busy.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: the place is the calling thread's, and no other call is using it.
        let done = what(unsafe { &mut *self.counter.get() });
        self.is_busy.store(false, Ordering::Release);
        Some(done)
    }
}

fn made_place() -> Option<&'static Place> {
    if let Some(place) = place() {
        return Some(place);
    }
    let mut index = thread_index::mine();
    if index >= MOST_THREADS {
        index = thread_index::take()?;
    }
    let slot = &PLACES[index];
    // SAFETY: null, or a place, which is never freed.
    let known = unsafe { slot.load(Ordering::Acquire).as_ref() };
    let place = match known {
        Some(place) => place,
        None => {
            let bytes = size_of::<Place>().next_multiple_of(SYSTEM.page_size());
            let at = SYSTEM.reserve(bytes, SYSTEM.page_size());
            // SAFETY: just reserved, in whole pages.
            if at.is_null() || unsafe { !SYSTEM.commit(at, bytes) } {
                return None;
            }
            let at = at.cast::<Place>();
            slot.store(at, Ordering::Release);
            // SAFETY: room for a place, at a page's start. Zero is a valid place, which is never
            // freed.
            unsafe { &*at }
        }
    };
    place.holder.store(thread_index::holder(index), Ordering::Relaxed);
    thread_index::when_released(thread_ends);
    Some(place)
}

fn thread_ends(index: usize) {
    // SAFETY: null, or a place, which is never freed.
    let place = unsafe { PLACES[index].load(Ordering::Acquire).as_ref() };
    let Some(place) =
        place.filter(|place| place.holder.load(Ordering::Relaxed) == thread_index::holder(index))
    else {
        return;
    };
    // The thread may end in a signal handler, or in a visitor of sites.
    place.is_busy.store(false, Ordering::Relaxed);
    place.with(|counter| {
        if counter.depth > 0 {
            COUNTING.fetch_sub(1, Ordering::Relaxed);
        }
        counter.levels.iter_mut().for_each(|level| level.sites.clear());
        counter.blocks.clear();
        (counter.depth, counter.is_resizing) = (0, false);
    });
}

/// Forgets the counts of all other threads in a forked child. Their indices stay taken.
pub(crate) fn forget_after_fork() {
    if is_on() {
        COUNTING.store(counts_here_slowly().into(), Ordering::Relaxed);
    }
}

/// Returns whether the calling thread counts. If so, its calls must be observed.
#[inline]
pub(crate) fn counts_here() -> bool {
    is_on() && counts_here_slowly()
}

#[cold]
fn counts_here_slowly() -> bool {
    // A signal handler that interrupted the counter gets `None`. Then the thread counts.
    place().is_some_and(|place| place.with(|counter| counter.depth > 0).unwrap_or(true))
}

pub(crate) fn begin(keeps_sites: bool) -> Result<(), CannotCount> {
    let place = made_place().ok_or(CannotCount::NoMemory)?;
    let begun = place.with(|counter| {
        let level = counter.levels.get_mut(counter.depth).ok_or(CannotCount::TooDeep)?;
        (level.counted, level.keeps_sites) = (Allocations::default(), keeps_sites);
        counter.depth += 1;
        if counter.depth == 1 {
            counter.has_lost = false;
            COUNTING.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    begun.unwrap_or(Err(CannotCount::TooDeep))
}

/// Ends the innermost count. Returns its sums, whether memory sufficed for it, and whether the
/// thread still counts. Returns `None` if the thread counts nothing.
pub(crate) fn end() -> Option<(Allocations, bool, bool)> {
    place()?.with(|counter| {
        let depth = counter.depth.checked_sub(1)?;
        let (outer, inner) = counter.levels.split_at_mut(depth);
        let ended = inner.first_mut()?;
        if let Some((outermost, last)) = outer.split_last_mut().map(|(last, rest)| (rest, last)) {
            last.counted = last.counted.then(&ended.counted);
            if last.keeps_sites || outermost.iter().any(|level| level.keeps_sites) {
                for &site in ended.sites.iter() {
                    counter.has_lost |= !last.add_to_site(site);
                }
            }
        }
        let counted = ended.counted;
        ended.sites.clear();
        counter.depth = depth;
        if depth == 0 {
            counter.blocks.clear();
            COUNTING.fetch_sub(1, Ordering::Relaxed);
        }
        Some((counted, !counter.has_lost, depth > 0))
    })?
}

/// Visits the stacks of the calling thread's innermost count, those with the most bytes first,
/// until `visit` returns false. `visit` gets the return addresses (innermost first), the
/// allocations and the bytes. The allocations of `visit` do not count. Returns the number of
/// stacks, or 0 if stacks are not kept.
pub fn count_sites(visit: &mut dyn FnMut(&'static [usize], u64, u64) -> bool) -> usize {
    let shown = place().and_then(|place| {
        place.with(|counter| {
            let level = counter.innermost().filter(|level| level.keeps_sites)?;
            let rank = |site: &Site| (site.bytes, site.key);
            let (mut last, mut count, mut goes_on) = ((u64::MAX, u64::MAX), 0, true);
            while let Some(next) =
                level.sites.iter().filter(|site| rank(site) < last).max_by_key(|site| rank(site))
            {
                (last, count) = (rank(next), count + 1);
                let stack = Stack((next.key - 1) as u32);
                goes_on = goes_on && visit(stacks::frames(stack), next.allocations, next.bytes);
            }
            Some(count)
        })
    });
    shown.flatten().unwrap_or(0)
}

#[inline(always)]
pub(crate) fn allocated(request: Request, block: *mut u8) {
    if is_on() && !block.is_null() {
        count_allocated(request.size, block.addr());
    }
}

#[cold]
#[inline(never)]
fn count_allocated(size: usize, address: usize) {
    if let Some(place) = place() {
        place.with(|counter| counter.made(address, size));
    }
}

#[inline(always)]
pub(crate) fn freed(block: *mut u8) {
    if is_on() {
        count_freed(block.addr());
    }
}

#[cold]
#[inline(never)]
fn count_freed(address: usize) {
    if let Some(place) = place() {
        place.with(|counter| {
            if counter.innermost().is_some()
                && let Some(size) = counter.forget(address)
            {
                counter.add(Allocations::of_free(size));
            }
        });
    }
}

/// Notes the coming resize of a block. Returns whether it counts; then call [`realloc_ends`].
#[inline(always)]
pub(crate) fn realloc_begins(block: *mut u8) -> bool {
    is_on() && count_realloc(block.addr())
}

#[cold]
#[inline(never)]
fn count_realloc(address: usize) -> bool {
    let begun = place().and_then(|place| {
        place.with(|counter| {
            counter.innermost()?;
            counter.resized = counter.forget(address);
            counter.is_resizing = true;
            Some(())
        })
    });
    begun.flatten().is_some()
}

/// Counts the end of a resize. `new` is null if the resize failed and the block is unchanged.
#[cold]
#[inline(never)]
pub(crate) fn realloc_ends(old: *mut u8, new: *mut u8, size: usize) {
    let Some(place) = place() else { return };
    place.with(|counter| {
        counter.is_resizing = false;
        let Some(before) = counter.resized else {
            // The old block is a first-class heap's, and did not count.
            if !new.is_null() && size_of_block(new.addr()).is_some() {
                counter.made(new.addr(), size);
            }
            return;
        };
        if new.is_null() {
            return counter.remember(old.addr(), before);
        }
        counter.add(Allocations::of_reallocation(before, size));
        if size > before {
            counter.add_to_site(0, (size - before) as u64);
        }
        counter.remember(new.addr(), size);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::sync::Barrier;
    use std::thread;

    /// Returns a child process's count, or `None` if no code handles forks here.
    #[cfg(all(
        target_os = "linux",
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    fn counting_in_a_child() -> Option<usize> {
        // SAFETY: the child only loads a number.
        match unsafe { libc::fork() } {
            // SAFETY: the child ends there, with no other effect.
            0 => unsafe { libc::_exit(COUNTING.load(Ordering::Relaxed) as i32) },
            child => {
                let mut status = 0;
                // SAFETY: the status is ours to write.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                Some(libc::WEXITSTATUS(status) as usize)
            }
        }
    }

    #[cfg(not(all(
        target_os = "linux",
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    fn counting_in_a_child() -> Option<usize> {
        None
    }

    /// This is one test, because no other test may count meanwhile.
    #[test]
    fn threads_that_end_or_are_not_there_do_not_count() {
        let counting = || COUNTING.load(Ordering::Relaxed);
        thread::spawn(|| {
            begin(true).expect("a count");
            begin(false).expect("one in it");
        })
        .join()
        .unwrap();
        assert_eq!(counting(), 0);
        begin(false).expect("a count");
        let (begun, ended) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                begin(false).expect("a count");
                begun.wait();
                ended.wait();
            });
            begun.wait();
            assert_eq!(counting(), 2);
            assert!(counting_in_a_child().is_none_or(|counting| counting == 1));
            ended.wait();
        });
        end().expect("it had begun");
        assert!(counting_in_a_child().is_none_or(|counting| counting == 0));
    }
}
