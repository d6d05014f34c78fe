//! A trace file in any format, and its stories.
//!
//! | first bytes | what it is |
//! |---|---|
//! | `HWTRACE` | our own format, as the library writes it |
//! | `1f 8b` | gzip: as `record` writes it |
//! | `PK` | zip, with one file in it |
//! | digits and a colon | lines of text |
//!
//! Compressed contents may be compressed again, once.

use super::story::Story;
use super::{binary, text};
use crate::bounds::{self, Bounded};
use crate::symbols::map;
use crate::wrong::wrong;
use flate2::read::MultiGzDecoder;
use heapwright_record::trace::MAGIC;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::Path;
use zip::ZipArchive;

pub(crate) struct Input {
    pub(crate) stories: Vec<Story>,
    pub(crate) notes: Vec<String>,
}

/// Reads a file. A damaged or unknown file is a mistake of the user's, with a line about it.
pub(crate) fn read(path: &Path) -> anyhow::Result<Input> {
    let refused = |why: String| wrong(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| refused(format!("cannot be read: {error}")))?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(refused("is a folder, not a trace".to_owned()));
    }
    let bytes = bytes(&file).map_err(|error| refused(format!("cannot be read: {error}")))?;
    parse(bytes).map_err(refused)
}

/// A file without a length is read to its end.
fn bytes(file: &File) -> io::Result<Cow<'static, [u8]>> {
    if file.metadata()?.is_file() {
        return map::whole(file).map(Cow::Borrowed);
    }
    let mut all = Vec::new();
    Bounded::new(file, bounds::LONGEST_STREAM).read_to_end(&mut all)?;
    Ok(Cow::Owned(all))
}

fn parse(mut bytes: Cow<'_, [u8]>) -> Result<Input, String> {
    let most = bounds::most(bytes.len() as u64);
    for _ in 0..2 {
        bytes = match bytes.get(..2) {
            Some(b"\x1f\x8b") => Cow::Owned(gunzipped(&bytes, most)?),
            Some(b"PK") => Cow::Owned(unzipped(&bytes, most)?),
            _ => break,
        };
    }
    if bytes.starts_with(&MAGIC) {
        of_ours(&bytes)
    } else if text::looks_so(&bytes) {
        of_text(&bytes)
    } else if bytes.is_empty() {
        Err("is empty".to_owned())
    } else {
        Err("is not a trace: neither one of heapwright record, nor lines such as '12: malloc \
             0x1000 24'"
            .to_owned())
    }
}

fn of_ours(bytes: &[u8]) -> Result<Input, String> {
    let (stories, problem) = binary::stories(bytes).map_err(|wrong| match wrong {
        binary::Wrong::Problem(problem) => problem.to_string(),
        binary::Wrong::TooMany => "has more blocks than can be distinguished".to_owned(),
    })?;
    let mut notes = Vec::new();
    if let Some(problem) = problem {
        let read: usize = stories.iter().map(Story::operations).sum();
        let cut = format!("{problem}; the {read} operations before that are there");
        if read == 0 {
            return Err(cut);
        }
        notes.push(cut);
    }
    Ok(Input { stories, notes })
}

fn of_text(bytes: &[u8]) -> Result<Input, String> {
    let story = text::story(bytes).map_err(|wrong| format!("line {} {}", wrong.line, wrong.why))?;
    let mut notes = Vec::new();
    if !story.whole {
        notes.push("the last line is cut short, and left out".to_owned());
    }
    Ok(Input { stories: vec![story], notes })
}

fn gunzipped(bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    match Bounded::new(MultiGzDecoder::new(bytes), most).read_to_end(&mut all) {
        Ok(_) => Ok(all),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(error.to_string()),
        // A copy that is cut short is read as far as possible.
        Err(_) if !all.is_empty() => Ok(all),
        Err(error) => Err(format!("cannot be unpacked: {error}")),
    }
}

