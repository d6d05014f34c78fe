//! heapwright's pools and arenas beside Rust's pools.
//!
//! Each run of this program measures one contender in one pattern. `ci/pools.sh` starts their runs
//! in turns, one process each (`plan.sh`), and judges them (`figures.txt`).
//!
//! ```text
//! pools run PATTERN ...   one run: `figure ns X`, and other figures of the pattern
//! pools one NAME COUNT    COUNT pairs of one contender, for a counter of instructions
//! pools golden            calls whose instructions are counted (see [`golden`])
//! pools functions [TURNS] the functions of arenas: function, call, nanoseconds (see [`functions`])
//! ```
//!
//! [`peers`] implements the patterns' traits for other crates, [`ours`] for heapwright. There are
//! two programs of one source: `pools`, whose `Box` is glibc's, and `pools-mimalloc`, whose global
//! allocator is mimalloc.

pub mod arenas;
pub mod churn;
pub mod functions;
pub mod golden;
pub mod maps;
pub mod measure;
pub mod ours;
pub mod pairs;
pub mod peers;
pub mod resident;
pub mod shared;

use std::process::ExitCode;

/// All contenders see the same requests in the same order.
const SEED: u64 = 42;

/// The main function of both programs: runs what the arguments say.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["run", "pairs", ref rest @ ..] => pairs::run(rest),
        ["run", "shared", ref rest @ ..] => shared::run(rest),
        ["run", "churn", ref rest @ ..] => churn::run(rest),
        ["run", "arena", ref rest @ ..] => arenas::run(rest),
        ["run", "resident", ref rest @ ..] => resident::run(rest),
        ["run", "map", ref rest @ ..] => maps::run(rest),
        ["one", name, count] => count.parse().ok().and_then(|count| pairs::one(name, count)),
        ["golden"] => golden::run(),
        ["functions"] => functions::print("301"),
        ["functions", turns] => functions::print(turns),
        _ => None,
    };
    if done.is_none() {
        eprintln!("pools: not understood: {}", words.join(" "));
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}
