//! Reads the time lines that processes wrote because of `timeline=PREFIX`.
//!
//! The files are not trusted: one that is no time line becomes a note, and a cut one is read as far
//! as possible.

use heapwright_record::timeline::{Event, Events};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The longest file in bytes: more events (64 bytes each) than a person looks at.
const LONGEST: u64 = 1 << 30;

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The process's id; 0: unknown.
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) events: Vec<Event>,
}

/// Reads `STEM.<pid>`. Returns the time line, and the problem that ended the reading, if any.
pub(crate) fn read(path: &Path) -> anyhow::Result<(Timeline, Option<String>)> {
    let mut bytes = Vec::new();
    File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?
        .take(LONGEST)
        .read_to_end(&mut bytes)?;
    let mut events = Events::of(&bytes)?;
    let mut all: Vec<Event> = events.by_ref().collect();
    all.sort_by_key(|event| event.time);
    let pid = path.extension().and_then(|pid| pid.to_str()?.parse().ok()).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let problem = events.problem().map(|problem| problem.to_string());
    Ok((Timeline { pid, name, events: all }, problem))
}

/// Reads the files `STEM.<pid>` of a run's processes, in the order of their first events, with
/// notes on problems. `main` is the process that was started, and `name` its name.
pub(crate) fn collect(
    folder: &Path,
    stem: &str,
    main: u32,
    name: &str,
) -> (Vec<Timeline>, Vec<String>) {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.file_stem().and_then(|stem| stem.to_str()) != Some(stem) {
            continue;
        }
        match read(&path) {
            Ok((mut timeline, problem)) => {
                let pid = timeline.pid;
                timeline.name =
                    if pid == main { name.to_owned() } else { format!("process {pid}") };
                notes.extend(problem.map(|problem| format!("process {pid}: {problem}")));
                all.push(timeline);
            }
            Err(error) => notes.push(format!("{}: {error}", path.display())),
        }
    }
    all.sort_by_key(|timeline| timeline.events.first().map(|event| event.time));
    notes.sort();
    (all, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Folder;
    use heapwright_record::timeline::{HEADER, span};

    #[test]
    fn a_folder_of_time_lines_is_read_in_order() {
        let folder = Folder::new().expect("made");
        let put = |name: &str, times: &[u64], cut: usize| {
            let mut bytes = HEADER.to_vec();
            for &time in times {
                bytes.extend(Event { span: span::PAUSE, time, ..Event::default() }.encode());
            }
            bytes.truncate(bytes.len() - cut);
            fs::write(folder.path().join(name), bytes).expect("written");
        };
        put("timeline.12", &[50, 40, 60], 0);
        put("timeline.7", &[10, 20, 30], 5);
        put("stats.9", &[1], 0);
        fs::write(folder.path().join("timeline.3"), "rubbish of some length").expect("written");
        let (all, notes) = collect(folder.path(), "timeline", 12, "./program");
        let read: Vec<_> = all
            .iter()
            .map(|of| (of.pid, &*of.name, of.events.iter().map(|event| event.time).collect()))
            .collect();
        assert_eq!(read, [(7, "process 7", vec![10, 20]), (12, "./program", vec![40, 50, 60])]);
        assert_eq!(notes.len(), 2);
        assert!(notes[0].ends_with("not a time line of heapwright"), "{notes:?}");
        assert!(notes[1].starts_with("process 7: the file ends in the middle of an event"));
    }
}
