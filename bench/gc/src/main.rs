//! The loads of the collected heap: heapwright's against bdwgc, and what is asked of it alone.
//! `ci/gc.sh` builds the programs (loads/*.c); this program runs them in turns and reports.
//!
//! ```text
//!   loads/*.c --cc--> gcbench-heapwright, gcbench-bdwgc, pauses, ...
//!                          |
//!   plan of a load ---- turns: a round runs each variant once, in an order that turns
//!                          |
//!                        tables of medians, then: what was asked, measured, found
//! ```
//!
//! [`options`] is the command line, [`run`] one run of a program and the turns of many, [`limits`]
//! the search for the smallest heap. What a program prints, how rounds turn, how a figure is judged
//! and what is gathered is `figures`' (bench/figures). The loads, and what is asked of them:
//! [`limited`] (those against bdwgc) and [`heap`] (pauses, scaling, compact).

mod heap;
mod limited;
mod limits;
mod options;
mod run;

use std::process::ExitCode;

use figures::report::{Report, folder};
use options::Options;

/// A load: its name on the command line, and what runs it.
type Load = (&'static str, fn(&Options, &mut Report, &str) -> Result<(), String>);

/// In the order in which they run.
const LOADS: [Load; 11] = [
    ("gcbench", limited::limited),
    ("splay", limited::limited),
    ("strings", limited::limited),
    ("pauses", heap::pauses),
    ("scaling", heap::scaling),
    ("compact", heap::compact),
    ("fillers", limited::limited),
    ("quads", limited::limited),
    ("garbage", limited::garbage),
    ("ephemerons", limited::limited),
    ("finalizers", limited::limited),
];

fn all(options: &Options) -> Result<bool, String> {
    folder(&options.out)?;
    let mut report = Report::default();
    for (name, load) in LOADS {
        if options.takes(name) {
            eprintln!("{name}");
            load(options, &mut report, name)?;
            // After each, so that an hour is not lost with the last of them.
            report.write(&options.out)?;
        }
    }
    report.print()?;
    Ok(report.is_sound() && (options.quick || report.holds()))
}

fn main() -> ExitCode {
    figures::options::main(|options: Options| all(&options))
}
