//! Dominators: object A *dominates* object B if every path from a root to B goes through A. Object
//! A *retains* its own bytes and those of all objects that it dominates: without A they are freed.
//!
//! Lengauer and Tarjan's algorithm in its simple form, with loops in place of recursion: O(m log n)
//! for every graph. Nodes are numbered in the order of a depth-first walk from the root of roots,
//! number 0.
//!
//! ```text
//! number   0: the root of roots | 1, 2, 3 ...: objects that roots lead to
//! semi     the least number from which a path leads to a node N; numbers between are all above N's
//! idom     the nearest dominator, a lesser number; all together form a tree
//! ```

use super::graph::{Graph, NONE};

#[derive(Debug)]
pub(super) struct Dominators {
    /// The object of each number; [`NONE`] for number 0.
    pub(super) object: Vec<u32>,
    /// The number of each object; [`NONE`] if no root leads to it.
    pub(super) number: Vec<u32>,
    pub(super) idom: Vec<u32>,
    /// The bytes that each node retains, its own included.
    pub(super) retained: Vec<u64>,
}

impl Dominators {
    pub(super) fn new(graph: &Graph) -> Self {
        let (object, number, parent) = walk(graph);
        let idom = nearest(graph, &object, &number, parent);
        let mut retained: Vec<u64> = object
            .iter()
            .map(|&object| if object == NONE { 0 } else { graph.size(object) })
            .collect();
        for at in (1..idom.len()).rev() {
            let sum = retained[idom[at] as usize].saturating_add(retained[at]);
            retained[idom[at] as usize] = sum;
        }
        Self { object, number, idom, retained }
    }

    /// Returns 0 if no root leads to the object.
    pub(super) fn of(&self, object: u32) -> u64 {
        match self.number[object as usize] {
            NONE => 0,
            number => self.retained[number as usize],
        }
    }

    /// Returns the dominators of an object, from the nearest on.
    pub(super) fn above(&self, object: u32) -> impl Iterator<Item = u32> {
        let step = |at: u32| (at != NONE && at != 0).then(|| self.idom[at as usize]);
        std::iter::successors(step(self.number[object as usize]), move |&at| step(at))
            .take_while(|&at| at != 0)
            .map(|at| self.object[at as usize])
    }

    /// Returns the bytes that the objects of each group retain together. An object that another one
    /// of its group dominates adds nothing.
    pub(super) fn by_group(&self, groups: usize, group: impl Fn(u32) -> u32) -> Vec<u64> {
        let mut next = vec![NONE; self.idom.len()];
        let mut child = vec![NONE; self.idom.len()];
        for at in (1..self.idom.len()).rev() {
            let parent = self.idom[at] as usize;
            next[at] = child[parent];
            child[parent] = at as u32;
        }
        // The number of nodes of each group on the way from the root to here.
        let mut above = vec![0_u32; groups];
        let mut sums = vec![0_u64; groups];
        let mut at = child[0];
        while at != NONE && at != 0 {
            let here = group(self.object[at as usize]) as usize;
            if above[here] == 0 {
                sums[here] = sums[here].saturating_add(self.retained[at as usize]);
            }
            above[here] += 1;
            if child[at as usize] != NONE {
                at = child[at as usize];
                continue;
            }
            while at != 0 {
                above[group(self.object[at as usize]) as usize] -= 1;
                if next[at as usize] != NONE {
                    at = next[at as usize];
                    break;
                }
                at = self.idom[at as usize];
            }
        }
        sums
    }
}

