//! Sleator and Tarjan's top-down splay, over shared nodes.
//!
//! The path to the key is taken apart into two trees, which are then joined under the found node:
//!
//! ```text
//!        less       found      greater                found
//!        /  \       /   \       /   \                /     \
//!       .    .    in     in    .     .     -->     less   greater
//!             \               /                       \   /
//!            tail           tail                      in in
//! ```
//!
//! The value that [`Node::take`] leaves behind is overwritten before it is read. So peers that
//! count references move the child out, and other peers copy it.

use super::Tree;

const LEFT: usize = 0;
const RIGHT: usize = 1;

pub(crate) trait Node: Clone {
    type Heap;
    /// Makes a node with its payload and no children.
    fn new(heap: &Self::Heap, key: u64) -> Self;
    fn key(&self) -> u64;
    fn key_below(&self, side: usize) -> Option<u64>;
    /// Takes the child at a side, and leaves any cheap value there.
    fn take(&self, heap: &Self::Heap, side: usize) -> Option<Self>;
    fn put(&self, heap: &Self::Heap, side: usize, below: Option<Self>);
    /// Returns the result of [`look`](super::look) for the node.
    fn look(&self) -> u64;
}

/// Returns the side of a node at which a key lies, or `None` if the key is the node's.
fn side_of(key: u64, node: u64) -> Option<usize> {
    (key != node).then_some(if key < node { LEFT } else { RIGHT })
}

struct Apart<N> {
    root: Option<N>,
    tail: Option<N>,
}

impl<N: Node> Apart<N> {
    const EMPTY: Self = Self { root: None, tail: None };

    /// Appends a node to the tail, at the side of the key.
    fn append(&mut self, heap: &N::Heap, side: usize, node: N) {
        let last = self.tail.replace(node.clone());
        match last {
            Some(last) => last.put(heap, side, Some(node)),
            None => self.root = Some(node),
        }
    }

    /// Appends the last subtree to the tail. Returns the whole tree.
    fn close(self, heap: &N::Heap, side: usize, last: Option<N>) -> Option<N> {
        match self.tail {
            Some(tail) => {
                tail.put(heap, side, last);
                self.root
            }
            None => last,
        }
    }
}

fn splay<N: Node>(heap: &N::Heap, root: N, key: u64) -> N {
    let mut apart = [Apart::EMPTY, Apart::EMPTY];
    let mut current = root;
    while let Some(side) = side_of(key, current.key())
        && let Some(below) = current.key_below(side)
    {
        let across = 1 - side;
        let mut next = current.take(heap, side).expect("it has a key");
        // Two steps to the same side: a rotation.
        if side_of(key, below) == Some(side) {
            current.put(heap, side, next.take(heap, across));
            next.put(heap, across, Some(current));
            current = next;
            if current.key_below(side).is_none() {
                break;
            }
            next = current.take(heap, side).expect("it has a key");
        }
        apart[across].append(heap, side, current);
        current = next;
    }
    for (side, apart) in apart.into_iter().enumerate() {
        let whole = apart.close(heap, 1 - side, current.take(heap, side));
        current.put(heap, side, whole);
    }
    current
}

impl<N: Node> Tree for Option<N> {
    type Heap = N::Heap;

    fn insert(&mut self, heap: &N::Heap, key: u64) {
        let Some(root) = self.take() else {
            *self = Some(N::new(heap, key));
            return;
        };
        let root = splay(heap, root, key);
        let Some(side) = side_of(key, root.key()) else {
            *self = Some(root);
            return;
        };
        let node = N::new(heap, key);
        node.put(heap, side, root.take(heap, side));
        root.put(heap, side, None);
        node.put(heap, 1 - side, Some(root));
        *self = Some(node);
    }

    fn take_out(&mut self, heap: &N::Heap, key: u64) {
        let Some(root) = self.take() else { return };
        let root = splay(heap, root, key);
        let less = root.take(heap, LEFT);
        *self = match less {
            // Removes the greatest of the lesser keys.
            Some(less) if root.key() > key => {
                let greatest = splay(heap, less, u64::MAX);
                root.put(heap, LEFT, greatest.take(heap, LEFT));
                Some(root)
            }
            // Removes the root. The greatest of the lesser keys replaces it.
            Some(less) => {
                let greatest = splay(heap, less, u64::MAX);
                greatest.put(heap, RIGHT, root.take(heap, RIGHT));
                Some(greatest)
            }
            None => root.take(heap, RIGHT),
        };
    }

    fn take_least(&mut self, heap: &N::Heap) -> Option<u64> {
        let root = splay(heap, self.take()?, 0);
        *self = root.take(heap, RIGHT);
        Some(root.look())
    }
}
