//! The splay load of V8's benchmarks, as in `bench/gc/loads/splay.c`: a self-adjusting tree under
//! random keys. Each node has a payload, which is another tree.
//!
//! ```text
//!   node --> branch --> branch --> ... --> leaf --> array of ten numbers
//!   node --> ...    --> ...                    --> string
//! ```
//!
//! A turn inserts 80 new nodes, and for each removes the greatest node with a smaller key. Most of
//! the heap stays, and the tree's references change all the time: the load measures the cost of
//! tracking them.

use figures::random::Random;

use super::Collector;

mod shared;

pub(crate) use shared::Node;

const MODIFIED: usize = 80;
/// Branches from a node to each leaf of its payload.
pub(crate) const PAYLOAD_DEPTH: u32 = 5;
pub(crate) const NUMBERS: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

pub(crate) trait Splay {
    /// Lends its tree to a turn, and keeps the returned tree.
    fn turn(&mut self, turn: &mut Turn);

    fn collector(&self) -> Option<Collector> {
        None
    }
}

/// A sorted tree, whose nodes are allocated in a `Heap`.
pub(crate) trait Tree {
    type Heap;
    /// Inserts a new node, unless the key exists.
    fn insert(&mut self, heap: &Self::Heap, key: u64);
    /// Removes the node with the greatest key up to this one, or with the least key of all.
    fn take_out(&mut self, heap: &Self::Heap, key: u64);
    /// Removes the node with the least key. Returns the result of [`look`] there.
    fn take_least(&mut self, heap: &Self::Heap) -> Option<u64>;
}

pub(crate) struct Turn {
    what: What,
    random: Random,
    checksum: u64,
}

enum What {
    /// Inserts this many nodes.
    Grow(usize),
    /// Inserts nodes, and removes another one for each.
    Modify,
    /// Removes all nodes, from the least key on, and reads them.
    Empty,
}

impl Turn {
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

pub(crate) fn work(peer: &mut impl Splay, size: usize, rounds: usize) {
    let mut turn = Turn { what: What::Modify, random: Random::new(42), checksum: 0 };
    for from in (0..size).step_by(MODIFIED) {
        turn.what = What::Grow(MODIFIED.min(size - from));
        peer.turn(&mut turn);
    }
    turn.what = What::Modify;
    (0..rounds).for_each(|_| peer.turn(&mut turn));
}

/// Not part of the load: peers that count references free the whole tree here.
pub(crate) fn checksum(peer: &mut impl Splay) -> u64 {
    let mut turn = Turn { what: What::Empty, random: Random::new(42), checksum: 0 };
    peer.turn(&mut turn);
    turn.checksum
}

pub(crate) fn fork<T>(way: &mut u64, left: T, right: T) -> T {
    let bit = *way & 1;
    *way >>= 1;
    if bit == 0 { left } else { right }
}

/// Returns a node's part of the checksum: its key, and a little of the leaf that its bits select.
pub(crate) fn look(key: u64, numbers: &[u64; 10], text: &str) -> u64 {
    key ^ numbers[9] ^ u64::from(text.as_bytes()[15])
}

/// The string of a leaf, which contains the key.
pub(crate) struct Text([u8; 44]);

impl Text {
    /// Makes the string by hand, in the script's form: formatting would take half of the time.
    pub(crate) fn of(key: u64) -> Self {
        let mut text = *b"String for key 0123456789abcdef in leaf node";
        for (digit, at) in text[15..31].iter_mut().enumerate() {
            *at = b"0123456789abcdef"[(key >> (60 - 4 * digit) & 15) as usize];
        }
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters and digits")
    }
}

/// Returns a key, the same for every peer; never 0.
fn key(random: &mut Random) -> u64 {
    random.bits().max(1)
}
