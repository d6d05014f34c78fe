//! Races the variants: one program, run under each of them in turns.
//!
//! ```text
//!   options   what is asked: caches, threads, variants, rounds, the program
//!   race      a run is a process of its own, with the library preloaded and told its policy;
//!             each round runs every variant once, in an order that turns
//!   table     a variant's ratio to the library's own policy within a round: the median and its
//!             95 % interval by drawing rounds again; beside it the review's
//! ```
//!
//! The program is `ttest1` (bench/caches), which says how long it was in allocation
//! functions; or any other (`--program`), of which the wall time counts or a number that
//! it prints.

mod options;
mod race;
mod table;

use std::process::ExitCode;

use options::Options;

const USAGE: &str = "\
usage: policies list
       policies race --library SO --ttest1 PATH [OPTION...]
       policies race --library SO [OPTION...] --program PATH [ARGUMENT...]

  list   the names, what they mean, and what the review measured
  race   runs each of them in turns, and prints tables in Markdown
    --library SO       libheapwright_policies.so (cargo build -p policies-preload)
    --ttest1 PATH      the program of bench/caches; its time in allocation functions counts
    --program PATH ..  any program; what follows are its arguments. Its wall time counts
    --figure NAME      with --program: what it prints as NAME=NUMBER counts instead
    --caches LIST      how many caches (default: 2,8,32)
    --threads LIST     ttest1's threads at a time (default: 40,80)
    --total N          its threads in all (default: as many as at a time, twice)
    --clock CLOCK      which calls it times: all (default), or each N-th
    --actions N        its actions of a thread (default: 20000)
    --limit BYTES      its limit of sizes (default: 100000)
    --variants LIST    which (default: all); the library's own is always run
    --rounds N         how often each (default: 9)
    --seconds N        a run that takes longer fails (default: 300)
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
