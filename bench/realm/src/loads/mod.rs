//! The loads: each is a function over its own trait, which has the operations of a peer. For
//! [`Splay`] a peer writes its nodes, and the algorithm is shared. A load returns a checksum, which
//! is the same for every peer.

pub(crate) mod binary_trees;
pub(crate) mod gcbench;
pub(crate) mod splay;

pub(crate) use binary_trees::BinaryTrees;
pub(crate) use gcbench::GcBench;
pub(crate) use splay::Splay;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    BinaryTrees,
    GcBench,
    Splay,
}

impl Load {
    pub(crate) const ALL: [Self; 3] = [Self::BinaryTrees, Self::GcBench, Self::Splay];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BinaryTrees => "binary-trees",
            Self::GcBench => "gcbench",
            Self::Splay => "splay",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|load| load.name() == name)
    }

    /// Returns the size of the load: the slowest peer needs less than ten seconds.
    pub(crate) fn sizes(self) -> Sizes {
        match self {
            Self::BinaryTrees | Self::GcBench => Sizes { depth: 16, size: 0, rounds: 0 },
            Self::Splay => Sizes { depth: 0, size: 4000, rounds: 500 },
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// The depth of the greatest tree of `binary-trees` and `gcbench`, except the stretching one.
    pub(crate) depth: u32,
    pub(crate) size: usize,
    pub(crate) rounds: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Collector {
    /// The time of collections, as the load saw it.
    pub(crate) ns: u64,
    pub(crate) cycles: u64,
    /// Collections that visited only young values.
    pub(crate) minor_cycles: u64,
}
