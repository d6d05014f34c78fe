//! What each module's sites are due although the guards' budget is in debt.
//!
//! ```text
//!   module (start..end)   interpreter  | 0 left      its sites wait
//!                         libc         | 0 left
//!                         an extension | 31 left     its sites are guarded as they appear
//! ```
//!
//! What guards cost is bounded by a debt (see `budget`). Without more, the code that runs first takes all of it: an interpreter
//! has thousands of sites before it loads the extension for whose sake the program is checked. So each module has an advance
//! of its own: [`ADVANCE`] sites are guarded whatever the debt, which is a tenth of a millisecond for each.
//!
//! A site is a module's if one of its [`FRAMES`] innermost calls is: an extension allocates through its interpreter.
//! Which range a module has is asked for once a module; [`LOOKUPS`] bounds how often addresses are looked up that no module
//! has (code made at run time).
//!
//! Called by `sample` through `heap`, for sites that are due while the budget is in debt.

use core::ops::Range;

use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Modules that have an advance: the first so many that are seen.
const MODULES: usize = 48;
/// Sites of each.
const ADVANCE: u32 = 32;
/// Calls, the innermost first, whose modules count.
const FRAMES: usize = 4;
/// Addresses that are looked up.
const LOOKUPS: u32 = 256;

struct Module {
    /// 0: not taken.
    start: AtomicUsize,
    /// 0: being written.
    end: AtomicUsize,
    left: AtomicU32,
}

impl Module {
    const fn none() -> Self {
        Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0), left: AtomicU32::new(0) }
    }

    fn has(&self, pc: usize) -> bool {
        self.start.load(Ordering::Relaxed) <= pc && pc < self.end.load(Ordering::Relaxed)
    }

    /// Whether a site more is guarded.
    fn advances(&self) -> bool {
        let fewer = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok()
    }
}

/// The advances of a heap.
pub(super) struct ModuleAdvances {
    modules: [Module; MODULES],
    looked_up: AtomicU32,
}

impl ModuleAdvances {
    pub(super) const fn new() -> Self {
        Self { modules: [const { Module::none() }; MODULES], looked_up: AtomicU32::new(0) }
    }

    /// Whether a site with these calls, the innermost first, is guarded on a module's advance. `find` says what range the
    /// module of an address has.
    pub(super) fn advance(
        &self,
        calls: &[usize],
        find: impl Fn(usize) -> Option<Range<usize>>,
    ) -> bool {
        calls.iter().take(FRAMES).any(|&call| {
            // A return address: the call itself is before it, maybe at a module's very end.
            let pc = call.wrapping_sub(1);
            match self.modules.iter().find(|module| module.has(pc)) {
                Some(module) => module.advances(),
                None => self.add(pc, &find).is_some_and(Module::advances),
            }
        })
    }

    /// The module of an address, from now on. `None`: there is none, or no room for one more.
    fn add(&self, pc: usize, find: &impl Fn(usize) -> Option<Range<usize>>) -> Option<&Module> {
        let is_vacant = |module: &&Module| module.start.load(Ordering::Relaxed) == 0;
        let vacant = self.modules.iter().find(is_vacant)?;
        if self.looked_up.fetch_add(1, Ordering::Relaxed) >= LOOKUPS {
            // (The counter does not come round: there are fewer than 2^32 sites.)
            return None;
        }
        let range = find(pc)?;
        // Another thread may take it meanwhile; a module in two places has two advances.
        vacant.start.compare_exchange(0, range.start, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        vacant.left.store(ADVANCE, Ordering::Relaxed);
        vacant.end.store(range.end, Ordering::Relaxed);
        Some(vacant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Modules of 1000 bytes from 1000 to 100,000.
    fn find(pc: usize) -> Option<Range<usize>> {
        let start = pc / 1000 * 1000;
        (1000..100_000).contains(&pc).then_some(start..start + 1000)
    }

    #[test]
    fn each_module_has_an_advance() {
        let advances = ModuleAdvances::new();
        for module in [5000, 7000, 9000] {
            let granted =
                (0..100).filter(|site| advances.advance(&[module + 10 * site + 1], find)).count();
            assert_eq!(granted, ADVANCE as usize);
        }
        // A call into the last byte of a module, and from the first of the next.
        assert!(!advances.advance(&[6000], find));
        assert!(advances.advance(&[6001], find));
    }

    #[test]
    fn a_site_is_of_all_modules_among_its_innermost_calls() {
        let advances = ModuleAdvances::new();
        while advances.advance(&[5001], find) {}
        assert!(advances.advance(&[5001, 5002, 5003, 8001], find));
        assert!(!advances.advance(&[5001, 5002, 5003, 5004, 8001], find));
        assert!(!advances.advance(&[], find));
    }

    #[test]
    fn what_no_module_has_is_not_looked_up_for_ever() {
        let advances = ModuleAdvances::new();
        let lookups = Cell::new(0);
        let counted = |pc| {
            lookups.set(lookups.get() + 1);
            find(pc)
        };
        for site in 0..1000 {
            assert!(!advances.advance(&[500_000 + site], counted));
        }
        assert_eq!(lookups.get(), LOOKUPS);
    }

    #[test]
    fn so_many_modules_have_one() {
        let advances = ModuleAdvances::new();
        let granted = (1..99).filter(|module| advances.advance(&[module * 1000 + 1], find)).count();
        assert_eq!(granted, MODULES);
    }
}
