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

/// Prints the figures of a race: what was asked, what was measured, the verdict
#[derive(clap::Parser)]
struct Asked {
    /// Fail if a bound is missed or could not be judged
    #[arg(long)]
    strict: bool,
    /// What `heapwright bench --format json -o FILE` wrote; - reads it from stdin
    file: String,
}

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

fn run(asked: Asked) -> Result<bool, String> {
    let race = read(&asked.file)?;
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
        Err(e) if e.kind() != ErrorKind::BrokenPipe => return Err(format!("cannot write: {e}")),
        _ => {}
    }
    Ok(!asked.strict || judged.iter().all(|figure| figure.verdict.holds()))
}

fn main() -> ExitCode {
    ::figures::options::main(run)
}
