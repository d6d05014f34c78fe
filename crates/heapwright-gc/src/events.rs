//! A heap's state for its events, which `spans` makes: the collection, and whether events are made.

use super::cell::{Num, clear};
use super::timeline::Timeline;

/// `heard`: whether the runtime or the time line gets the events. All-zero bytes: neither does.
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
