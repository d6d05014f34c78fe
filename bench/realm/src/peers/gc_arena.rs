//! gc-arena: one arena a load. Each tree and each turn is one `mutate`, and a `collect_debt` behind
//! it, with the default pacing. gc-arena has no strings, so a leaf owns a boxed one.

use gc_arena::barrier::{field, unlock};
use gc_arena::lock::Lock;
use gc_arena::{Arena, Collect, Gc, Mutation, Rootable};

use super::Peer;
use crate::loads::splay::{self, NUMBERS, PAYLOAD_DEPTH, Text, Turn};
use crate::loads::{BinaryTrees, GcBench, Splay, gcbench};

pub(super) struct GcArena;

impl Peer for GcArena {
    fn binary_trees(&self) -> impl BinaryTrees {
        Trees { arena: Arena::new(|mc| Gc::new(mc, Lock::new(None))) }
    }

    fn gcbench(&self) -> impl GcBench {
        Bench { arena: Arena::new(|mc| Gc::new(mc, Kept::default())) }
    }

    fn splay(&self) -> impl Splay {
        Sorted { arena: Arena::new(|mc| Gc::new(mc, Lock::new(None))) }
    }
}

// --- binary-trees ---

#[derive(Collect)]
#[collect(no_drop)]
struct Tree<'gc> {
    left: Option<Gc<'gc, Tree<'gc>>>,
    right: Option<Gc<'gc, Tree<'gc>>>,
}

fn tree<'gc>(mc: &Mutation<'gc>, depth: u32) -> Gc<'gc, Tree<'gc>> {
    let below = || (depth > 0).then(|| tree(mc, depth - 1));
    Gc::new(mc, Tree { left: below(), right: below() })
}

fn count(tree: Gc<Tree>) -> u64 {
    1 + tree.left.map_or(0, count) + tree.right.map_or(0, count)
}

type TreeArena = Arena<Rootable![Gc<'_, Lock<Option<Gc<'_, Tree<'_>>>>>]>;

struct Trees {
    arena: TreeArena,
}

impl BinaryTrees for Trees {
    fn short_lived(&mut self, depth: u32) -> u64 {
        let nodes = self.arena.mutate(|mc, _| count(tree(mc, depth)));
        self.arena.collect_debt();
        nodes
    }

    fn keep(&mut self, depth: u32) {
        self.arena.mutate(|mc, root| root.set(mc, Some(tree(mc, depth))));
        self.arena.collect_debt();
    }

    fn count_kept(&mut self) -> u64 {
        self.arena.mutate(|_, root| root.get().map_or(0, count))
    }
}

// --- gcbench ---

type Link<'gc> = Lock<Option<Gc<'gc, Node<'gc>>>>;

#[derive(Collect)]
#[collect(no_drop)]
struct Node<'gc> {
    left: Link<'gc>,
    right: Link<'gc>,
    i: i32,
    j: i32,
}

#[derive(Collect, Default)]
#[collect(no_drop)]
struct Kept<'gc> {
    tree: Link<'gc>,
    values: Lock<Option<Gc<'gc, Box<[f64]>>>>,
}

fn node<'gc>(mc: &Mutation<'gc>, below: [Option<Gc<'gc, Node<'gc>>>; 2]) -> Gc<'gc, Node<'gc>> {
    let [left, right] = below.map(Lock::new);
    Gc::new(mc, Node { left, right, i: 0, j: 0 })
}

fn bottom_up<'gc>(mc: &Mutation<'gc>, depth: u32) -> Gc<'gc, Node<'gc>> {
    let below = || (depth > 0).then(|| bottom_up(mc, depth - 1));
    node(mc, [below(), below()])
}

fn populate<'gc>(mc: &Mutation<'gc>, depth: u32, parent: Gc<'gc, Node<'gc>>) {
    if depth > 0 {
        let [left, right] = [node(mc, [None; 2]), node(mc, [None; 2])];
        let write = Gc::write(mc, parent);
        unlock!(write, Node, left).set(Some(left));
        unlock!(write, Node, right).set(Some(right));
        populate(mc, depth - 1, left);
        populate(mc, depth - 1, right);
    }
}

