//! Our own traces: reads stories from the files of processes, and writes stories to one file.
//!
//! The library names blocks by their addresses. The written file names them by numbers, and is
//! compressed with gzip.

use super::names::{Ask, Builder, TooMany};
use super::story::{Story, What};
use flate2::Compression;
use flate2::write::GzEncoder;
use heapwright_record::Problem;
use heapwright_record::trace::{
    BEFORE, BEHIND, Chunk, Coder, End, HEADER, Operation, Process, Reader, begin_operations, seal,
};
use std::io::{self, Write};

const CHUNK: usize = 64 << 10;

/// Returns the stories in a trace, and the problem at its end, if any.
pub(super) fn stories(bytes: &[u8]) -> Result<(Vec<Story>, Option<Problem>), Wrong> {
    let mut reader = Reader::new(bytes)?;
    let mut done = Vec::new();
    let mut builder: Option<Builder> = None;
    let mut last_ms = 0;
    for chunk in reader.by_ref() {
        match chunk {
            Chunk::Process(process) => {
                done.extend(builder.take().map(Builder::story));
                last_ms = 0;
                builder = Some(Builder::new(Story {
                    pid: process.pid,
                    parent: process.parent,
                    began: process.time,
                    forked: process.forked,
                    exe: process.exe.to_vec(),
                    command: process.command.to_vec(),
                    ..Story::default()
                }));
            }
            Chunk::Operations(operations) => {
                let builder = builder.get_or_insert_default();
                let mut thread = 0;
                // The time between two chunks; operations record the time within a chunk.
                let mut waited = operations.ms.saturating_sub(last_ms);
                last_ms = operations.ms;
                for operation in operations {
                    match operation {
                        Operation::Thread(name) => thread = name,
                        Operation::Time(ms) => {
                            last_ms += ms;
                            waited += ms;
                        }
                        _ => {
                            if waited > 0 {
                                let ms = u32::try_from(waited).unwrap_or(u32::MAX);
                                builder.other(thread, What::Time(ms))?;
                                waited = 0;
                            }
                            apply(builder, thread, operation)?;
                        }
                    }
                }
            }
            Chunk::End(_) => builder.get_or_insert_default().story.whole = true,
            _ => {}
        }
    }
    done.extend(builder.map(Builder::story));
    Ok((done, reader.problem()))
}

