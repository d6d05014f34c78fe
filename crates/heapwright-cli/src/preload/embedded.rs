//! The files inside this command (see build.rs).

pub(super) struct Embedded {
    /// The name of the extracted file.
    pub(super) name: &'static str,
    pub(super) bytes: &'static [u8],
}

pub(super) static LIBRARY: Embedded = Embedded {
    name: "libheapwright.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libheapwright.so")),
};

/// The preload library of `check`.
pub(super) static CHECK_LIBRARY: Embedded = Embedded {
    name: "libheapwright-check.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libheapwright_check.so")),
};

/// The program that starts the programs that `bench` and `replay` measure.
pub(super) static LAUNCHER: Embedded = Embedded {
    name: "heapwright-launcher",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/heapwright-launcher")),
};

/// The hash of the bytes, a part of the path: two builds of one version can exist side by side.
pub(super) const HASH: &str = env!("HEAPWRIGHT_EMBEDDED_HASH");
