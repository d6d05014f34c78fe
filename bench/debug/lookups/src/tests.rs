//! Each policy finds what is there, in any order of openings and emptyings.

use crate::map::Map;
use crate::nodes::{InTreap, Listed, Node};
use crate::treap::Treap;
use crate::{Policy, SLOTS, slot_of, start_of};

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *random >> 20
}

fn finds_what_is_open<P: Policy>() {
    let mut policy = P::new(200);
    let (mut open, mut random) = ([false; 200], 7);
    for _ in 0..20_000 {
        let bucket = next(&mut random) as usize % open.len();
        if open[bucket] {
            assert_eq!(policy.empty(slot_of(bucket as u32, 0)), Some(bucket as u32));
        } else {
            policy.open(bucket as u32);
        }
        open[bucket] = !open[bucket];
        let bucket = next(&mut random) as usize % open.len();
        let address = slot_of(bucket as u32, next(&mut random) as usize % SLOTS);
        assert_eq!(policy.find(address), open[bucket].then_some(bucket as u32));
    }
}

#[test]
fn every_policy_finds_what_is_open() {
    finds_what_is_open::<Listed>();
    finds_what_is_open::<InTreap<false>>();
    finds_what_is_open::<InTreap<true>>();
    finds_what_is_open::<Map>();
}

#[test]
fn a_treap_is_in_the_order_of_addresses_and_of_priorities() {
    let treap = Treap::new();
    let node = |bucket: u32| -> &'static Node {
        let node: &'static Node = Box::leak(Box::default());
        node.start.set(start_of(bucket));
        node.end.set(start_of(bucket + 1));
        node
    };
    let nodes: Vec<_> = (0..100).map(node).collect();
    let (mut held, mut random) = ([false; 100], 7);
    for _ in 0..2000 {
        let at = next(&mut random) as usize % nodes.len();
        if held[at] {
            treap.remove(nodes[at])
        } else {
            treap.insert(nodes[at])
        }
        held[at] = !held[at];
        assert_eq!(treap.check(), held.iter().filter(|&&held| held).count());
    }
}
