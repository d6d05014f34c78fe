//! Flagged sites: places where something was found late, from run to run.
//!
//! ```text
//!   this run    a canary was hit in a block of stack S --> all of S's blocks are guarded
//!               record=PREFIX: Site { key of S } goes into the record, too
//!   the next    sites=RECORD: the keys are read at the start; a stack that is new is
//!               flagged if its key is among them
//! ```
//!
//! Addresses change from run to run. A key is made of what does not: of each frame
//! the build of its module and the offset in it.
//!
//! Called by `heap`.

use heapwright_record::debug::{Entry, FindingKind, Reader};

use crate::os;
use crate::stacks::{self, Stack};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Keys that are kept; what a record has beyond them is left out.
const KEYS: usize = 512;

/// The flagged sites of an earlier run.
pub(crate) struct FlaggedSites {
    keys: [AtomicU64; KEYS],
    count: AtomicUsize,
}

impl FlaggedSites {
    pub(crate) const fn new() -> Self {
        Self { keys: [const { AtomicU64::new(0) }; KEYS], count: AtomicUsize::new(0) }
    }

    /// Reads the sites of an earlier run's record. False: there is no such record.
    pub(crate) fn read(&self, path: &core::ffi::CStr) -> bool {
        let Some(bytes) = os::map_file(path) else { return false };
        let Ok(reader) = Reader::new(bytes) else { return false };
        let sites = reader.filter_map(|entry| match entry {
            // Where blocks of undefined bytes come from (option `fill`) nothing was found.
            Entry::Site(site) if site.last != FindingKind::Uninitialised => Some(site.key),
            _ => None,
        });
        for key in sites {
            let count = self.count.load(Ordering::Relaxed);
            if count < KEYS && !self.has(key) {
                self.keys[count].store(key, Ordering::Relaxed);
                self.count.store(count + 1, Ordering::Release);
            }
        }
        true
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether a key is among them.
    pub(crate) fn has(&self, key: u64) -> bool {
        let count = self.count.load(Ordering::Acquire);
        self.keys[..count].iter().any(|known| known.load(Ordering::Relaxed) == key)
    }
}

/// What a stack is called in every run.
pub(crate) fn key(stack: u32) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    let of_bytes = |hash, bytes: &[u8]| bytes.iter().fold(hash, |h, &b| mix(h, u64::from(b)));
    stacks::frames(Stack(stack)).iter().fold(1, |hash, &pc| match stacks::module_of(pc - 1) {
        Some(module) => {
            let build = module.build_id();
            let hash = of_bytes(hash, if build.is_empty() { module.path() } else { build });
            mix(hash, (pc - module.bias) as u64)
        }
        // Code that was made while the program ran: nothing of it lasts.
        None => mix(hash, 0),
    })
}
