//! The registries on long random schedules: many threads, many operations, under shuttle.
//!
//! loom tries every order of two or three threads with one or two operations (`ci/loom.sh`). It
//! cannot reach eight threads, or a thirtieth visit. Here the same sources run on shuttle's
//! threads, which switch at each atomic operation. The orders are random, or follow priorities
//! that change a few times (PCT: Burckhardt and others, "A Randomized Scheduler with Probabilistic
//! Guarantees of Finding Bugs"). Memory is sequentially consistent; loom covers weaker orders.
//!
//! ```text
//!   crates/heapwright-substrate/src/registry/{policy, shared, common, thread_index}.rs
//!        Cargo.toml renames shuttle to `loom`; build.rs sets `cfg(loom)`
//! ```
//!
//! The checks find a second holder of a cache, of an object or of a thread index. They find a
//! holder's lost visit, a cache beyond K, and a thread that waits for ever. (Shuttle ends a
//! schedule of a million steps, and one in which all threads wait.)
//!
//!     schedules [NUMBER]      this many schedules of each kind; 1000 by default
//!
//! The program prints a failing schedule as a text that shuttle replays.

mod marks;
mod registry;
mod scenes;

/// The counterpart of the library's module.
mod sync {
    pub(crate) use loom::sync::atomic;
}

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
