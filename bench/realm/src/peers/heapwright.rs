//! heapwright's safe interface. Each tree and each turn is one `mutate`, which pays for its
//! allocations when it returns.

use heapwright::Rootable;
use heapwright::gc::raw::Options;
use heapwright::gc::{Cell, Gc, Mutation, Realm, Rootable, Slice, Str, Trace};

use super::Peer;
use crate::loads::splay::{self, NUMBERS, PAYLOAD_DEPTH, Text, Turn};
use crate::loads::{BinaryTrees, Collector, GcBench, Splay, gcbench};

pub(super) struct Heapwright {
    /// The limit in bytes; 0 if there is none.
    pub(super) most: usize,
}

impl Heapwright {
    fn realm<R: ?Sized + for<'gc> Rootable<'gc>>(
        &self,
        root: impl for<'gc> FnOnce(&Mutation<'gc>) -> <R as Rootable<'gc>>::Root,
    ) -> Realm<R> {
        match self.most {
            0 => Realm::new(root),
            most => {
                let options = Options { generations: true, compact: true, most, ..Options::new() };
                Realm::with(options, root)
            }
        }
    }
}

impl Peer for Heapwright {
    fn binary_trees(&self) -> impl BinaryTrees {
        Trees { realm: self.realm(|_| Cell::new(None)) }
    }

    fn gcbench(&self) -> impl GcBench {
        Bench { realm: self.realm(|_| Kept::default()) }
    }

    fn splay(&self) -> impl Splay {
        Sorted { realm: self.realm(|_| Cell::new(None)) }
    }
}

fn collector<R: ?Sized + for<'gc> Rootable<'gc>>(realm: &Realm<R>) -> Option<Collector> {
    let statistics = realm.statistics();
    let ns = statistics.pause_ns + statistics.sweep_ns;
    Some(Collector { ns, cycles: statistics.cycles, minor_cycles: statistics.minor_cycles })
}

// --- binary-trees ---

#[derive(Trace)]
struct Tree<'gc> {
    left: Option<Gc<'gc, Tree<'gc>>>,
    right: Option<Gc<'gc, Tree<'gc>>>,
}

fn tree<'gc>(mc: &Mutation<'gc>, depth: u32) -> Gc<'gc, Tree<'gc>> {
    let below = || (depth > 0).then(|| tree(mc, depth - 1));
    mc.alloc(Tree { left: below(), right: below() })
}

fn count(tree: Gc<Tree>) -> u64 {
    1 + tree.left.map_or(0, count) + tree.right.map_or(0, count)
}

type TreeRealm = Realm<Rootable!['gc => Cell<Option<Gc<'gc, Tree<'gc>>>>]>;

struct Trees {
    realm: TreeRealm,
}

impl BinaryTrees for Trees {
    fn short_lived(&mut self, depth: u32) -> u64 {
        self.realm.mutate(|mc, _| count(tree(mc, depth)))
    }

    fn keep(&mut self, depth: u32) {
        self.realm.mutate(|mc, root| root.set(mc, root, Some(tree(mc, depth))));
    }

    fn count_kept(&mut self) -> u64 {
        self.realm.mutate(|_, root| root.get().map_or(0, count))
    }

    fn collector(&self) -> Option<Collector> {
        collector(&self.realm)
    }
}

// --- gcbench ---

type Link<'gc> = Cell<Option<Gc<'gc, Node<'gc>>>>;

#[derive(Trace)]
struct Node<'gc> {
    left: Link<'gc>,
    right: Link<'gc>,
    i: i32,
    j: i32,
}

#[derive(Default, Trace)]
struct Kept<'gc> {
    tree: Link<'gc>,
    values: Cell<Option<Slice<'gc, f64>>>,
}

fn node<'gc>(mc: &Mutation<'gc>, below: [Option<Gc<'gc, Node<'gc>>>; 2]) -> Gc<'gc, Node<'gc>> {
    let [left, right] = below.map(Cell::new);
    mc.alloc(Node { left, right, i: 0, j: 0 })
}

fn bottom_up<'gc>(mc: &Mutation<'gc>, depth: u32) -> Gc<'gc, Node<'gc>> {
    let below = || (depth > 0).then(|| bottom_up(mc, depth - 1));
    node(mc, [below(), below()])
}

fn populate<'gc>(mc: &Mutation<'gc>, depth: u32, parent: Gc<'gc, Node<'gc>>) {
    if depth > 0 {
        let [left, right] = [node(mc, [None; 2]), node(mc, [None; 2])];
        parent.left.set(mc, parent, Some(left));
        parent.right.set(mc, parent, Some(right));
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

type BenchRealm = Realm<Rootable!['gc => Kept<'gc>]>;

struct Bench {
    realm: BenchRealm,
}

impl GcBench for Bench {
    fn top_down(&mut self, depth: u32) -> u64 {
        self.realm.mutate(|mc, _| peek(top_down(mc, depth)))
    }

    fn bottom_up(&mut self, depth: u32) -> u64 {
        self.realm.mutate(|mc, _| peek(bottom_up(mc, depth)))
    }

    fn keep(&mut self, depth: u32, length: usize) {
        self.realm.mutate(|mc, root| {
            root.tree.set(mc, root, Some(top_down(mc, depth)));
            root.values.set(mc, root, Some(mc.alloc_slice(length, gcbench::value)));
        });
    }

    fn count_kept(&mut self) -> u64 {
        self.realm.mutate(|_, root| {
            let values = root.values.get().map_or(0, |values| gcbench::right(&values));
            root.tree.get().map_or(0, count_nodes) + values
        })
    }

    fn collector(&self) -> Option<Collector> {
        collector(&self.realm)
    }
}

// --- splay ---

#[derive(Trace)]
struct SplayNode<'gc> {
    key: u64,
    below: [Cell<Option<Gc<'gc, SplayNode<'gc>>>>; 2],
    payload: Gc<'gc, Payload<'gc>>,
}

#[derive(Trace)]
enum Payload<'gc> {
    Branch(Gc<'gc, Payload<'gc>>, Gc<'gc, Payload<'gc>>),
    Leaf(Gc<'gc, [u64; 10]>, Str<'gc>),
}

fn payload<'gc>(mc: &Mutation<'gc>, depth: u32, key: u64) -> Gc<'gc, Payload<'gc>> {
    mc.alloc(match depth.checked_sub(1) {
        Some(depth) => Payload::Branch(payload(mc, depth, key), payload(mc, depth, key)),
        None => Payload::Leaf(mc.alloc(NUMBERS), mc.alloc_str(Text::of(key).as_str())),
    })
}

impl<'gc> splay::Node for Gc<'gc, SplayNode<'gc>> {
    type Heap = Mutation<'gc>;

    fn new(mc: &Mutation<'gc>, key: u64) -> Self {
        let payload = payload(mc, PAYLOAD_DEPTH, key);
        mc.alloc(SplayNode { key, below: Default::default(), payload })
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
        self.below[side].set(mc, *self, below);
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

type SortedRealm = Realm<Rootable!['gc => Cell<Option<Gc<'gc, SplayNode<'gc>>>>]>;

struct Sorted {
    realm: SortedRealm,
}

impl Splay for Sorted {
    fn turn(&mut self, turn: &mut Turn) {
        self.realm.mutate(|mc, root| {
            let tree = turn.with(mc, root.get());
            root.set(mc, root, tree);
        });
    }

    fn collector(&self) -> Option<Collector> {
        collector(&self.realm)
    }
}
