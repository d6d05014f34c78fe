//! The subcommands. Most modules have a subcommand's arguments and a function `run`.
//!
//! ```text
//! run           a program on heapwright, and its use of memory
//! check         a program in debug mode, and the findings
//!   twice       runs the program again with other uninitialised bytes
//! valgrind      the same as `check`, for callers of valgrind
//! cargo         cargo's tests, programs and benchmarks, checked
//! checked       runs a program in debug mode, for `check`, `valgrind` and `cargo`
//! profile       the calls that allocate a program's memory, from samples
//! doctor        whether a preload takes effect on a program, and the reasons
//! report        the contents of debug records
//! diff          two records, or two points in time, compared
//! findings      the page of a kind of finding
//! heap          a summary of a collected heap's dump
//! library       the path of the preload library
//! bench         a race of allocators, on a program or on workloads
//! workload      a built-in workload (hidden)
//! record        a program, and a trace of all its calls for memory
//! replay        such a trace, under any allocator
//! top           the parts of running processes' memory
//! explain       the reasons for a process's memory, and remedies
//! trim          makes a running process return free memory
//! docs          completions and manual pages, made from the arguments
//! ```

pub(crate) mod bench;
pub(crate) mod cargo;
pub(crate) mod check;
pub(crate) mod checked;
pub(crate) mod diff;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod findings;
pub(crate) mod heap;
pub(crate) mod library;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;
pub(crate) mod trim;
pub(crate) mod twice;
pub(crate) mod valgrind;
pub(crate) mod workload;

use crate::inspect;
use crate::output;
use crate::preload::{self, Options};
use crate::process::Exit;
use crate::wrong::wrong;
use clap::ValueEnum;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Opens a file for writing, before the work, so that a mistake in the name costs nothing.
pub(crate) fn open(path: &Path) -> anyhow::Result<File> {
    output::open(path).map_err(|error| wrong(format!("cannot write {}: {error}", path.display())))
}

/// Refuses a file into which two outputs would go: the second would replace the first.
fn refuse_same<'a>(files: impl IntoIterator<Item = &'a File>) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    for file in files {
        let about = file.metadata()?;
        if about.is_file() && !seen.insert((about.dev(), about.ino())) {
            return Err(wrong("two outputs have the same file: give each its own".to_owned()));
        }
    }
    Ok(())
}

/// Opens a file whose name the user has not chosen.
pub(crate) fn open_own(path: &Path) -> anyhow::Result<File> {
    let why = |error| wrong(format!("cannot write {}: {error}", path.display()));
    output::open_own(path).map_err(why)
}

/// Returns a run's exit code, and says if `what` could not be written. A lost file of the user's
/// makes 2 of 0. Text that standard error does not take changes no exit code.
pub(crate) fn after_writing<E: std::fmt::Display>(
    exit: Exit,
    what: &str,
    is_file: bool,
    written: Result<(), E>,
) -> Exit {
    let Err(error) = written else { return exit };
    eprintln!("heapwright: {what} could not be written: {error:#}");
    if is_file { exit.without_file() } else { exit }
}

/// Parses a number of seconds, from 0.1 to `most`.
pub(crate) fn seconds(text: &str, most: u32) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=f64::from(most)).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!("use a number of seconds from 0.1 to {most}")),
    }
}

/// The format and the file of an output. All subcommands use the same words.
#[derive(clap::Args)]
pub(crate) struct OutputArgs<F: ValueEnum + Send + Sync + 'static> {
    /// The format of the output [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<F>,

    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl<F: ValueEnum + Send + Sync + Default + 'static> OutputArgs<F> {
    pub(crate) fn format(&self) -> F {
        self.format.clone().unwrap_or_default()
    }

    pub(crate) fn file(&self) -> anyhow::Result<Option<File>> {
        self.output.as_deref().map(open).transpose()
    }
}

