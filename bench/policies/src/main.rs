//! Races the variants: real threads over a stand-in for the shared caches, under each of
//! them in turns.
//!
//! ```text
//!   options    what is asked: caches, threads, operations, variants, rounds
//!   race       each round runs every variant once, in an order that turns
//!   stand_in   locks with a precedence, some lines behind each, threads that want them
//!   table      a variant's ratio to the library's own policy within a round: the median and its
//!              95 % interval by drawing rounds again; beside it the review's
//! ```

mod options;
mod race;
mod stand_in;
mod table;

use std::process::ExitCode;

use options::Options;

const USAGE: &str = "\
usage: policies list
       policies race [OPTION...]

  list   the names, what they mean, and what the review measured
  race   runs each of them in turns, and prints tables in Markdown
    --caches LIST      how many caches (default: 2,8,32)
    --threads LIST     how many threads (default: 40,80)
    --operations N     of each thread (default: 20000)
    --variants LIST    which (default: all); the library's own is always run
    --rounds N         how often each (default: 9)
    --keep FILE        writes every single number there, separated by tabs
";

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
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("list") if words.len() == 1 => {
            list();
            Ok(())
        }
        Some("race") => Options::parse(&words[1..]).and_then(|options| {
            let numbers = race::run(&options)?;
            print!("{}", table::report(&options, &numbers));
            Ok(())
        }),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(said) => {
            eprintln!("policies: {}", said.trim_end());
            ExitCode::from(2)
        }
    }
}
