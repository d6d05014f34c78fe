//! An empty crate: its Cargo.toml pins versions.
