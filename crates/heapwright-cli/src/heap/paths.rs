//! The shortest path from a root to each object, breadth first. Of equally near roots, the
//! first in the dump wins.

use super::graph::{Graph, NONE};

pub(super) struct Paths {
    /// The previous object on the path; for a root, the number of objects plus the root's index.
    /// [`NONE`] if no root leads to the object.
    from: Vec<u32>,
}

impl Paths {
    pub(super) fn new(graph: &Graph) -> Self {
        let objects = graph.len() as u32;
        let mut from = vec![NONE; graph.len()];
        let mut queue: Vec<u32> = Vec::new();
        for (index, root) in graph.roots.iter().enumerate() {
            if from[root.object as usize] == NONE {
                from[root.object as usize] = objects + index as u32;
                queue.push(root.object);
            }
        }
        let mut next = 0;
        while let Some(&object) = queue.get(next) {
            next += 1;
            for &to in graph.targets(object) {
                if from[to as usize] == NONE {
                    from[to as usize] = object;
                    queue.push(to);
                }
            }
        }
        Self { from }
    }

    /// Returns the root's index, and the objects on the path; `object` is the last.
    pub(super) fn to(&self, object: u32) -> Option<(usize, Vec<u32>)> {
        let objects = self.from.len();
        let mut way = Vec::new();
        let mut at = object;
        loop {
            way.push(at);
            match self.from[at as usize] {
                NONE => return None,
                root if root as usize >= objects => {
                    way.reverse();
                    return Some((root as usize - objects, way));
                }
                before => at = before,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;

    #[test]
    fn the_shortest_way_is_found() {
        let graph = graph(&[8; 6], &[(0, 1), (1, 2), (2, 3), (0, 4), (4, 3), (3, 0)], &[0, 2, 2]);
        let paths = Paths::new(&graph);
        assert_eq!(paths.to(0), Some((0, vec![0])));
        assert_eq!(paths.to(3), Some((1, vec![2, 3])));
        assert_eq!(paths.to(4), Some((0, vec![0, 4])));
        assert_eq!(paths.to(5), None);
    }
}