/// The formats and files of measurements that take long. Several are possible at once.
#[derive(clap::Args)]
pub(crate) struct OutputsArgs<F: ValueEnum + Send + Sync + 'static> {
    /// The format of the output [default: text]; may be repeated, each with an -o FILE of its own
    #[arg(long = "format", value_enum, value_name = "FORMAT")]
    formats: Vec<F>,

    /// Write to FILE. The n-th FILE gets the n-th --format. The text then goes to stdout, too
    #[arg(short, long = "output", value_name = "FILE")]
    outputs: Vec<PathBuf>,

    /// Print no progress, and no text on stdout
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl<F: ValueEnum + Send + Sync + Default + PartialEq + 'static> OutputsArgs<F> {
    /// Returns each format and its file, `None` for stdout. The n-th file is the n-th format's.
    pub(crate) fn all(&self) -> anyhow::Result<Vec<(F, Option<File>)>> {
        let text = F::default();
        let mut formats = self.formats.clone();
        if formats.is_empty() {
            formats.push(text.clone());
        }
        if self.outputs.len() > formats.len() {
            return Err(wrong("there are more --output than --format".to_owned()));
        }
        if formats.len() > self.outputs.len() + 1 {
            return Err(wrong(
                "only one --format can go to stdout: give each its -o FILE".to_owned(),
            ));
        }
        let has_text = formats.contains(&text);
        let mut files = self.outputs.iter();
        let mut all = formats
            .into_iter()
            .map(|format| Ok((format, files.next().map(|path| open(path)).transpose()?)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        refuse_same(all.iter().filter_map(|(_, file)| file.as_ref()))?;
        if !has_text && all.iter().all(|(_, file)| file.is_some()) {
            all.push((text.clone(), None));
        }
        all.retain(|(format, file)| file.is_some() || *format != text || !self.quiet);
        Ok(all)
    }
}

/// The program that a subcommand runs with the library, and its options.
#[derive(clap::Args)]
pub(crate) struct ProgramArgs {
    /// Set an option of the library, e.g. purge=250; may be repeated
    #[arg(long = "option", value_name = "KEY=VALUE")]
    pub(crate) options: Vec<String>,

    #[command(flatten)]
    pub(crate) library: LibraryArg,

    /// Make Python allocate all objects with malloc (PYTHONMALLOC=malloc), so that small objects
    /// are seen, too. By default Python has its own allocator for small objects
    #[arg(long)]
    pub(crate) python: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

const PYTHON_MALLOC: &str = "PYTHONMALLOC";

impl ProgramArgs {
    pub(crate) fn program(&self, library: &Path, options: &Options) -> anyhow::Result<Command> {
        let mut program = run::command(&self.command, library, options)?;
        if self.python {
            program.env(PYTHON_MALLOC, "malloc");
        }
        Ok(program)
    }

    /// Prints a note that small objects are not seen, if the program is Python.
    pub(crate) fn note_python(&self) {
        let name = Path::new(&self.command[0]).file_name().unwrap_or_default();
        let inspected =
            || inspect::inspect(&self.command[0], preload::target(preload::named().as_deref()));
        let is_python = || {
            name.as_encoded_bytes().starts_with(b"python")
                || inspected().findings.iter().any(|finding| finding.code == "python")
        };
        if has_own_objects(self.python) && is_python() {
            eprintln!("heapwright: note: {OWN_OBJECTS}");
        }
    }
}

/// The note about Python's small objects, which are not in blocks of malloc.
pub(crate) const OWN_OBJECTS: &str = "Python's small objects are in an allocator of its own, and \
                                      are not seen (--python has them in malloc)";

/// Returns whether Python's small objects are in an allocator of Python's own.
pub(crate) fn has_own_objects(is_asked: bool) -> bool {
    !is_asked && std::env::var_os(PYTHON_MALLOC).is_none()
}

/// The choice of preload library that several subcommands share.
#[derive(clap::Args)]
pub(crate) struct LibraryArg {
    /// Use this libheapwright.so instead of the built-in library
    #[arg(long = "library", value_name = "PATH")]
    path: Option<PathBuf>,
}

impl LibraryArg {
    /// Returns the argument, or else HEAPWRIGHT_LIBRARY. An empty variable counts as unset.
    pub(crate) fn given(&self) -> Option<PathBuf> {
        self.path.clone().or_else(preload::named)
    }
}
