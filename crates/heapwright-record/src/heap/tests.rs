//! The format as a whole: each version's bytes, and cut, changed, older or newer dumps.

extern crate std;

use super::*;
use crate::damage::{self, Seen, frame_of};
use crate::problem::{Fault, Problem};
use std::string::String;
use std::sync::LazyLock;
use std::vec::Vec;
use std::{format, vec};

const PAIR: u32 = 1;
const TEXT: u32 = 9;

fn heap() -> Heap {
    Heap {
        page_size: 64 << 10,
        pid: 4242,
        time: 1_700_000_000_123_456_789,
        live: 5000,
        in_use: 1 << 17,
        empty: 1 << 16,
        large: 3 << 20,
        external: 77,
        goal: 8 << 20,
        cycles: 12,
        flags: 1 << 40,
        minor_cycles: 9,
        old: 3000,
        compactions: 2,
        moved_objects: 70,
        moved_bytes: 2240,
        evacuated_pages: 4,
        kept_pages: 1,
    }
}

fn page() -> Page {
    Page {
        number: 3,
        address: 0x7f12_3456_0000,
        bytes: 64 << 10,
        pool: 2,
        kind: kind::LEAF,
        state: PageState::InUse,
        slot: 32,
        slots: 70,
        pins: 3,
        moved_in: 300,
        old: 2,
        aside: Aside::Candidate,
    }
}

const OCCUPANCY: [u64; 2] = [0x8000_0000_0000_0001, u64::MAX];

fn first() -> Object {
    Object { address: 0x7f12_3456_0000, size: 32, used: 0, kind: 0, type_id: PAIR, old: true }
}

/// Returns the frames of a dump that has everything, beginning behind the header. (Some entries of
/// each sort are in a frame with others, some at a frame's start.)
fn frames() -> Vec<Vec<u8>> {
    let frames = frames_of(300);
    assert!(frames.len() >= 4, "{}", frames.len());
    frames
}

fn frames_of(references: u64) -> Vec<Vec<u8>> {
    let mut buffer = [0xa5; Writer::LEAST];
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut writer = Writer::new(&mut buffer, |piece: &[u8]| {
        pieces.push(piece.to_vec());
        true
    });
    assert!(writer.start(&heap(), "fine", &[16, 32, 40_000]));
    writer.type_name(PAIR, "Pair");
    writer.page(&page(), &OCCUPANCY);
    writer.object(&first());
    writer.reference(0x7f12_3456_0020);
    writer.reference(0x7f12_3456_0020);
    writer.reference(0x10);
    writer.object(&Object { address: 0x7f12_3456_0020, ..first() });
    writer.type_name(TEXT, "T\u{e9}xt");
    writer.reference(0x7f12_3456_0007);
    writer.object(&Object {
        address: 0x7f12_0000_0000,
        size: 3 << 20,
        used: (3 << 20) - 5,
        kind: kind::ALL,
        type_id: TEXT,
        old: false,
    });
    writer.reference(u64::MAX);
    writer.reference(0);
    for number in 0..references {
        writer.reference(number << 50);
    }
    for kind in RootKind::ALL {
        writer.root(&Root { kind, mutator: kind as u32 * 1000, address: 0x7f12_3456_0000 });
    }
    writer.page(&Page { state: PageState::Large, slots: 1, slot: 3 << 20, ..page() }, &[1]);
    let evacuated = Page { aside: Aside::Evacuated, ..page() };
    writer.page(&Page { state: PageState::Empty, slots: 0, slot: 0, ..evacuated }, &[]);
    assert!(writer.is_good() && writer.end());
    assert_eq!(pieces.remove(0), HEADER);
    pieces
}

fn file(frames: &[Vec<u8>]) -> Vec<u8> {
    [&HEADER[..], &frames.concat()].concat()
}

#[test]
fn version_2_is_these_bytes() {
    let frames = frames();
    let hex = damage::hex([&HEADER[..]].into_iter().chain(frames.iter().map(Vec::as_slice)));
    assert_eq!(hex, include_str!("version_2.hex"), "the format of version 2 must not change");
}

