//! A debug record, put together: what belongs to a finding, by number.
//!
//! The file is a sequence of entries; a report wants to look things up. Where a
//! number comes twice (a stack's, a module's), the later one holds, because the
//! library uses numbers again when a file was unloaded and another one loaded.
//! A finding keeps what held when it was written.

use heapwright_record::debug::{
    End, Entry, Finding, Frames, Module, Problem, Process, Reader, Site, Text, Thread,
};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Everything in a debug record, borrowed from its bytes.
#[derive(Default)]
pub(crate) struct Record<'a> {
    /// Who wrote it, where that was not cut off.
    pub(crate) process: Option<Process<'a>>,
    /// The modules at the end.
    pub(crate) modules: Modules<'a>,
    /// The threads, by number.
    pub(crate) threads: BTreeMap<u32, Thread<'a>>,
    /// The findings, in the order in which they were made.
    pub(crate) findings: Vec<Found<'a>>,
    /// Places to guard in the next run.
    pub(crate) sites: Vec<Site>,
    /// Lines for people.
    pub(crate) notes: Vec<Text<'a>>,
    /// How the process ended, where it could still say so.
    pub(crate) end: Option<End>,
    /// Why the record was read no further.
    pub(crate) problem: Option<Problem>,
    /// Entries that only a newer version knows.
    pub(crate) skipped: u64,
}

/// Modules by number; shared by the findings that were made under them.
pub(crate) type Modules<'a> = Rc<BTreeMap<u32, Module<'a>>>;

/// A finding, with what it refers to.
pub(crate) struct Found<'a> {
    pub(crate) finding: Finding,
    /// The stacks of its moments, by number.
    pub(crate) stacks: BTreeMap<u32, Frames<'a>>,
    /// The modules when it was made.
    pub(crate) modules: Modules<'a>,
}

impl<'a> Record<'a> {
    /// Reads as far as it goes.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Problem> {
        let mut reader = Reader::new(bytes)?;
        let mut record = Self::default();
        let mut stacks = BTreeMap::new();
        for entry in reader.by_ref() {
            match entry {
                Entry::Process(process) => record.process = Some(process),
                Entry::Module(module) => {
                    Rc::make_mut(&mut record.modules).insert(module.id, module);
                }
                Entry::Thread(thread) => {
                    record.threads.insert(thread.number, thread);
                }
                Entry::Stack(stack) => {
                    stacks.insert(stack.id, stack.frames);
                }
                Entry::Finding(finding) => record.findings.push(Found {
                    finding,
                    stacks: finding
                        .moments()
                        .filter_map(|(_, at)| Some((at.stack, *stacks.get(&at.stack)?)))
                        .collect(),
                    modules: Rc::clone(&record.modules),
                }),
                Entry::Site(site) => record.sites.push(site),
                Entry::Note(note) => record.notes.push(note.bytes),
                Entry::End(end) => record.end = Some(end),
                // The map of memory is for those who look at the file itself.
                _ => {}
            }
        }
        record.problem = reader.problem();
        record.skipped = reader.skipped();
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwright_record::debug::{Encoder, HEADER, Moment, Stack};

    #[test]
    fn findings_keep_what_held_when_they_were_made() {
        let module = |bias| Entry::from(Module { id: 1, bias, ..Module::default() });
        let stack = |frames| Entry::from(Stack { id: 5, frames: Frames::new(frames) });
        let here = Moment { stack: 5, thread: 1, ..Moment::default() };
        let finding = Entry::from(Finding { here, ..Finding::default() });
        let mut bytes = HEADER.to_vec();
        let mut buffer = [0; Encoder::SMALLEST];
        for entry in [module(1), stack(&[10]), finding, module(2), stack(&[20, 30]), finding] {
            bytes.extend_from_slice(Encoder::new(&mut buffer).entry(&entry));
        }
        let record = Record::read(&bytes).expect("is a record");
        let [first, second] = &record.findings[..] else { panic!("not two") };
        assert_eq!((first.modules[&1].bias, second.modules[&1].bias), (1, 2));
        assert_eq!(first.stacks[&5], Frames::new(&[10]));
        assert_eq!(second.stacks[&5], Frames::new(&[20, 30]));
        assert_eq!(record.modules[&1].bias, 2);
        assert!(record.end.is_none() && record.problem.is_none());
    }
}
