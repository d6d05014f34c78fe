//! The data of the doctor's answer.

use crate::inspect::{Report, Verdict};
use crate::process::End;
use std::ffi::OsStr;

/// The result of a run of the program.
pub(crate) enum Trial {
    /// The library was loaded, and served this many allocations.
    Loaded { allocations: u64 },
    /// The library left no figures.
    NotLoaded { reason: String },
    /// The program was killed, which proves nothing.
    Killed { end: End },
    /// The program could not be started.
    NotStarted { reason: String },
}

impl Trial {
    /// Returns the run's own verdict. No allocations prove nothing: some programs need none.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Loaded { allocations: 0 } | Self::Killed { .. } => Verdict::Unknown,
            Self::Loaded { .. } => Verdict::Yes,
            Self::NotLoaded { .. } | Self::NotStarted { .. } => Verdict::No,
        }
    }
}

pub(crate) struct Answer<'a> {
    pub(crate) command: &'a OsStr,
    pub(crate) report: Report,
    pub(crate) trial: Option<Trial>,
}

impl Answer<'_> {
    /// Returns the run's verdict if it has one, else the verdict of the files.
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.trial {
            Some(trial) if trial.verdict() != Verdict::Unknown => trial.verdict(),
            _ => self.report.verdict(),
        }
    }
}
