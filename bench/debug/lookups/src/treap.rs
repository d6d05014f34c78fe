//! The buckets of a class in a treap: a search tree by address that is a heap by
//! priority, so that it is as deep as a random one: what PR #17383 searched.
//!
//! ```text
//!   insert   descend to the first of a lower priority; split what is there by the
//!            new address into the new node's two sides
//!   remove   descend to the node; its two sides merged take its place
//! ```
//!
//! A priority is the hash of the address, so that each run makes the same tree.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::ptr;

use crate::nodes::{Link, Node};

pub(crate) struct Treap {
    root: Cell<Link>,
}

/// A mixed address, by the finaliser of SplitMix64.
const fn priority(start: usize) -> u64 {
    let mut mixed = start as u64;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Node {
    /// Where addresses beside its bucket are.
    fn toward(&self, address: usize) -> &Cell<Link> {
        if address < self.start.get() { &self.left } else { &self.right }
    }
}

impl Treap {
    pub(crate) const fn new() -> Self {
        Self { root: Cell::new(None) }
    }

    pub(crate) fn find(&self, address: usize) -> Link {
        let mut at = self.root.get();
        while let Some(node) = at
            && !node.holds(address)
        {
            at = node.toward(address).get();
        }
        at
    }

    pub(crate) fn insert(&self, new: &'static Node) {
        let start = new.start.get();
        new.priority.set(priority(start));
        let mut link = &self.root;
        while let Some(node) = link.get()
            && node.priority.get() >= new.priority.get()
        {
            link = node.toward(start);
        }
        let mut rest = link.replace(Some(new));
        let (mut lower, mut upper) = (&new.left, &new.right);
        while let Some(node) = rest {
            if node.start.get() < start {
                lower.set(rest);
                lower = &node.right;
                rest = lower.get();
            } else {
                upper.set(rest);
                upper = &node.left;
                rest = upper.get();
            }
        }
        lower.set(None);
        upper.set(None);
    }

    /// Takes a node of the treap out.
    pub(crate) fn remove(&self, node: &'static Node) {
        let mut link = &self.root;
        while let Some(at) = link.get()
            && !ptr::eq(at, node)
        {
            link = at.toward(node.start.get());
        }
        let (mut lower, mut upper) = (node.left.get(), node.right.get());
        while let (Some(low), Some(high)) = (lower, upper) {
            if low.priority.get() >= high.priority.get() {
                link.set(lower);
                link = &low.right;
                lower = link.get();
            } else {
                link.set(upper);
                link = &high.left;
                upper = link.get();
            }
        }
        link.set(lower.or(upper));
    }

    /// Whether each node's addresses and priorities are on the right side of its
    /// parent's, and how many there are.
    #[cfg(test)]
    pub(crate) fn check(&self) -> usize {
        fn below(link: Link, (low, high): (usize, usize), most: u64) -> usize {
            let Some(node) = link else { return 0 };
            let (start, end) = (node.start.get(), node.end.get());
            assert!(low <= start && end <= high && node.priority.get() <= most);
            let most = node.priority.get();
            1 + below(node.left.get(), (low, start), most)
                + below(node.right.get(), (end, high), most)
        }
        below(self.root.get(), (0, usize::MAX), u64::MAX)
    }
}
