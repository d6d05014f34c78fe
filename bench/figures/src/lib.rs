//! The harness of the benches: it runs programs, keeps their numbers, and judges them.
//!
//! ```text
//!   plan, run    runs that a plan lists, in turns, each under the launcher
//!   reported     the counts of a checker's report
//!   cells        the numbers of runs, by section, row, column, metric and round
//!     |
//!   statistics   ratios within a round -> median, 95 % interval
//!     |
//!   verdict      a bound, a measured value, whether it holds: a figure, and tables of figures
//!   asked        a bench's file of figures, and its report;   expression: over metrics
//!   random       numbers from a seed
//!   text         numbers and tables for people;   machine: its description;   options
//! ```
//!
//! A bench consists of programs, a plan that a script writes, and a file of figures. Verdicts
//! compare runs of one round: other work on the machine disturbs all of these.

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