#[test]
fn version_1_is_read_and_has_nothing_of_ages_and_moves() {
    let (old, new) = (damage::bytes(include_str!("version_1.hex")), file(&frames()));
    let mut reader = Reader::new(&old).unwrap();
    let read: Vec<_> = reader.by_ref().collect();
    assert!(reader.is_whole());
    let read_back = Reader::new(&new).unwrap().map(|entry| match entry {
        Entry::Page(page, bits) => {
            Entry::Page(Page { pins: 0, moved_in: 0, old: 0, aside: Aside::No, ..page }, bits)
        }
        Entry::Object(object) => Entry::Object(Object { old: false, ..object }),
        other => other,
    });
    assert!(read_back.skip(1).eq(read[1..].iter().copied()));
    let Entry::Start(numbers, layout, pools) = read[0] else { panic!("{:?}", read[0]) };
    let nothing = Heap::default().with_ages_and_moves(&mut &[0; 7][..]).unwrap();
    assert_eq!((numbers.ages_and_moves(), nothing), ([0; 7], Heap::default()));
    assert_eq!((numbers.numbers(), layout), (heap().numbers(), &b"fine"[..]));
    assert!(pools.eq([16, 32, 40_000]));
    // In pieces the dump is of the same version.
    let pieces = Reader::new(&old[..HEADER_BYTES]).unwrap().go_on(&old[HEADER_BYTES..]);
    assert!(pieces.eq(read));
}

#[test]
fn everything_comes_back() {
    let bytes = file(&frames());
    let mut reader = Reader::new(&bytes).unwrap();
    let read: Vec<_> = reader.by_ref().collect();
    assert_eq!((reader.problem(), reader.skipped(), reader.is_whole()), (None, 0, true));
    assert_eq!(reader.position(), bytes.len() as u64);
    let Entry::Start(numbers, layout, pools) = read[0] else { panic!("{:?}", read[0]) };
    assert_eq!((numbers, layout), (heap(), &b"fine"[..]));
    assert!(pools.eq([16, 32, 40_000]));
    assert_eq!(read[1], Entry::Type { id: PAIR, name: b"Pair" });
    let Entry::Page(read_page, occupancy) = read[2] else { panic!("{:?}", read[2]) };
    assert_eq!(read_page, page());
    // Six bits of the second word belong to slots.
    assert_eq!(occupancy.taken(), 2 + 6);
    assert!(occupancy.is_taken(0) && !occupancy.is_taken(1) && occupancy.is_taken(69));
    assert!(!occupancy.is_taken(70));
    assert_eq!(
        read[3..13],
        [
            Entry::Object(first()),
            Entry::Reference(0x7f12_3456_0020),
            Entry::Reference(0x7f12_3456_0020),
            Entry::Reference(0x10),
            Entry::Object(Object { address: 0x7f12_3456_0020, ..first() }),
            Entry::Type { id: TEXT, name: "T\u{e9}xt".as_bytes() },
            Entry::Reference(0x7f12_3456_0007),
            Entry::Object(Object {
                address: 0x7f12_0000_0000,
                size: 3 << 20,
                used: (3 << 20) - 5,
                kind: kind::ALL,
                type_id: TEXT,
                old: false,
            }),
            Entry::Reference(u64::MAX),
            Entry::Reference(0),
        ]
    );
    let numbers = (0..300).map(|number| Entry::Reference(number << 50));
    assert!(read[13..313].iter().copied().eq(numbers));
    for (entry, kind) in read[313..318].iter().zip(RootKind::ALL) {
        let mutator = kind as u32 * 1000;
        assert_eq!(*entry, Entry::Root(Root { kind, mutator, address: 0x7f12_3456_0000 }));
    }
    assert!(
        matches!(read[318], Entry::Page(page, bits) if page.slot == 3 << 20 && bits.taken() == 1)
    );
    assert!(
        matches!(read[319], Entry::Page(page, bits) if page.slots == 0 && bits.bytes.is_empty())
    );
    assert!(matches!(read[319], Entry::Page(page, _) if page.aside == Aside::Evacuated));
    let counts = Counts { types: 2, pages: 3, objects: 3, references: 306, roots: 5 };
    assert_eq!(read[320..], [Entry::End(counts)]);
}

/// The frames that are damaged: fewer under Miri, which is slow.
static FRAMES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| if cfg!(miri) { frames_of(3) } else { frames() });
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| file(&FRAMES));

fn problem(fault: Fault) -> Problem {
    FORMAT.problem(fault)
}

