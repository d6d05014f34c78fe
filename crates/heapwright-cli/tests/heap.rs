//! `heapwright heap`: dumps as text, as JSON and as a page, and files that are no dumps.

mod common;

use common::{Folder, done, golden, heapwright, stderr, stdout, text};
use heapwright_record::heap::{
    Aside, HEADER, Heap, Object, Page, PageState, Root, RootKind, Writer, kind,
};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

const BASE: u64 = 0x7f00_0001_0000;
const LARGE: u64 = 0x7f00_0004_0000;
const TABLE: u32 = 1;
const ARRAY: u32 = 2;
const STRING: u32 = 3;

type Sink<'s> = &'s mut dyn FnMut(&[u8]) -> bool;

/// Returns the numbers of a heap without generations and moves.
fn numbers() -> Heap {
    Heap {
        page_size: 64 << 10,
        pid: 4242,
        time: 1_700_000_000_000_000_000,
        live: 1064,
        in_use: 131_072,
        empty: 65_536,
        large: 65_536,
        external: 77,
        goal: 4 << 20,
        cycles: 12,
        ..Heap::default()
    }
}

/// Returns a dump: its start, and the entries that `write` writes.
fn dump(pools: &[u64], write: impl FnOnce(&mut Writer<'_, Sink<'_>>)) -> Vec<u8> {
    dump_of(&numbers(), pools, write)
}

