//! `heapwright`: a person's command.
//!
//! ```text
//! main            passes the arguments to a subcommand, and ends with its result
//! commands/       one module a subcommand: its arguments and its run()
//!   run           a program on heapwright, and its use of memory
//!   check         a program in debug mode, and the findings
//!   valgrind      the same, for callers of valgrind
//!   cargo         cargo's tests, programs and benchmarks, checked
//!   checked       a program in debug mode, as the last two run it
//!   doctor        whether that takes effect, and the reasons
//!   report        the contents of debug records
//!   diff          two records, or two points in time, compared
//!   library       the path of the preload library
//!   bench         a race of allocators, on a program or on workloads
//!   workload      one of those workloads (hidden)
//!   record        a program, and a trace of all its calls for memory
//!   replay        such a trace, under any allocator
//!   top           the parts of running processes' memory
//!   explain       the reasons for a process's memory, and remedies
//!   trim          makes a running process return free memory
//!   docs          completions and manual pages, made from the arguments
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
//! output/         text, JSON, HTML, bars and units; the only place that formats
//! ```
//!
//! The command holds no allocator code. It speaks to the library through the
//! environment (`LD_PRELOAD`, `HEAPWRIGHT`) and reads the files the library
//! writes, whose format is `heapwright-record`.
//!
//! Floors: `commands` uses everything; `output` formats its arguments and calls no other module.
//! `replay` uses `bench` and `trace`, and `bench` uses `inspect`, `preload` and `process`. These
//! three use neither each other nor `report` and `symbols`.

/// std's `eprintln!` without its panic. Standard error may be a closed pipe or a full device, and
/// no exit code depends on text there.
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
    cli::run().now()
}
