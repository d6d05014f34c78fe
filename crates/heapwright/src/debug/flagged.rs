//! Flagged sites: allocation sites with findings, remembered from run to run.
//!
//! ```text
//!   this run    a block of stack S hit a canary or a guard --> all of S's blocks are guarded
//!               record=PREFIX: Site { key of S, kind of finding } goes into the record, too
//!   the next    sites=RECORD: the keys are read at the start; a stack that is new is
//!               flagged if its key is among them
//! ```
//!
//! Addresses change from run to run, so a key is made of each frame's module build and offset. The
//! lowest bit of a key tells at which end of the page the site's blocks stand. Called by `heap`,
//! and by `process` and `guards` at their start.

use heapwright_record::debug::{Entry, FindingKind, Reader};

use crate::os;
use crate::stacks::{self, Stack};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::sample::Side;

/// The most keys. Further sites of a record are ignored.
const KEYS: usize = 512;

pub(crate) struct FlaggedSites {
    keys: [AtomicU64; KEYS],
    count: AtomicUsize,
}

impl FlaggedSites {
    pub(crate) const fn new() -> Self {
        Self { keys: [const { AtomicU64::new(0) }; KEYS], count: AtomicUsize::new(0) }
    }

    /// Reads the sites of an earlier run's record. Returns false without such a record.
    pub(crate) fn read(&self, path: &core::ffi::CStr) -> bool {
        let Some(bytes) = os::map_file(path) else { return false };
        let Ok(reader) = Reader::new(bytes) else { return false };
        let sites = reader.filter_map(|entry| match entry {
            // `Uninitialised` (option `fill`) is no finding about the block's own site.
            Entry::Site(site) if site.last != FindingKind::Uninitialised => {
                Some((site.key, end_for(site.last)))
            }
            _ => None,
        });
        for (key, side) in sites {
            let count = self.count.load(Ordering::Relaxed);
            if count < KEYS && self.side(key).is_none() {
                let is_left = u64::from(side == Side::Left);
                self.keys[count].store(key & !1 | is_left, Ordering::Relaxed);
                self.count.store(count + 1, Ordering::Release);
            }
        }
        true
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns the end of the page for blocks of the site with this key, if it is flagged.
    pub(crate) fn side(&self, key: u64) -> Option<Side> {
        let count = self.count.load(Ordering::Acquire);
        let known = self.keys[..count].iter().map(|known| known.load(Ordering::Relaxed));
        let found = known.into_iter().find(|known| known & !1 == key & !1)?;
        Some(if found & 1 == 1 { Side::Left } else { Side::Right })
    }
}

/// Returns the end of the page at which a block shows a mistake of this kind at once.
pub(crate) fn end_for(kind: FindingKind) -> Side {
    if kind == FindingKind::Underflow { Side::Left } else { Side::Right }
}

/// Returns the key of a stack, which is equal in every run.
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
        // Code generated at run time has no lasting address.
        None => mix(hash, 0),
    })
}
