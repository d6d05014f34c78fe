//! `heapwright doctor CMD` finds out whether a preload takes effect on a program, and if not, why.
//!
//! The command reads files, and tries the kernel's facilities for `mode=hardened`. With `--try` it
//! also runs the program with the library, and the program's statistics decide.

use super::{LibraryArg, OutputArgs, run};
use crate::cli::MISUSE;
use crate::inspect::{self, Verdict};
use crate::output::Plain;
use crate::output::doctor::{self, Answer, Trial};
use crate::preload::{self, Options};
use crate::process::{self, End, Exit};
use crate::statistics::Folder;
use anyhow::bail;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;

/// The exit code if the files do not decide, or could not be read.
pub(crate) const COULD_NOT: u8 = 2;

/// Say whether heapwright would take effect on a program, and if not, why.
///
/// Exits with 0 if heapwright would take effect, 1 if not, 2 if that cannot be found out, or there
/// is no such command. Also lists the protections that mode=hardened (heapwright run --hardened)
/// would have on this machine. The program is run only with --try. With --system, looks at all
/// programs on PATH, as if a session's environment or /etc/ld.so.preload preloaded heapwright into
/// them. Then exits with 1 if /etc/ld.so.preload names a missing file, or a file that other users
/// may change.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright doctor [OPTIONS] [--] CMD [ARGS]...")]
#[command(after_help = "\
Examples:
  heapwright doctor redis-server
  heapwright doctor --try ./program --version
  heapwright doctor --system")]
pub(crate) struct Args {
    /// Also run the program on heapwright, and judge by its statistics (its stdout goes to stderr)
    #[arg(long = "try")]
    run: bool,

    /// Look at every program on PATH, and at /etc/ld.so.preload
    #[arg(long, conflicts_with_all = ["run", "command"])]
    system: bool,

    #[command(flatten)]
    output_args: OutputArgs<Plain>,

    #[command(flatten)]
    library: LibraryArg,

    /// The program; arguments after it are for --try
    #[arg(required_unless_present = "system", trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if !args.run && args.command.len() > 1 {
        bail!("arguments of the program are only used with --try");
    }
    let file = args.output_args.file()?;
    if args.system {
        return system(args, file);
    }
    let command = args.command[0].as_os_str();
    let mut report = inspect::inspect(command, preload::target(args.library.given().as_deref()));
    if report.verdict() == Verdict::Yes {
        report.findings.extend(inspect::kernel::remark());
        report.findings.push(inspect::hardened::remark());
    }
    // A missing program is a mistake in the command line.
    let is_missing = matches!(inspect::path::find(command), Err(inspect::path::Problem::Missing));
    let trial = args.run.then(|| try_it(args)).transpose()?;
    let answer = Answer { command, report, trial };
    doctor::document(&answer).write(args.output_args.format(), file)?;
    if is_missing {
        return Ok(Exit::Code(MISUSE));
    }
    Ok(Exit::Code(match answer.verdict() {
        Verdict::Yes => 0,
        Verdict::No => 1,
        Verdict::Unknown => COULD_NOT,
    }))
}

fn system(args: &Args, file: Option<File>) -> anyhow::Result<Exit> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = inspect::system::system(&path, preload::target(args.library.given().as_deref()));
    doctor::system(&system).write(args.output_args.format(), file)?;
    let is_wrong = system.preload.iter().any(|finding| finding.verdict == Verdict::No);
    Ok(Exit::Code(u8::from(is_wrong)))
}

fn try_it(args: &Args) -> anyhow::Result<Trial> {
    let library = preload::library(args.library.given().as_deref())?;
    let folder = Folder::new()?;
    let mut options = Options::inherited(std::env::var_os("HEAPWRIGHT").as_deref());
    options.stats_file(&folder.prefix());
    let mut program = run::command(&args.command, &library, &options)?;
    // The command's stdout is only for the answer.
    program.stdout(File::from(std::io::stderr().as_fd().try_clone_to_owned()?));
    let outcome = match process::watch(program) {
        Ok(outcome) => outcome,
        Err(error) => {
            let file = inspect::path::find(&args.command[0]).ok();
            let (reason, _) = process::explain(&args.command[0], &error, file.as_deref());
            return Ok(Trial::NotStarted { reason });
        }
    };
    Ok(match (folder.collect(outcome.pid).main, outcome.end) {
        (Some(Ok(stats)), _) => Trial::Loaded { allocations: stats.allocations },
        (Some(Err(problem)), _) => bail!("the statistics it left are unreadable: {problem}"),
        (None, end @ End::Signal { .. }) => Trial::Killed { end },
        (None, _) => Trial::NotLoaded { reason: run::why_none(&args.command[0], &outcome) },
    })
}
