//! The buckets of a class in a list, newest first: what the original walked.
//!
//! ```text
//!   first --> newest <--> ... <--> oldest        left: next, right: before
//! ```
//!
//! Linked both ways, as the original's, so that the bucket that was found is taken
//! out without another walk. An address in a bucket that n others were opened after
//! costs n nodes.
#![forbid(unsafe_code)]

use std::cell::Cell;

use crate::nodes::{Link, Node};

pub(crate) struct List {
    first: Cell<Link>,
}

impl List {
    pub(crate) const fn new() -> Self {
        Self { first: Cell::new(None) }
    }

    pub(crate) fn find(&self, address: usize) -> Link {
        let mut at = self.first.get();
        while let Some(node) = at
            && !node.holds(address)
        {
            at = node.left.get();
        }
        at
    }

    /// Makes a node the first.
    pub(crate) fn insert(&self, node: &'static Node) {
        let next = self.first.replace(Some(node));
        node.left.set(next);
        node.right.set(None);
        if let Some(next) = next {
            next.right.set(Some(node));
        }
    }

    /// Takes a node of the list out.
    pub(crate) fn remove(&self, node: &'static Node) {
        let (next, before) = (node.left.get(), node.right.get());
        match before {
            Some(before) => before.left.set(next),
            None => self.first.set(next),
        }
        if let Some(next) = next {
            next.right.set(before);
        }
    }
}
