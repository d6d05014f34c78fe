//! Checks before the race that each preload takes effect.
//!
//! An allocator whose library is not loaded would be glibc under another name. So this command runs
//! itself under the preload, as a hidden subcommand. It prints the files from which malloc and free
//! come, and mimalloc's version.

use super::allocators::Allocator;
use super::launcher::{Attempt, End, Launcher};
use super::program::{Comparing, Program};
use super::results::{Kind, Outcome};
use anyhow::Context;
use std::ffi::CStr;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

pub(crate) const SUBCOMMAND: &str = "probe";

const LIMIT: Duration = Duration::from_secs(10);

enum Probed {
    /// The version, if the allocator is mimalloc.
    Fine(Option<String>),
    /// Why the allocator cannot race.
    Unfit(Outcome, String),
    Interrupted,
}

#[derive(Default)]
pub(crate) struct Known {
    /// The allocator's version, if it is mimalloc.
    pub(crate) version: Option<String>,
    /// Why it cannot race.
    pub(crate) unfit: Option<(Outcome, String)>,
}

/// After a request to stop, the other allocators stay unknown.
pub(crate) fn probe_all(
    allocators: &[Allocator],
    launcher: &Launcher,
    limit: Option<Duration>,
) -> anyhow::Result<Vec<Known>> {
    let limit = limit.map_or(LIMIT, |limit| limit.min(LIMIT));
    let known = |allocator| {
        Ok(match probe(allocator, launcher, limit)? {
            Probed::Fine(version) => Known { version, unfit: None },
            Probed::Unfit(outcome, detail) => {
                Known { version: None, unfit: Some((outcome, detail)) }
            }
            Probed::Interrupted => Known::default(),
        })
    };
    allocators.iter().map(known).collect()
}

fn probe(allocator: &Allocator, launcher: &Launcher, limit: Duration) -> anyhow::Result<Probed> {
    let Some(library) = &allocator.library else { return Ok(Probed::Fine(None)) };
    let file = std::env::current_exe().context("cannot find out where this command is")?;
    let program = Program {
        arguments: vec![SUBCOMMAND.into()],
        ..Program::bare(SUBCOMMAND.to_owned(), Kind::Workload, file, Comparing::Never)
    };
    let mut ran = match launcher.run(&program, allocator, limit, &|| ())? {
        Attempt::Ran(ran) => ran,
        Attempt::Interrupted => return Ok(Probed::Interrupted),
        Attempt::NotStarted(error) => return Err(error).context("cannot run the probe"),
    };
    match ran.end {
        End::Limit => {
            let detail = format!("killed after {} s, before main", limit.as_secs());
            return Ok(Probed::Unfit(Outcome::Hung, detail));
        }
        // The race will show whether the allocator fails only on the probe.
        End::Signal(_) | End::TooMuchOutput => return Ok(Probed::Fine(None)),
        End::Code(0) => {}
        End::Code(_) => {
            let detail = ran.complaint().unwrap_or_else(|| "a small program fails".to_owned());
            return Ok(Probed::Unfit(Outcome::NotTaken, detail));
        }
    }
    let text = ran.text().context("the probe's answer is not text")?;
    let mut lines = text.lines();
    for function in ["malloc", "free"] {
        let file = lines.next().unwrap_or_default();
        if !same_file(Path::new(file), library) {
            let whose = file.rsplit('/').next().unwrap_or_default();
            let detail = if ran.preload_refused() {
                ran.complaint().unwrap_or_default()
            } else {
                format!("the preload does not take effect: {function} comes from {whose}")
            };
            return Ok(Probed::Unfit(Outcome::NotTaken, detail));
        }
    }
    Ok(Probed::Fine(lines.next().map(str::to_owned).filter(|version| !version.is_empty())))
}

fn same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    identity(one).is_some_and(|found| Some(found) == identity(other))
}

/// Returns the text that the subcommand prints.
pub(crate) fn answer() -> String {
    let mut text = String::new();
    for function in [c"malloc", c"free"] {
        let _ = writeln!(text, "{}", file_of(function).unwrap_or_default());
    }
    if let Some(version) = mimalloc_version() {
        let _ = writeln!(text, "{version}");
    }
    text
}

/// Returns the address that a program's call of a function reaches.
fn address_of(function: &CStr) -> *mut libc::c_void {
    // SAFETY: the name is a string that ends in NUL.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.as_ptr()) }
}

/// Returns the file a function comes from.
fn file_of(function: &CStr) -> Option<String> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` takes any address, and `info` can be written.
    let found = unsafe { libc::dladdr(address_of(function), info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: all zeros is a valid struct, and so is the call's result.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of a loaded file ends in NUL.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(name.to_string_lossy().into_owned())
}

/// Returns mimalloc's version, which old and new versions encode differently ([`version`]).
fn mimalloc_version() -> Option<String> {
    let function = address_of(c"mi_version");
    if function.is_null() {
        return None;
    }
    // SAFETY: mimalloc documents `int mi_version(void)`, and no other library has this name.
    let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(function) };
    Some(version(function()))
}

/// `218` is 2.1.8, and `30403` is 3.4.3: newer versions have two digits for each part.
fn version(number: i32) -> String {
    let base = if number < 1000 { 10 } else { 100 };
    format!("{}.{}.{}", number / base / base, number / base % base, number % base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mimallocs_versions() {
        assert_eq!(version(218), "2.1.8");
        assert_eq!(version(30403), "3.4.3");
    }

    #[test]
    fn this_process_allocates_from_the_c_library() {
        let text = answer();
        let mut lines = text.lines();
        // Tests may run under a preloaded library that checks them.
        let preloaded = std::env::var("LD_PRELOAD").unwrap_or_default();
        let is_known = |file: &str| file.contains("libc") || preloaded.contains(file);
        assert!(lines.next().is_some_and(is_known), "{text}");
        assert!(lines.next().is_some_and(is_known), "{text}");
    }
}
