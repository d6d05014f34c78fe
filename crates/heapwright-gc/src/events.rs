//! Events: the listeners to a heap's collections. `spans` makes the events.

use super::cell::{Num, clear};
use super::timeline::Timeline;

/// The listeners, and the collection that they hear of. All-zero bytes: no listener.
pub(super) struct Events {
    pub(super) heard: Num,
    /// The number of the collection that began last, and its flags.
    pub(super) collection: Num,
    pub(super) flags: Num,
    pub(super) timeline: Timeline,
}

impl Events {
    pub(super) fn end(&self) {
        self.timeline.end();
        clear!(self: heard collection flags);
    }
}
