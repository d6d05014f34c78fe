//! The progress of reading and naming: a bar on stderr, if that is a terminal.

use crate::output;
use indicatif::ProgressBar;
use std::io::IsTerminal;

pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn reading(bytes: u64, quiet: bool) -> Self {
        Self::new(bytes, quiet, "{bar:24} {bytes}/{total_bytes} read  {msg}")
    }

    pub(super) fn naming(stacks: u64, quiet: bool) -> Self {
        Self::new(stacks, quiet, "{bar:24} {pos}/{len} findings named  {msg}")
    }

    fn new(length: u64, quiet: bool, template: &str) -> Self {
        Self(output::bar(length, template, !quiet && std::io::stderr().is_terminal()))
    }

    /// Names the file of code whose symbols are read now, which may take most of the time.
    pub(super) fn reads(&self, path: &[u8]) {
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let file = output::printable(file.into());
        self.0.set_message(format!("symbols of {file}"));
        self.0.tick();
    }

    pub(super) fn more(&self, steps: u64) {
        self.0.inc(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
