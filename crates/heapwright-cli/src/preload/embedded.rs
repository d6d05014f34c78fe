//! The files inside this command (see build.rs).

/// A file that travels inside the command.
pub(super) struct Embedded {
    /// What it is called where it is extracted.
    pub(super) name: &'static str,
    pub(super) bytes: &'static [u8],
}

/// The preload library.
pub(super) static LIBRARY: Embedded = Embedded {
    name: "libheapwright.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libheapwright.so")),
};

/// The preload library of `check`.
pub(super) static CHECK_LIBRARY: Embedded = Embedded {
    name: "libheapwright-check.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libheapwright_check.so")),
};

/// The program that starts what `bench` measures.
pub(super) static LAUNCHER: Embedded = Embedded {
    name: "heapwright-launcher",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/heapwright-launcher")),
};

/// Names the bytes in a path: two builds of one version can live side by side.
/// It is no proof; the user of a file compares the bytes.
pub(super) const HASH: &str = env!("HEAPWRIGHT_EMBEDDED_HASH");
