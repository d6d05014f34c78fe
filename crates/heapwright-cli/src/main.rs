//! `heapwright`: a person's command.
//!
//! ```text
//! main            passes the arguments to a subcommand, and ends with its result
//! cli             the command line: subcommands, and mistakes in it
//! commands/       one module a subcommand: its arguments and its run()
//! inspect/        the nature of a program file: PATH, #! lines, ELF, a verdict
//! preload/        the library inside this command, and the environment
//! process/        starts a program, stands in for it, ends as it ended
//! statistics      the files a run leaves, collected
//! report/         from debug records to a report
//! heap/           from a heap dump to paths and retained sizes; time lines
//! symbols/        from addresses to functions and lines
//! bench/          the race: allocators, programs, rounds, results
//! trace/          traces, read and written
//! replay/         repeats a trace, and measures the cost
//! live/           running processes, seen from outside; orders to them
//! screen/         the screen of `top`
//! wrong           an error that is the user's mistake
//! bounds          how far input files may expand
//! output/         text, JSON, HTML, bars and units
//! ```
//!
//! The command has no allocator code. It gives the library options through the environment
//! (`LD_PRELOAD`, `HEAPWRIGHT`), and reads the files that the library writes (`heapwright-record`).
//!
//! `commands` uses everything. `output` formats its arguments, and uses other modules for hardly
//! more than types. `replay` stands on `bench`, `process` and `trace`; `bench` stands on
//! `inspect`, `preload` and `process`. None of these six uses `report`.

/// std's `eprintln!` without its panic: standard error may be closed or full.
macro_rules! eprintln {
    ($($text:tt)*) => {
        $crate::output::say(format_args!($($text)*))
    };
}

mod bench;
mod bounds;
mod cli;
mod commands;
mod heap;
mod inspect;
mod live;
mod output;
mod preload;
mod process;
mod replay;
mod report;
mod screen;
mod statistics;
mod symbols;
mod trace;
mod wrong;

fn main() -> ! {
    // The player of `replay` must not allocate, so it bypasses the command line's parser.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == replay::SUBCOMMAND)
        && let (Some(plan), None) = (words.next(), words.next())
    {
        std::process::exit(replay::play(&plan));
    }
    drop(words);
    process::with_enough_stack(cli::run).now()
}
