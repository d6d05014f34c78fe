//! heapwright's pools and arenas beside Rust's pools.
//!
//! The question is always a comparison on the same machine in the same minute. So a run of this
//! program measures one contender in one pattern, prints its numbers, and ends. `ci/pools.sh`
//! starts the runs, one process each, in turns (`plan.sh`), and judges them (`figures.txt`).
//!
//! ```text
//! pools run PATTERN ...   one of them: `figure ns X`, and the pattern's other figures
//! pools one NAME COUNT    COUNT pairs of one contender, for a counter of
//!                         instructions to watch
//! pools golden            calls whose instructions are counted (see [`golden`])
//! ```
//!
//! A file is a pattern ([`pairs`], [`shared`], [`churn`], [`arenas`], [`resident`]) with its
//! traits; [`peers`] implements those traits for other crates, [`ours`] for heapwright. One source
//! makes two programs: `pools`, whose `Box` is glibc's, and `pools-mimalloc`, whose global
//! allocator is mimalloc.

pub mod arenas;
pub mod churn;
pub mod golden;
pub mod measure;
pub mod ours;
pub mod pairs;
pub mod peers;
pub mod resident;
pub mod shared;

use std::process::ExitCode;

/// The seed of every pattern's random numbers: all contenders get the same requests in the same
/// order.
const SEED: u64 = 42;

/// The main function of both programs; the arguments choose the pattern.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["run", "pairs", ref rest @ ..] => pairs::run(rest),
        ["run", "shared", ref rest @ ..] => shared::run(rest),
        ["run", "churn", ref rest @ ..] => churn::run(rest),
        ["run", "arena", ref rest @ ..] => arenas::run(rest),
        ["run", "resident", ref rest @ ..] => resident::run(rest),
        ["one", name, count] => count.parse().ok().and_then(|count| pairs::one(name, count)),
        ["golden"] => golden::run(),
        _ => None,
    };
    if done.is_none() {
        eprintln!("pools: not understood: {}", words.join(" "));
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}
