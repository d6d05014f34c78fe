//! What the list and the treap are made of: a node for each open bucket.
//!
//! ```text
//!   node   | start | end | bucket | priority | left, next | right, before |    one cache line
//! ```
//!
//! Nodes are used again and never freed: as the PR's pool, they stay at their peak.
#![forbid(unsafe_code)]

use std::cell::Cell;

use crate::list::List;
use crate::treap::Treap;
use crate::{BUCKET_BYTES, Policy, start_of};

pub(crate) type Link = Option<&'static Node>;

/// One open bucket.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Node {
    pub(crate) start: Cell<usize>,
    pub(crate) end: Cell<usize>,
    pub(crate) bucket: Cell<u32>,
    pub(crate) priority: Cell<u64>,
    pub(crate) left: Cell<Link>,
    pub(crate) right: Cell<Link>,
}

const _: () = assert!(size_of::<Node>() == 64);

impl Node {
    /// Whether the address is in its bucket.
    pub(crate) fn holds(&self, address: usize) -> bool {
        self.start.get() <= address && address < self.end.get()
    }
}

/// The nodes of one structure.
#[derive(Default)]
struct Nodes {
    vacant: Vec<&'static Node>,
    made: usize,
}

impl Nodes {
    /// The node of a bucket, not linked yet.
    fn of(&mut self, bucket: u32) -> &'static Node {
        let node = self.vacant.pop().unwrap_or_else(|| {
            self.made += 1;
            Box::leak(Box::default())
        });
        let start = start_of(bucket);
        node.start.set(start);
        node.end.set(start + BUCKET_BYTES);
        node.bucket.set(bucket);
        node
    }

    fn bytes(&self) -> usize {
        self.made * size_of::<Node>()
    }
}

/// Zig before PR #17383: the list is walked, newest first.
pub(crate) struct Listed {
    list: List,
    nodes: Nodes,
}

impl Policy for Listed {
    fn new(_buckets: usize) -> Self {
        Self { list: List::new(), nodes: Nodes::default() }
    }

    fn open(&mut self, bucket: u32) {
        self.list.insert(self.nodes.of(bucket));
    }

    fn find(&mut self, address: usize) -> Option<u32> {
        Some(self.list.find(address)?.bucket.get())
    }

    fn empty(&mut self, address: usize) -> Option<u32> {
        let node = self.list.find(address)?;
        self.list.remove(node);
        self.nodes.vacant.push(node);
        Some(node.bucket.get())
    }

    fn bytes(&self) -> usize {
        self.nodes.bytes()
    }
}

/// The PR: the tree is descended; its follow-up, if `CURRENT_FIRST`, looks into the
/// newest bucket before.
pub(crate) struct InTreap<const CURRENT_FIRST: bool> {
    treap: Treap,
    nodes: Nodes,
    /// The newest bucket, unless it was emptied.
    newest: Link,
}

impl<const CURRENT_FIRST: bool> InTreap<CURRENT_FIRST> {
    fn node_at(&self, address: usize) -> Link {
        match self.newest {
            Some(newest) if CURRENT_FIRST && newest.holds(address) => Some(newest),
            _ => self.treap.find(address),
        }
    }
}

impl<const CURRENT_FIRST: bool> Policy for InTreap<CURRENT_FIRST> {
    fn new(_buckets: usize) -> Self {
        Self { treap: Treap::new(), nodes: Nodes::default(), newest: None }
    }

    fn open(&mut self, bucket: u32) {
        let node = self.nodes.of(bucket);
        self.treap.insert(node);
        self.newest = Some(node);
    }

    fn find(&mut self, address: usize) -> Option<u32> {
        Some(self.node_at(address)?.bucket.get())
    }

    fn empty(&mut self, address: usize) -> Option<u32> {
        let node = self.node_at(address)?;
        self.treap.remove(node);
        self.nodes.vacant.push(node);
        self.newest = self.newest.filter(|newest| !std::ptr::eq(*newest, node));
        Some(node.bucket.get())
    }

    fn bytes(&self) -> usize {
        self.nodes.bytes()
    }
}
