//! The registries on long random schedules: many threads, many operations, under shuttle.
//!
//! loom tries every order of two or three threads that do a thing or two (`ci/loom.sh`).
//! What needs eight threads, or the thirtieth visit, it cannot reach. Here the same
//! sources run on shuttle's threads, which change hands at each atomic operation, in orders
//! that are drawn: at random, and by priorities that change a few times (PCT: Burckhardt
//! and others, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs").
//! Memory is sequentially consistent here; weaker orders are loom's.
//!
//! ```text
//!   crates/heapwright-substrate/src/registry/{policy, shared, common, thread_index}.rs
//!        their `loom` is shuttle, by its name in Cargo.toml; build.rs sets `cfg(loom)`
//! ```
//!
//! What is looked for: a second holder of a cache, of an object or of a thread index; a mark that a
//! holder made and that got lost; a cache beyond K; a thread that waits for ever (shuttle
//! ends a schedule of a million steps, and one in which all wait).
//!
//!     schedules [NUMBER]      so many schedules of each kind; 1000 if not said
//!
//! A schedule that fails is printed as a text that shuttle replays.

mod marks;
mod registry;
mod scenes;

/// As the library's.
mod sync {
    pub(crate) use loom::sync::atomic;
}

/// Changes of priority in a schedule by priorities.
const CHANGES: usize = 5;

fn main() {
    let number = std::env::args().nth(1);
    let schedules = match number.as_deref().map(str::parse) {
        None => 1000,
        Some(Ok(number)) => number,
        Some(Err(_)) => {
            eprintln!("schedules: what is given is no number of schedules");
            std::process::exit(2);
        }
    };
    for (name, scene) in scenes::ALL {
        loom::check_random(scene, schedules);
        loom::check_pct(scene, schedules, CHANGES);
        println!("ok   {name}: {schedules} random schedules, {schedules} by priorities");
    }
}
