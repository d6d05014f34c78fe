//! Hidden helpers for packagers: shell completions and manual pages.
//!
//! They are generated from the argument definitions. `heapwright man` prints the page of the
//! command, `heapwright man run` that of a subcommand.

use crate::cli::Cli;
use crate::output;
use crate::process::Exit;
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print a shell's completion script.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

/// Print a manual page in roff.
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The subcommand to print the page of
    subcommand: Option<String>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "heapwright", &mut script);
    output::to_stdout(|out| out.write_all(&script))?;
    Ok(Exit::Code(0))
}

/// Returns the command without its hidden subcommands, which clap would also complete.
fn shown() -> clap::Command {
    let all = Cli::command();
    let subcommands = all.get_subcommands().filter(|one| !one.is_hide_set()).cloned();
    let arguments = all.get_arguments().cloned();
    clap::Command::new("heapwright")
        .args(arguments)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(subcommands)
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    let mut command = Cli::command();
    command.build();
    if let Some(name) = &args.subcommand {
        let found = command.find_subcommand(name).cloned();
        let found = found.with_context(|| format!("there is no subcommand '{name}'"))?;
        command = found.display_name(format!("heapwright-{name}"));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    output::to_stdout(|out| out.write_all(&page))?;
    Ok(Exit::Code(0))
}
