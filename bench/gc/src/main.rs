//! The loads of the collected heap: heapwright's against bdwgc, layouts and ways to sweep
//! against each other. `ci/gc.sh` builds the programs (loads/*.c); this program runs
//! them in turns and reports.
//!
//! ```text
//!   loads/*.c --cc--> gcbench-heapwright, gcbench-bdwgc, request, ...
//!                          |
//!   plan of a load ---- turns: a round runs each variant once, in an order that turns
//!                          |
//!                        tables of medians, then: what was asked, measured, found
//! ```
//!
//! [`options`] is the command line, [`run`] one run of a program and the turns of many,
//! [`limits`] the search for the smallest heap, [`report`] what is gathered and printed; what a
//! program prints, how rounds turn and how a figure is judged is `figures`' (bench/figures). The
//! loads, and what is asked of them: [`peers`] (gcbench, splay, strings), [`request`],
//! [`layouts`] (document, template, quiet), [`heap`] (boot, pauses, scaling), [`grown`]
//! (generations, compact), [`holes`] (fillers, quads, garbage), [`weak`] (ephemerons, finalizers).

mod grown;
mod heap;
mod holes;
mod layouts;
mod limits;
mod options;
mod peers;
mod report;
mod request;
mod run;
mod weak;

use std::process::ExitCode;

use options::Options;
use report::Report;

/// A load: its name on the command line, and what runs it.
type Load = (&'static str, fn(&Options, &mut Report) -> Result<(), String>);

/// In the order in which they run, that of the issue's table.
const LOADS: [Load; 17] = [
    ("gcbench", peers::gcbench),
    ("splay", peers::splay),
    ("strings", peers::strings),
    ("request", request::all),
    ("document", layouts::document),
    ("template", layouts::template),
    ("quiet", layouts::quiet),
    ("boot", heap::boot),
    ("pauses", heap::pauses),
    ("scaling", heap::scaling),
    ("generations", grown::generations),
    ("compact", grown::compact),
    ("fillers", holes::fillers),
    ("quads", holes::quads),
    ("garbage", holes::garbage),
    ("ephemerons", weak::ephemerons),
    ("finalizers", weak::finalizers),
];

fn all(options: &Options) -> Result<bool, String> {
    std::fs::create_dir_all(&options.out)
        .map_err(|e| format!("cannot make {}: {e}", options.out.display()))?;
    let mut report = Report::new();
    for (name, load) in LOADS {
        if options.takes(name) {
            eprintln!("{name}");
            load(options, &mut report)?;
            report.write(&options.out)?;
        }
    }
    report.print()?;
    Ok(report.is_sound() && (options.quick || report.holds()))
}

fn main() -> ExitCode {
    figures::options::main(|options: Options| all(&options))
}