/// Reads a file of some of the [`FRAMES`], from the first on.
fn seen(bytes: &[u8]) -> Result<Seen<Problem>, Problem> {
    static ALL: LazyLock<Vec<Entry<'static>>> =
        LazyLock::new(|| Reader::new(&FILE).unwrap().collect());
    let mut reader = Reader::new(bytes)?;
    let read: Vec<_> = reader.by_ref().collect();
    assert!(ALL.starts_with(&read));
    let (mut end, mut count) = (HEADER_BYTES as u64, 0);
    for frame in FRAMES.iter() {
        end += frame.len() as u64;
        count += usize::from(end <= reader.position());
    }
    assert_eq!(reader.is_whole(), reader.position() == FILE.len() as u64);
    Ok(Seen { frames: count, problem: reader.problem(), position: reader.position() })
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    damage::cut(&HEADER, &FRAMES, seen, &problem(Fault::Short), |at| {
        problem(Fault::EndsWithin(at))
    });
}

#[test]
fn a_changed_byte_is_found_or_harmless() {
    damage::change(&HEADER, &FRAMES, seen);
}

#[test]
fn a_file_in_pieces_is_the_same_file() {
    let bytes = file(&frames());
    let whole: Vec<String> =
        Reader::new(&bytes).unwrap().map(|entry| format!("{entry:?}")).collect();
    let pieces: &[usize] = if cfg!(miri) { &[2500] } else { &[100, 2048, 2500, 5000] };
    for &piece in pieces {
        let mut read_back = Vec::new();
        let mut end = HEADER_BYTES;
        let mut reader = Reader::new(&bytes[..end]).unwrap();
        while end != bytes.len() {
            end = (end + piece).min(bytes.len());
            reader = reader.go_on(&bytes[reader.position() as usize..end]);
            read_back.extend(reader.by_ref().map(|entry| format!("{entry:?}")));
        }
        assert!(reader.is_whole() && read_back == whole, "{piece}");
    }
    // A fault stays.
    let mut changed = bytes.clone();
    changed[HEADER_BYTES + 9] ^= 1;
    let mut reader = Reader::new(&changed).unwrap();
    assert_eq!(reader.by_ref().count(), 0);
    let mut again = reader.go_on(&bytes[HEADER_BYTES..]);
    assert_eq!((again.next(), again.problem()), (None, Some(problem(Fault::Checksum(16)))));
}

#[test]
fn a_frame_that_is_missing_or_double_is_noticed() {
    let frames = frames();
    let last = frames.len() - 1;
    let begin = |order: &[usize]| {
        let before = order.iter().map(|&at| frames[at].len()).sum::<usize>();
        (HEADER_BYTES + before) as u64
    };
    for (order, problem) in [
        (&[0, 2][..], problem(Fault::Gap(begin(&[0])))),
        (&[0, 1, 1], problem(Fault::Gap(begin(&[0, 1])))),
        (&[0, 1, last], problem(Fault::Gap(begin(&[0, 1])))),
        (&[1], problem(Fault::Malformed(begin(&[])))),
        (&[0, 0], problem(Fault::Malformed(begin(&[0])))),
    ] {
        let some: Vec<_> = order.iter().map(|&at| frames[at].clone()).collect();
        let bytes = file(&some);
        let mut reader = Reader::new(&bytes).unwrap();
        reader.by_ref().for_each(drop);
        assert_eq!((reader.problem(), reader.is_whole()), (Some(problem), false), "{order:?}");
    }
    // Nothing follows the end, and a dump without an end is not whole.
    let twice = [frames.clone(), vec![frames[last].clone()]].concat();
    let bytes = file(&twice);
    let mut reader = Reader::new(&bytes).unwrap();
    reader.by_ref().for_each(drop);
    assert!(matches!(reader.problem().map(|problem| problem.fault()), Some(Fault::Malformed(_))));
    let bytes = file(&frames[..last]);
    let mut reader = Reader::new(&bytes).unwrap();
    reader.by_ref().for_each(drop);
    assert_eq!((reader.problem(), reader.is_whole()), (None, false));
}

#[test]
fn what_is_no_dump_is_refused() {
    assert_eq!(Reader::new(b"").err(), Some(problem(Fault::Short)));
    assert_eq!(Reader::new(b"HWHE").err(), Some(problem(Fault::Short)));
    assert_eq!(Reader::new(b"HWTRACE\0").err(), Some(problem(Fault::Other)));
    damage::newer(
        HEADER,
        |header| Reader::new(header).err(),
        |flags| problem(Fault::Flags(flags)),
        |version| problem(Fault::Version(version)),
    );
}

