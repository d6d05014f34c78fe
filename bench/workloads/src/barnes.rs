//! Bodies that attract each other, in a tree that speeds up the sums.
//!
//! The models are Barnes and Hut (1986), and the "barnes" of the field's suites. Every step sorts
//! all bodies into an octree of cells, each a separate block, and adds up masses from below. Then
//! it walks the tree for the forces on every third body. A distant cell counts as one body. The
//! walk takes most of the time and allocates nothing. The workload shows the value of *placement*:
//! the density and order of blocks that were made together.
//!
//! Life cycle: 200,000 bodies of 88 bytes stay; each step frees and remakes about 96,500 cells of
//! 160 bytes.

use crate::checksum::fold;
use crate::random::Random;
use crate::{Workload, scaled, sized};
use std::cell::Cell;
use std::hint::black_box;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "barnes",
    stands_for: "Simulations and engines that rebuild a large tree in every step and walk it much \
                 more than they build it: how well the blocks lie for the cache and the page \
                 tables.",
    threads: 1,
    live_bytes: 34_650_000,
    operations: 786_000,
    run,
};

type Vector = [f64; 3];

/// A cell counts as one body if its width divided by its distance is smaller than this.
const OPENING: f64 = 1.1;

const EVERY: usize = 3;

/// Keeps the force between close bodies finite: a squared distance.
const SOFTENING: f64 = 1e-4;

/// A cell narrower than this adds bodies to one mass.
const LEAST_WIDTH: f64 = 1e-9;

struct Body {
    position: Vector,
    velocity: Vector,
    acceleration: Cell<Vector>,
    mass: f64,
    visits: Cell<u64>,
}

enum Octant<'bodies> {
    Nothing,
    Body(&'bodies Body),
    Cell(Box<Node<'bodies>>),
}

struct Node<'bodies> {
    centre_of_mass: Vector,
    mass: f64,
    octants: [Octant<'bodies>; 8],
}

impl Node<'_> {
    fn empty() -> Box<Self> {
        let octants = [const { Octant::Nothing }; 8];
        black_box(Box::new(Node { centre_of_mass: [0.0; 3], mass: 0.0, octants }))
    }
}

fn run(scale: u32) -> u64 {
    let mut bodies = bodies(sized(scale, 200_000, 500));
    for step in 0..scaled(scale, 2, 3) {
        let mut root = Node::empty();
        for body in &bodies {
            insert(&mut root, body, [0.0; 3], 1.0);
        }
        sum_up(&mut root);
        for body in bodies.iter().skip(step % EVERY).step_by(EVERY) {
            let (mut force, mut visits) = ([0.0; 3], 0);
            attract(&root, body, 2.0, &mut force, &mut visits);
            body.acceleration.set(force);
            body.visits.set(visits);
        }
        drop(root);
        for body in &mut bodies {
            advance(body);
        }
    }
    bodies.iter().fold(0, |sum, body| {
        let sum = body.position.iter().fold(sum, |sum, x| fold(sum, x.to_bits()));
        fold(sum, body.visits.get())
    })
}

/// Makes bodies in a few clusters in the middle of the cube from -1 to 1.
#[expect(clippy::vec_box, reason = "every body is a block of its own: that is the point")]
fn bodies(count: usize) -> Vec<Box<Body>> {
    let mut random = Random::new(0xba);
    let mut unit = move || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    let clusters: Vec<Vector> = (0..8).map(|_| [(); 3].map(|()| unit() - 0.5)).collect();
    (0..count)
        .map(|at| {
            let centre = clusters[at % clusters.len()];
            // The product of two numbers is more often small: denser inside.
            let position = centre.map(|x| x + (unit() - 0.5) * unit() * 0.8);
            let velocity = [(); 3].map(|()| (unit() - 0.5) * 1e-2);
            let (acceleration, visits) = (Cell::new([0.0; 3]), Cell::new(0));
            let mass = 1.0 / count as f64;
            black_box(Box::new(Body { position, velocity, acceleration, mass, visits }))
        })
        .collect()
}

