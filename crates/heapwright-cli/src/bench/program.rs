//! A program of the race: a command with its surroundings.

use super::results::Kind;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparing {
    Always,
    /// The output must be the same if two runs under the baseline print the same.
    IfSteady,
    Never,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) stands_for: String,
    pub(crate) kind: Kind,
    pub(crate) file: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: BTreeMap<String, String>,
    /// The working folder; `None`: this command's own.
    pub(crate) directory: Option<PathBuf>,
    /// The file on its stdin; `None`: an empty stdin.
    pub(crate) stdin: Option<PathBuf>,
    /// Whether the program takes long, and gets fewer rounds.
    pub(crate) long: bool,
    pub(crate) threads: u32,
    pub(crate) live_bytes: Option<u64>,
    pub(crate) operations: Option<u64>,
    pub(crate) comparing: Comparing,
    /// The reason why no library can be preloaded into it, if the file shows that.
    pub(crate) refuses: Option<String>,
}

impl Program {
    /// Makes a program of one thread that runs in this folder, without arguments.
    pub(crate) fn bare(name: String, kind: Kind, file: PathBuf, comparing: Comparing) -> Self {
        Self {
            name,
            stands_for: String::new(),
            kind,
            file,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            directory: None,
            stdin: None,
            long: false,
            threads: 1,
            live_bytes: None,
            operations: None,
            comparing,
            refuses: None,
        }
    }
}
