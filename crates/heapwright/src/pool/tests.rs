//! Pools against models, and at their edges.

extern crate std;
