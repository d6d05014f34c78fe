//! A program in debug mode, up to its end: what `valgrind` and `cargo` have in common.
//!
//! `check` has options of its own for each step; these two have none, and leave the records
//! in a folder that goes with [`Checked`].

use super::check::{FRAMES, STEM, stragglers};
use super::run::{command, not_started};
use crate::preload::{self, Options};
use crate::process::{self, Exit, Outcome};
use crate::statistics::Folder;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a program left.
pub(super) struct Checked {
    folder: Folder,
    pub(super) outcome: Outcome,
    /// Processes that still run.
    pub(super) running: Vec<u32>,
}

impl Checked {
    /// Where the records are.
    pub(super) fn records(&self) -> &Path {
        self.folder.path()
    }
}

/// Runs a program with these options of the library; or how to end where it cannot be run.
pub(super) fn checked(
    program: &[OsString],
    asked: &[String],
) -> anyhow::Result<Result<Checked, Exit>> {
    let given = std::env::var_os("HEAPWRIGHT_LIBRARY").filter(|path| !path.is_empty());
    let library = preload::library(given.map(PathBuf::from).as_deref())?;
    let folder = Folder::new()?;
    // What the user set in HEAPWRIGHT comes first.
    let inherited = std::env::var_os("HEAPWRIGHT");
    let mut options = Options::inherited_over(FRAMES, inherited.as_deref());
    options.add("mode=debug,quiet=yes")?;
    for option in asked {
        options.add(option)?;
    }
    options.record(&folder.path().join(STEM));
    preload::refuse_bad(&library, &options, &[])?;
    Ok(match process::watch(command(program, &library, &options)?) {
        Ok(outcome) => {
            let running = stragglers(folder.path());
            Ok(Checked { folder, outcome, running })
        }
        Err(error) => Err(not_started(&program[0], &error)),
    })
}
