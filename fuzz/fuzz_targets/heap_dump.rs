//! Reads any bytes as a heap dump, also as frames with the right checksum (`framed`), with and
//! without a valid start before them. Reading never panics and always ends. Reading in two pieces
//! gives the same entries. The entries are written again, and read back unchanged.
#![no_main]

mod framed;

use heapwright_record::heap::{Entry, HEADER, Heap, OLDEST, Reader, Writer};
use libfuzzer_sys::fuzz_target;

fn read(file: &[u8]) {
    let Ok(mut reader) = Reader::new(file) else { return };
    // Room for any frame's entry, and for names that only a newer writer leaves whole.
    let mut buffer = vec![0; 2 * file.len() + Writer::LEAST];
    let mut again = Vec::new();
    let mut writer = Writer::new(&mut buffer, |piece: &[u8]| {
        again.extend_from_slice(piece);
        true
    });
    let (mut read, mut total, mut started, mut plain) = (Vec::new(), 0, false, true);
    for entry in reader.by_ref() {
        total += 1;
        match entry {
            Entry::Start(heap, layout, pools) => {
                started = true;
                let pools: Vec<u64> = pools.collect();
                let layout = std::str::from_utf8(layout);
                plain &= layout.is_ok_and(|layout| layout.len() <= 1000);
                writer.start(&heap, layout.unwrap_or_default(), &pools);
            }
            Entry::Type { id, name } => {
                let name = std::str::from_utf8(name);
                plain &= name.is_ok_and(|name| name.len() <= 1000);
                writer.type_name(id, name.unwrap_or_default());
            }
            Entry::Page(page, bits) => {
                let mut words = vec![0_u64; bits.bytes.len().div_ceil(8)];
                for slot in (0..page.slots).filter(|slot| bits.is_taken(*slot)) {
                    words[slot as usize / 64] |= 1 << (slot % 64);
                }
                writer.page(&page, &words);
            }
            Entry::Object(object) => _ = writer.object(&object),
            Entry::Reference(to) => _ = writer.reference(to),
            Entry::Root(root) => _ = writer.root(&root),
            Entry::End(_) => {}
            _ => unreachable!("no other"),
        }
        if !matches!(entry, Entry::End(_)) {
            read.push(described(&entry));
        }
    }
    assert!(reader.position() as usize <= file.len());
    assert!(reader.problem().is_some() || reader.position() as usize == file.len());

    let mut pieces = Reader::new(&file[..HEADER.len()]).unwrap();
    let half = (HEADER.len() + file.len()) / 2;
    let mut count = 0;
    for end in [half, file.len()] {
        pieces = pieces.go_on(&file[pieces.position() as usize..end]);
        count += pieces.by_ref().count();
    }
    assert_eq!(count, total);
    assert_eq!((pieces.problem(), pieces.position()), (reader.problem(), reader.position()));

    if started && plain {
        assert!(writer.end());
        let mut reader = Reader::new(&again).unwrap();
        let same: Vec<_> = reader.by_ref().map(|entry| described(&entry)).collect();
        assert!(reader.is_whole());
        let without_end = same.len() - 1;
        assert!(
            same[..without_end].iter().zip(&read).all(|(one, other)| one == other || is_start(one))
        );
        assert_eq!(without_end, read.len());
    }
}

fn described(entry: &Entry<'_>) -> String {
    format!("{entry:?}")
}

/// In the file, the numbers of a start's pools may take more bytes than needed.
fn is_start(text: &str) -> bool {
    text.starts_with("Start")
}

fn older(mut file: Vec<u8>) -> Vec<u8> {
    file[8..12].copy_from_slice(&OLDEST.to_le_bytes());
    file
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&framed::frames(&HEADER, 5, bytes));
    read(&older(framed::frames(&HEADER, 5, bytes)));
    let (mut buffer, mut start) = ([0; Writer::LEAST], Vec::new());
    Writer::new(&mut buffer, |piece: &[u8]| {
        start.extend_from_slice(piece);
        true
    })
    .start(&Heap::default(), "fine", &[16]);
    read(&framed::frames(&start, 5, bytes));
    // (A dump of the oldest version has a shorter start: the reader passes over the other fields.)
    read(&older(framed::frames(&start, 5, bytes)));
});
