use super::common::Family;
use super::places::{Place, Places, blocks};
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Numbers that one thread gives out without a lock: the next number, and the count of numbers.
struct Region {
    next: AtomicUsize,
    left: AtomicUsize,
}

// SAFETY: zero has no numbers left; all fields are atomic.
unsafe impl Place for Region {
    fn family() -> &'static Family<Self> {
        // A real owner registers it with `fork`.
        static ALL: Family<Region> = Family::new();
        &ALL
    }
}

impl Region {
    /// The next number, unless the region is empty. Only the place's user may call this.
    fn take(&self) -> Option<usize> {
        let left = self.left.load(Ordering::Relaxed).checked_sub(1)?;
        self.left.store(left, Ordering::Relaxed);
        Some(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Gives out numbers, 64 at a time to a region.
pub(super) struct Numbers {
    regions: Places<Region, { blocks::<Region>() }>,
    given: AtomicUsize,
}

impl Numbers {
    pub(super) const fn new() -> Self {
        Self { regions: Places::new(), given: AtomicUsize::new(0) }
    }

    pub(super) fn take(&self) -> usize {
        self.regions.exclusive().and_then(Region::take).unwrap_or_else(|| self.take_cold())
    }

    #[cold]
    fn take_cold(&self) -> usize {
        // This thread has no place: the store serves it.
        let Some(region) = self.regions.enter() else {
            return self.given.fetch_add(1, Ordering::Relaxed);
        };
        region.take().unwrap_or_else(|| {
            let first = self.given.fetch_add(64, Ordering::Relaxed);
            region.next.store(first + 1, Ordering::Relaxed);
            region.left.store(63, Ordering::Relaxed);
            first
        })
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.regions.all().for_each(|region| region.left.store(0, Ordering::Relaxed));
    }
}
