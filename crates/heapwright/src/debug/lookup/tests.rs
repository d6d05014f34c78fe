//! What each policy finds is what is there.

extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use std::vec::Vec;

use super::*;
use crate::debug::{Config, DebugHeap, Guard};

const POLICIES: [Lookup; 4] = [Lookup::List, Lookup::Treap, Lookup::TreapCurrentFirst, Lookup::Map];

/// Nodes of buckets of 4 KiB at multiples of it.
fn nodes(count: usize) -> Vec<&'static Node> {
    let zero = || Node {
        start: Cell::new(0),
        end: Cell::new(0),
        bucket: Cell::new(ptr::null_mut()),
        priority: Cell::new(0),
        left: Cell::new(None),
        right: Cell::new(None),
    };
    let make = |index: usize| {
        let node: &'static Node = std::boxed::Box::leak(std::boxed::Box::new(zero()));
        node.start.set((index + 1) << 12);
        node.end.set((index + 2) << 12);
        node
    };
    (0..count).map(make).collect()
}

#[test]
fn a_treap_and_a_list_hold_what_was_put_into_them() {
    let nodes = nodes(200);
    let (treap, list) = (Treap::new(), List::new());
    for in_treap in [true, false] {
        let mut held = [false; 200];
        let mut random = 7u64;
        for _ in 0..if cfg!(miri) { 500 } else { 20_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 33) as usize % nodes.len();
            let node = nodes[at];
            match (in_treap, held[at]) {
                (true, true) => treap.remove(node),
                (true, false) => treap.insert(node),
                (false, true) => list.remove(node),
                (false, false) => list.insert(node),
            }
            held[at] = !held[at];
            let at = (random >> 50) as usize % nodes.len();
            let inside = nodes[at].start.get() + (random >> 20) as usize % 4096;
            let found = if in_treap { treap.find(inside) } else { list.find(inside) };
            assert_eq!(found.is_some(), held[at]);
            assert!(found.is_none_or(|found| ptr::eq(found, nodes[at])));
            if in_treap {
                assert_eq!(treap.check(), held.iter().filter(|&&held| held).count());
            }
        }
        let pop = || if in_treap { treap.pop() } else { list.pop() };
        assert_eq!(core::iter::from_fn(pop).count(), held.iter().filter(|&&held| held).count());
    }
}

/// Each free asserts that the policy agrees with the map.
#[test]
fn every_policy_finds_what_the_map_finds() {
    for lookup in POLICIES {
        let config =
            Config { guard: Guard::Never, traces: 0, slots: 4, quiet: true, ..Config::DEFAULT };
        for _ in 0..2 {
            let own = DebugHeap::new(Config { lookup, ..config });
            let heap = &own;
            std::thread::scope(|scope| {
                for thread in 0..3u64 {
                    scope.spawn(move || {
                        let mut random = thread + 1;
                        let mut blocks = Vec::new();
                        for _ in 0..if cfg!(miri) { 60 } else { 4000 } {
                            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            let layout =
                                Layout::from_size_align((random >> 40) as usize % 300 + 1, 8)
                                    .unwrap();
                            // SAFETY: the size is not zero.
                            blocks.push((unsafe { heap.alloc(layout) }, layout));
                            if blocks.len() > 50 {
                                let (block, layout) =
                                    blocks.swap_remove((random >> 33) as usize % blocks.len());
                                // SAFETY: ours, with this layout.
                                unsafe { heap.dealloc(block, layout) };
                            }
                        }
                        for (block, layout) in blocks {
                            // SAFETY: freed once, with the layout that it was allocated with.
                            unsafe { heap.dealloc(block, layout) };
                        }
                    });
                }
            });
            let layout = Layout::new::<[u64; 5]>();
            // SAFETY: the size is not zero.
            let block = unsafe { heap.alloc(layout) };
            // SAFETY: ours.
            unsafe { heap.dealloc(block, layout) };
            // SAFETY: a mistake, which the heap sees: in a bucket that stays open.
            unsafe { heap.dealloc(block, layout) };
            assert_eq!(heap.findings(), 1, "{lookup:?}");
            // With buckets open: they are forgotten, and the nodes used again.
            own.deinit();
        }
    }
}