fn top_down<'gc>(mc: &Mutation<'gc>, depth: u32) -> Gc<'gc, Node<'gc>> {
    let root = node(mc, [None; 2]);
    populate(mc, depth, root);
    root
}

fn peek(tree: Gc<Node>) -> u64 {
    u64::from(tree.left.get().is_some_and(|left| left.right.get().is_some()))
}

fn count_nodes(tree: Gc<Node>) -> u64 {
    let below = tree.left.get().map_or(0, count_nodes) + tree.right.get().map_or(0, count_nodes);
    1 + below + u64::from(tree.i != tree.j)
}

type BenchArena = Arena<Rootable![Gc<'_, Kept<'_>>]>;

struct Bench {
    arena: BenchArena,
}

impl GcBench for Bench {
    fn top_down(&mut self, depth: u32) -> u64 {
        let seen = self.arena.mutate(|mc, _| peek(top_down(mc, depth)));
        self.arena.collect_debt();
        seen
    }

    fn bottom_up(&mut self, depth: u32) -> u64 {
        let seen = self.arena.mutate(|mc, _| peek(bottom_up(mc, depth)));
        self.arena.collect_debt();
        seen
    }

    fn keep(&mut self, depth: u32, length: usize) {
        self.arena.mutate(|mc, root| {
            let values = Gc::new(mc, (0..length).map(gcbench::value).collect());
            let write = Gc::write(mc, *root);
            unlock!(write, Kept, tree).set(Some(top_down(mc, depth)));
            unlock!(write, Kept, values).set(Some(values));
        });
        self.arena.collect_debt();
    }

    fn count_kept(&mut self) -> u64 {
        self.arena.mutate(|_, root| {
            let values = root.values.get().map_or(0, |values| gcbench::right(&values));
            root.tree.get().map_or(0, count_nodes) + values
        })
    }
}

// --- splay ---

#[derive(Collect)]
#[collect(no_drop)]
struct SplayNode<'gc> {
    key: u64,
    below: [Lock<Option<Gc<'gc, SplayNode<'gc>>>>; 2],
    payload: Gc<'gc, Payload<'gc>>,
}

#[derive(Collect)]
#[collect(no_drop)]
enum Payload<'gc> {
    Branch(Gc<'gc, Payload<'gc>>, Gc<'gc, Payload<'gc>>),
    Leaf(Gc<'gc, [u64; 10]>, Box<str>),
}

fn payload<'gc>(mc: &Mutation<'gc>, depth: u32, key: u64) -> Gc<'gc, Payload<'gc>> {
    let value = match depth.checked_sub(1) {
        Some(depth) => Payload::Branch(payload(mc, depth, key), payload(mc, depth, key)),
        None => Payload::Leaf(Gc::new(mc, NUMBERS), Text::of(key).as_str().into()),
    };
    Gc::new(mc, value)
}

impl<'gc> splay::Node for Gc<'gc, SplayNode<'gc>> {
    type Heap = Mutation<'gc>;

    fn new(mc: &Mutation<'gc>, key: u64) -> Self {
        let payload = payload(mc, PAYLOAD_DEPTH, key);
        Gc::new(mc, SplayNode { key, below: Default::default(), payload })
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn key_below(&self, side: usize) -> Option<u64> {
        self.below[side].get().map(|below| below.key)
    }

    fn take(&self, _: &Mutation<'gc>, side: usize) -> Option<Self> {
        self.below[side].get()
    }

    fn put(&self, mc: &Mutation<'gc>, side: usize, below: Option<Self>) {
        field!(Gc::write(mc, *self), SplayNode, below)[side].unlock().set(below);
    }

    fn look(&self) -> u64 {
        let (mut at, mut way) = (self.payload, self.key);
        loop {
            match &*at {
                Payload::Branch(left, right) => at = splay::fork(&mut way, *left, *right),
                Payload::Leaf(numbers, text) => return splay::look(self.key, numbers, text),
            }
        }
    }
}

type SortedArena = Arena<Rootable![Gc<'_, Lock<Option<Gc<'_, SplayNode<'_>>>>>]>;

struct Sorted {
    arena: SortedArena,
}

impl Splay for Sorted {
    fn turn(&mut self, turn: &mut Turn) {
        self.arena.mutate(|mc, root| root.set(mc, turn.with(mc, root.get())));
        self.arena.collect_debt();
    }
}