fn unzipped(bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let broken = |error: &dyn std::fmt::Display| format!("cannot be unpacked: {error}");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let files: Vec<usize> = (0..archive.len())
        .filter(|&at| archive.by_index_raw(at).is_ok_and(|file| file.is_file()))
        .collect();
    let &[only] = &files[..] else {
        let count = files.len();
        return Err(format!("has {count} files in it; unpack it, and name the one to replay"));
    };
    let file = archive.by_index(only).map_err(|error| broken(&error))?;
    let mut all = Vec::new();
    Bounded::new(file, most).read_to_end(&mut all).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => error.to_string(),
        _ => broken(&error),
    })?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    const TEXT: &[u8] = b"1: malloc 0x10 100\n1: free 0x10\n";

    fn zipped(files: &[&str]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.add_directory("folder", SimpleFileOptions::default()).expect("added");
        for name in files {
            zip.start_file(*name, SimpleFileOptions::default()).expect("begun");
            zip.write_all(TEXT).expect("written");
        }
        zip.finish().expect("finished").into_inner()
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(bytes).expect("written");
        gzip.finish().expect("finished")
    }

    fn refused(bytes: &[u8]) -> String {
        parse(bytes.into()).err().expect("is refused")
    }

    #[test]
    fn one_trace_in_any_wrapping() {
        for bytes in
            [TEXT.to_vec(), gzipped(TEXT), zipped(&["folder/a.txt"]), gzipped(&gzipped(TEXT))]
        {
            let input = parse(bytes.into()).expect("is read");
            assert_eq!((input.stories[0].operations(), input.notes.len()), (2, 0));
        }
    }

    #[test]
    fn what_is_no_trace_is_reported() {
        assert_eq!(refused(b""), "is empty");
        assert!(refused(b"\x7fELF....").starts_with("is not a trace: "));
        assert_eq!(refused(b"1: free\n1: free 0x0\n"), "line 1 free has no pointer");
        assert_eq!(
            refused(&zipped(&["a", "b"])),
            "has 2 files in it; unpack it, and name the one to replay"
        );
        assert!(refused(b"PKxxxxxxxxxx").starts_with("cannot be unpacked: "));
        assert!(refused(b"\x1f\x8bxxxxxx").starts_with("cannot be unpacked: "));
        assert_eq!(
            refused(b"HWTRACE\0\x02\0\0\0\0\0\0\0"),
            "trace of version 2; this command reads 1"
        );
    }

    #[test]
    fn what_expands_beyond_measure_is_refused() {
        let bomb = gzipped(&vec![b'\n'; 17 << 20]);
        let too_much = "gives more than 16 MiB; only a plain file may be longer";
        assert_eq!(refused(&bomb), too_much);
        assert_eq!(refused(&gzipped(&bomb)), too_much, "packed twice");
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("bomb", SimpleFileOptions::default()).expect("begun");
        zip.write_all(&vec![b'\n'; 17 << 20]).expect("written");
        assert_eq!(refused(zip.finish().expect("finished").get_ref()), too_much);
        let error = read(Path::new("/dev/zero")).err().expect("is refused").to_string();
        assert!(error.contains("gives more than 256 MiB"), "{error}");
    }

    #[test]
    fn a_trace_that_is_cut_is_read_as_far_as_it_goes() {
        let story = parse(TEXT.into()).expect("is read").stories.remove(0);
        let mut file = Vec::new();
        binary::write(&[story.clone(), story], &mut file).expect("written");
        let whole = gunzipped(&file, 1 << 20).expect("is gzip");
        let input = parse(whole[..whole.len() - 25].into()).expect("is read");
        assert_eq!(input.stories.iter().map(Story::operations).sum::<usize>(), 2);
        assert!(
            input.notes[0].contains("the 2 operations before that are there"),
            "{:?}",
            input.notes
        );
        assert!(refused(&whole[..40]).contains("the 0 operations before"));
    }
}
