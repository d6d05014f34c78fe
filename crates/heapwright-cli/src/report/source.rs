//! Lines of source around a place in code: the line, and one on each side.
//!
//! A file is used only if it is readable and not younger than the program. Each file is
//! read once; large files are not read.

use crate::output::printable;
use crate::symbols::Rights;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

const LARGEST: u64 = 4 << 20;
/// The most bytes of files that are kept in memory.
const ROOM: u64 = 128 << 20;
/// The most letters of a line that are shown.
const WIDTH: usize = 200;

/// Lines with their numbers, by file and middle line.
pub(super) type Snippets = BTreeMap<(String, u32), Vec<(u32, String)>>;

#[derive(Default)]
pub(super) struct Sources {
    files: HashMap<(String, Rights), Option<File>>,
    held: u64,
    pub(super) snippets: Snippets,
}

struct File {
    text: Vec<u8>,
    changed: Option<SystemTime>,
}

impl Sources {
    /// Adds the lines around `line`, for code of a program last changed at `built`. Returns whether
    /// there are any.
    pub(super) fn add(
        &mut self,
        path: &str,
        line: u32,
        built: Option<SystemTime>,
        rights: &Rights,
    ) -> bool {
        let key = (path.to_owned(), line);
        if self.snippets.contains_key(&key) {
            return true;
        }
        let held = &mut self.held;
        let asked = (path.to_owned(), rights.clone());
        let file = self.files.entry(asked).or_insert_with(|| read(path, rights, held));
        let Some(file) = file else { return false };
        if file.changed.zip(built).is_none_or(|(changed, built)| changed > built) {
            return false;
        }
        let first = line.saturating_sub(1).max(1);
        let lines: Vec<(u32, String)> = file
            .text
            .split(|&byte| byte == b'\n')
            .zip(1_u32..)
            .skip(first as usize - 1)
            .take_while(|(_, number)| *number <= line.saturating_add(1))
            .map(|(text, number)| (number, shown(text)))
            .collect();
        let is_there = lines.iter().any(|(number, _)| *number == line);
        if is_there {
            self.snippets.insert(key, lines);
        }
        is_there
    }
}

fn read(path: &str, rights: &Rights, held: &mut u64) -> Option<File> {
    if !path.starts_with('/') {
        return None;
    }
    let file = rights.open(Path::new(path)).ok()?;
    let metadata = file.metadata().ok()?;
    let length = metadata.len();
    if !metadata.is_file() || length > LARGEST || *held + length > ROOM {
        return None;
    }
    *held += length;
    let mut text = Vec::new();
    file.take(length).read_to_end(&mut text).ok()?;
    Some(File { text, changed: metadata.modified().ok() })
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line).trim_end().replace('\t', "    ");
    let short: String = text.chars().take(WIDTH).collect();
    printable((&*short).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    #[test]
    fn three_lines_of_files_that_are_not_younger() {
        let scratch = crate::statistics::Folder::quietly().expect("made");
        let path = scratch.path().join("source");
        let name = path.to_str().expect("is text").to_owned();
        fs::write(&path, "one\n\ttwo  \nthree\x1b\nfour").expect("written");
        let changed = fs::metadata(&path).and_then(|file| file.modified()).expect("has one");
        let rights = Rights::own();
        let mut sources = Sources::default();
        assert!(sources.add(&name, 2, Some(changed), &rights));
        let lines = |line| sources.snippets[&(name.clone(), line)].clone();
        let line = |number, text: &str| (number, text.to_owned());
        assert_eq!(lines(2), [line(1, "one"), line(2, "    two"), line(3, "three\\u{1b}")]);
        let mut sources = Sources::default();
        assert!(
            sources.add(&name, 1, Some(changed), &rights)
                && sources.add(&name, 4, Some(changed), &rights)
        );
        assert_eq!(sources.snippets[&(name.clone(), 4)].len(), 2);
        assert!(
            !sources.add(&name, 0, Some(changed), &rights)
                && !sources.add(&name, 6, Some(changed), &rights)
        );
        assert!(!sources.add(&name, 3, Some(changed - Duration::from_secs(1)), &rights));
        assert!(!sources.add(&name, 3, None, &rights));
        for wrong in ["relative.c", "/", "/dev/zero", "/nonexistent"] {
            assert!(!sources.add(wrong, 1, Some(changed), &rights), "{wrong}");
        }
    }
}
