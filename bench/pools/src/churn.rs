//! A million nodes made and dropped at random, each through an owning handle.
//!
//! `graph` is plurality's own benchmark, rewritten: a million nodes of 96 bytes, at most a quarter
//! of a million of them alive. Six of ten steps add a node with up to eight live neighbours, and
//! read these neighbours. The other steps remove a node. The steps are made before the clock
//! starts. As in plurality's benchmark, the result is the time for each node.
//!
//! `list` is a list of a million live boxes of 32 bytes. Each step drops a random box and puts a
//! new one in its place.

use std::hint::black_box;
use std::ops::DerefMut;

use crate::measure::{Object, report, time, warm_host};
use crate::pairs::Maker;
use figures::random::Random;

const NEIGHBOURS: usize = 8;
const ALIVE: usize = 250_000;
const LIST: usize = 1_000_000;
/// More memory than any contender takes.
const WARM: usize = 160 << 20;

/// A node of the graph.
pub struct Node {
    id: u64,
    payload: [u64; 6],
    degree: u32,
    neighbours: [u32; NEIGHBOURS],
}

enum Step {
    Insert { at: u32, degree: u32, neighbours: [u32; NEIGHBOURS] },
    Remove { at: u32 },
}

fn steps(nodes: usize) -> Vec<Step> {
    let mut random = Random::new(crate::SEED);
    let mut vacant: Vec<u32> = (0..ALIVE as u32).rev().collect();
    let mut alive: Vec<u32> = Vec::with_capacity(ALIVE);
    let mut steps = Vec::with_capacity(2 * nodes);
    let mut made = 0;
    while made < nodes {
        let insert = alive.is_empty() || (!vacant.is_empty() && random.below(10) < 6);
        if let (true, Some(at)) = (insert, vacant.last().copied()) {
            vacant.pop();
            let degree = if alive.is_empty() { 0 } else { random.below(NEIGHBOURS + 1) };
            let mut neighbours = [0; NEIGHBOURS];
            for neighbour in &mut neighbours[..degree] {
                *neighbour = alive[random.below(alive.len())];
            }
            steps.push(Step::Insert { at, degree: degree as u32, neighbours });
            alive.push(at);
            made += 1;
        } else {
            let at = alive.swap_remove(random.below(alive.len()));
            vacant.push(at);
            steps.push(Step::Remove { at });
        }
    }
    steps
}

/// Runs the steps. The sum depends on every node that was read.
pub fn graph<M>(mut maker: M, nodes: usize)
where
    M: Maker<Node>,
    M::Handle: DerefMut<Target = Node>,
{
    let steps = steps(nodes);
    let mut table: Vec<Option<M::Handle>> = (0..ALIVE).map(|_| None).collect();
    let mut sum = 0u64;
    // Warm the memory again: the steps took the touched pages.
    warm_host(WARM);
    let ns = time(nodes as u64, || {
        for (id, step) in (0u64..).zip(&steps) {
            match *step {
                Step::Insert { at, degree, neighbours } => {
                    let mut seen = id;
                    for &neighbour in &neighbours[..degree as usize] {
                        if let Some(node) = &table[neighbour as usize] {
                            seen ^= node.id.wrapping_mul(0x100_0000_01b3);
                        }
                    }
                    sum = sum.wrapping_add(seen);
                    let payload = [seen, id, !id, seen ^ id, 0, 0];
                    table[at as usize] = Some(maker.make(Node { id, payload, degree, neighbours }));
                }
                Step::Remove { at } => {
                    if let Some(node) = table[at as usize].take() {
                        sum ^= node.id.rotate_left(node.degree)
                            ^ node.payload[0]
                            ^ u64::from(node.neighbours[0]);
                        maker.end(node);
                    }
                }
            }
        }
        for node in table.iter_mut().filter_map(Option::take) {
            sum ^= node.id ^ node.payload[1];
            maker.end(node);
        }
    });
    report(ns);
    println!("counts {sum:x}");
}

/// Replaces `rounds` of a million boxes.
pub fn list<M>(mut maker: M, rounds: usize)
where
    M: Maker<Object>,
    M::Handle: DerefMut<Target = Object>,
{
    let mut boxes: Vec<Option<M::Handle>> =
        (0..LIST as u64).map(|i| Some(maker.make(Object::new(i)))).collect();
    let mut random = Random::new(crate::SEED);
    let mut go = |rounds| {
        for i in 0..rounds as u64 {
            let place = &mut boxes[random.below(LIST)];
            if let Some(old) = place.take() {
                maker.end(old);
            }
            let mut new = maker.make(Object::new(i));
            new.a += 1;
            *place = Some(new);
        }
    };
    // Mix the boxes, which were made in address order.
    go(rounds / 2);
    report(time(rounds as u64, || go(rounds)));
    black_box(&boxes);
}

/// Runs `NAME graph|list COUNT`.
pub fn run(words: &[&str]) -> Option<()> {
    let [name, shape, count] = *words else { return None };
    let count = count.parse().ok()?;
    warm_host(WARM);
    crate::peers::churn(name, shape, count).or_else(|| crate::ours::churn(name, shape, count))
}
