//! What the programs that judge measurements share: the arithmetic.

pub mod statistics;
