//! The target of reports: a descriptor, a file, a file for each process, or a socket.
//!
//! File names are valgrind's: `%p` is the pid, `%q{VAR}` a variable of the environment, `%n` a
//! number, `%%` a `%`. The command opens a file without `%p`, and a socket, before the program
//! runs: a mistake costs no run, and a listening reader sees the connection.

use super::refused;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd};

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    Descriptor(i32),
    File(String),
    Socket(String),
}

/// The same, opened.
pub(super) enum Target {
    /// Files that are named by their process.
    Each(String),
    Stream(Box<dyn Write>),
}

impl To {
    /// Whether each process has a file of its own.
    pub(super) fn is_for_each(&self) -> bool {
        matches!(self, Self::File(name) if name.contains("%p") || name.contains("%n"))
    }

    /// The variables that a file's name has, and their values.
    pub(super) fn qualifiers(&self) -> Vec<(String, String)> {
        let Self::File(name) = self else { return Vec::new() };
        let variables = name.split("%q{").skip(1).filter_map(|rest| rest.split_once('}'));
        let value = |name: &str| std::env::var_os(name).unwrap_or_default();
        variables
            .map(|(name, _)| (name.to_owned(), value(name).to_string_lossy().into_owned()))
            .collect()
    }
}

impl Target {
    /// Opens what can be opened before there is a pid.
    pub(super) fn open(to: &To) -> anyhow::Result<Self> {
        let stream: Box<dyn Write> = match to {
            To::File(name) if to.is_for_each() => {
                // A wrong name is said now.
                expanded(name, 0, 0)?;
                return Ok(Self::Each(name.clone()));
            }
            To::File(name) => {
                let name = expanded(name, 0, 0)?;
                let file = File::create(&name);
                Box::new(file.map_err(|error| refused(&format!("cannot write {name}: {error}")))?)
            }
            To::Descriptor(1) => Box::new(io::stdout()),
            To::Descriptor(2) => Box::new(io::stderr()),
            To::Descriptor(number) => Box::new(duplicate(*number)?),
            To::Socket(address) => {
                let address =
                    if address.contains(':') { address.clone() } else { format!("{address}:1500") };
                match TcpStream::connect(&address) {
                    Ok(stream) => Box::new(stream),
                    Err(error) => {
                        // As valgrind does: the report is not lost.
                        eprintln!(
                            "heapwright: cannot connect to {address}: {error}; using standard error"
                        );
                        Box::new(io::stderr())
                    }
                }
            }
        };
        Ok(Self::Stream(stream))
    }

    /// Writes the report of a process.
    pub(super) fn write(&mut self, pid: u32, text: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Stream(stream) => {
                stream.write_all(text)?;
                stream.flush()?;
            }
            Self::Each(name) => {
                let mut number = 0;
                let mut path = expanded(name, pid, number)?;
                // %n counts up to a file that is not there.
                while name.contains("%n") && std::fs::exists(&path).unwrap_or_default() {
                    number += 1;
                    path = expanded(name, pid, number)?;
                }
                std::fs::write(&path, text)
                    .map_err(|error| anyhow::anyhow!("cannot write {path}: {error}"))?;
            }
        }
        Ok(())
    }
}

/// A descriptor that this process was given.
fn duplicate(number: i32) -> anyhow::Result<File> {
    // SAFETY: no pointers are involved; a number that is no descriptor is refused.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        let error = io::Error::last_os_error();
        return Err(refused(&format!("cannot write to descriptor {number}: {error}")));
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    let file = unsafe { File::from_raw_fd(copy) };
    debug_assert_eq!(file.as_raw_fd(), copy);
    Ok(file)
}

/// The name of a file for a process.
fn expanded(name: &str, pid: u32, number: u32) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        out += before;
        rest = match after.chars().next() {
            Some('p') => {
                out += &pid.to_string();
                &after[1..]
            }
            Some('n') => {
                out += &number.to_string();
                &after[1..]
            }
            Some('%') => {
                out.push('%');
                &after[1..]
            }
            Some('q') => {
                let braced = after[1..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let Some((variable, after)) = braced else {
                    return Err(refused(&format!("'{name}': use %q{{VARIABLE}}")));
                };
                let Some(value) = std::env::var_os(variable) else {
                    return Err(refused(&format!("'{name}': {variable} is not set")));
                };
                out += &value.to_string_lossy();
                after
            }
            _ => return Err(refused(&format!("'{name}': use %p, %n, %q{{VARIABLE}} or %%"))),
        };
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_expanded_as_valgrind_does() {
        let named = |name| expanded(name, 42, 7).map_err(|error| error.to_string());
        assert_eq!(named("a.%p.%n.100%%"), Ok("a.42.7.100%".into()));
        assert!(named("%q{PATH}").is_ok_and(|path| path.contains('/')));
        for wrong in ["%x", "%", "%qPATH", "%q{PATH", "%q{NO_SUCH_VARIABLE_HERE}"] {
            assert!(named(wrong).is_err_and(|line| line.lines().count() == 1), "{wrong}");
        }
        assert!(To::File("x.%p".into()).is_for_each() && !To::File("x".into()).is_for_each());
    }
}
