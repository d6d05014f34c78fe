//! The advance of each module: guards for its sites while the guards' budget is in debt.
//!
//! ```text
//!   module (start..end)   interpreter  | 0 left      its sites wait
//!                         libc         | 0 left
//!                         an extension | 31 left     its sites get their due blocks
//! ```
//!
//! The code that runs first would use the whole budget: an interpreter has thousands of sites
//! before it loads the extension under test. So each module has an advance: [`ADVANCE`] of its
//! blocks are guarded in spite of the debt. An advance is not repaid. All modules together have
//! [`ALL`] such blocks.
//!
//! A site belongs to a module if one of its [`FRAMES`] innermost calls is in the module, because an
//! extension allocates through its interpreter. A module's range is looked up once. After
//! [`LOOKUPS`] addresses in no module (code made at run time), no module is added. Called by
//! `sample` through `heap`, and when code is unmapped.

use core::ops::Range;

use crate::sync;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const MODULES: usize = 128;
const ADVANCE: u32 = 32;
const ALL: u32 = 48 * ADVANCE;
const FRAMES: usize = 4;
/// The most look-ups that find no module.
const LOOKUPS: u32 = 256;
/// The start of a place whose module was unmapped.
const VACANT: usize = 1;

struct Module {
    /// The range's start. 0 in a place that was never used.
    start: AtomicUsize,
    /// The range's end, written last. 0 in a place that is not valid.
    end: AtomicUsize,
    left: AtomicU32,
}

impl Module {
    const fn none() -> Self {
        Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0), left: AtomicU32::new(0) }
    }

    fn has(&self, pc: usize) -> bool {
        pc < self.end.load(Ordering::Acquire) && self.start.load(Ordering::Relaxed) <= pc
    }
}

pub(super) struct ModuleAdvances {
    modules: [Module; MODULES],
    left: AtomicU32,
    lookups: AtomicU32,
}

impl ModuleAdvances {
    pub(super) const fn new() -> Self {
        Self {
            modules: [const { Module::none() }; MODULES],
            left: AtomicU32::new(ALL),
            lookups: AtomicU32::new(LOOKUPS),
        }
    }

    /// Takes one guarded block from the advance of a module in `calls`, a site's calls, the
    /// innermost first. Returns false if none is left. `find` returns the range of a pc's module.
    pub(super) fn advance(
        &self,
        calls: &[usize],
        find: impl Fn(usize) -> Option<Range<usize>>,
    ) -> bool {
        self.left.load(Ordering::Relaxed) > 0
            && calls.iter().take(FRAMES).any(|&call| {
                // The call is before the return address, perhaps at a module's very end.
                let pc = call.wrapping_sub(1);
                let module = self.known(pc).or_else(|| self.add(pc, &find));
                module.is_some_and(|module| sync::take_one(&module.left).is_some())
            })
            && sync::take_one(&self.left).is_some()
    }

    /// Frees the places of unmapped modules, because other modules may get the same addresses.
    pub(super) fn forget(&self, find: impl Fn(usize) -> Option<Range<usize>>) {
        for module in self.used() {
            let range = module.start.load(Ordering::Relaxed)..module.end.load(Ordering::Acquire);
            if !range.is_empty() && find(range.start) != Some(range) {
                module.end.store(0, Ordering::Release);
                module.start.store(VACANT, Ordering::Release);
            }
        }
    }

    fn used(&self) -> impl Iterator<Item = &Module> {
        self.modules.iter().take_while(|module| module.start.load(Ordering::Relaxed) != 0)
    }

    fn known(&self, pc: usize) -> Option<&Module> {
        self.used().find(|module| module.has(pc))
    }

    fn add(&self, pc: usize, find: &impl Fn(usize) -> Option<Range<usize>>) -> Option<&Module> {
        if self.lookups.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let Some(range) = find(pc).filter(|range| range.contains(&pc)) else {
            sync::take_one(&self.lookups);
            return None;
        };
        for module in &self.modules {
            let start = module.start.load(Ordering::Acquire);
            if start <= VACANT
                && module
                    .start
                    .compare_exchange(start, range.start, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                // If two threads add one module at once, it has two advances.
                module.left.store(ADVANCE, Ordering::Relaxed);
                module.end.store(range.end, Ordering::Release);
                return Some(module);
            }
        }
        None
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
        // A call into the last byte of a module, and from the first byte of the next.
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
        // Known modules keep their advance; other modules have none.
        assert!(!advances.advance(&[5001], find));
    }

    #[test]
    fn look_ups_that_find_a_module_do_not_count() {
        let advances = ModuleAdvances::new();
        assert!((1..40).all(|module| advances.advance(&[module * 1000 + 1], find)));
        assert_eq!(advances.lookups.load(Ordering::Relaxed), LOOKUPS);
    }

    #[test]
    fn all_modules_together_have_a_bound() {
        let advances = ModuleAdvances::new();
        let sites =
            (1..99).flat_map(|module| (1..=ADVANCE as usize).map(move |at| module * 1000 + at));
        assert_eq!(sites.filter(|&site| advances.advance(&[site], find)).count(), ALL as usize);
    }

    #[test]
    fn a_module_that_has_gone_leaves_its_place() {
        let advances = ModuleAdvances::new();
        while advances.advance(&[5001], find) {}
        assert!(advances.advance(&[7001], find));
        // The library at 5000 is unmapped, and a larger one is mapped there.
        let other = |pc| if (4000..6000).contains(&pc) { Some(4000..6000) } else { find(pc) };
        advances.forget(other);
        assert!(advances.advance(&[5001], other) && advances.advance(&[4001], other));
        assert_eq!(advances.used().count(), 2);
        let more = (0..100).filter(|_| advances.advance(&[7001], other)).count();
        assert_eq!(more, ADVANCE as usize - 1);
    }

    #[test]
    fn a_range_without_the_address_is_no_module() {
        let advances = ModuleAdvances::new();
        assert!(!advances.advance(&[5001], |_| Some(7000..8000)));
    }
}
