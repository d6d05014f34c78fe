//! The harness of the benches: what all of them do to measure and to judge.
//!
//! ```text
//!   options      numbers and libraries of a command line
//!   process      one run: under a limit of time, with an environment; memory touched before it
//!   record       what a program prints: `result NAME=VALUE ...`
//!   turns        rounds: each runs every variant once, in an order that turns
//!     |
//!   statistics   ratios within a round -> median, 95 % interval
//!     |
//!   verdict      a bound, what was measured, whether it holds: a figure, and tables of them
//!   random       numbers from a seed
//!   text, plot   numbers, tables and pictures for people;   machine: what all of it ran on
//! ```
//!
//! A bench says what is run and what is asked; it has no arithmetic, no table and no verdict of its
//! own. What is compared are always runs of one round, which stand side by side in time: other
//! work on the machine disturbs both.

pub mod machine;
pub mod options;
pub mod plot;
pub mod process;
pub mod random;
pub mod record;
pub mod statistics;
pub mod text;
pub mod turns;
pub mod verdict;
