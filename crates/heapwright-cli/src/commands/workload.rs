//! Two hidden subcommands with which `bench` runs this command.

use crate::bench;
use crate::output;
use crate::process::Exit;
use anyhow::Context;

/// Run a built-in workload of bench and print its checksum.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The workload (see heapwright bench --list)
    name: String,

    /// For tests: multiply the work by this number; 0 does a miniature
    #[cfg_attr(debug_assertions, arg(long, default_value_t = 1))]
    #[cfg_attr(not(debug_assertions), arg(skip = 1_u32))]
    scale: u32,
}

/// Print the files from which malloc and free come.
#[derive(clap::Args)]
pub(crate) struct ProbeArgs {}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let workload = heapwright_workloads::find(&args.name)
        .with_context(|| format!("there is no workload '{}'", args.name))?;
    let checksum = (workload.run)(args.scale);
    output::to_stdout(|out| writeln!(out, "{checksum:016x}"))?;
    Ok(Exit::Code(0))
}

pub(crate) fn probe(_: &ProbeArgs) -> anyhow::Result<Exit> {
    output::to_stdout(|out| out.write_all(bench::answer_probe().as_bytes()))?;
    Ok(Exit::Code(0))
}
