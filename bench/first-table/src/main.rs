//! The first table: a few programs, ours and real ones, under glibc's malloc,
//! heapwright, mimalloc v3 and snmalloc.
//!
//! How the comparison is kept fair:
//! - every allocator is a shared library under `LD_PRELOAD`, built optimised
//!   the way its own build system does, and nothing stands between the program
//!   and its `malloc` ([`peers`]);
//! - before the race a probe checks that each preload really took effect;
//! - runs are interleaved and the order turns by one each round, so that a busy
//!   minute of the machine falls on everyone ([`race`]);
//! - each program is started by a tiny static launcher, because a peak resident
//!   size survives exec from a big parent;
//! - a cell is the median of all runs, and its spread is printed beside it
//!   ([`table`]).

mod jobs;
mod peers;
mod race;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: first-table --heapwright LIBHEAPWRIGHT.SO [options]

  --pairs N        interleaved rounds (default 7); a cell is the median of N runs
  --only A,B,...   only these rows (see --list)
  --with NAME=SO   one more preload library; may be given several times
  --without NAME   leave a peer out: mimalloc, snmalloc or glibc's ratio columns stay
  --json FILE      also write every single run to FILE
  --list           print the rows and stop
";

/// What the command line asked for.
struct Options {
    heapwright: Option<PathBuf>,
    rounds: usize,
    only: Vec<String>,
    with: Vec<(String, PathBuf)>,
    without: Vec<String>,
    json: Option<PathBuf>,
    list: bool,
}

fn parse() -> Result<Options, String> {
    let mut options = Options {
        heapwright: None,
        rounds: 7,
        only: Vec::new(),
        with: Vec::new(),
        without: Vec::new(),
        json: None,
        list: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--heapwright" => options.heapwright = Some(value()?.into()),
            "--pairs" => {
                options.rounds = value()?
                    .parse()
                    .ok()
                    .filter(|&n| n > 0)
                    .ok_or("--pairs needs a number above 0")?;
            }
            "--only" => options.only.extend(value()?.split(',').map(str::to_owned)),
            "--with" => {
                let text = value()?;
                let (name, path) =
                    text.split_once('=').ok_or("--with needs the form NAME=LIBRARY.SO")?;
                options.with.push((name.to_owned(), path.into()));
            }
            "--without" => options.without.push(value()?),
            "--json" => options.json = Some(value()?.into()),
            "--list" => options.list = true,
            "--help" | "-h" => return Err(String::new()),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<(), String> {
    let bench = peers::bench_folder();
    let work = peers::work_folder()?;
    let launcher = peers::compile_c(&bench.join("launcher/launcher.c"), &work, &["-static"])?;

    let mut jobs = jobs::all(&bench, &work)?;
    if options.list {
        for job in &jobs {
            println!("{:<14} {}", job.name, job.about);
        }
        return Ok(());
    }
    if !options.only.is_empty() {
        if let Some(unknown) = options.only.iter().find(|&n| !jobs.iter().any(|j| j.name == *n)) {
            return Err(format!("--only {unknown}: no such row; --list prints them"));
        }
        jobs.retain(|job| options.only.iter().any(|name| name == job.name));
    }

    let mut rivals = vec![peers::Rival::glibc()];
    if let Some(path) = options.heapwright {
        let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
        rivals.push(peers::Rival::preload("heapwright", path));
    }
    if !options.without.iter().any(|name| name == "mimalloc") {
        rivals.push(peers::mimalloc(&work)?);
    }
    if !options.without.iter().any(|name| name == "snmalloc") {
        rivals.push(peers::snmalloc(&work)?);
    }
    for (name, path) in options.with {
        let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
        rivals.push(peers::Rival::preload(&name, path));
    }
    let probe = peers::compile_c(&bench.join("workloads/probe.c"), &work, &["-ldl"])?;
    for rival in &mut rivals {
        peers::probe(rival, &probe)?;
    }

    let runs = race::race(&jobs, &rivals, options.rounds, &launcher, &work)?;
    table::print(&jobs, &rivals, &runs);
    if let Some(path) = options.json {
        let text = table::json(&jobs, &rivals, &runs);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match parse().map(run) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(message)) => {
            eprintln!("first-table: {message}");
            ExitCode::FAILURE
        }
        Err(message) => {
            if !message.is_empty() {
                eprintln!("first-table: {message}");
            }
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