#[test]
fn newer_frames_are_skipped_and_newer_fields_ignored() {
    let frames = frames();
    let payload = |frame: &[u8]| frame[8..frame.len() - 4].to_vec();
    let start = frame_of(1, &[&payload(&frames[0])[..], b"more"].concat());
    let end = frame_of(3, &[0, 0, 0, 0, 0, 1, 2, 3]);
    let bytes = file(&[frame_of(1000, b"news"), start, frame_of(u32::MAX, b""), end]);
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.by_ref().count(), 2);
    assert_eq!((reader.skipped(), reader.problem(), reader.is_whole()), (2, None, true));
}

#[test]
fn frames_that_contradict_themselves_are_damage() {
    let start = frames().swap_remove(0);
    let at = (HEADER_BYTES + start.len()) as u64;
    for (tag, payload) in [
        // Numbers that are cut, or have too many bits.
        (2, &[][..]),
        (2, &[0]),
        (3, &[0; 4]),
        (2, &[0, 0, 1, 255, 255, 255, 255, 255, 2, 0]),
        (2, &[0, 0, 1, 5, 2, b'x']),
        // A reference without an owner; an object at 0; an object behind no object's end.
        (2, &[0, 0, 0x80]),
        (2, &[0, 0, 0x40, 0, 1, 1]),
        (2, &[0, 0, 0x50, 1, 1]),
        // An unknown entry, state or part in compaction; a bit of no slot; fewer bits than slots.
        (2, &[0, 0, 0]),
        (2, &[0, 0, 5]),
        (2, &[0, 0, 2, 1, 8, 1, 1, 12, 8, 8, 0, 0, 0, 1]),
        (2, &[0, 0, 2, 1, 8, 1, 1, 48, 8, 8, 0, 0, 0, 1]),
        (2, &[0, 0, 2, 1, 8, 1, 1, 0, 8, 7, 0, 0, 0, 0x80]),
        (2, &[0, 0, 2, 1, 8, 1, 1, 0, 8, 9, 0, 0, 0, 0xff]),
        // A page that ends as in version 1; an age without an owner, or before another age.
        (2, &[0, 0, 2, 1, 8, 1, 1, 0, 8, 8, 1]),
        (2, &[0, 0, 4]),
        (2, &[0, 0, 4, 0x80]),
        (2, &[0, 0, 4, 4, 0x40, 16, 1, 1]),
        // A root that is cut.
        (2, &[0, 0, 3, 1, 1]),
    ] {
        let bytes = file(&[start.clone(), frame_of(tag, payload), frame_of(3, &[0; 5])]);
        let mut reader = Reader::new(&bytes).unwrap();
        assert_eq!(reader.by_ref().count(), 1, "{tag} {payload:?}");
        assert_eq!(reader.problem(), Some(problem(Fault::Malformed(at))), "{tag} {payload:?}");
        assert_eq!(reader.next(), None);
    }
    // References continue for another object than the last one.
    let bytes = file(&[start, frame_of(2, &[0, 1, 0x80])]);
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!((reader.by_ref().count(), reader.problem()), (1, Some(problem(Fault::Gap(at)))));
    // Fewer pools than the start names; no ages behind them.
    for payload in [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 1][..], &[0; 19]] {
        let bytes = file(&[frame_of(1, payload)]);
        let mut reader = Reader::new(&bytes).unwrap();
        assert_eq!((reader.next(), reader.problem()), (None, Some(problem(Fault::Malformed(16)))));
    }
    // Newer entries in a dump that claims version 1.
    let mut old = HEADER.to_vec();
    old[8] = 1;
    for entry in [&[4, 0x40, 16, 1, 1][..], &[2, 1, 8, 1, 1, 16, 8, 8, 1]] {
        let entries = frame_of(2, &[&[0, 0], entry].concat());
        let bytes = [&old[..], &frame_of(1, &[0; 13]), &entries].concat();
        let mut reader = Reader::new(&bytes).unwrap();
        assert_eq!(reader.by_ref().count(), 1);
        assert!(
            matches!(reader.problem().map(|problem| problem.fault()), Some(Fault::Malformed(_))),
            "{entry:?}"
        );
    }
}

type Sink<'s> = &'s mut dyn FnMut(&[u8]) -> bool;

