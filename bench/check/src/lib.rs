//! Nothing: this package is only there to pin what Cargo.toml names.
