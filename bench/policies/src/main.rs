//! Ways to find a shared cache: raced by real threads over a stand-in for the caches, and simulated
//! on machines with many CPUs.
//!
//! ```text
//!   options    what is asked: caches, threads, operations, variants, rounds
//!   race       each round runs every variant once, in an order that turns
//!   stand_in   locks with a precedence, some lines behind each, threads that want them
//!   table      a variant's ratio to the library's own policy within a round: the median and its
//!              95 % interval by drawing rounds again; beside it the review's
//!   simulator  (in the library part) the tables of simulated machines, and their costs
//! ```
//!
//! The allocator is heapwright, because `calibrate` measures its calls. A race does not allocate.
#![forbid(unsafe_code)]

mod options;
mod race;
mod stand_in;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use options::{Asked, Simulation};
use policies::simulator::calibration::Calibration;
use policies::simulator::{measure, study};

#[global_allocator]
static HEAPWRIGHT: heapwright::Heapwright = heapwright::Heapwright;

/// The costs that were committed.
const COMMITTED: &str = include_str!("../calibration.toml");

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

fn simulate(asked: &Simulation) -> Result<(), String> {
    let calibration = match &asked.calibration {
        None => Calibration::parse(COMMITTED)?,
        Some(path) => {
            let name = path.display();
            let text =
                std::fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
            Calibration::parse(&text).map_err(|e| format!("{name}: {e}"))?
        }
    };
    print!("{}", study::report(&calibration, &asked.wanted()));
    Ok(())
}

fn calibrate(output: Option<PathBuf>) -> Result<(), String> {
    let text = measure::calibrate()?.to_text();
    let Some(path) = output else {
        print!("{text}");
        return Ok(());
    };
    std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn main() -> ExitCode {
    figures::options::main(|asked: Asked| {
        match asked {
            Asked::List => list(),
            Asked::Race(options) => {
                let numbers = race::run(&options)?;
                print!("{}", table::report(&options, &numbers));
            }
            Asked::Simulate(asked) => simulate(&asked)?,
            Asked::Calibrate { output } => calibrate(output)?,
            Asked::CalibrateOneCpu => {
                let (handoff, slice) = measure::share_one_cpu();
                println!("{handoff} {slice}");
            }
        }
        Ok(true)
    })
}
