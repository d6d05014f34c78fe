//! Ways to find a shared cache, raced by real threads over a stand-in for the caches.
//!
//! ```text
//!   options    what is asked: caches, threads, operations, variants, rounds
//!   race       each round runs every variant once, in an order that turns
//!   stand_in   locks with a precedence, some lines behind each, threads that want them
//!   table      a variant's ratio to the library's own policy within a round: the median and its
//!              95 % interval by drawing rounds again; beside it the review's
//! ```
#![forbid(unsafe_code)]

mod options;
mod race;
mod stand_in;
mod table;

use std::process::ExitCode;

use options::Asked;

fn list() {
    println!(
        "| policy | review, 40 threads | 80 threads | what it looks at, and what it waits for then |"
    );
    println!("|---|---:|---:|---|");
    for variant in policies::ALL {
        let review = variant.review.map_or("| |".to_owned(), |review| {
            format!("{} s | {} s |", review.threads_40, review.threads_80)
        });
        println!("| {} | {review} {} |", variant.name, variant.what);
    }
}

fn main() -> ExitCode {
    figures::options::main(|asked: Asked| {
        match asked {
            Asked::List => list(),
            Asked::Race(options) => {
                let numbers = race::run(&options)?;
                print!("{}", table::report(&options, &numbers));
            }
        }
        Ok(true)
    })
}
