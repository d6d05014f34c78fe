//! `heapwright top` shows where the memory of running processes on heapwright is.
//!
//! On a terminal, a screen is redrawn at each interval (`screen`). Otherwise, with TERM=dumb, or
//! with `--once`, the command prints once.

use super::OutputArgs;
use crate::live::{History, Statuses, Watched, look};
use crate::output::top::{Column, NONE, document};
use crate::output::{self, WithMetrics, WithPage, prometheus};
use crate::process::Exit;
use crate::screen;
use crate::wrong::wrong;
use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

/// Show where the memory of running processes on heapwright is.
///
/// Each process publishes its figures in memory that only its user may read. The command attaches
/// to no process, and sends no signal. The superuser sees all users' processes. A process that
/// allocates nothing keeps its last figures. Exits with 0, with 1 if there is nothing to show as
/// text, with 2 for a wrong command line, or a process that cannot be shown.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  heapwright top
  heapwright top 4242
  heapwright top --once --json
  heapwright top --prometheus -o /var/lib/node_exporter/heapwright.prom")]
pub(crate) struct Args {
    /// Show this process alone, in full
    #[arg(value_name = "PID")]
    pid: Option<u32>,

    /// Look once, print text and exit, also on a terminal
    #[arg(long)]
    once: bool,

    /// Look once; the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Look once; the same as --format prometheus
    #[arg(long, conflicts_with_all = ["json", "format"])]
    prometheus: bool,

    #[command(flatten)]
    output_args: OutputArgs<WithMetrics>,

    /// The time between two looks, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Sort by this column, the largest first
    #[arg(long, value_name = "COLUMN", default_value = "resident", value_parser = column)]
    sort: Column,
}

fn interval(text: &str) -> Result<Duration, String> {
    super::seconds(text, 3600)
}

fn column(text: &str) -> Result<Column, String> {
    let name = |column: &Column| column.title().to_ascii_lowercase().replace([' ', '/'], "-");
    let known = || Column::ALL.iter().map(name).collect::<Vec<_>>().join(", ");
    let found = Column::ALL.into_iter().find(|column| name(column) == text.to_ascii_lowercase());
    found.ok_or_else(|| format!("use one of {}", known()))
}

/// The time between the two looks of `--once`, in which processes renew their figures.
const BETWEEN: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let statuses = Statuses::open();
    if let Some(pid) = args.pid {
        statuses.slot_of(pid)?;
    }
    let format = match args.output_args.format() {
        _ if args.json => WithMetrics::Json,
        _ if args.prometheus => WithMetrics::Prometheus,
        format => format,
    };
    let file = args.output_args.file()?;
    let looks_once = args.once || format != WithMetrics::Text || file.is_some();
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if !looks_once && io::stdout().is_terminal() && !is_dumb {
        drop(statuses);
        return screen::run(screen::Settings {
            process: args.pid,
            interval: args.interval,
            sort: args.sort,
        });
    }
    for line in statuses.remarks() {
        eprintln!("heapwright: {line}");
    }
    let mut history = History::default();
    history.add(look(&statuses), Instant::now());
    thread::sleep(BETWEEN);
    history.add(look(&Statuses::open()), Instant::now());
    let mut processes: Vec<&Watched> = history
        .all()
        .filter(|watched| args.pid.is_none_or(|pid| watched.seen.process.pid == pid))
        .collect();
    if args.pid.is_some() && processes.is_empty() {
        return Err(wrong("the process has ended".to_owned()));
    }
    processes.sort_by(|a, b| args.sort.key(b).total_cmp(&args.sort.key(a)));
    if processes.is_empty() && format == WithMetrics::Text {
        eprintln!("heapwright: {NONE}");
        return Ok(Exit::Code(1));
    }
    let document = document(&processes, args.pid.is_some());
    match format {
        WithMetrics::Text => document.write(WithPage::Text, file)?,
        WithMetrics::Json => document.write(WithPage::Json, file)?,
        WithMetrics::Prometheus => output::write(file, &prometheus::report(&processes))?,
    }
    Ok(Exit::Code(0))
}
