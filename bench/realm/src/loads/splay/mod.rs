//! The splay load of V8's benchmarks, as in `bench/gc/loads/splay.c`: a self-adjusting tree under
//! random keys, each node with a payload that is a tree of its own.
//!
//! ```text
//!   node --> branch --> branch --> ... --> leaf --> array of ten numbers
//!   node --> ...    --> ...                    --> string
//! ```
//!
//! A turn puts in 80 new nodes and takes out for each the greatest whose key is below. Most of
//! the heap stays and all of it is linked, and the tree's references change all the time:
//! what it costs is keeping up with that.
//!
//! - here: the load, and what a tree has to do
//! - `shared`: a tree of nodes that are shared; a peer writes the node

use figures::random::Random;

use super::Collector;

mod shared;

pub(crate) use shared::Node;

/// Nodes that a turn puts in.
const MODIFIED: usize = 80;
/// Branches from a node to each leaf of its payload.
pub(crate) const PAYLOAD_DEPTH: u32 = 5;
/// The array of each leaf.
pub(crate) const NUMBERS: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/// What a peer does.
pub(crate) trait Splay {
    /// Lends its tree to a turn, and keeps what comes back.
    fn turn(&mut self, turn: &mut Turn);

    /// What the peer's collector did, if it says so.
    fn collector(&self) -> Option<Collector> {
        None
    }
}

/// A sorted tree; `Heap` is what its nodes are made in.
pub(crate) trait Tree {
    /// What its nodes are made in.
    type Heap;
    /// Puts a new node in, unless the key is there.
    fn insert(&mut self, heap: &Self::Heap, key: u64);
    /// Takes out the node with the greatest key up to this one, or with the least of all.
    fn take_out(&mut self, heap: &Self::Heap, key: u64);
    /// Takes out the node with the least key, and says what [`look`] saw there.
    fn take_least(&mut self, heap: &Self::Heap) -> Option<u64>;
}

/// What is done to the tree in one go.
pub(crate) struct Turn {
    what: What,
    random: Random,
    checksum: u64,
}

enum What {
    /// So many nodes are put in.
    Grow(usize),
    /// Nodes are put in, and for each another one is taken out.
    Modify,
    /// All are taken out, from the least key on, and looked at.
    Empty,
}

impl Turn {
    /// Does it. The tree is lent and given back, for in some heaps it cannot be borrowed.
    pub(crate) fn with<T: Tree>(&mut self, heap: &T::Heap, mut tree: T) -> T {
        match self.what {
            What::Grow(nodes) => (0..nodes).for_each(|_| tree.insert(heap, key(&mut self.random))),
            What::Modify => {
                for _ in 0..MODIFIED {
                    let key = key(&mut self.random);
                    tree.insert(heap, key);
                    tree.take_out(heap, key - 1);
                }
            }
            What::Empty => {
                while let Some(seen) = tree.take_least(heap) {
                    self.checksum = self.checksum.wrapping_mul(31).wrapping_add(seen);
                }
            }
        }
        tree
    }
}

/// The load: a tree of so many nodes, modified so often.
pub(crate) fn work(peer: &mut impl Splay, size: usize, rounds: usize) {
    let mut turn = Turn { what: What::Modify, random: Random::new(42), checksum: 0 };
    for from in (0..size).step_by(MODIFIED) {
        turn.what = What::Grow(MODIFIED.min(size - from));
        peer.turn(&mut turn);
    }
    turn.what = What::Modify;
    (0..rounds).for_each(|_| peer.turn(&mut turn));
}

/// What became of it. Not part of the load: whoever counts gives the whole tree back here, and
/// whoever traces does not.
pub(crate) fn checksum(peer: &mut impl Splay) -> u64 {
    let mut turn = Turn { what: What::Empty, random: Random::new(42), checksum: 0 };
    peer.turn(&mut turn);
    turn.checksum
}

/// Where the way to a leaf goes on: one bit of it tells.
pub(crate) fn fork<T>(way: &mut u64, left: T, right: T) -> T {
    let bit = *way & 1;
    *way >>= 1;
    if bit == 0 { left } else { right }
}

/// A node's number in the checksum: its key, and a little of the leaf that its bits lead to.
pub(crate) fn look(key: u64, numbers: &[u64; 10], text: &str) -> u64 {
    key ^ numbers[9] ^ u64::from(text.as_bytes()[15])
}

/// The string of a leaf, with the key in it.
pub(crate) struct Text([u8; 44]);

impl Text {
    /// As the script makes it, by hand: formatting would be half of the time.
    pub(crate) fn of(key: u64) -> Self {
        let mut text = *b"String for key 0123456789abcdef in leaf node";
        for (digit, at) in text[15..31].iter_mut().enumerate() {
            *at = b"0123456789abcdef"[(key >> (60 - 4 * digit) & 15) as usize];
        }
        Self(text)
    }

    /// As a string.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters and digits")
    }
}

/// A key, the same with every peer; never 0.
fn key(random: &mut Random) -> u64 {
    random.bits().max(1)
}
