//! The harness of the benches: what all of them do to measure and to judge.
//!
//! ```text
//!   plan, run    runs of a file, in turns, each under the launcher;   reported: what a checker says
//!   cells        the numbers that come of them, by section, row, column, metric and round
//!     |
//!   statistics   ratios within a round -> median, 95 % interval
//!     |
//!   verdict      a bound, what was measured, whether it holds: a figure, and tables of them
//!   asked        a file that says what is asked of a bench, and its report;   expression: over metrics
//!   random       numbers from a seed
//!   text         numbers and tables for people;   machine: what all of it ran on;   options
//! ```
//!
//! A bench is programs, a plan that a script writes, and a file of figures; it has no arithmetic, no
//! table and no verdict of its own. What is compared are always runs of one round, which stand side
//! by side in time: other work on the machine disturbs both.

pub mod asked;
pub mod cells;
pub mod expression;
pub mod machine;
pub mod options;
pub mod plan;
pub mod random;
pub mod reported;
pub mod run;
pub mod statistics;
pub mod text;
pub mod verdict;
