//! Explains in one line why a program could not be started, with the shells' exit code.
//!
//! 127: there is no such command. 126: the command cannot be run.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

pub(crate) const NOT_FOUND: u8 = 127;

pub(crate) const CANNOT_RUN: u8 = 126;

/// `file` is the file that the name of `program` led to, if any.
pub(crate) fn explain(program: &OsStr, error: &io::Error, file: Option<&Path>) -> (String, u8) {
    let name = program.display();
    let (text, code) = match (error.raw_os_error(), file) {
        // The file exists, so its interpreter or loader is missing.
        (Some(libc::ENOENT), Some(file)) => {
            return (
                format!(
                    "{name}: cannot be run: the interpreter or loader that {} names is missing",
                    file.display()
                ),
                CANNOT_RUN,
            );
        }
        (Some(libc::ENOENT), None) => ("command not found", NOT_FOUND),
        (Some(libc::EACCES), _) if Path::new(program).is_dir() => ("is a folder", CANNOT_RUN),
        (Some(libc::EACCES), _) => ("permission denied (not executable)", CANNOT_RUN),
        (Some(libc::ENOEXEC), _) => ("not a program that this machine can run", CANNOT_RUN),
        (Some(libc::E2BIG), _) => ("arguments and environment are too long", CANNOT_RUN),
        _ => return (format!("{name}: cannot be run: {error}"), CANNOT_RUN),
    };
    (format!("{name}: {text}"), code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_put_as_shells_put_them() {
        let explained = |name: &str, number, file: Option<&str>| {
            let error = io::Error::from_raw_os_error(number);
            explain(OsStr::new(name), &error, file.map(Path::new))
        };
        for (name, number, file, text, code) in [
            ("x", libc::ENOENT, None, "x: command not found", 127),
            (
                "./x",
                libc::ENOENT,
                Some("./x"),
                "./x: cannot be run: the interpreter or loader that ./x names is missing",
                126,
            ),
            ("/tmp", libc::EACCES, None, "/tmp: is a folder", 126),
            ("x", libc::EACCES, None, "x: permission denied (not executable)", 126),
            ("x", libc::ENOEXEC, Some("x"), "x: not a program that this machine can run", 126),
            (
                "x",
                libc::ENOMEM,
                None,
                "x: cannot be run: Cannot allocate memory (os error 12)",
                126,
            ),
        ] {
            assert_eq!(explained(name, number, file), (text.to_owned(), code));
        }
    }
}
