//! What is done: three loads, none of which knows who does it.
//!
//! Each load is a function over a trait of its own, which says what a peer has to be able to do:
//! [`BinaryTrees`] and [`GcBench`] are so small that each peer writes all that allocates itself;
//! of [`Splay`] a peer writes its nodes, and the algorithm is shared.
//!
//! A load gives a checksum, the same with every peer.

pub(crate) mod binary_trees;
pub(crate) mod gcbench;
pub(crate) mod splay;

pub(crate) use binary_trees::BinaryTrees;
pub(crate) use gcbench::GcBench;
pub(crate) use splay::Splay;

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    BinaryTrees,
    GcBench,
    Splay,
}

impl Load {
    /// All, in the order in which they run.
    pub(crate) const ALL: [Self; 3] = [Self::BinaryTrees, Self::GcBench, Self::Splay];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BinaryTrees => "binary-trees",
            Self::GcBench => "gcbench",
            Self::Splay => "splay",
        }
    }

    /// The load of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|load| load.name() == name)
    }

    /// How large it is: the slowest peer needs less than ten seconds.
    pub(crate) fn sizes(self) -> Sizes {
        match self {
            Self::BinaryTrees | Self::GcBench => Sizes { depth: 16, size: 0, rounds: 0 },
            Self::Splay => Sizes { depth: 0, size: 4000, rounds: 500 },
        }
    }
}

/// How large a load is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// Of the greatest tree of `binary-trees` and `gcbench`, but for the one that stretches.
    pub(crate) depth: u32,
    /// Nodes of the splay tree.
    pub(crate) size: usize,
    /// Times that it is modified.
    pub(crate) rounds: usize,
}

/// What a collector tells of itself.
#[derive(Clone, Copy)]
pub(crate) struct Collector {
    /// Time that it took, as the load saw it.
    pub(crate) ns: u64,
    /// Collections.
    pub(crate) cycles: u64,
    /// Those of them that looked at young values alone.
    pub(crate) minor_cycles: u64,
}
