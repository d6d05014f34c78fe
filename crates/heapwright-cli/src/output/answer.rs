//! What the doctor's answer is made from.

use crate::inspect::{Report, Verdict};
use crate::process::End;
use std::ffi::OsStr;

/// What a run of the program showed.
pub(crate) enum Trial {
    /// The library was there, and served this many allocations.
    Loaded { allocations: u64 },
    /// The library left nothing.
    NotLoaded { reason: String },
    /// The program was killed, so that nothing can be concluded.
    Killed { end: End },
    /// The program could not be started.
    NotStarted { reason: String },
}

impl Trial {
    /// What the run alone says. One that served nothing may be of a program
    /// that allocates nothing.
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
    /// What a run showed, if it showed anything, overrules what the files suggest.
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.trial {
            Some(trial) if trial.verdict() != Verdict::Unknown => trial.verdict(),
            _ => self.report.verdict(),
        }
    }
}
