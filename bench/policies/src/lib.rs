//! The ways to find a shared cache, as types: what LLVM's review D47289 began from,
//! what it tried, what it chose, and a few that it only spoke of.
//!
//! ```text
//!   library    crates/heapwright-substrate/src/registry/policy.rs, included as it stands: the chosen one
//!   variants   one type a variant: SCAN, ORDER, PRECEDENCE, SKIP_CURRENT, FALLBACK, and `scan`
//!              over these; a table: name -> what it is, the review's seconds
//!     |                          |
//!   the race (main.rs)     simulator
//!   real threads over      simulated threads, at any number of CPUs
//!   a stand-in
//! ```
//!
//! `schedules`, a program of its own, runs the library's registries on random schedules.
//!
//! The library has one policy, written out. Here [`scan`] is the same with each decision as a
//! constant; the chosen variant runs the library's function, and a test says that `scan`
//! decides as it does (variants/tests.rs).
//!
//! A name leads to its type by [`with`]: whoever wants to do something for the policy
//! of a name writes a [`Visitor`], whose one function has the type as its parameter.
//! So every variant is compiled like the library's own, and none is chosen by a branch
//! in the code that is measured.

#![forbid(unsafe_code)]

#[path = "../../../crates/heapwright-substrate/src/registry/policy.rs"]
mod library;
pub mod simulator;
mod variants;

pub use library::{Caches, Choice, choose, strides};
pub use variants::{ALL, Fallback, Order, Policy, Review, Reviewed, Variant, find, scan, with};

/// Something that is done for one policy.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it for the policy `P`.
    fn visit<P: Policy>(self) -> Self::Output;
}

/// The variant that all others are compared with: the library's.
pub const CHOSEN: &str = "precedence-4-current";

/// What the tests in the library's file ask of their crate.
#[cfg(all(test, not(loom)))]
mod testing {
    pub(crate) fn cases(number: u32) -> proptest::test_runner::Config {
        proptest::test_runner::Config::with_cases(number)
    }
}
