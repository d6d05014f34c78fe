//! The preload library's bytes, carried inside this command (see build.rs).

/// libheapwright.so.
pub(super) static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libheapwright.so"));

/// Names the bytes in a path: two builds of one version can live side by side.
/// It is no proof; whoever uses a file compares the bytes.
pub(super) const HASH: &str = env!("HEAPWRIGHT_LIBRARY_HASH");
