//! `heapwright profile` samples a program's allocations and reports which calls made them.
//!
//! ```text
//! -- CMD    a folder <- profile.PID of each process, at intervals (options sample, profile)
//!             +-- the program is a child; this process stands in for it, as `check` does
//!             +-- all records, one report; the exit code is the program's own
//!
//! PID       the process is ordered to sample, unless it already does  (`live::Orders`)
//!             +-- some seconds, with a record now and then
//!             +-- it is ordered to write a record and to stop sampling; one report
//! ```

use super::checked::note_python;
use super::run::{not_started, why_nothing};
use super::{ProgramArgs, after_writing};
use crate::inspect;
use crate::live::{Orders, Refusal, Statuses};
use crate::output::Format;
use crate::output::{self, Look};
use crate::preload::{self, Options};
use crate::process::{self, Exit, interrupt};
use crate::report;
use crate::report::model::{Figure, SITES, Wanted};
use crate::statistics::Folder;
use crate::wrong::wrong;
use anyhow::anyhow;
use clap::Parser;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// The part of a record's name before the pid.
const STEM: &str = "profile";

/// Sample a program's allocations, and report the call stacks that allocated its memory.
///
/// heapwright keeps the stacks of a small random sample of blocks, and notes when each block is
/// freed. The program runs at most a few per cent slower. Each of its processes has a profile of
/// its own. Exits as the program did. Exits with 2 for a wrong command line, 125 if the command
/// failed itself, 126 or 127 if the program could not be run.
///
/// With a PID, profiles a running process on heapwright for some seconds, without a restart. The
/// profile has the blocks that the process allocates in this time. Ctrl-C ends the wait sooner.
/// Exits with 0, or with 125 if the process gave no profile.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright profile [OPTIONS] [--] CMD [ARGS]...
       heapwright profile [OPTIONS] PID [--seconds SECONDS]")]
#[command(after_help = "\
Examples:
  heapwright profile -- ./program --its-option
  heapwright profile 4242 --seconds 60
  heapwright profile --python --figure allocated -- python3 script.py
  heapwright profile --sample 64k --format pprof -o heap.pb.gz -- ./server")]
pub(crate) struct Args {
    #[command(flatten)]
    how: How,

    #[command(flatten)]
    program: ProgramArgs,
}

/// The settings of a profile and of its report.
#[derive(clap::Args)]
struct How {
    /// The format of the output [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = Format::of_memory())]
    format: Option<Format>,

    /// Write to FILE [default: stderr, after the program's own output; stdout for a PID]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Which blocks to report [default: peak; live for a PID]
    #[arg(long, value_enum, value_name = "FIGURE")]
    figure: Option<Figure>,

    /// Average number of allocated bytes from one sample to the next, from 1k to 1g; a smaller
    /// number is more exact, and slower [default: 512k]
    #[arg(long, value_name = "BYTES", value_parser = distance)]
    sample: Option<u64>,

    /// List at most N stacks of each process in text; 0: all [default: 20]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Profile a running process for this time, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
}

/// The options that may follow a PID.
#[derive(clap::Parser)]
#[command(name = "heapwright profile", no_binary_name = true)]
struct BehindPid {
    #[command(flatten)]
    how: How,
}

impl How {
    /// Merges the options behind the PID with those before it. The options behind the PID win.
    fn or(self, before: &Self) -> Self {
        Self {
            format: self.format.or(before.format),
            output: self.output.or_else(|| before.output.clone()),
            figure: self.figure.or(before.figure),
            sample: self.sample.or(before.sample),
            limit: self.limit.or(before.limit),
            seconds: self.seconds.or(before.seconds),
        }
    }

    fn sample(&self) -> u64 {
        self.sample.unwrap_or(512 << 10)
    }

