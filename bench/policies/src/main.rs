//! Simulates shared caches on machines with many CPUs, and measures the costs for the simulation.
//! The program allocates with heapwright: `calibrate` measures calls of the global allocator.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use figures::options::number;
use policies::calibration::Calibration;
use policies::measure;
use policies::study::{Wanted, report};

#[global_allocator]
static HEAPWRIGHT: heapwright::Heapwright = heapwright::Heapwright;

const COMMITTED: &str = include_str!("../calibration.toml");

/// Simulates shared caches on machines with many CPUs; ci/policies.sh calls it
#[derive(clap::Parser, Debug)]
#[command(name = "policies")]
enum Asked {
    /// Prints tables in Markdown
    Simulate {
        /// The costs [default: those that were committed]
        #[arg(long)]
        calibration: Option<PathBuf>,
        /// CPUs of the machines, with commas
        #[arg(long, value_delimiter = ',', default_value = "8,16,32,64,128,192,256", value_parser = number(1..=4096_usize))]
        cpus: Vec<usize>,
        /// Simulated milliseconds of a run
        #[arg(long, default_value = "20", value_parser = number(1..=1_000_000_u64))]
        ms: u64,
        /// Number of seeds; the median counts
        #[arg(long, default_value = "5", value_parser = number(1..=1000_u64))]
        seeds: u64,
    },
    /// Measures the costs on this machine and prints the file
    Calibrate,
    /// Measures the costs on one CPU, for `calibrate`
    #[command(hide = true)]
    CalibrateOneCpu,
}

fn main() -> ExitCode {
    figures::options::main(|asked: Asked| {
        match asked {
            Asked::Simulate { calibration, cpus, ms, seeds } => {
                let text = calibration.map_or(Ok(COMMITTED.to_owned()), |path| {
                    std::fs::read_to_string(&path)
                        .map_err(|e| format!("cannot read {}: {e}", path.display()))
                })?;
                let calibration = Calibration::parse(&text)?;
                print!("{}", report(&calibration, &Wanted { cpus, ms, seeds }));
            }
            Asked::Calibrate => print!("{}", measure::calibrate()?.to_text()?),
            Asked::CalibrateOneCpu => {
                let (handoff, slice) = measure::share_one_cpu();
                println!("{handoff} {slice}");
            }
        }
        Ok(true)
    })
}