fn apply(builder: &mut Builder, thread: u64, operation: Operation) -> Result<(), TooMany> {
    match operation {
        Operation::Malloc { block, size } => builder.made(thread, block, size, Ask::Malloc),
        Operation::Calloc { block, size } => builder.made(thread, block, size, Ask::Calloc),
        Operation::Aligned { block, size, log2, zero } => {
            builder.made(thread, block, size, Ask::Aligned { log2, zero })
        }
        Operation::Free { block } => builder.freed(thread, block),
        Operation::ReallocBegin { block } => {
            builder.realloc_begins(thread, block);
            Ok(())
        }
        Operation::ReallocEnd { block, size } => builder.realloc_ends(thread, block, size),
        Operation::ReallocFailed => {
            builder.realloc_failed(thread);
            Ok(())
        }
        Operation::Resize { block, size } => {
            builder.realloc_begins(thread, block);
            builder.realloc_ends(thread, block, size)
        }
        Operation::ThreadEnd => builder.thread_ends(thread),
        Operation::Fork => builder.other(thread, What::Fork),
        Operation::Thread(_) | Operation::Time(_) => Ok(()),
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Problem(Problem),
    TooMany,
}

impl From<Problem> for Wrong {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<TooMany> for Wrong {
    fn from(_: TooMany) -> Self {
        Self::TooMany
    }
}

pub(crate) fn write(stories: &[Story], out: impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&HEADER)?;
    stories.iter().try_for_each(|story| one(story, &mut out))?;
    out.finish().map(drop)
}

fn one(story: &Story, out: &mut impl Write) -> io::Result<()> {
    let process = Process {
        pid: story.pid,
        parent: story.parent,
        time: story.began,
        forked: story.forked,
        exe: &story.exe,
        command: &story.command,
    };
    let mut buffer = vec![0; CHUNK.max(64 + story.exe.len() + story.command.len())];
    out.write_all(process.encode(&mut buffer))?;
    let mut writer =
        Writer { buffer, payload: 0, coder: Coder::new(), written: 0, ms: 0, thread: None };
    for event in &story.events {
        if writer.thread != Some(event.thread) {
            writer.put(Operation::Thread(u64::from(event.thread)), out)?;
            writer.thread = Some(event.thread);
        }
        writer.put(operation(event.what), out)?;
    }
    // Keeps the number of frees that were left out: writes frees of a name without a block.
    for _ in 0..story.unknown {
        writer.put(Operation::Free { block: u64::MAX }, out)?;
    }
    writer.flush(out)?;
    if story.whole {
        out.write_all(End { operations: writer.written }.encode(&mut [0; 64]))?;
    }
    Ok(())
}

fn operation(what: What) -> Operation {
    let name = u64::from;
    match what {
        What::Malloc { block, size } => Operation::Malloc { block: name(block), size },
        What::Calloc { block, size } => Operation::Calloc { block: name(block), size },
        What::Aligned { block, size, log2, zero } => {
            Operation::Aligned { block: name(block), size, log2, zero }
        }
        What::Realloc { block, size } => Operation::Resize { block: name(block), size },
        What::Free { block } => Operation::Free { block: name(block) },
        What::ThreadEnd => Operation::ThreadEnd,
        What::Fork => Operation::Fork,
        What::Time(ms) => Operation::Time(u64::from(ms)),
    }
}

struct Writer {
    buffer: Vec<u8>,
    payload: usize,
    coder: Coder,
    written: u64,
    ms: u64,
    /// The thread of the last event in this chunk.
    thread: Option<u32>,
}

impl Writer {
    fn put(&mut self, operation: Operation, out: &mut impl Write) -> io::Result<()> {
        if self.payload == 0 {
            self.payload = begin_operations(&mut self.buffer, self.written, self.ms);
            self.coder = Coder::new();
        }
        if let Operation::Time(ms) = operation {
            self.ms += ms;
        }
        self.payload += self.coder.put(operation, &mut self.buffer[BEFORE + self.payload..]);
        self.written += 1;
        // Room for a thread and its operation: a chunk does not end between the two.
        let full = BEFORE + self.payload + 2 * Coder::MOST + BEHIND > CHUNK;
        if full && !matches!(operation, Operation::Thread(_)) { self.flush(out) } else { Ok(()) }
    }

    fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.payload > 0 {
            out.write_all(seal(&mut self.buffer, self.payload))?;
            (self.payload, self.thread) = (0, None);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Event;
    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use std::io::Read;

    /// Makes any story that the builder makes of calls, which may be impossible.
    fn story() -> impl Strategy<Value = Story> {
        let call = (0..9_u8, 0..3_u64, 0..12_u64, any::<u16>());
        prop::collection::vec(call, 0..400).prop_map(|calls| {
            let mut builder = Builder::default();
            for (kind, thread, name, size) in calls {
                let size = u64::from(size);
                let applied = match kind {
                    0 => builder.made(thread, name, size, Ask::Malloc),
                    1 => builder.made(thread, name, size, Ask::Calloc),
                    2 => builder.made(thread, name, size, Ask::Aligned { log2: 6, zero: true }),
                    3 | 4 => builder.freed(thread, name),
                    5 => {
                        builder.realloc_begins(thread, name);
                        Ok(())
                    }
                    6 => builder.realloc_ends(thread, name, size),
                    7 => builder.thread_ends(thread),
                    _ => builder
                        .other(thread, What::Time(3))
                        .and_then(|()| builder.made(thread, name, size, Ask::Malloc)),
                };
                applied.expect("few");
            }
            Story { doubled: 0, ..builder.story() }
        })
    }

    fn unpacked(bytes: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        GzDecoder::new(bytes).read_to_end(&mut all).expect("is gzip");
        all
    }

    proptest! {
        #[test]
        fn stories_come_back(mut stories in prop::collection::vec(story(), 1..3), whole: bool) {
            for (at, story) in stories.iter_mut().enumerate() {
                (story.pid, story.forked, story.whole) = (at as u32 + 7, at == 1, whole);
                story.exe = b"/bin/x".to_vec();
                story.command = b"x\0y\0".to_vec();
            }
            let mut file = Vec::new();
            write(&stories, &mut file).expect("written");
            let (read, problem) = super::stories(&unpacked(&file)).expect("is one");
            prop_assert_eq!(problem, None);
            prop_assert_eq!(read, stories);
        }
    }

    #[test]
    fn long_stories_are_of_many_chunks() {
        let events = (0..100_000)
            .map(|block| Event { thread: block % 2, what: What::Malloc { block, size: 1 << 40 } });
        let story =
            Story { threads: 2, blocks: 100_000, events: events.collect(), ..Story::default() };
        let mut file = Vec::new();
        write(std::slice::from_ref(&story), &mut file).expect("written");
        let bytes = unpacked(&file);
        assert!(Reader::new(&bytes).expect("is one").count() > 10);
        let (read, problem) = stories(&bytes).expect("is one");
        assert_eq!((read, problem), (vec![story], None));
    }
}