fn written(
    length: usize,
    pieces: usize,
    write: impl Fn(&mut Writer<'_, Sink<'_>>),
) -> (bool, Vec<u8>) {
    let (mut buffer, mut file, mut left) = (vec![0; length], Vec::new(), pieces);
    let mut sink = |piece: &[u8]| {
        let takes = left != 0;
        if takes {
            file.extend_from_slice(piece);
            left -= 1;
        }
        takes
    };
    let mut writer = Writer::new(&mut buffer, &mut sink as Sink<'_>);
    write(&mut writer);
    let whole = writer.end();
    (whole, file)
}

#[test]
fn a_writer_that_cannot_says_so_and_stops() {
    let all = |writer: &mut Writer<'_, Sink<'_>>| {
        writer.start(&heap(), "fine", &[]);
        for _ in 0..if cfg!(miri) { 200 } else { 1000 } {
            writer.object(&first());
        }
        writer.root(&Root::default());
    };
    assert!(written(Writer::LEAST, 100, all).0);
    assert_eq!(written(Writer::LEAST - 1, 100, all), (false, Vec::new()));
    assert_eq!(written(0, 100, all), (false, Vec::new()));
    let mut pieces = 0;
    loop {
        let (whole, file) = written(Writer::LEAST, pieces, all);
        let reader = Reader::new(&file);
        assert!(
            reader.is_ok_and(|mut reader| {
                reader.by_ref().for_each(drop);
                reader.is_whole() == whole && reader.problem().is_none()
            }) || pieces == 0
        );
        if whole {
            break;
        }
        pieces += 1;
    }
    assert!(pieces > 3);
    // Without a start, with two, with an entry that no buffer holds.
    let large = Page { slots: 1 << 20, ..page() };
    assert!(!written(Writer::LEAST, 9, |_| ()).0);
    assert!(!written(Writer::LEAST, 9, |writer| _ = writer.root(&Root::default())).0);
    assert!(
        !written(Writer::LEAST, 9, |writer| {
            assert!(writer.start(&heap(), "", &[]) && !writer.start(&heap(), "", &[]));
        })
        .0
    );
    let start = |writer: &mut Writer<'_, Sink<'_>>| {
        assert!(writer.start(&heap(), "", &[]));
    };
    assert!(
        !written(Writer::LEAST, 9, |writer| {
            start(writer);
            assert!(!writer.page(&large, &[]) && !writer.is_good());
        })
        .0
    );
    // References without an owner are left out, and long names are cut between letters.
    let (whole, file) = written(Writer::LEAST, 9, |writer| {
        start(writer);
        assert!(writer.reference(8) && writer.object(&Object::default()));
        writer.type_name(1, &"\u{20ac}".repeat(2000));
        writer.page(&Page { slots: Page::MOST_SLOTS, ..page() }, &[u64::MAX; 500]);
    });
    let read: Vec<_> = Reader::new(&file).unwrap().collect();
    assert!(whole && read.len() == 4, "{read:?}");
    assert!(matches!(read[1], Entry::Type { name, .. } if name.len() == 999));
    assert!(matches!(read[2], Entry::Page(_, bits) if bits.taken() == Page::MOST_SLOTS));
}

#[test]
fn an_object_like_its_neighbour_is_a_byte() {
    let size = |objects: u64| {
        let (whole, file) = written(Writer::LEAST, 9, |writer| {
            writer.start(&heap(), "fine", &[]);
            for number in 0..objects {
                let address = first().address + 32 * number;
                writer.object(&Object { address, ..first() });
                writer.reference(address + 64);
            }
        });
        assert!(whole);
        file.len()
    };
    assert_eq!(size(400) - size(200), 200 * 2);
}

#[test]
fn an_age_is_a_byte_where_it_changes() {
    let size = |is_old: fn(u64) -> bool| {
        let (whole, file) = written(Writer::LEAST, 9, |writer| {
            writer.start(&heap(), "fine", &[]);
            for number in 0..100 {
                let address = first().address + 32 * number;
                writer.object(&Object { address, old: is_old(number), ..first() });
            }
        });
        assert!(whole);
        let read = Reader::new(&file).unwrap().filter_map(|entry| match entry {
            Entry::Object(object) => Some(object.old),
            _ => None,
        });
        assert!(read.eq((0..100).map(is_old)));
        file.len()
    };
    let young = size(|_| false);
    assert_eq!(size(|_| true), young + 1);
    assert_eq!(size(|number| number >= 50), young + 1);
    assert_eq!(size(|number| number % 2 == 0), young + 100);
}
