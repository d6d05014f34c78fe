//! Compiles, unless the output of the same command is up to date.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a command and returns its output, or its error text if it failed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let result = command.output().map_err(|e| format!("cannot run {name}: {e}"))?;
    if !result.status.success() {
        let errors = String::from_utf8_lossy(&result.stderr);
        let line = errors.lines().find(|line| line.contains("error"));
        let line = line.or_else(|| errors.lines().last()).unwrap_or("it said nothing");
        return Err(format!("{name}: {}: {line}", result.status));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

pub(crate) fn c() -> Command {
    compiler("CC", "cc")
}

pub(crate) fn cxx() -> Command {
    compiler("CXX", "c++")
}

/// Splits `CC` and the like, which may carry arguments: `CC="ccache gcc"`.
fn compiler(variable: &str, default: &str) -> Command {
    let value = std::env::var(variable).ok().filter(|v| !v.trim().is_empty());
    let value = value.unwrap_or_else(|| default.to_owned());
    let mut words = value.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(default));
    command.args(words);
    command
}

/// Compiles to a file unless the same command made it after the last change of its sources.
pub(crate) fn build(mut command: Command, to: &Path) -> Result<(), String> {
    let stamp = to.with_extension("command");
    let text = format!("{command:?}");
    let changed = |path: &OsStr| Path::new(path).metadata().ok()?.modified().ok();
    let newest = command.get_args().filter_map(changed).max();
    let built = to.metadata().and_then(|m| m.modified()).ok();
    if std::fs::read_to_string(&stamp).ok().as_deref() == Some(&text) && built >= newest {
        return Ok(());
    }
    eprintln!("peers: building {}", to.file_name().unwrap_or_default().to_string_lossy());
    command.arg("-o").arg(to);
    output(&mut command)?;
    std::fs::write(&stamp, text).map_err(|e| format!("{}: {e}", stamp.display()))
}
