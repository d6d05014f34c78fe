//! `#!` lines, read as the kernel reads them, and the command lines of `env` in them.
//!
//! The kernel takes the interpreter up to the first blank and passes the rest as one argument. In
//! `#!/usr/bin/env NAME`, people call NAME the interpreter, so the options of `env` are read, too:
//! some remove LD_PRELOAD.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The number of bytes in which the kernel looks for a `#!` line.
const HEAD: u64 = 256;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// Binary data.
    NotOne,
    /// Text without a `#!` line.
    Plain,
    For(Interpreter),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The line without its `#!`.
    pub(super) line: String,
    /// Its path, or a name that `env` looks up.
    pub(super) program: OsString,
    /// The part of the line that removes LD_PRELOAD.
    pub(super) drops_preload: Option<String>,
}

pub(super) fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

pub(super) fn parse(head: &[u8]) -> Script {
    let Some(rest) = head.strip_prefix(b"#!") else {
        // The shells' rule: a NUL among the first bytes means binary.
        return if head.contains(&0) { Script::NotOne } else { Script::Plain };
    };
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut parts = line.splitn(2, blank);
    let interpreter = parts.next().unwrap_or_default();
    if interpreter.is_empty() {
        return Script::Plain;
    }
    let argument = parts.next().unwrap_or_default().trim_ascii();
    let is_env = interpreter.rsplit(|&byte| byte == b'/').next() == Some(b"env");
    let (program, drops_preload) = match is_env.then(|| through_env(argument)) {
        Some((Some(program), drops)) => (program, drops),
        _ => (OsString::from_vec(interpreter.to_vec()), None),
    };
    Script::For(Interpreter {
        line: String::from_utf8_lossy(line).into_owned(),
        program,
        drops_preload,
    })
}

/// Returns the program that `env` runs, and the part of the argument that removes LD_PRELOAD.
fn through_env(argument: &[u8]) -> (Option<OsString>, Option<String>) {
    let split = argument.strip_prefix(b"-S").or_else(|| argument.strip_prefix(b"--split-string="));
    let words: Vec<&[u8]> = match split {
        Some(rest) => rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect(),
        // Without -S, the kernel's one argument is one word, blanks included.
        None => vec![argument],
    };
    let mut drops = None;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let said = || String::from_utf8_lossy(word).into_owned();
        match word {
            b"-" | b"-i" | b"--ignore-environment" => drops = Some(said()),
            b"-u" | b"--unset" => {
                if words.next() == Some(b"LD_PRELOAD") {
                    drops = Some(format!("{} LD_PRELOAD", said()));
                }
            }
            b"-uLD_PRELOAD" | b"--unset=LD_PRELOAD" => drops = Some(said()),
            b"-C" | b"--chdir" => drop(words.next()),
            _ if word.starts_with(b"LD_PRELOAD=") => drops = Some(said()),
            _ if word.starts_with(b"-") || word.contains(&b'=') => {}
            _ if word.is_empty() => {}
            _ => return (Some(OsStr::from_bytes(word).to_owned()), drops),
        }
    }
    (None, drops)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpreter(line: &str) -> (String, Option<String>) {
        match parse(format!("{line}\nrest").as_bytes()) {
            Script::For(interpreter) => {
                (interpreter.program.into_string().expect("is text"), interpreter.drops_preload)
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn interpreters_are_read_as_the_kernel_does() {
        for (line, program) in [
            ("#!/bin/sh", "/bin/sh"),
            ("#! /bin/sh -e", "/bin/sh"),
            ("#!/usr/bin/perl\t-w -T", "/usr/bin/perl"),
            ("#!/bin/sh\r", "/bin/sh"),
            ("#!/usr/bin/env python3", "python3"),
            ("#!/usr/bin/env -S python3 -u", "python3"),
            ("#!/usr/bin/env -S -v A=1 -u B python3 -u", "python3"),
            ("#!/usr/bin/env --split-string=deno run", "deno"),
            ("#!/usr/bin/env", "/usr/bin/env"),
            ("#!/opt/myenv x", "/opt/myenv"),
        ] {
            assert_eq!(interpreter(line), (program.to_owned(), None), "{line}");
        }
    }

    #[test]
    fn an_emptied_environment_is_noticed() {
        for (line, part) in [
            ("#!/usr/bin/env -S -i sh", "-i"),
            ("#!/usr/bin/env -S - sh", "-"),
            ("#!/usr/bin/env -S -u LD_PRELOAD sh", "-u LD_PRELOAD"),
            ("#!/usr/bin/env -S LD_PRELOAD= sh", "LD_PRELOAD="),
        ] {
            assert_eq!(interpreter(line), ("sh".to_owned(), Some(part.to_owned())), "{line}");
        }
    }

    #[test]
    fn other_files_are_distinguished() {
        assert_eq!(parse(b"echo hello\n"), Script::Plain);
        assert_eq!(parse(b""), Script::Plain);
        assert_eq!(parse(b"#!\n"), Script::Plain);
        assert_eq!(parse(b"MZ\0\0"), Script::NotOne);
    }
}