fn insert<'bodies>(node: &mut Node<'bodies>, body: &'bodies Body, centre: Vector, half: f64) {
    let mut index = 0;
    let mut below = centre;
    for axis in 0..3 {
        let upper = body.position[axis] >= centre[axis];
        index |= usize::from(upper) << axis;
        below[axis] += if upper { half / 2.0 } else { -half / 2.0 };
    }
    let octant = &mut node.octants[index];
    match octant {
        Octant::Nothing => *octant = Octant::Body(body),
        Octant::Cell(cell) => insert(cell, body, below, half / 2.0),
        Octant::Body(_) if half < LEAST_WIDTH => {
            node.mass += body.mass;
            for axis in 0..3 {
                node.centre_of_mass[axis] += body.mass * body.position[axis];
            }
        }
        Octant::Body(other) => {
            let mut cell = Node::empty();
            insert(&mut cell, other, below, half / 2.0);
            insert(&mut cell, body, below, half / 2.0);
            *octant = Octant::Cell(cell);
        }
    }
}

/// Computes masses and their centres, from below.
fn sum_up(node: &mut Node<'_>) {
    let (mut mass, mut moment) = (node.mass, node.centre_of_mass);
    for octant in &mut node.octants {
        let (more, at) = match octant {
            Octant::Nothing => continue,
            Octant::Body(body) => (body.mass, body.position),
            Octant::Cell(cell) => {
                sum_up(cell);
                (cell.mass, cell.centre_of_mass)
            }
        };
        mass += more;
        for axis in 0..3 {
            moment[axis] += more * at[axis];
        }
    }
    node.mass = mass;
    node.centre_of_mass = moment.map(|moment| moment / mass);
}

fn attract(node: &Node<'_>, body: &Body, width: f64, force: &mut Vector, visits: &mut u64) {
    *visits += 1;
    for octant in &node.octants {
        match octant {
            Octant::Nothing => {}
            Octant::Body(other) => pull(other.mass, &other.position, body, force),
            Octant::Cell(cell) => {
                let half = width / 2.0;
                let distance = square(&cell.centre_of_mass, &body.position);
                if half * half < OPENING * OPENING * distance {
                    pull(cell.mass, &cell.centre_of_mass, body, force);
                } else {
                    attract(cell, body, half, force, visits);
                }
            }
        }
    }
}

fn pull(mass: f64, from: &Vector, body: &Body, force: &mut Vector) {
    let distance = square(from, &body.position) + SOFTENING;
    let strength = mass / (distance * distance.sqrt());
    for axis in 0..3 {
        force[axis] += strength * (from[axis] - body.position[axis]);
    }
}

fn square(a: &Vector, b: &Vector) -> f64 {
    (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2])
}

/// Moves a body by one step of time; a body that leaves the cube comes in again.
fn advance(body: &mut Body) {
    const STEP: f64 = 1e-3;
    for axis in 0..3 {
        body.velocity[axis] += body.acceleration.get()[axis] * STEP;
        let position = body.position[axis] + body.velocity[axis] * STEP;
        body.position[axis] = if position.abs() < 1.0 { position } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_pulls_about_as_all_bodies_do() {
        let bodies = bodies(2_000);
        let mut root = Node::empty();
        for body in &bodies {
            insert(&mut root, body, [0.0; 3], 1.0);
        }
        sum_up(&mut root);
        assert!((root.mass - 1.0).abs() < 1e-9, "{}", root.mass);
        let (mut wrong, mut right) = (0.0, 0.0);
        for body in &bodies[..200] {
            let (mut fast, mut exact, mut visits) = ([0.0; 3], [0.0; 3], 0);
            attract(&root, body, 2.0, &mut fast, &mut visits);
            for other in &bodies {
                pull(other.mass, &other.position, body, &mut exact);
            }
            wrong += square(&fast, &exact).sqrt();
            right += square(&exact, &[0.0; 3]).sqrt();
            assert!(visits < 500, "{visits} of {} bodies", bodies.len());
        }
        assert!(wrong / right < 0.05, "{}", wrong / right);
    }

    #[test]
    fn bodies_at_one_place_end_up_in_one_cell() {
        let mut bodies = bodies(3);
        for body in &mut bodies {
            body.position = [0.1; 3];
        }
        let mut root = Node::empty();
        for body in &bodies {
            insert(&mut root, body, [0.0; 3], 1.0);
        }
        sum_up(&mut root);
        assert!((root.mass - 1.0).abs() < 1e-9, "{}", root.mass);
    }
}
