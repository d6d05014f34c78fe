//! The simulator's command.
//!
//! Its allocator is heapwright, for `calibrate` measures what a call of it takes.

use std::process::ExitCode;

use figures::options::number;
use simulator::calibration::Calibration;
use simulator::measure;
use simulator::study::{Wanted, report};

#[global_allocator]
static HEAPWRIGHT: heapwright::Heapwright = heapwright::Heapwright;

const USAGE: &str = "\
usage: simulator run [--quick] [--calibration FILE] [--cpus N] [--caches K] [--threads A,B]
                     [--ms N] [--seeds N]
       simulator calibrate [--output FILE]

  run        simulates the policies and prints tables in Markdown
    --quick        one seed, short runs, no ranges: to see that it works
    --calibration  the costs (default: those that were committed)
    --cpus, --caches, --threads  the machine beside the review's (default: 72, 32, 40,80)
    --ms           simulated milliseconds of a run (default: 20)
    --seeds        how many (default: 5)
  calibrate  measures the costs on this machine and prints the file
";

/// So many CPUs, caches or threads are simulated in the memory that there is.
const MOST: usize = 4096;

/// The costs that were committed.
const COMMITTED: &str = include_str!("../calibration.toml");

fn run(words: &[String]) -> Result<(), String> {
    let quick = words.iter().any(|word| word == "--quick");
    let mut wanted = if quick { Wanted::QUICK } else { Wanted::FULL };
    let mut calibration = Calibration::parse(COMMITTED)?;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--quick" {
            continue;
        }
        let value = words
            .next()
            .ok_or_else(|| format!("'{word}' is unknown, or wants a value\n{USAGE}"))?;
        match word.as_str() {
            "--calibration" => {
                let text = std::fs::read_to_string(value)
                    .map_err(|e| format!("cannot read {value}: {e}"))?;
                calibration = Calibration::parse(&text).map_err(|e| format!("{value}: {e}"))?;
            }
            "--cpus" => wanted.cpus = number(value, word, 1..=MOST)?,
            "--caches" => wanted.caches = number(value, word, 1..=MOST)?,
            "--threads" => {
                let (few, many) = value
                    .split_once(',')
                    .ok_or_else(|| format!("--threads wants two numbers: 40,80, not '{value}'"))?;
                wanted.threads = [number(few, word, 1..=MOST)?, number(many, word, 1..=MOST)?];
            }
            "--ms" => wanted.ms = number(value, word, 1..=1_000_000)?,
            "--seeds" => wanted.seeds = number(value, word, 1..=1000)?,
            _ => return Err(format!("'{word}' is unknown\n{USAGE}")),
        }
    }
    print!("{}", report(&calibration, &wanted));
    Ok(())
}

fn calibrate(words: &[String]) -> Result<(), String> {
    let text = || Ok::<String, String>(measure::calibrate()?.to_text());
    match words {
        [] => print!("{}", text()?),
        [option, file] if option == "--output" => {
            std::fs::write(file, text()?).map_err(|e| format!("cannot write {file}: {e}"))?;
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("run") => run(&words[1..]),
        Some("calibrate") => calibrate(&words[1..]),
        // What `calibrate` runs on one CPU.
        Some("calibrate-one-cpu") => {
            let (handoff, slice) = measure::share_one_cpu();
            println!("{handoff} {slice}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(said) => {
            eprintln!("simulator: {}", said.trim_end());
            ExitCode::from(2)
        }
    }
}