    /// Returns the options for the report. `figure` is the default of `--figure`.
    fn report(&self, figure: Figure) -> report::Options {
        let limit = self.limit.unwrap_or(SITES);
        report::Options {
            everything: true,
            wanted: Wanted {
                figure: self.figure.unwrap_or(figure),
                sites: if limit == 0 { usize::MAX } else { limit },
                ..Wanted::default()
            },
            ..report::Options::default()
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    super::seconds(text, 86_400)
}

/// Parses the distance of samples, in the syntax of the library's option.
fn distance(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(['k', 'm', 'g']);
    let shift = match &lower[digits.len()..] {
        "" => Some(0),
        "k" => Some(10),
        "m" => Some(20),
        "g" => Some(30),
        _ => None,
    };
    let bytes =
        digits.parse::<u64>().ok().zip(shift).and_then(|(n, shift)| n.checked_mul(1 << shift));
    bytes
        .filter(|bytes| (1 << 10..=1 << 30).contains(bytes))
        .ok_or_else(|| "use a number of bytes from 1k to 1g, such as 512k".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    // A number means a process, unless a program has this name.
    let first = args.program.command[0].to_str();
    if let Some(pid) = first.and_then(|first| first.parse::<u32>().ok())
        && inspect::path::find(&args.program.command[0]).is_err()
    {
        let how = match BehindPid::try_parse_from(&args.program.command[1..]) {
            Ok(behind) => behind.how.or(&args.how),
            Err(error) => return Ok(crate::cli::complain(&error)),
        };
        let program = &args.program;
        if program.python || program.library.path.is_some() || !program.options.is_empty() {
            let why = "--option, --library and --python are for a program that profile starts";
            return Err(wrong(why.to_owned()));
        }
        return running(pid, &how);
    }
    if args.how.seconds.is_some() {
        return Err(wrong("--seconds is for a running process: heapwright profile PID".to_owned()));
    }
    start(args)
}

fn start(args: &Args) -> anyhow::Result<Exit> {
    let how = &args.how;
    let format = how.format.unwrap_or_default();
    let library = preload::library(args.program.library.given().as_deref())?;
    let file = how.output.as_deref().map(super::open).transpose()?;
    let folder = Folder::new()?;
    let mut options = Options::inherited(std::env::var_os("HEAPWRIGHT").as_deref());
    let mut asked = args.program.options.clone();
    asked.push(format!("sample={}", how.sample()));
    for option in &asked {
        if option.contains("profile=") {
            let why = "profile sets option profile itself; use --output";
            return Err(wrong(why.to_owned()));
        }
        options.add(option)?;
    }
    let all = options.value()?.unwrap_or_default().to_string_lossy();
    let mut modes = all.split([',', ';']).filter_map(|option| option.trim().strip_prefix("mode="));
    let is_other = |mode: &&str| mode.starts_with("debug") || mode.starts_with("hardened");
    if let Some(mode) = modes.next_back().filter(is_other) {
        let whose = if preload::sets(&asked, "mode") { "--option" } else { "HEAPWRIGHT" };
        return Err(wrong(format!("profile needs mode=fast, and {whose} sets mode={mode}")));
    }
    preload::refuse_bad(&library, &options, &asked, "--option ")?;
    options.profile(&folder.path().join(STEM));
    let outcome = match process::watch(args.program.program(&library, &options)?) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(not_started(&args.program.command[0], &error)),
    };
    if !report::any_in(folder.path()) {
        let name = &args.program.command[0];
        let killed = "a signal ended it within its first second";
        let why = why_nothing(name, &outcome, killed, "it allocated nothing");
        eprintln!("heapwright: {} left no heap profile: {why}", name.display());
        return Ok(Exit::from(outcome.end));
    }
    let mut made = report::make(&[folder.path().to_owned()], &how.report(Figure::Peak))?;
    note_python(&mut made.report, args.program.python);
    let is_file = file.is_some();
    let written = match file {
        Some(file) => output::render_to(file, &made.report, format),
        None => {
            let stderr = io::stderr();
            let look = Look::of(&stderr);
            let mut out = BufWriter::new(stderr.lock());
            let gap = if format == Format::Text { "\n" } else { "" };
            let _ = out.write_all(gap.as_bytes());
            output::render(&made.report, format, &mut out, look).and_then(|()| out.flush())
        }
    };
    Ok(after_writing(Exit::from(outcome.end), "the profile", is_file, written))
}

/// The time for which the process goes on sampling after this command's last order.
const GRACE: Duration = Duration::from_secs(10);
/// The time between two orders to sample, and the shortest time between two written profiles.
const BETWEEN: Duration = Duration::from_millis(500);
/// The time that the last orders wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

fn running(pid: u32, how: &How) -> anyhow::Result<Exit> {
    let format = how.format.unwrap_or_default();
    let statuses = Statuses::open();
    let slot = statuses.slot_of(pid)?;
    if slot.is_hardened() {
        return Err(refused(pid, Refusal::Hardened));
    }
    let file = how.output.as_deref().map(super::open).transpose()?;
    let samples_already = slot.read().map_or(0, |report| report.facts.sampling);
    let Some(orders) = Orders::to(slot) else {
        return Err(wrong(format!(
            "another command profiles process {pid} just now; wait for its end"
        )));
    };
    let wanted = how.seconds.unwrap_or(Duration::from_secs(30));
    interrupt::notice();
    let began = Instant::now();
    let mut is_sampling = samples_already != 0;
    let folder = Folder::new()?;
    let record = folder.path().join(format!("{STEM}.{pid}"));
    // The time of the last profile that the process wrote. An idle process does not write another.
    let mut written_at = None;
    let mut write_next = began + BETWEEN;
    if is_sampling {
        let period = output::size(samples_already);
        eprintln!(
            "heapwright: process {pid} samples already, every {period}: the profile is of all that \
             it has allocated since"
        );
    } else {
        eprintln!(
            "heapwright: profiling what process {pid} allocates from now on, for {} s; Ctrl-C ends \
             this sooner",
            wanted.as_secs_f64()
        );
    }
    let bar = output::bar(wanted.as_millis() as u64, "{bar:24} {elapsed} {wide_msg}", true);
    while began.elapsed() < wanted && interrupt::came().is_none() {
        bar.set_position(began.elapsed().as_millis() as u64);
        bar.set_message(if is_sampling { "" } else { "the process has allocated nothing yet" });
        let left = wanted.saturating_sub(began.elapsed());
        if samples_already == 0 {
            // Orders are repeated and short, so that sampling ends soon after this command.
            match orders.sample(how.sample(), GRACE, left.min(BETWEEN)) {
                Ok(()) => is_sampling = true,
                Err(Refusal::Quiet) => {}
                Err(Refusal::Gone) if is_sampling => break,
                Err(refusal) => return Err(refused(pid, refusal)),
            }
        }
        if is_sampling && Instant::now() >= write_next {
            let left = wanted.saturating_sub(began.elapsed());
            match orders.write(&record, left.min(BETWEEN)) {
                Ok(()) => written_at = Some(Instant::now()),
                Err(Refusal::Gone) => break,
                Err(_) => {}
            }
            // The intervals grow, because writing a profile costs the process time.
            write_next = Instant::now() + BETWEEN.max(began.elapsed() / 4);
        }
        if is_sampling {
            sleep(wanted.saturating_sub(began.elapsed()).min(BETWEEN));
        }
    }
    bar.finish_and_clear();
    let patience = if interrupt::came().is_some() { BETWEEN } else { PATIENCE };
    if !is_sampling {
        // If the process began to sample meanwhile, sampling ends after `GRACE`.
        let _ = orders.stop(Duration::ZERO);
        return Err(idle(pid));
    }
    let written = orders.write(&record, patience);
    if samples_already == 0 {
        // If the process does not answer, sampling ends after `GRACE`.
        let is_quiet = written == Err(Refusal::Quiet);
        let _ = orders.stop(if is_quiet { Duration::ZERO } else { patience });
    }
    match (written, written_at) {
        (Err(refusal @ (Refusal::Quiet | Refusal::Gone)), Some(at)) => eprintln!(
            "heapwright: process {pid} {}; the profile is what it wrote {:.1} s ago",
            if refusal == Refusal::Gone { "has ended" } else { "allocates nothing just now" },
            at.elapsed().as_secs_f64()
        ),
        (written, _) => written.map_err(|refusal| refused(pid, refusal))?,
    }
    let made = report::make(&[record], &how.report(Figure::Live))?;
    match file {
        Some(file) => output::render_to(file, &made.report, format)?,
        None => output::to_stdout(|mut out| {
            output::render(&made.report, format, &mut out, Look::of(&io::stdout()))
        })?,
    }
    Ok(Exit::Code(0))
}

/// The error of an idle process, which writes no profile.
fn idle(pid: u32) -> anyhow::Error {
    anyhow!(
        "process {pid} is idle: it has allocated too little since this command began to begin a \
         profile, and older blocks are in none. heapwright explain {pid} says which parts its \
         memory is in. Started by heapwright run --option sample=512k, the process samples from \
         its start on, and explain says which calls its memory comes from"
    )
}

/// Sleeps; returns early if a signal arrives.
fn sleep(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until && interrupt::came().is_none() {
        thread::sleep(
            until.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)),
        );
    }
}

/// The error of a process that wrote no profile.
fn refused(pid: u32, refusal: Refusal) -> anyhow::Error {
    anyhow!(match refusal {
        Refusal::Quiet =>
            format!("process {pid} allocated too little meanwhile, so there is no profile"),
        Refusal::Gone => format!("process {pid} has ended"),
        Refusal::Busy => format!("process {pid} has begun to sample by itself; try again"),
        Refusal::Unknown => {
            format!(
                "process {pid} cannot sample: its library is of another version, or the program links heapwright without \
                 the feature `debug`"
            )
        }
        Refusal::Sandboxed => format!(
            "process {pid} is in a sandbox, which might end it for writing a file; start it with the option profile"
        ),
        Refusal::Hardened => format!(
            "process {pid} is hardened, and follows no orders: start it with the option mode=fast"
        ),
        Refusal::Taken { file, user } => format!(
            "process {pid} writes its profile to {}, and user {user} has a file there: remove it",
            file.display()
        ),
        Refusal::Failed => format!(
            "process {pid} could not do it: it runs in mode=debug, another allocator serves its malloc, or it may not \
             write files in its XDG_RUNTIME_DIR or in /dev/shm"
        ),
    })
}
