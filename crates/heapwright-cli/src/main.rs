//! `heapwright`: a person's command.
//!
//! ```text
//! main            hands the arguments to a subcommand, ends as it says
//! commands/       one module a subcommand: its arguments and its run()
//!   run           a program on heapwright, and what its memory did
//!   check         a program in debug mode, and what was found
//!   valgrind      the same, for callers of valgrind
//!   cargo         cargo's tests, programs and benchmarks, checked
//!   checked       a program in debug mode, as the last two run it
//!   doctor        would that take effect, and why not
//!   report        what is in debug records
//!   diff          two records, or two points in time, compared
//!   library       where the preload library is
//!   bench         a race of allocators, on a program or on workloads
//!   workload      one of those workloads (hidden)
//!   record        a program, and a trace of all its calls for memory
//!   replay        such a trace, under any allocator
//!   top           where the memory of running processes is
//!   explain       why that is so, and what can be done
//!   trim          has a running process give free memory back
//!   docs          completions and manual pages, made from the arguments
//! inspect/        what a program file is: PATH, #! lines, ELF, a judgement
//! preload/        the library inside this command, and the environment
//! process/        starting a program, standing in for it, ending as it ended
//! statistics      the files a run leaves, collected
//! report/         from debug records to what is reported
//! heap/           from a heap dump to what holds what, and time lines
//! symbols/        from addresses to functions and lines
//! bench/          the race: allocators, programs, rounds, and what it shows
//! trace/          traces, read and written
//! replay/         a trace done again, and what that costs
//! live/           processes that run, seen from outside; orders to them
//! screen/         the screen of `top`
//! wrong           an error that is the user's mistake
//! output/         text, JSON, HTML, bars and units; the only place that formats
//! ```
//!
//! The command holds no allocator code. It speaks to the library through the
//! environment (`LD_PRELOAD`, `HEAPWRIGHT`) and reads the files the library
//! writes, whose format is `heapwright-record`.
//!
//! Floors: `commands` uses everything; `output` formats its arguments and calls no other; `replay`
//! stands on `bench` and `trace`, `bench` on `inspect`, `preload` and `process`, which know nothing
//! of each other, nor of `report` and `symbols`.

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
    // The player of `replay` must not allocate, so it does not come by the command line.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == replay::SUBCOMMAND)
        && let (Some(plan), None) = (words.next(), words.next())
    {
        std::process::exit(replay::play(&plan));
    }
    drop(words);
    cli::run().now()
}
