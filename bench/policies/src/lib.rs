//! The ways to find a shared cache, as types: what LLVM's review D47289 began from,
//! what it tried, what it chose, and a few that it only spoke of.
//!
//! ```text
//!   heapwright::policies   Policy, choose        the code that the library runs
//!   variants               one type a variant    SCAN, ORDER, PRECEDENCE, SKIP_CURRENT, FALLBACK
//!                          and a table           name -> what it is, the review's seconds
//!     |                 |                |
//!   preload           the race         bench/simulator
//!   libheapwright_    (main.rs)        drives `choose` itself, at any number of CPUs
//!   policies.so
//! ```
//!
//! A name leads to its type by [`with`]: whoever wants to do something for the policy
//! of a name writes a [`Visitor`], whose one function has the type as its parameter.
//! So every variant is compiled like the library's own, and none is chosen by a branch
//! in the code that is measured.
//!
//! No std here: the preload library is built on this, and has none.

#![no_std]

mod variants;

pub use variants::{ALL, Review, Variant, find, with};

use heapwright::policies::Policy;

/// Something that is done for one policy.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it for the policy `P`.
    fn visit<P: Policy>(self) -> Self::Output;
}

/// The variant that all others are compared with: the library's.
pub const CHOSEN: &str = "precedence-4-current";
