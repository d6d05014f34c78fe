//! Events: who listens to a heap's collections. What they are told is made in `spans`.

use super::cell::{Num, clear};
use super::timeline::Timeline;

/// Who listens, and to what collection. Zero has nobody.
pub(super) struct Events {
    /// Whether anybody does.
    pub(super) heard: Num,
    /// The number of the collection that began last, and its flags.
    pub(super) collection: Num,
    pub(super) flags: Num,
    pub(super) timeline: Timeline,
}

impl Events {
    /// Forgets all.
    pub(super) fn end(&self) {
        self.timeline.end();
        clear!(self: heard collection flags);
    }
}
