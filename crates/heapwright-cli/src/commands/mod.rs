//! One module a subcommand: its arguments, and a `run` that does it.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod heap;
pub(crate) mod library;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod workload;

use std::path::PathBuf;

/// The choice of preload library that several subcommands share.
#[derive(clap::Args)]
pub(crate) struct LibraryArg {
    /// Use this libheapwright.so instead of the one inside this command
    #[arg(long = "library", value_name = "PATH")]
    path: Option<PathBuf>,
}

impl LibraryArg {
    /// The library chosen, by the argument or else by HEAPWRIGHT_LIBRARY; an
    /// empty variable chooses nothing.
    pub(crate) fn given(&self) -> Option<PathBuf> {
        let variable = || std::env::var_os("HEAPWRIGHT_LIBRARY").filter(|path| !path.is_empty());
        self.path.clone().or_else(|| variable().map(PathBuf::from))
    }
}
