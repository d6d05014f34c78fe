//! Plain ownership: what the loads cost where nothing is shared at all.
//!
//! Trees are built top down through `&mut`, and splay is Sleator and Tarjan's algorithm with
//! two borrowed places, where what is less and what is greater goes on.

use super::Peer;
use crate::loads::splay::{self, LEFT, NUMBERS, PAYLOAD_DEPTH, RIGHT, Text, Turn};
use crate::loads::{BinaryTrees, GcBench, Splay, gcbench};

/// Nothing is set.
pub(super) struct Boxes;

impl Peer for Boxes {
    fn binary_trees(&self) -> impl BinaryTrees {
        Trees { kept: None }
    }

    fn gcbench(&self) -> impl GcBench {
        Bench { tree: None, values: Box::default() }
    }

    fn splay(&self) -> impl Splay {
        Sorted { tree: None }
    }
}

// --- binary-trees ---

struct Tree {
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
}

fn tree(depth: u32) -> Box<Tree> {
    let below = || (depth > 0).then(|| tree(depth - 1));
    Box::new(Tree { left: below(), right: below() })
}

fn count(tree: &Tree) -> u64 {
    let below = |link: &Option<Box<Tree>>| link.as_deref().map_or(0, count);
    1 + below(&tree.left) + below(&tree.right)
}

struct Trees {
    kept: Option<Box<Tree>>,
}

impl BinaryTrees for Trees {
    fn short_lived(&mut self, depth: u32) -> u64 {
        count(&tree(depth))
    }

    fn keep(&mut self, depth: u32) {
        self.kept = Some(tree(depth));
    }

    fn count_kept(&mut self) -> u64 {
        self.kept.as_deref().map_or(0, count)
    }
}

// --- gcbench ---

struct Node {
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
    i: i32,
    j: i32,
}

fn node(left: Option<Box<Node>>, right: Option<Box<Node>>) -> Box<Node> {
    Box::new(Node { left, right, i: 0, j: 0 })
}

fn bottom_up(depth: u32) -> Box<Node> {
    let below = || (depth > 0).then(|| bottom_up(depth - 1));
    node(below(), below())
}

fn populate(depth: u32, parent: &mut Node) {
    if depth > 0 {
        let left = parent.left.insert(node(None, None));
        let right = parent.right.insert(node(None, None));
        populate(depth - 1, left);
        populate(depth - 1, right);
    }
}

fn top_down(depth: u32) -> Box<Node> {
    let mut root = node(None, None);
    populate(depth, &mut root);
    root
}

fn peek(tree: &Node) -> u64 {
    u64::from(tree.left.as_ref().is_some_and(|left| left.right.is_some()))
}

fn count_nodes(tree: &Node) -> u64 {
    let below = |link: &Option<Box<Node>>| link.as_deref().map_or(0, count_nodes);
    1 + below(&tree.left) + below(&tree.right) + u64::from(tree.i != tree.j)
}

struct Bench {
    tree: Option<Box<Node>>,
    values: Box<[f64]>,
}

impl GcBench for Bench {
    fn top_down(&mut self, depth: u32) -> u64 {
        peek(&top_down(depth))
    }

    fn bottom_up(&mut self, depth: u32) -> u64 {
        peek(&bottom_up(depth))
    }

    fn keep(&mut self, depth: u32, length: usize) {
        self.tree = Some(top_down(depth));
        self.values = (0..length).map(gcbench::value).collect();
    }

    fn count_kept(&mut self) -> u64 {
        self.tree.as_deref().map_or(0, count_nodes) + gcbench::right(&self.values)
    }
}

// --- splay ---

type Link = Option<Box<SplayNode>>;

struct SplayNode {
    key: u64,
    below: [Link; 2],
    payload: Box<Payload>,
}

enum Payload {
    Branch(Box<Payload>, Box<Payload>),
    Leaf(Box<[u64; 10]>, Box<str>),
}

fn payload(depth: u32, key: u64) -> Box<Payload> {
    Box::new(match depth.checked_sub(1) {
        Some(depth) => Payload::Branch(payload(depth, key), payload(depth, key)),
        None => Payload::Leaf(Box::new(NUMBERS), Text::of(key).as_str().into()),
    })
}

impl SplayNode {
    fn look(&self) -> u64 {
        let (mut at, mut way) = (&self.payload, self.key);
        loop {
            match &**at {
                Payload::Branch(left, right) => at = splay::fork(&mut way, left, right),
                Payload::Leaf(numbers, text) => return splay::look(self.key, numbers, text),
            }
        }
    }
}

/// Brings the node with the key, or one beside where it would be, to the root.
fn splay(root: Box<SplayNode>, key: u64) -> Box<SplayNode> {
    let mut current = root;
    let (mut less, mut greater) = (None, None);
    // Where each goes on: at the right of the last that is less, at the left of the last that is
    // greater.
    let mut ends: [&mut Link; 2] = [&mut less, &mut greater];
    while key != current.key {
        let side = if key < current.key { LEFT } else { RIGHT };
        let across = 1 - side;
        let Some(mut next) = current.below[side].take() else { break };
        // Twice to the same side: a rotation.
        if key != next.key && (key < next.key) == (side == LEFT) {
            current.below[side] = next.below[across].take();
            next.below[across] = Some(current);
            current = next;
            next = match current.below[side].take() {
                Some(next) => next,
                None => break,
            };
        }
        let [end_less, end_greater] = ends;
        ends = match side {
            LEFT => [end_less, &mut end_greater.insert(current).below[LEFT]],
            _ => [&mut end_less.insert(current).below[RIGHT], end_greater],
        };
        current = next;
    }
    let [end_less, end_greater] = ends;
    *end_less = current.below[LEFT].take();
    *end_greater = current.below[RIGHT].take();
    current.below = [less, greater];
    current
}

impl splay::Tree for Link {
    type Heap = ();

    fn insert(&mut self, (): &(), key: u64) {
        let mut below = [None, None];
        if let Some(root) = self.take() {
            let mut root = splay(root, key);
            if root.key == key {
                *self = Some(root);
                return;
            }
            let side = if key < root.key { LEFT } else { RIGHT };
            below[side] = root.below[side].take();
            below[1 - side] = Some(root);
        }
        *self = Some(Box::new(SplayNode { key, below, payload: payload(PAYLOAD_DEPTH, key) }));
    }

    fn take_out(&mut self, (): &(), key: u64) {
        let Some(root) = self.take() else { return };
        let mut root = splay(root, key);
        *self = match root.below[LEFT].take() {
            // The greatest of what is less goes.
            Some(less) if root.key > key => {
                root.below[LEFT] = splay(less, u64::MAX).below[LEFT].take();
                Some(root)
            }
            // The root goes, and the greatest of what is less takes its place.
            Some(less) => {
                let mut greatest = splay(less, u64::MAX);
                greatest.below[RIGHT] = root.below[RIGHT].take();
                Some(greatest)
            }
            None => root.below[RIGHT].take(),
        };
    }

    fn take_least(&mut self, (): &()) -> Option<u64> {
        let mut root = splay(self.take()?, 0);
        *self = root.below[RIGHT].take();
        Some(root.look())
    }
}

struct Sorted {
    tree: Link,
}

impl Splay for Sorted {
    fn turn(&mut self, turn: &mut Turn) {
        self.tree = turn.with(&(), self.tree.take());
    }
}
