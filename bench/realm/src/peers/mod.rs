//! Who does it: five ways to share values in safe Rust, each in the words that its documentation
//! would use.
//!
//! | peer | what keeps a value | when it is looked for what is dead |
//! |---|---|---|
//! | `heapwright` | the root leads to it | when `mutate` returns, if it is time |
//! | `gc_arena` | the root leads to it | in `collect_debt`, as far as was allocated |
//! | `gc` | a handle on the stack leads to it | when something is allocated, if it is time |
//! | `dumpster` | it is counted, cycles excepted | when a handle is dropped, if it is time |
//! | `rc` | it is counted | |
//!
//! Where a store needs a cell it is the one that goes with the peer. Where a peer has to be called
//! to collect, it is after each tree and each turn, for that is where a program would do so.

#![allow(clippy::duplicate_mod, reason = "`handles.rs` is three peers' in common")]

use std::time::{Duration, Instant};

use crate::loads::{
    BinaryTrees, Collector, GcBench, Load, Sizes, Splay, binary_trees, gcbench, splay,
};
use crate::peak_kib;

mod dumpster;
mod gc;
mod gc_arena;
mod heapwright;
mod rc;

/// Makes what does a load, with nothing in it.
pub(crate) trait Peer {
    /// Its way with trees that come and go.
    fn binary_trees(&self) -> impl BinaryTrees;
    /// Its way with trees that are stored into.
    fn gcbench(&self) -> impl GcBench;
    /// Its way with a tree that stays.
    fn splay(&self) -> impl Splay;
}

/// Their names on the command line.
pub(crate) const NAMES: [&str; 5] = ["heapwright", "gc-arena", "gc", "dumpster", "rc"];

/// What came of a load. Time and memory are taken before what is alive at its end is given back.
pub(crate) struct Done {
    pub(crate) checksum: u64,
    pub(crate) wall: Duration,
    pub(crate) peak_kib: u64,
    pub(crate) collector: Option<Collector>,
}

/// Does a load with a peer; `most`: bytes that heapwright's heap may have, 0 for any number.
pub(crate) fn run(peer: &str, load: Load, sizes: Sizes, most: usize) -> Option<Done> {
    Some(match peer {
        "heapwright" => with(&heapwright::Heapwright { most }, load, sizes),
        "gc-arena" => with(&gc_arena::GcArena, load, sizes),
        "gc" => with(&gc::Gc, load, sizes),
        "dumpster" => with(&dumpster::Dumpster, load, sizes),
        "rc" => with(&rc::Rc, load, sizes),
        _ => return None,
    })
}

fn with(peer: &impl Peer, load: Load, sizes: Sizes) -> Done {
    let start = Instant::now();
    match load {
        Load::BinaryTrees => {
            let mut trees = peer.binary_trees();
            let checksum = binary_trees::work(&mut trees, sizes.depth);
            let (wall, peak_kib) = (start.elapsed(), peak_kib());
            Done { checksum, wall, peak_kib, collector: trees.collector() }
        }
        Load::GcBench => {
            let mut trees = peer.gcbench();
            let checksum = gcbench::work(&mut trees, sizes.depth);
            let (wall, peak_kib) = (start.elapsed(), peak_kib());
            Done { checksum, wall, peak_kib, collector: trees.collector() }
        }
        Load::Splay => {
            let mut tree = peer.splay();
            splay::work(&mut tree, sizes.size, sizes.rounds);
            let (wall, peak_kib, collector) = (start.elapsed(), peak_kib(), tree.collector());
            Done { checksum: splay::checksum(&mut tree), wall, peak_kib, collector }
        }
    }
}