fn dump_of(heap: &Heap, pools: &[u64], write: impl FnOnce(&mut Writer<'_, Sink<'_>>)) -> Vec<u8> {
    let (mut buffer, mut file) = ([0; Writer::LEAST], Vec::new());
    let mut sink = |piece: &[u8]| {
        file.extend_from_slice(piece);
        true
    };
    let mut writer = Writer::new(&mut buffer, &mut sink as Sink<'_>);
    writer.start(heap, "fine", pools);
    write(&mut writer);
    assert!(writer.end());
    file
}

/// Returns a dump of these objects:
///
/// ```text
/// handle #1 -> Table 0 (64) -> Array 1 (32) -> String 2 (32) <- Array 4 (32) <- nothing
///                          `-> String 3 (32) <- Array 5 (32) <- stack #1
/// callback #1 -> String, large (40,000)
/// ```
fn sample() -> Vec<u8> {
    let small = |number: u64| 0x7f00_0002_0000 + 32 * number;
    let page = Page { bytes: 64 << 10, ..Page::default() };
    dump(&[32, 64], |writer| {
        for (id, name) in [(TABLE, "Table"), (ARRAY, "Array"), (STRING, "String")] {
            writer.type_name(id, name);
        }
        let pages = [
            (Page { number: 1, address: BASE, pool: 1, slot: 64, slots: 1024, ..page }, 1),
            (Page { number: 2, address: small(0), slot: 32, slots: 2048, ..page }, 0b11_1110),
            (Page { number: 3, address: 0x7f00_0003_0000, state: PageState::Empty, ..page }, 0),
            (
                Page {
                    number: 4,
                    address: LARGE,
                    pool: 63,
                    kind: kind::LEAF,
                    state: PageState::Large,
                    slot: 40_000,
                    slots: 1,
                    ..page
                },
                1,
            ),
        ];
        pages.iter().for_each(|(page, bits)| assert!(writer.page(page, &[*bits])));
        let object =
            |address, size, type_id| Object { address, size, type_id, ..Object::default() };
        writer.object(&object(BASE, 64, TABLE));
        writer.reference(small(1));
        writer.reference(small(3));
        writer.object(&object(small(1), 32, ARRAY));
        writer.reference(small(2));
        let string =
            |number| Object { used: 27, kind: kind::LEAF, ..object(small(number), 32, STRING) };
        writer.object(&string(2));
        writer.object(&string(3));
        writer.object(&object(small(4), 32, ARRAY));
        writer.reference(small(2));
        writer.object(&object(small(5), 32, ARRAY));
        writer.reference(small(3));
        writer.object(&Object { kind: kind::LEAF, ..object(LARGE, 40_000, STRING) });
        writer.root(&Root { kind: RootKind::Handle, mutator: 1, address: BASE });
        writer.root(&Root { kind: RootKind::Stack, mutator: 2, address: small(5) });
        writer.root(&Root { kind: RootKind::Callback, mutator: 0, address: LARGE });
    })
}

/// Returns a dump of three pages of a heap with generations, after a compaction. The first has
/// an old object that was moved there. The second is pinned, with a young object. The third is a
/// candidate, with an object of handle #2.
///
/// ```text
/// handle #1 -> Table (old) -> Table (old, pinned) -> Table (young)
/// ```
fn generations() -> Vec<u8> {
    let heap = Heap {
        minor_cycles: 9,
        old: 640,
        compactions: 2,
        moved_objects: 1234,
        moved_bytes: 56_789,
        evacuated_pages: 12,
        kept_pages: 3,
        ..numbers()
    };
    let page = Page { bytes: 64 << 10, slot: 64, slots: 1024, ..Page::default() };
    dump_of(&heap, &[32, 64], |writer| {
        writer.type_name(TABLE, "Table");
        let (moved, pinned, plan) = (BASE, BASE + (64 << 10), BASE + (128 << 10));
        let pages = [
            (Page { number: 1, address: moved, moved_in: 1001, old: 1, ..page }, 1),
            (Page { number: 2, address: pinned, pins: 3, old: 1, ..page }, 0b11),
            (Page { number: 3, address: plan, aside: Aside::Candidate, ..page }, 0b1),
        ];
        pages.iter().for_each(|(page, bits)| assert!(writer.page(page, &[*bits])));
        let object = Object { size: 64, type_id: TABLE, ..Object::default() };
        writer.object(&Object { address: moved, old: true, ..object });
        writer.reference(pinned);
        writer.object(&Object { address: pinned, old: true, ..object });
        writer.reference(pinned + 64);
        writer.object(&Object { address: pinned + 64, ..object });
        writer.object(&Object { address: plan, ..object });
        writer.root(&Root { kind: RootKind::Handle, mutator: 1, address: moved });
        writer.root(&Root { kind: RootKind::Handle, mutator: 1, address: plan });
    })
}

fn heap(flags: &[&str], dump: &Path) -> Output {
    done(heapwright().arg("heap").args(flags).arg(dump))
}

fn printed(flags: &[&str], file: &Path) -> String {
    let output = heap(flags, file);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{flags:?}");
    stdout(&output)
}

#[test]
fn dumps_are_printed_as_they_were() {
    let folder = Folder::new();
    let file = folder.file("app.heap", sample());
    let (inside, unreachable) = (["--path", "0x7f0000020043"], ["--path", "7f0000020080"]);
    golden("heap.text", &printed(&[], &file));
    let flags = [&["--type", "Array"], &inside[..], &unreachable].concat();
    golden("heap-type.text", &printed(&flags, &file));
    for format in ["json", "html"] {
        let flags = [&["--format", format, "--type", "String"], &inside[..]].concat();
        golden(&format!("heap.{format}"), &printed(&flags, &file));
    }
    let some = printed(&["--top", "1"], &file);
    assert!(some.contains("\n  and 2 more types (--top 0 shows all)\n"), "{some}");
    assert_eq!(some.matches(" -> ").count(), 1, "{some}");
    assert_eq!(printed(&["--top", "0"], &file), printed(&[], &file));
    // No single object keeps an object that two objects hold.
    let both = printed(&["--path", "0x7f0000020060"], &file);
    assert!(both.ends_with("retains 32\n  no other object is on every path to it\n"), "{both}");

    let file = folder.file("app.heap", generations());
    for format in ["text", "json", "html"] {
        let flags = ["--format", format, "--path", "0x7f0000020040"];
        golden(&format!("heap-old.{format}"), &printed(&flags, &file));
    }
    let of_type = printed(&["--type", "Table"], &file);
    assert!(of_type.contains("\n  2 of them are old, 128 bytes\n"), "{of_type}");
}

#[test]
fn what_is_not_in_a_dump_is_one_line() {
    let folder = Folder::new();
    let file = folder.file("app.heap", sample());
    for (flags, line) in [
        (["--type", "arr"], "there is no type 'arr'; there is Array"),
        (["--type", "Cart"], "there is no type 'Cart'; without --type, all are listed"),
        (["--path", "0x7f0000020143"], "there is no object at 0x7f0000020143"),
    ] {
        let output = heap(&flags, &file);
        let line = format!("heapwright: {}: {line}\n", text(&file));
        assert_eq!((output.status.code(), stderr(&output)), (Some(2), line));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_page_goes_to_a_file_and_the_text_to_the_screen() {
    let folder = Folder::new();
    let file = folder.file("app.heap", sample());
    let page = folder.path("heap.html");
    let said = printed(&["--format", "html", "-o", text(&page)], &file);
    assert!(said.starts_with("heapwright heap: app.heap: 7 objects"));
    let page = std::fs::read_to_string(page).expect("was written");
    assert!(!page.contains("<script") && !page.contains("://"));
    let output = heap(&["--format", "html", "-o", "/nonexistent/page.html"], &file);
    let line =
        "heapwright: cannot write /nonexistent/page.html: No such file or directory (os error 2)\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), line));
}

#[test]
fn a_dump_of_the_first_version_is_summarised_as_ever() {
    let folder = Folder::new();
    let lines = include_str!("../../heapwright-record/src/heap/version_1.hex");
    let digits: Vec<u8> = lines.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |two: &[u8]| u8::from_str_radix(str::from_utf8(two).expect("is text"), 16);
    let bytes: Result<Vec<u8>, _> = digits.chunks(2).map(byte).collect();
    let output = heap(&[], &folder.file("old.heap", bytes.expect("are digits")));
    let printed = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        printed.contains(" 5,000 bytes live, next collection at 8,388,608, after 12 collections\n"),
        "{printed}"
    );
    assert!(
        [" old ", " moved ", " pinned "].iter().all(|word| !printed.contains(word)),
        "{printed}"
    );
}

#[test]
fn a_damaged_dump_is_read_as_far_as_it_goes() {
    let folder = Folder::new();
    let whole = dump(&[32], |writer| {
        writer.type_name(1, "Node");
        writer.root(&Root { kind: RootKind::Handle, mutator: 1, address: BASE });
        for number in 0..10_000 {
            let address = BASE + 32 * number;
            writer.object(&Object { address, size: 32, type_id: 1, ..Object::default() });
            writer.reference(address + 32);
        }
    });
    let half = whole.len() / 2;
    let mut changed = whole.clone();
    changed[half] ^= 1;
    for (content, reason) in [
        (
            whole[..half].to_vec(),
            "the dump is damaged: the file ends in the middle of a frame at byte ",
        ),
        (changed, "the dump is damaged: checksum at byte "),
        (whole[..whole.len() - 19].to_vec(), "the dump "),
    ] {
        let file = folder.file("cut.heap", content);
        let output = heap(&[], &file);
        assert_eq!(output.status.code(), Some(1), "{reason}");
        let (printed, said) = (stdout(&output), stderr(&output));
        let lines: Vec<&str> = said.lines().collect();
        let begin = format!("heapwright: {}: {reason}", text(&file));
        assert!(
            lines[0].starts_with(&begin)
                && lines[0].ends_with("objects before that are summarised"),
            "{said}"
        );
        assert_eq!(lines.len(), 2, "{said}");
        assert!(printed.contains("\nby type") && printed.contains("\n  Node "), "{printed}");
        assert!(printed.contains("root handle #1 -> Node 0x7f0000010000\n"), "{printed}");
        let object: Value =
            serde_json::from_str(&stdout(&heap(&["--format", "json"], &file))).expect("is JSON");
        assert_eq!(
            (&object["whole"], object["notes"].as_array().map(Vec::len)),
            (&json!(false), Some(2))
        );
    }
    // In the whole dump, only the last object's reference leads to no object.
    let output = heap(&[], &folder.file("whole.heap", whole));
    let said = stderr(&output);
    assert!(said.ends_with(": 1 references lead to no object of the dump\n"), "{said}");
    assert_eq!(output.status.code(), Some(0));
    // A list of ten thousand objects is shown without its middle.
    let printed = stdout(&heap(&["--path", "0x7f000005e1e0"], &folder.path("whole.heap")));
    assert!(
        printed.contains("\n  -> (9,000 more)\n") && printed.contains(", and 9,983 more\n"),
        "{printed}"
    );
}

#[test]
fn what_is_no_dump_is_one_line() {
    let folder = Folder::new();
    let header = |at: usize, value: u8| {
        let mut header = HEADER;
        header[at] = value;
        header.to_vec()
    };
    let mut damaged = sample();
    damaged[HEADER.len() + 9] ^= 1;
    let hint = "not a heap dump of heapwright; heap dumps are what hw_gc_dump writes";
    for (content, reason) in [
        (b"hello, world, this is text".to_vec(), hint),
        (heapwright_record::trace::HEADER.to_vec(), hint),
        (Vec::new(), "the heap dump ends within its header"),
        (HEADER[..10].to_vec(), "the heap dump ends within its header"),
        (header(8, 3), "heap dump of version 3; this command reads 1 to 2"),
        (header(15, 1), "heap dump with flags 0x1000000, which this command does not know"),
        (HEADER.to_vec(), "the heap dump ends behind its header"),
        (damaged, "checksum at byte 16 does not match"),
    ] {
        let file = folder.file("some.heap", content);
        let output = heap(&[], &file);
        let line = format!("heapwright: cannot read {}: {reason}\n", text(&file));
        assert_eq!((output.status.code(), stderr(&output)), (Some(2), line));
        assert_eq!(stdout(&output), "");
    }
    let output = heap(&[], &folder.path(""));
    assert!(stderr(&output).ends_with(": it is a folder\n"), "{}", stderr(&output));
    let output = heap(&[], Path::new("/nonexistent/dump"));
    let line =
        "heapwright: cannot read /nonexistent/dump: No such file or directory (os error 2)\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), line));
}

#[test]
fn the_command_line_is_documented() {
    let output = done(heapwright().args(["heap", "--help"]));
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    for part in ["heapwright heap [OPTIONS] <DUMP>", "--format <FORMAT>", "Exits with 0, with 1 if"]
    {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(stdout(&done(heapwright().arg("--help"))).contains("\n  heap "));
    let output = done(heapwright().args(["heap", "--path", "here", "x"]));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "heapwright: invalid value 'here' for '--path <ADDRESS>': is no address such as \
         0x7f1200340120; see 'heapwright heap --help'\n"
    );
}
