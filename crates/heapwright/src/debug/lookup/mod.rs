//! Other ways to find an address's bucket, to be measured against the address map.
//!
//! ```text
//!   policy     a bucket is found by              opened, emptied        was
//!   map        the address map: two loads        nothing                (what is shipped)
//!   list       walking its class, newest first   linked, unlinked       Zig before PR #17383
//!   treap      descending in its class's tree    descended, rotated     the PR
//!   current    the class's newest; the treap     as the treap           the PR's follow-up
//!
//!   node   | start | end | bucket | priority | left, next | right, before |    one cache line
//! ```
//!
//! For benches only (feature `lookups`, in no shipped library): one structure a
//! heap, in the store and under its lock, which every free of a small block then
//! takes. The class is the span's; Zig had it from the length the caller gives. What
//! a policy finds must be what the map finds, and that is asserted at each free.
//!
//! Nodes come from the store's side memory and never go back there: as the PR's
//! pool, they stay at their peak.
//!
//! Called by `store`.

mod list;
mod treap;

use core::cell::Cell;
use core::ptr;

use crate::options::debug::Lookup;
use crate::size_class::CLASSES;

use super::side::Side;
use super::span::{BucketRef, Span};
use list::List;
use treap::Treap;

/// Bytes of side memory that nodes are made of at a time.
const STEP: usize = 16 << 10;

type Link = Option<&'static Node>;

/// One open bucket. Zero is one of nothing.
#[repr(C, align(64))]
struct Node {
    start: Cell<usize>,
    end: Cell<usize>,
    bucket: Cell<*mut Span>,
    priority: Cell<u64>,
    left: Cell<Link>,
    right: Cell<Link>,
}

const _: () = assert!(size_of::<Node>() == 64);

impl Node {
    /// Whether the address is in its bucket.
    fn holds(&self, address: usize) -> bool {
        self.start.get() <= address && address < self.end.get()
    }
}

/// The open buckets of one class.
struct Class {
    list: List,
    treap: Treap,
    /// The newest bucket, unless it was emptied.
    newest: Cell<Link>,
}

impl Class {
    const fn new() -> Self {
        Self { list: List::new(), treap: Treap::new(), newest: Cell::new(None) }
    }
}

/// All open buckets of small blocks, as a policy keeps them.
pub(crate) struct Lookups {
    policy: Lookup,
    classes: [Class; CLASSES],
    /// Nodes of nothing, linked by `left`.
    vacant: Link,
    /// What was found last: whoever empties a bucket has just looked it up.
    found: Link,
}

impl Lookups {
    /// Nothing, so far.
    pub(crate) const fn new() -> Self {
        let classes = [const { Class::new() }; CLASSES];
        Self { policy: Lookup::Map, classes, vacant: None, found: None }
    }

    /// Says which policy.
    pub(crate) fn begin(&mut self, policy: Lookup) {
        self.policy = policy;
    }

    /// Notes a bucket that was opened.
    pub(crate) fn opened(&mut self, side: &mut Side, class: usize, bucket: BucketRef) {
        if self.policy == Lookup::Map {
            return;
        }
        let node = self.node(side);
        let start = bucket.start().addr();
        node.start.set(start);
        node.end.set(start + bucket.span.bucket_bytes());
        node.bucket.set(bucket.pack());
        let class = &self.classes[class];
        match self.policy {
            Lookup::List => class.list.insert(node),
            _ => class.treap.insert(node),
        }
        class.newest.set(Some(node));
    }

    /// The bucket of a class that an address is in.
    pub(crate) fn find(&mut self, class: usize, address: usize) -> Option<BucketRef> {
        let class = &self.classes[class];
        self.found = match self.policy {
            Lookup::List => class.list.find(address),
            Lookup::Treap => class.treap.find(address),
            _ => match class.newest.get() {
                Some(newest) if newest.holds(address) => Some(newest),
                _ => class.treap.find(address),
            },
        };
        BucketRef::unpack(self.found?.bucket.get())
    }

    /// Takes out a bucket that was emptied.
    pub(crate) fn emptied(&mut self, class: usize, bucket: BucketRef) {
        if self.policy == Lookup::Map {
            return;
        }
        let start = bucket.start().addr();
        if self.found.is_none_or(|found| found.start.get() != start) {
            self.find(class, start);
        }
        let node = self.found.take().expect("an open bucket that nobody noted");
        let class = &self.classes[class];
        match self.policy {
            Lookup::List => class.list.remove(node),
            _ => class.treap.remove(node),
        }
        if class.newest.get().is_some_and(|newest| ptr::eq(newest, node)) {
            class.newest.set(None);
        }
        self.give(node);
    }

    /// Forgets all buckets. The nodes stay.
    pub(crate) fn forget(&mut self) {
        for class in 0..CLASSES {
            while let Some(node) = self.classes[class].list.pop() {
                self.give(node);
            }
            while let Some(node) = self.classes[class].treap.pop() {
                self.give(node);
            }
            self.classes[class].newest.set(None);
        }
        self.found = None;
    }

    fn give(&mut self, node: &'static Node) {
        node.start.set(0);
        node.end.set(0);
        node.right.set(None);
        node.left.set(self.vacant);
        self.vacant = Some(node);
    }

    /// A node of nothing.
    fn node(&mut self, side: &mut Side) -> &'static Node {
        if self.vacant.is_none() {
            let nodes: *mut Node = side.take(STEP).cast();
            assert!(!nodes.is_null(), "no memory for the nodes of a lookup policy");
            for index in (0..STEP / size_of::<Node>()).rev() {
                // SAFETY: zeroed memory for as many nodes, at a multiple of their
                // alignment, which never goes back; zero is a node.
                self.give(unsafe { &*nodes.wrapping_add(index) });
            }
        }
        let node = self.vacant.expect("nodes were made");
        self.vacant = node.left.take();
        node
    }
}

#[cfg(test)]
mod tests;
