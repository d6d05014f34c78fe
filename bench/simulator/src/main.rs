//! The simulator's command.
//!
//! Its allocator is heapwright, for `calibrate` measures what a call of it takes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser};
use figures::options::number;
use simulator::calibration::Calibration;
use simulator::measure;
use simulator::study::{Wanted, report};

#[global_allocator]
static HEAPWRIGHT: heapwright::Heapwright = heapwright::Heapwright;

/// So many CPUs, caches or threads are simulated in the memory that there is.
const MOST: usize = 4096;

/// The costs that were committed.
const COMMITTED: &str = include_str!("../calibration.toml");

/// Ways to find a shared cache, on simulated machines; ci/simulate.sh calls it
#[derive(Parser)]
#[command(name = "simulator")]
enum Asked {
    /// Simulates the policies and prints tables in Markdown
    Run(Run),
    /// Measures the costs on this machine and prints the file
    Calibrate {
        /// Writes it there
        #[arg(long)]
        output: Option<PathBuf>,
    },
    /// What `calibrate` runs on one CPU
    #[command(hide = true)]
    CalibrateOneCpu,
}

#[derive(Args)]
struct Run {
    /// One seed, short runs, no ranges: to see that it works
    #[arg(long)]
    quick: bool,
    /// The costs [default: those that were committed]
    #[arg(long)]
    calibration: Option<PathBuf>,
    /// CPUs of the machine beside the review's [default: 72]
    #[arg(long, value_parser = number(1..=MOST))]
    cpus: Option<usize>,
    /// Its caches [default: 32]
    #[arg(long, value_parser = number(1..=MOST))]
    caches: Option<usize>,
    /// Two numbers of threads [default: 40,80]
    #[arg(long, value_parser = two)]
    threads: Option<[usize; 2]>,
    /// Simulated milliseconds of a run [default: 20]
    #[arg(long, value_parser = number(1..=1_000_000_u64))]
    ms: Option<u64>,
    /// How many [default: 5]
    #[arg(long, value_parser = number(1..=1000_u64))]
    seeds: Option<u64>,
}

fn two(value: &str) -> Result<[usize; 2], String> {
    let both = value.split_once(',');
    let (few, many) = both.ok_or_else(|| format!("two numbers: 40,80, not '{value}'"))?;
    Ok([number(1..=MOST)(few)?, number(1..=MOST)(many)?])
}

fn run(asked: &Run) -> Result<(), String> {
    let usual = if asked.quick { Wanted::QUICK } else { Wanted::FULL };
    let wanted = Wanted {
        cpus: asked.cpus.unwrap_or(usual.cpus),
        caches: asked.caches.unwrap_or(usual.caches),
        threads: asked.threads.unwrap_or(usual.threads),
        ms: asked.ms.unwrap_or(usual.ms),
        seeds: asked.seeds.unwrap_or(usual.seeds),
        ..usual
    };
    let calibration = match &asked.calibration {
        None => Calibration::parse(COMMITTED)?,
        Some(path) => {
            let name = path.display();
            let text =
                std::fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
            Calibration::parse(&text).map_err(|e| format!("{name}: {e}"))?
        }
    };
    print!("{}", report(&calibration, &wanted));
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
            Asked::Run(asked) => run(&asked)?,
            Asked::Calibrate { output } => calibrate(output)?,
            Asked::CalibrateOneCpu => {
                let (handoff, slice) = measure::share_one_cpu();
                println!("{handoff} {slice}");
            }
        }
        Ok(true)
    })
}
