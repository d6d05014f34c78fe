//! The suite file: programs of the user's own, in TOML.
//!
//! ```toml
//! [[program]]
//! name = "python3-objects"
//! stands_for = "An interpreter that makes and drops many small objects."
//! command = ["/usr/bin/python3", "objects.py"]
//! environment = { PYTHONMALLOC = "malloc" }   # optional, as all below
//! directory = "/home/me/suite"                # its working folder
//! stdin = "/home/me/suite/input"              # a file for its stdin; else empty
//! long = true                                 # gets --rounds-long rounds
//! threads = 2
//! compare_output = false                      # prints something else each time
//! ```
//!
//! A relative `directory` or `stdin` is relative to the suite file's folder.

use super::program::{Comparing, Program};
use super::refusal;
use super::results::Kind;
use crate::bounds;
use crate::inspect;
use crate::wrong::wrong;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    #[serde(default)]
    program: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    stands_for: Option<String>,
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    directory: Option<PathBuf>,
    stdin: Option<PathBuf>,
    #[serde(default)]
    long: bool,
    #[serde(default = "one")]
    threads: u32,
    #[serde(default = "yes")]
    compare_output: bool,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// Returns the programs of a suite file, or only those in `chosen`.
pub(crate) fn read(path: &Path, chosen: &[String]) -> anyhow::Result<Vec<Program>> {
    let shown = path.display();
    let text = bounds::text(path)
        .and_then(|text| String::from_utf8(text).map_err(io::Error::other))
        .map_err(|error| wrong(format!("cannot read the suite {shown}: {error}")))?;
    let suite = parse(&text).map_err(|(line, why)| wrong(format!("{shown}:{line}: {why}")))?;
    if suite.program.is_empty() {
        return Err(wrong(format!("{shown} has no [[program]]")));
    }
    if let Some(unknown) =
        chosen.iter().find(|name| !suite.program.iter().any(|p| p.name == **name))
    {
        return Err(wrong(format!("--programs {unknown}: there is no such program in {shown}")));
    }
    let mut names = BTreeSet::new();
    let base = path.parent().unwrap_or(Path::new(""));
    let mut programs = Vec::new();
    for entry in suite.program {
        if !names.insert(entry.name.clone()) {
            return Err(wrong(format!("{shown}: there are two programs called '{}'", entry.name)));
        }
        if chosen.is_empty() || chosen.contains(&entry.name) {
            let name = entry.name.clone();
            let program = program(entry, base)
                .map_err(|why| wrong(format!("{shown}: program '{name}': {why}")))?;
            programs.push(program);
        }
    }
    Ok(programs)
}

fn parse(text: &str) -> Result<Suite, (usize, String)> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        (line, error.message().split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

fn program(entry: Entry, base: &Path) -> Result<Program, String> {
    let name = entry.name;
    if name.trim().is_empty() || name.len() > 40 || name.chars().any(char::is_control) {
        return Err("the name must have one to forty letters".to_owned());
    }
    let (command, arguments) = entry.command.split_first().ok_or("the command is empty")?;
    let directory = entry.directory.map(|path| base.join(path));
    if let Some(directory) = directory.as_ref().filter(|path| !path.is_dir()) {
        return Err(format!("there is no folder {}", directory.display()));
    }
    let stdin = entry.stdin.map(|path| base.join(path));
    if let Some(stdin) = stdin.as_ref().filter(|path| !path.is_file()) {
        return Err(format!("there is no file {} to read", stdin.display()));
    }
    let file = find(command, directory.as_deref())?;
    Ok(Program {
        stands_for: entry.stands_for.unwrap_or_else(|| name.clone()),
        name,
        kind: Kind::Program,
        refuses: refusal(file.as_os_str()),
        file,
        arguments: arguments.iter().map(Into::into).collect(),
        environment: entry.environment,
        directory,
        stdin,
        long: entry.long,
        threads: entry.threads,
        live_bytes: None,
        operations: None,
        comparing: if entry.compare_output { Comparing::Always } else { Comparing::Never },
    })
}

/// Returns the file that a command names: a path, from its working folder, or a name on PATH.
fn find(command: &str, directory: Option<&Path>) -> Result<PathBuf, String> {
    let named = match directory {
        Some(directory) if command.contains('/') => directory.join(command),
        _ => PathBuf::from(command),
    };
    let found = inspect::path::find(OsStr::new(&named))
        .map_err(|problem| problem.text(named.as_os_str()))?;
    std::path::absolute(&found).map_err(|error| format!("{}: {error}", found.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> (usize, String) {
        parse(text).err().expect("is refused")
    }

    #[test]
    fn a_whole_entry_is_read() {
        let text = r#"
            [[program]]
            name = "x"
            stands_for = "Something."
            command = ["sh", "-c", "true"]
            environment = { A = "b" }
            directory = "/"
            stdin = "/etc/passwd"
            long = true
            threads = 3
            compare_output = false

            [[program]]
            name = "y"
            command = ["/bin/sh"]
        "#;
        let suite = parse(text).map_err(|(_, why)| why).expect("is one");
        let mut programs =
            suite.program.into_iter().map(|entry| program(entry, Path::new("/base")));
        let x = programs.next().expect("there").expect("is right");
        assert_eq!(x.arguments, ["-c", "true"]);
        assert!(x.long && x.file.is_absolute() && x.comparing == Comparing::Never);
        assert_eq!((x.threads, x.environment["A"].as_str()), (3, "b"));
        let y = programs.next().expect("there").expect("is right");
        assert_eq!((y.stands_for.as_str(), y.threads), ("y", 1));
        assert_eq!(y.comparing, Comparing::Always);
    }

    #[test]
    fn mistakes_have_a_line_and_one_sentence() {
        let (line, why) = mistake("[[program]]\nname = \"x\"\ncomand = [\"true\"]\n");
        assert_eq!(line, 3);
        assert!(why.starts_with("unknown field `comand`, expected one of `name`"), "{why}");
        let (line, why) = mistake("[[program]]\nname = 3\ncommand = []\n");
        assert_eq!((line, why.as_str()), (2, "invalid type: integer `3`, expected a string"));
        let (_, why) = mistake("[[program]]\nname = \"x\"\n");
        assert_eq!(why, "missing field `command`");
        let (line, _) = mistake("[[program]]\n\nname = \"x\n");
        assert_eq!(line, 3);
    }

    #[test]
    fn what_is_not_there_is_reported() {
        let of = |more: &str| {
            let text = format!("[[program]]\nname = \"x\"\n{more}");
            let suite = parse(&text).map_err(|(_, why)| why).expect("is one");
            program(suite.program.into_iter().next().expect("one"), Path::new("/base"))
                .expect_err("is refused")
        };
        assert_eq!(of("command = []"), "the command is empty");
        assert_eq!(of("command = [\"/nonexistent\"]"), "/nonexistent: command not found");
        assert_eq!(of("command = [\"sh\"]\ndirectory = \"sub\""), "there is no folder /base/sub");
        assert_eq!(
            of("command = [\"sh\"]\nstdin = \"input\""),
            "there is no file /base/input to read"
        );
    }
}
