//! The sites of findings in earlier runs. A run guards their blocks (`check --sites FILE`).
//!
//! ```text
//! FILE -- sites=FILE --> the library guards all blocks of these places
//!   ^                      |  a finding writes Site { key of the stack, kind } to the record
//!   +---- newest first ----+
//! ```
//!
//! The file is a record with only sites, so the library reads it like a run's own record. A run
//! without findings removes no site: a mistake may show in one run of many.

use super::input;
use anyhow::Context;
use heapwright_record::debug::{Encoder, Entry, HEADER, Site};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The most sites that are kept, the newest first: as many as the library takes.
const MOST: usize = 512;

pub(crate) struct Sites {
    file: PathBuf,
    sites: Vec<Site>,
}

impl Sites {
    pub(crate) fn of(file: &Path) -> anyhow::Result<Self> {
        let sites = if file.exists() {
            read(file).with_context(|| input::reading(file))?
        } else {
            Vec::new()
        };
        Ok(Self { file: file.to_owned(), sites })
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        (!self.sites.is_empty()).then_some(self.file.as_path())
    }

    /// Adds the sites in the records of a folder. Writes the file again if there are any.
    pub(crate) fn learn(&mut self, records: &Path) -> anyhow::Result<()> {
        let mut sites = Vec::new();
        for record in super::of_run(records).unwrap_or_default() {
            // The report names unreadable records.
            sites.extend(read(&record).unwrap_or_default());
        }
        if sites.is_empty() {
            return Ok(());
        }
        sites.append(&mut self.sites);
        self.sites = newest(sites);
        self.write().with_context(|| self.file.display().to_string())
    }

    /// Replaces the file at once: a reader gets the old file or the new one.
    fn write(&self) -> std::io::Result<()> {
        let mut half = self.file.clone().into_os_string();
        half.push(format!(".{}", std::process::id()));
        let (mut buffer, mut bytes) = (vec![0; Encoder::SMALLEST], HEADER.to_vec());
        for site in &self.sites {
            bytes.extend_from_slice(Encoder::new(&mut buffer).entry(&Entry::Site(*site)));
        }
        // Others may guess the name, and the folder may be open to all users.
        _ = fs::remove_file(&half);
        fs::File::create_new(&half)
            .and_then(|mut file| file.write_all(&bytes))
            .and_then(|()| fs::rename(&half, &self.file))
            .inspect_err(|_| _ = fs::remove_file(&half))
    }
}

fn read(record: &Path) -> anyhow::Result<Vec<Site>> {
    let mut sites = Vec::new();
    let mut take = |entry: Entry<'_>, _| {
        if let Entry::Site(site) = entry {
            sites.push(site);
        }
    };
    input::read(input::open(record)?.0, &|_| {}, &mut take)?;
    Ok(newest(sites))
}

/// Keeps the first of the sites with equal keys, and at most [`MOST`] sites.
fn newest(all: Vec<Site>) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    for site in all {
        if sites.len() < MOST && !sites.iter().any(|known| known.key == site.key) {
            sites.push(site);
        }
    }
    sites
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwright_record::debug::FindingKind;

    fn site(key: u64) -> Site {
        Site { key, odds: 1, last: FindingKind::Overflow, hits: 1 }
    }

    #[test]
    fn the_newest_stay_each_once() {
        let folder = crate::statistics::Folder::new().expect("made");
        let file = folder.path().join("sites");
        let mut sites = Sites::of(&file).expect("none yet");
        assert!(sites.file().is_none());
        let records = folder.path().join("records");
        fs::create_dir(&records).expect("made");
        sites.learn(&records).expect("nothing to learn");
        assert!(!file.exists());
        for run in [0..300, 200..600] {
            let run: std::ops::Range<u64> = run;
            let sites = run.map(site).collect();
            Sites { file: records.join("record.1"), sites }.write().expect("written");
            let mut sites = Sites::of(&file).expect("read");
            sites.learn(&records).expect("written");
        }
        let sites = Sites::of(&file).expect("read");
        let keys: Vec<u64> = sites.sites.iter().map(|site| site.key).collect();
        assert!(keys.iter().copied().eq((200..600).chain(0..112)), "{keys:?}");
        fs::write(&file, "no record").expect("written");
        assert!(Sites::of(&file).is_err());
    }
}
