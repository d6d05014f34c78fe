//! What was asked of the race, what was measured, and the verdict.
//!
//! `heapwright bench --format json -o FILE` keeps every single run. This program reads
//! that file and answers the project's questions about it: a table of figures
//! (a bound, a ratio with its 95 % interval, whether the bound holds), and two
//! tables for the documentation, time and peak memory of each program under
//! each allocator. Nothing is measured here: the same file gives the same text.
//!
//! [`results`] is the file in memory, [`figures::statistics`] the arithmetic,
//! [`compare`] two allocators on one program or on all, [`figures`] the bounds,
//! [`tables`] the tables.

mod compare;
mod figures;
mod results;
mod tables;

use std::io::{ErrorKind, Read as _, Write as _};
use std::process::ExitCode;

use results::Race;

const USAGE: &str = "\
Prints the figures of a race: what was asked, what was measured, the verdict.

usage: figures [--strict] FILE

  FILE      what `heapwright bench --format json -o FILE` wrote; - reads it from stdin
  --strict  fail if a bound is missed or could not be judged
";

fn read(file: &str) -> Result<Race, String> {
    let text = if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|e| format!("cannot read {file}: {e}"))?;
    Race::parse(&text).map_err(|e| format!("{file}: {e}"))
}

fn main() -> ExitCode {
    let mut strict = false;
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--strict" => strict = true,
            "--help" | "-h" => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            other if other.starts_with("--") => {
                eprintln!("figures: unknown argument {other}; --help lists them");
                return ExitCode::from(2);
            }
            _ => files.push(argument),
        }
    }
    let [file] = &files[..] else {
        eprintln!("figures: one file is needed, the JSON of heapwright bench");
        return ExitCode::from(2);
    };
    let race = match read(file) {
        Ok(race) => race,
        Err(message) => {
            eprintln!("figures: {message}");
            return ExitCode::FAILURE;
        }
    };
    let judged = figures::all(&race);
    let text = [
        figures::table(&judged),
        figures::by_kind(&race),
        tables::time(&race),
        tables::peak(&race),
        tables::feet(&race),
    ]
    .join("\n");
    match std::io::stdout().write_all(text.as_bytes()) {
        // A reader that has seen enough (head) is no failure.
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            eprintln!("figures: cannot write: {e}");
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    if strict && judged.iter().any(|figure| !figure.verdict.holds()) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
