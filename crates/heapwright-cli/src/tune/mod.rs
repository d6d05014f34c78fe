//! Tuning: which options make a program faster or leaner, and which to give it.
//!
//! ```text
//! candidates   what is tried: options one at a time, then combined (pure)
//! decision     from measured rounds to what is chosen (pure)
//! results      what was measured and chosen: the structures of --format json
//! ```
//!
//! Three sets of rounds, each made anew, so that no figure decides twice:
//!
//! ```text
//! trace    -> screening   defaults, control, each option by itself, peers
//!               | finalists(): those that look better, and their combination
//!               v
//!             deciding    defaults, control, finalists
//!               | decide(): what certainly is better
//!               v
//! program  -> check       defaults, what may be recommended (up to three)
//!               | judge(): kept or withdrawn
//!               v
//!             the first options that are kept, or the defaults
//! ```
//!
//! Of a dozen rows that are equal in truth, the best one looks good by luck. So screening only
//! names the finalists; what is said of them comes from the deciding rounds, with intervals
//! wide enough for all of them together. And a replay is not the program: memory may be a small part of
//! its time, and wait for different things. So the program has the last word.
//!
//! Floors: these modules know `replay`'s and `bench`'s results and statistics, and run nothing;
//! `commands::tune` runs.

pub(crate) mod candidates;
pub(crate) mod decision;
pub(crate) mod results;
