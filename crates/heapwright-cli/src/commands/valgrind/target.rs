//! The target of reports: a descriptor, a file, a file for each process, or a socket.
//!
//! File names have valgrind's syntax: `%p` is the pid, `%q{VAR}` a variable of the environment,
//! `%n` a number, `%%` a `%`. A file without `%p` and `%n`, and a socket, are opened before the
//! program runs. So a mistake costs no run, and a listening reader sees the connection.

use super::refused;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    Descriptor(i32),
    File(String),
    Socket(String),
}

pub(super) enum Target {
    /// A file for each process, with a name that depends on the process.
    Each(String),
    Stream(Box<dyn Write>),
}

impl To {
    /// Returns whether each process gets its own file.
    pub(super) fn is_for_each(&self) -> bool {
        matches!(self, Self::File(name) if name.contains("%p") || name.contains("%n"))
    }

    /// Returns the variables in a file's name, and their values.
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
    /// Opens the target, except a file for each process, which needs a pid.
    pub(super) fn open(to: &To) -> anyhow::Result<Self> {
        let stream: Box<dyn Write> = match to {
            To::File(name) if to.is_for_each() => {
                // A wrong name fails now, before the program runs.
                let path = expanded(name, 0, 0)?;
                test_folder(Path::new(&path))
                    .map_err(|error| refused(&format!("cannot write {name}: {error}")))?;
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
                        // As in valgrind, the report then goes to standard error.
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

    pub(super) fn write(&mut self, pid: u32, text: &[u8]) -> anyhow::Result<()> {
        match self {
            // A reader that has seen enough (`| head`) is no error.
            Self::Stream(stream) => match stream.write_all(text).and_then(|()| stream.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written?,
            },
            Self::Each(name) => {
                let mut number = 0;
                let mut path = expanded(name, pid, number)?;
                // %n becomes the first number whose file does not exist.
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

/// Tests whether this user may make a file in the folder of `path`.
fn test_folder(path: &Path) -> io::Result<()> {
    let folder = CString::new(path.with_file_name(".").into_os_string().into_vec())?;
    let how = libc::W_OK | libc::X_OK;
    // SAFETY: the name ends in NUL.
    match unsafe { libc::faccessat(libc::AT_FDCWD, folder.as_ptr(), how, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn duplicate(number: i32) -> anyhow::Result<File> {
    // SAFETY: no pointers are involved. The call refuses a number that is no descriptor.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        let error = io::Error::last_os_error();
        return Err(refused(&format!("cannot write to descriptor {number}: {error}")));
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(copy) };
    debug_assert_eq!(file.as_raw_fd(), copy);
    Ok(file)
}

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
