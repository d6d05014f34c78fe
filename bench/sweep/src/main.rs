//! The sweep: entry points of the allocator times sizes times patterns, by one thread and by
//! several, so that no size and no entry point hides a cliff. `ci/sweep.sh` builds the program that
//! is measured (sweep.cc) and finds the libraries; this program runs them in turns and reports.
//!
//! ```text
//!   options    the command line
//!     |
//!   cells      runs, a process for each allocator, group and round -> nanoseconds by round
//!     |
//!   report     a table for each group, the worst cells, what is asked;   page: pictures
//! ```
//!
//! Runs, cells, tables, verdicts and pictures are `figures`' (bench/figures).

mod cells;
mod options;
mod page;
mod report;

use std::process::ExitCode;

use figures::report::{folder, write};
use figures::verdict::hold;
use options::Asked;

fn run(asked: &Asked) -> Result<bool, String> {
    let (data, pictures) =
        (asked.libraries.out.join("results.tsv"), asked.libraries.out.join("sweep.html"));
    // Before minutes of work, not after them.
    folder(&asked.libraries.out)?;
    let sweep = cells::run(asked)?;
    let judged = report::judge(&sweep);
    print!("{}", report::text(&sweep, &judged));
    write(&pictures, &page::of(&sweep))?;
    println!("every cell: {}; pictures: {}", data.display(), pictures.display());
    Ok(if asked.quick { sweep.failures.is_empty() } else { sweep.is_sound() && hold(&judged) })
}

fn main() -> ExitCode {
    figures::options::main(|asked: Asked| run(&asked))
}