fn walk(graph: &Graph) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let mut number = vec![NONE; graph.len()];
    let (mut object, mut parent) = (vec![NONE], vec![0]);
    // Objects on the current path, each with the index of its next reference.
    let mut way: Vec<(u32, u32)> = Vec::new();
    for root in &graph.roots {
        if number[root.object as usize] != NONE {
            continue;
        }
        let mut enter = |at: u32, from: u32, way: &mut Vec<(u32, u32)>| {
            number[at as usize] = object.len() as u32;
            object.push(at);
            parent.push(from);
            way.push((at, graph.first[at as usize]));
        };
        enter(root.object, 0, &mut way);
        while let Some((from, next)) = way.last_mut() {
            let from = *from;
            if *next == graph.first[from as usize + 1] {
                way.pop();
                continue;
            }
            let to = graph.targets[*next as usize];
            *next += 1;
            if number[to as usize] == NONE {
                let above = number[from as usize];
                number[to as usize] = object.len() as u32;
                object.push(to);
                parent.push(above);
                way.push((to, graph.first[to as usize]));
            }
        }
    }
    (object, number, parent)
}

struct Referrers {
    first: Vec<u32>,
    from: Vec<u32>,
}

impl Referrers {
    fn new(graph: &Graph, object: &[u32], number: &[u32]) -> Self {
        let mut first = vec![0_u32; object.len() + 1];
        let reached = || object.iter().copied().filter(|&object| object != NONE);
        let targets = || reached().flat_map(|object| graph.targets(object));
        let roots = || graph.roots.iter().map(|root| number[root.object as usize]);
        targets().map(|&to| number[to as usize]).chain(roots()).for_each(|to| {
            first[to as usize + 1] += 1;
        });
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut from = vec![0; first[object.len()] as usize];
        // Fills each number's part from its end downward, so the end becomes the start.
        let mut fill = |to: u32, referrer: u32| {
            let place = &mut first[to as usize + 1];
            *place -= 1;
            from[*place as usize] = referrer;
        };
        roots().for_each(|to| fill(to, 0));
        for (referrer, at) in (1..).zip(reached()) {
            graph.targets(at).iter().for_each(|&to| fill(number[to as usize], referrer));
        }
        // Each entry now holds a start, shifted by one.
        let all = from.len() as u32;
        first.remove(0);
        first.push(all);
        Self { first, from }
    }

    fn of(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.from[self.first[number] as usize..self.first[number + 1] as usize]
    }
}

/// Returns the nearest dominator of each number. Reuses the memory of `parent`.
fn nearest(graph: &Graph, object: &[u32], number: &[u32], parent: Vec<u32>) -> Vec<u32> {
    let referrers = Referrers::new(graph, object, number);
    let count = object.len() as u32;
    let mut semi: Vec<u32> = (0..count).collect();
    let mut forest = Forest { ancestor: parent, label: semi.clone(), way: Vec::new() };
    // Numbers that wait for the same semidominator form a list: `waiting` has the first, and `idom`
    // of each number the next. Afterwards `idom` holds the dominators.
    let mut waiting = vec![NONE; object.len()];
    let mut idom = vec![0_u32; object.len()];
    for at in (1..count).rev() {
        let above = forest.ancestor[at as usize];
        let mut least = at;
        for &from in referrers.of(at) {
            least = least.min(semi[forest.eval(from, at + 1, &semi) as usize]);
        }
        semi[at as usize] = least;
        idom[at as usize] = waiting[least as usize];
        waiting[least as usize] = at;
        let mut next = std::mem::replace(&mut waiting[above as usize], NONE);
        while next != NONE {
            let one = next;
            next = idom[one as usize];
            let best = forest.eval(one, at, &semi);
            let sooner = semi[best as usize] < semi[one as usize];
            idom[one as usize] = if sooner { best } else { above };
        }
    }
    for at in 1..object.len() {
        if idom[at] != semi[at] {
            idom[at] = idom[idom[at] as usize];
        }
    }
    idom
}

/// The part of the walk's tree that was processed: the numbers from `linked` on.
struct Forest {
    ancestor: Vec<u32>,
    /// The number with the least semidominator between here and the ancestor.
    label: Vec<u32>,
    way: Vec<u32>,
}

