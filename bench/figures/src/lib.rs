//! The harness of the benches: what all of them do to measure and to judge.
//!
//! ```text
//!   options      numbers and libraries of a command line
//!   plan, run    runs of a file or a bench, in turns, each under the launcher
//!   cells        the numbers that come of them, by section, row, column, metric and round
//!   process      one run without the launcher, under a limit of time; memory touched before it
//!   record       what a program prints: `result NAME=VALUE ...`;   reported: what a checker says
//!   turns        rounds of what is not planned: each runs every variant once, in an order that turns
//!     |
//!   statistics   ratios within a round -> median, 95 % interval
//!     |
//!   verdict      a bound, what was measured, whether it holds: a figure, and tables of them
//!   report       figures and tables, gathered, written and printed
//!   random       numbers from a seed
//!   text, plot   numbers, tables and pictures for people;   machine: what all of it ran on
//! ```
//!
//! A bench says what is run and what is asked; it has no arithmetic, no table and no verdict of its
//! own. What is compared are always runs of one round, which stand side by side in time: other
//! work on the machine disturbs both.

pub mod cells;
pub mod machine;
pub mod options;
pub mod plan;
pub mod plot;
pub mod process;
pub mod random;
pub mod record;
pub mod report;
pub mod reported;
pub mod run;
pub mod statistics;
pub mod text;
pub mod turns;
pub mod verdict;
