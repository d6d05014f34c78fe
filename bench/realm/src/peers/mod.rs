//! The peers: five ways to share values in safe Rust, each in the style of its documentation.
//!
//! | peer | a value lives while | dead values are found |
//! |---|---|---|
//! | `heapwright` | the root leads to it | when `mutate` returns, if it is time |
//! | `gc_arena` | the root leads to it | in `collect_debt`, in proportion to the allocations |
//! | `gc` | a handle on the stack leads to it | when something is allocated, if it is time |
//! | `dumpster` | it is counted, cycles excepted | when a handle is dropped, if it is time |
//! | `rc` | it is counted | |
//!
//! A peer that must be called to collect is called after each tree and each turn.

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

/// Makes the state of a load, which is empty at first.
pub(crate) trait Peer {
    fn binary_trees(&self) -> impl BinaryTrees;
    fn gcbench(&self) -> impl GcBench;
    fn splay(&self) -> impl Splay;
}

pub(crate) const NAMES: [&str; 5] = ["heapwright", "gc-arena", "gc", "dumpster", "rc"];

/// The result of a load. Time and memory are taken before the last live values are freed.
pub(crate) struct Done {
    pub(crate) checksum: u64,
    pub(crate) wall: Duration,
    pub(crate) peak_kib: u64,
    pub(crate) collector: Option<Collector>,
}

/// Runs a load with a peer. `most` is the byte limit of heapwright's heap, 0 for none.
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