impl Forest {
    /// Returns the number with the least semidominator on the path from `at` up to the root of its
    /// tree, the root excluded. Shortens that path.
    fn eval(&mut self, at: u32, linked: u32, semi: &[u32]) -> u32 {
        if at < linked {
            return at;
        }
        let mut top = at;
        while self.ancestor[top as usize] >= linked {
            self.way.push(top);
            top = self.ancestor[top as usize];
        }
        let end = self.ancestor[top as usize];
        let mut above = self.label[top as usize];
        while let Some(one) = self.way.pop() {
            let here = &mut self.label[one as usize];
            if semi[above as usize] < semi[*here as usize] {
                *here = above;
            }
            above = *here;
            self.ancestor[one as usize] = end;
        }
        self.label[at as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns which objects a root still leads to without the object `without`.
    fn reached(graph: &Graph, without: Option<u32>) -> Vec<bool> {
        let mut seen = vec![false; graph.len()];
        let mut todo: Vec<u32> = graph.roots.iter().map(|root| root.object).collect();
        while let Some(object) = todo.pop() {
            if Some(object) != without && !std::mem::replace(&mut seen[object as usize], true) {
                todo.extend(graph.targets(object));
            }
        }
        seen
    }

    fn check(graph: &Graph) {
        let dominators = Dominators::new(graph);
        let all = reached(graph, None);
        for object in 0..graph.len() as u32 {
            assert_eq!(all[object as usize], dominators.number[object as usize] != NONE);
            let without = reached(graph, Some(object));
            let lost = |other: u32| all[other as usize] && !without[other as usize];
            let sum: u64 = (0..graph.len() as u32)
                .filter(|&other| lost(other))
                .map(|other| graph.size(other))
                .sum();
            assert_eq!(dominators.of(object), sum, "{object}");
            for other in (0..graph.len() as u32).filter(|&other| other != object) {
                let is_above = dominators.above(other).any(|above| above == object);
                assert_eq!(is_above, lost(other), "{object} above {other}");
            }
        }
        // The bytes of a group are those that its topmost objects retain.
        let sums = dominators.by_group(3, |object| object % 3);
        for group in 0..3 {
            let top = (0..graph.len() as u32).filter(|object| {
                object % 3 == group && !dominators.above(*object).any(|above| above % 3 == group)
            });
            assert_eq!(sums[group as usize], top.map(|object| dominators.of(object)).sum::<u64>());
        }
    }

    #[test]
    fn small_graphs_are_right() {
        check(&graph(&[], &[], &[]));
        check(&graph(&[5], &[(0, 0)], &[0, 0]));
        check(&graph(
            &[1, 2, 4, 8, 16, 32],
            &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 3), (5, 4), (5, 5)],
            &[0],
        ));
        let dominators = Dominators::new(&graph(&[1, 2, 4], &[(0, 1), (1, 2)], &[0, 2]));
        assert_eq!([0, 1, 2].map(|object| dominators.of(object)), [3, 2, 4]);
    }

    #[test]
    fn a_very_long_list_is_no_deep_call() {
        let many = 300_000_u32;
        let mut list = graph(&[1], &[], &[0]);
        list.addresses = (0..u64::from(many)).collect();
        list.shape = vec![0; many as usize];
        list.targets = (1..many).collect();
        list.first = (0..many).chain([many - 1]).collect();
        let dominators = Dominators::new(&list);
        assert_eq!((dominators.of(0), dominators.of(many - 1)), (u64::from(many), 1));
        assert_eq!(dominators.above(many - 1).count(), many as usize - 1);
        assert_eq!(dominators.by_group(1, |_| 0), [u64::from(many)]);
    }

    proptest! {
        #[test]
        fn what_is_dominated_is_what_would_be_lost(
            sizes in vec(1..100_u64, 1..24), edges in vec((0..24_u32, 0..24_u32), 0..70),
            roots in vec(0..24_u32, 0..4),
        ) {
            let count = sizes.len() as u32;
            let edges: Vec<_> = edges.iter().map(|(from, to)| (from % count, to % count)).collect();
            let roots: Vec<_> = roots.iter().map(|root| root % count).collect();
            check(&graph(&sizes, &edges, &roots));
        }
    }
}
