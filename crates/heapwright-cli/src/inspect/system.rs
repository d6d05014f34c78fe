//! The effect of preloading every program of this machine: by `LD_PRELOAD` in a session's
//! environment or in a systemd unit, or by `/etc/ld.so.preload`.
//!
//! Each program file in the folders of `PATH` is judged like a single program. The report counts,
//! by kind, programs that the library does not reach or must not disturb. Scripts are not counted,
//! only their interpreters. Every process, also root's, loads the files in `/etc/ld.so.preload`, so
//! root's rules apply to them.

use super::{Finding, Target, Verdict, inspect};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PRELOAD: &str = "/etc/ld.so.preload";

const EXAMPLES: usize = 4;

/// Programs of one kind.
#[derive(Debug)]
pub(crate) struct Kind {
    /// A stable name, for machines.
    pub(crate) code: &'static str,
    pub(crate) count: usize,
    /// The first programs of the kind, by name.
    pub(crate) examples: Vec<String>,
    /// The consequence for these programs, as the end of a sentence.
    pub(crate) text: &'static str,
}

#[derive(Debug)]
pub(crate) struct System {
    pub(crate) programs: usize,
    /// The number of programs on which the library takes effect.
    pub(crate) reached: usize,
    pub(crate) kinds: Vec<Kind>,
    /// Findings about `/etc/ld.so.preload`; a `No` is a mistake in that file.
    pub(crate) preload: Vec<Finding>,
}

/// Looks at all programs in the folders of a PATH.
pub(crate) fn system(path: &OsStr, target: Target) -> System {
    let mut found = System {
        programs: 0,
        reached: 0,
        kinds: Vec::new(),
        preload: preload(fs::read_to_string(PRELOAD).ok().as_deref()),
    };
    let mut kinds: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for program in programs(path) {
        let report = inspect(program.as_os_str(), target);
        // A script has more than one step, or an interpreter that is missing.
        let is_script = report.findings.iter().any(|finding| finding.code == "script");
        if is_script || report.steps.len() != 1 || report.steps[0].kind == "unknown kind of file" {
            continue;
        }
        found.programs += 1;
        found.reached += usize::from(report.verdict() == Verdict::Yes);
        let privileged = report.findings.iter().find(|finding| is_privilege(finding.code));
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if privileged.is_some() {
            kinds.entry("privileged").or_default().push(name);
        } else if let Some(reason) = report.reason() {
            kinds.entry(reason.code).or_default().push(name);
        }
    }
    found.kinds = kinds
        .into_iter()
        .map(|(code, mut names)| {
            let count = names.len();
            names.sort();
            names.truncate(EXAMPLES);
            Kind { code, count, examples: names, text: consequence(code) }
        })
        .collect();
    found.kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    found
}

fn is_privilege(code: &str) -> bool {
    matches!(code, "set-uid" | "set-gid" | "capabilities" | "privileged-for-others")
}

/// Returns each executable file once, however many links lead to it.
fn programs(path: &OsStr) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for folder in std::env::split_paths(path) {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let Ok(file) = entry.path().canonicalize() else { continue };
            let is_program = fs::metadata(&file)
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
            if is_program && seen.insert(file.clone()) {
                all.push(file);
            }
        }
    }
    all
}

fn consequence(code: &str) -> &'static str {
    match code {
        "privileged" => {
            "they gain privileges: LD_PRELOAD with a path is ignored; /etc/ld.so.preload is not, and HEAPWRIGHT= is"
        }
        "static" => "they are statically linked: neither way reaches them, and they run as before",
        "musl" => {
            "they use the musl C library: /etc/ld.so.preload is not read, and with LD_PRELOAD set to a library for glibc they \
             do not start"
        }
        "32-bit" | "other-machine" => {
            "they are for another kind of machine: each start prints that the library cannot be preloaded, and goes on without"
        }
        "sanitizer" => {
            "they bring a sanitizer, which ends the program where another library comes first"
        }
        "go" => "they are Go programs: only memory of C code moves",
        "own-malloc" | "own-allocator" | "global-allocator" => {
            "they bring an allocator of their own: the library is loaded, and serves little or nothing"
        }
        "other-loader" => "they have a loader of their own, which may heed neither way",
        _ => "heapwright doctor NAME says what it is",
    }
}

fn preload(list: Option<&str>) -> Vec<Finding> {
    let Some(list) = list else {
        return vec![Finding::remark("no-preload-file", format!("{PRELOAD} is not there"))];
    };
    let entries = list
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or_default().split([' ', '\t', ':', ',']))
        .filter(|entry| !entry.is_empty());
    let findings: Vec<Finding> = entries.map(entry).collect();
    if findings.is_empty() {
        return vec![Finding::remark("preload-file-empty", format!("{PRELOAD} names nothing"))];
    }
    findings
}

fn entry(name: &str) -> Finding {
    if !name.contains('/') {
        let text = format!("{PRELOAD} names {name}, which the loader looks for in its folders");
        return Finding::remark("preload-by-name", text);
    }
    if !Path::new(name).is_file() {
        let text = format!(
            "{PRELOAD} names {name}, which is not there: each program says so when it starts"
        );
        return Finding::no("preload-missing", text);
    }
    match unsafe_place(Path::new(name)) {
        Some(place) => Finding::no(
            "preload-open",
            format!(
                "{PRELOAD} names {name}, and others than root may change {}: they run code as every user",
                place.display()
            ),
        ),
        None => Finding::remark("preload", format!("{PRELOAD} names {name}")),
    }
}

/// Returns the file, or a folder above it, if users other than root may change it.
fn unsafe_place(file: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().ok()?;
    file.ancestors()
        .find(|place| {
            fs::metadata(place).is_ok_and(|meta| {
                // In a folder with the sticky bit only the owner replaces a file.
                let open =
                    meta.mode() & 0o022 != 0 && !(meta.is_dir() && meta.mode() & 0o1000 != 0);
                open || meta.uid() != 0
            })
        })
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(list: Option<&str>) -> Vec<&'static str> {
        preload(list).iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn the_loaders_list_is_read_as_the_loader_reads_it() {
        assert_eq!(codes(None), ["no-preload-file"]);
        assert_eq!(codes(Some("# nothing\n\n")), ["preload-file-empty"]);
        assert_eq!(
            codes(Some("liba.so /nonexistent/b.so # c.so\nlibd.so:libe.so\n")),
            ["preload-by-name", "preload-missing", "preload-by-name", "preload-by-name"]
        );
    }

    #[test]
    fn a_library_that_others_may_change_is_named() {
        let scratch = crate::statistics::Folder::quietly().expect("made");
        let file = scratch.path().join("x.so");
        fs::write(&file, b"x").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("opened");
        assert_eq!(codes(Some(&file.display().to_string())), ["preload-open"]);
    }
}
