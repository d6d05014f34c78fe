//! The loads for peers whose handles are cloned and dropped: the common code of `rc`, `dumpster`
//! and `gc`. Each includes this file as its own module, and defines these names:
//!
//! ```text
//!   Shared            its handle             Tree, Node, SplayNode, Payload   the peer's types
//!   Place             its cell               Link                             behind handles
//!   Values, values    an array, and a function that makes one
//! ```
//!
//! Handles are moved where possible, because a copy is counted.

use super::{Link, Node, Payload, Place, Shared, SplayNode, Tree, Values, values};
use crate::loads::splay::{self, NUMBERS, PAYLOAD_DEPTH, Text, Turn};
use crate::loads::{BinaryTrees, GcBench, Splay, gcbench};
use crate::peers::Peer;

pub(crate) struct Handles;

impl Peer for Handles {
    fn binary_trees(&self) -> impl BinaryTrees {
        Trees { kept: None }
    }

    fn gcbench(&self) -> impl GcBench {
        Bench { tree: None, values: None }
    }

    fn splay(&self) -> impl Splay {
        Sorted { tree: None }
    }
}

// --- binary-trees ---

fn tree(depth: u32) -> Shared<Tree> {
    let below = || (depth > 0).then(|| tree(depth - 1));
    Shared::new(Tree { left: below(), right: below() })
}

fn count(tree: &Shared<Tree>) -> u64 {
    1 + tree.left.as_ref().map_or(0, count) + tree.right.as_ref().map_or(0, count)
}

struct Trees {
    kept: Option<Shared<Tree>>,
}

impl BinaryTrees for Trees {
    fn short_lived(&mut self, depth: u32) -> u64 {
        count(&tree(depth))
    }

    fn keep(&mut self, depth: u32) {
        self.kept = Some(tree(depth));
    }

    fn count_kept(&mut self) -> u64 {
        self.kept.as_ref().map_or(0, count)
    }
}

// --- gcbench ---

fn node(below: [Option<Shared<Node>>; 2]) -> Shared<Node> {
    let [left, right] = below.map(Place::new);
    Shared::new(Node { left, right, i: 0, j: 0 })
}

fn bottom_up(depth: u32) -> Shared<Node> {
    let below = || (depth > 0).then(|| bottom_up(depth - 1));
    node([below(), below()])
}

fn populate(depth: u32, parent: &Shared<Node>) {
    if depth > 0 {
        *parent.left.borrow_mut() = Some(node([None, None]));
        *parent.right.borrow_mut() = Some(node([None, None]));
        for below in [&parent.left, &parent.right] {
            below.borrow().iter().for_each(|below| populate(depth - 1, below));
        }
    }
}

fn top_down(depth: u32) -> Shared<Node> {
    let root = node([None, None]);
    populate(depth, &root);
    root
}

fn peek(tree: &Shared<Node>) -> u64 {
    let left = tree.left.borrow();
    u64::from(left.as_ref().is_some_and(|left| left.right.borrow().is_some()))
}

fn count_nodes(tree: &Shared<Node>) -> u64 {
    let below = |link: &Link| link.borrow().as_ref().map_or(0, count_nodes);
    1 + below(&tree.left) + below(&tree.right) + u64::from(tree.i != tree.j)
}

struct Bench {
    tree: Option<Shared<Node>>,
    values: Option<Values>,
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
        self.values = Some(values(length));
    }

    fn count_kept(&mut self) -> u64 {
        let values = self.values.as_ref().map_or(0, |values| gcbench::right(values));
        self.tree.as_ref().map_or(0, count_nodes) + values
    }
}

// --- splay ---

fn payload(depth: u32, key: u64) -> Shared<Payload> {
    Shared::new(match depth.checked_sub(1) {
        Some(depth) => Payload::Branch(payload(depth, key), payload(depth, key)),
        None => Payload::Leaf(Shared::new(NUMBERS), Text::of(key).as_str().into()),
    })
}

impl splay::Node for Shared<SplayNode> {
    type Heap = ();

    fn new((): &(), key: u64) -> Self {
        let payload = payload(PAYLOAD_DEPTH, key);
        Shared::new(SplayNode { key, below: Default::default(), payload })
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn key_below(&self, side: usize) -> Option<u64> {
        self.below[side].borrow().as_ref().map(|below| below.key)
    }

    fn take(&self, (): &(), side: usize) -> Option<Self> {
        self.below[side].borrow_mut().take()
    }

    fn put(&self, (): &(), side: usize, below: Option<Self>) {
        *self.below[side].borrow_mut() = below;
    }

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

struct Sorted {
    tree: Option<Shared<SplayNode>>,
}

impl Splay for Sorted {
    fn turn(&mut self, turn: &mut Turn) {
        self.tree = turn.with(&(), self.tree.take());
    }
}
