//! `heapwright heap`: dumps made here with the library's writer, summarised as text, as JSON and
//! as a page; and files that are no dumps.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
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

/// The numbers of a heap that has neither generations nor moves.
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

/// A dump of what `write` writes behind the start.
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

/// ```text
/// handle #1 -> Table 0 (64) -> Array 1 (32) -> String 2 (32)
///                          `-> String 3 (32) <- Array 5 (32) <- stack #1
/// nothing -> Array 4 (32);   callback #1 -> String, large (40,000)
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

/// Three pages of a heap with generations that was compacted: one of objects that were moved
/// there, and are old; one that is pinned, with a young one; one of a plan.
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

#[test]
fn a_dump_is_summarised_by_type_size_and_path() {
    let folder = Folder::new();
    let file = folder.file("app.heap", sample());
    let output = heap(&[], &file);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert_eq!(
        stdout(&output),
        "\
heapwright heap: app.heap: 7 objects, 40,224 bytes; layout fine; process 4242
  heap     1,064 bytes live, next collection at 4,194,304, after 12 collections
  pages    in use 131,072, empty 65,536, large 65,536; the runtime's own memory 77
  roots    1 handle, 1 callback, 1 stack
  graph    5 references
  no root  leads to 1 object of 32 bytes: 1 Array

by type       objects           bytes    share        retained    share
  String            3          40,064   99.6 %          40,064   99.6 %
  Array             3              96    0.2 %              96    0.2 %
  Table             1              64    0.2 %             128    0.3 %

by size        objects           bytes    pages  occupancy  empty slots  behind slots         slack
  32                 5             160        1      0.2 %        2,043             0            10
  64                 1              64        1      0.1 %        1,023             0             -
  large              1          40,000        1     61.0 %            0        25,536             -
  and 1 page empty

largest retainers
  40,000 bytes (99.4 %)  String 0x7f0000040000, 40,000 bytes
      root callback #1 -> String 0x7f0000040000
  128 bytes (0.3 %)  Table 0x7f0000010000, 64 bytes
      root handle #1 of mutator 1 -> Table 0x7f0000010000
  64 bytes (0.2 %)  Array 0x7f0000020020, 32 bytes
      root handle #1 of mutator 1 -> Table 0x7f0000010000 -> Array 0x7f0000020020
  32 bytes (0.1 %)  String 0x7f0000020040, 32 bytes
      root handle #1 of mutator 1 -> Table 0x7f0000010000 -> Array 0x7f0000020020 -> String 0x7f0000020040
  32 bytes (0.1 %)  String 0x7f0000020060, 32 bytes
      root handle #1 of mutator 1 -> Table 0x7f0000010000 -> String 0x7f0000020060
  32 bytes (0.1 %)  Array 0x7f00000200a0, 32 bytes
      root stack #1 of mutator 2 -> Array 0x7f00000200a0
"
    );
    let printed = stdout(&heap(&["--top", "1"], &file));
    assert!(printed.contains("\n  and 2 more types (--top 0 shows all)\n"), "{printed}");
    assert_eq!(printed.matches(" -> ").count(), 1, "{printed}");
    assert_eq!(stdout(&heap(&["--top", "0"], &file)), stdout(&output));
}

#[test]
fn one_type_and_one_object_are_shown() {
    let folder = Folder::new();
    let file = folder.file("app.heap", sample());
    let output =
        heap(&["--type", "Array", "--path", "0x7f0000020043", "--path", "7f0000020080"], &file);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let printed = stdout(&output);
    let expected = "
Array: 3 objects, 96 bytes (0.2 %), retained 96 (0.2 %)
  no root leads to 1 of them, 32 bytes
  referred to by Table (1)
  refer to String (3)

largest retainers
  64 bytes (0.2 %)  Array 0x7f0000020020, 32 bytes
      root handle #1 of mutator 1 -> Table 0x7f0000010000 -> Array 0x7f0000020020
  32 bytes (0.1 %)  Array 0x7f00000200a0, 32 bytes
      root stack #1 of mutator 2 -> Array 0x7f00000200a0

0x7f0000020043 is at 3 in String 0x7f0000020040, 32 bytes, retains 32
  root handle #1 of mutator 1
  -> Table 0x7f0000010000, 64 bytes, retains 128
  -> Array 0x7f0000020020, 32 bytes, retains 64
  -> String 0x7f0000020040, 32 bytes, retains 32
  each of these alone keeps it: Array 0x7f0000020020, Table 0x7f0000010000

Array 0x7f0000020080, 32 bytes, retains 0
  no root leads to it
";
    assert!(printed.ends_with(expected), "{printed}");
    // What is held from two sides, nothing alone keeps.
    let printed = stdout(&heap(&["--path", "0x7f0000020060"], &file));
    assert!(printed.ends_with("retains 32\n  no other object alone keeps it\n"), "{printed}");

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
fn everything_is_in_the_json() {
    let folder = Folder::new();
    let file = folder.file("app.heap", sample());
    let output = heap(&["--format", "json", "--type", "String", "--path", "0x7f0000020040"], &file);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let object: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    assert_eq!((&object["format"], &object["whole"]), (&json!(1), &json!(true)));
    assert_eq!(object["heap"]["goal"], json!(4 << 20));
    assert_eq!(object["heap"]["layout"], json!("fine"));
    assert_eq!(object["unreachable"], json!({"objects": 1, "bytes": 32}));
    assert_eq!(object["roots"], json!({"handle": 1, "callback": 1, "stack": 1}));
    assert_eq!(
        object["types"][2],
        json!({"name": "Table", "objects": 1, "bytes": 64, "retained": 128,
               "unreachable": {"objects": 0, "bytes": 0}, "old": {"objects": 0, "bytes": 0}})
    );
    assert_eq!(
        object["sizes"][0],
        json!({"slot": 32, "objects": 5, "bytes": 160, "pages": 1, "page_bytes": 65536,
               "slots": 2048, "taken": 5, "tail": 0, "slack": {"objects": 2, "bytes": 10},
               "old": 0, "pinned": 0, "moved_in": 0})
    );
    assert_eq!(object["pages"][3]["state"], json!("large"));
    assert_eq!(object["retainers"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        object["type"]["from"],
        json!([{"type": "Array", "references": 3}, {"type": "Table", "references": 1}])
    );
    let path = &object["paths"][0];
    assert_eq!(path["address"], json!("0x7f0000020040"));
    assert_eq!(path["path"]["root"], json!({"kind": "handle", "number": 1, "mutator": 1}));
    assert_eq!(path["path"]["steps"][2]["type"], json!("String"));
    assert_eq!(path["dominators"][1]["type"], json!("Table"));
}

#[test]
fn the_page_shows_the_pages() {
    let folder = Folder::new();
    let file = folder.file("app.heap", sample());
    let page = folder.path("heap.html");
    let output = heap(&["--format", "html", "-o", text(&page), "--path", "0x7f0000020040"], &file);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert!(stdout(&output).starts_with("heapwright heap: app.heap: 7 objects"));
    let page = std::fs::read_to_string(page).expect("was written");
    for part in [
        "<title>heapwright heap: app.heap</title>",
        "<p class=\"verdict\">39.3 KiB in 7 objects<",
        "<h3>32 B a slot <small>1 page, 0.2 % taken</small></h3>",
        "<h3>Empty <small>1 page, usable by any pool</small></h3>",
        "<h3>Large objects <small>1 object, 64.0 KiB</small></h3>",
        "<title>page 2 at 0x7f0000020000, traced: 5 of 2,048 slots (0.2 %)</title>",
        "<code>Table</code>",
        "<li class=\"root\">handle #1 of mutator 1</li>",
        "<li class=\"this\" title=\"32 B, retains 32 B\">String 0x7f0000020040</li>",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script") && !page.contains("://"));
    let output = heap(&["--format", "html", "-o", "/nonexistent/page.html"], &file);
    let line =
        "heapwright: cannot write /nonexistent/page.html: No such file or directory (os error 2)\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), line));
}

#[test]
fn generations_and_moves_are_reported() {
    let folder = Folder::new();
    let file = folder.file("app.heap", generations());
    let output = heap(&["--path", "0x7f0000020040"], &file);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert_eq!(
        stdout(&output),
        "\
heapwright heap: app.heap: 4 objects, 256 bytes; layout fine; process 4242
  heap     1,064 bytes live, next collection at 4,194,304, after 12 collections
  pages    in use 131,072, empty 65,536, large 65,536; the runtime's own memory 77
  old      640 bytes (60.2 %); 9 of the collections were minor
  moved    1,234 objects of 56,789 bytes, by 2 compactions; pages: 12 evacuated, 3 kept
  pinned   1 page, by 3 pins
  roots    2 handle
  graph    2 references

by type      objects           bytes    share        retained    share          old
  Table            4             256  100.0 %             256  100.0 %            2

by size        objects           bytes    pages  occupancy  empty slots  behind slots         slack          old pinned pages     moved in
  64                 4             256        3      0.1 %        3,068             0             -            2            1        1,001

largest retainers
  192 bytes (75.0 %)  Table 0x7f0000010000, 64 bytes
      root handle #1 -> Table 0x7f0000010000
  128 bytes (50.0 %)  Table 0x7f0000020000, 64 bytes
      root handle #1 -> Table 0x7f0000010000 -> Table 0x7f0000020000
  64 bytes (25.0 %)  Table 0x7f0000020040, 64 bytes
      root handle #1 -> Table 0x7f0000010000 -> Table 0x7f0000020000 -> Table 0x7f0000020040
  64 bytes (25.0 %)  Table 0x7f0000030000, 64 bytes
      root handle #2 -> Table 0x7f0000030000

Table 0x7f0000020040, 64 bytes, retains 64
  root handle #1
  -> Table 0x7f0000010000, 64 bytes, old, retains 192
  -> Table 0x7f0000020000, 64 bytes, old, retains 128
  -> Table 0x7f0000020040, 64 bytes, retains 64
  each of these alone keeps it: Table 0x7f0000020000, Table 0x7f0000010000
"
    );
    let printed = stdout(&heap(&["--type", "Table"], &file));
    assert!(printed.contains("\n  2 of them are old, 128 bytes\n"), "{printed}");

    let output = heap(&["--format", "json", "--path", "0x7f0000020000"], &file);
    let object: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    for (field, number) in [
        ("minor_cycles", 9),
        ("old", 640),
        ("compactions", 2),
        ("moved_objects", 1234),
        ("moved_bytes", 56_789),
        ("evacuated_pages", 12),
        ("kept_pages", 3),
    ] {
        assert_eq!(object["heap"][field], json!(number), "{field}");
    }
    assert_eq!(object["types"][0]["old"], json!({"objects": 2, "bytes": 128}));
    let size = &object["sizes"][0];
    assert_eq!(
        (&size["old"], &size["pinned"], &size["moved_in"]),
        (&json!(2), &json!(1), &json!(1001))
    );
    let page = |number: usize, field| &object["pages"][number][field];
    assert_eq!((page(0, "moved_in"), page(0, "old")), (&json!(1001), &json!(1)));
    assert_eq!((page(1, "pins"), page(1, "aside")), (&json!(3), &Value::Null));
    assert_eq!(page(2, "aside"), &json!("candidate"));
    let path = &object["paths"][0];
    assert_eq!((&path["old"], &path["path"]["steps"][0]["old"]), (&json!(true), &json!(true)));

    let page = folder.path("heap.html");
    heap(&["--format", "html", "-o", text(&page), "--path", "0x7f0000020040"], &file);
    let page = std::fs::read_to_string(page).expect("was written");
    for part in [
        "<li>12 collections, 9 minor</li>",
        "<dt>old</dt><dd><b>640 B</b><small>60.2 % of what is live</small>",
        "<dt>moved</dt><dd><b>55.5 KiB</b><small>1,234 objects, by 2 compactions</small>",
        "<dt>pinned</dt><dd><b>64.0 KiB</b><small>1 page, left in place</small>",
        "<h3>64 B a slot <small>3 pages, 0.1 % taken, 50.0 % old, 1 pinned</small></h3>",
        "1 of 1,024 slots (0.1 %), 1 old, 1,001 moved in</title>",
        "2 of 1,024 slots (0.2 %), 1 old, 3 pins</title>",
        "1 of 1,024 slots (0.1 %), candidate</title>",
        "<path class=\"f1 a3\" d=\"M0 0h3v3h-3z\"/>",
        "<path class=\"f1 a2\" d=\"M14 0h3v3h-3z\"/>",
        "<path class=\"f1\" d=\"M28 0h3v3h-3z\"/>",
        "<path class=\"moved-in\" d=\"M7 0h5v5z\"/>",
        "<path class=\"pinned\" d=\"M14 0h12v12h-12z\"/>",
        "<th scope=\"col\" class=\"n\">pinned pages</th>",
        "<li class=\"\" title=\"64 B, old, retains 128 B\">Table 0x7f0000020000</li>",
    ] {
        assert!(page.contains(part), "{part}");
    }
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
    // The last one leads out of a dump that is whole.
    let output = heap(&[], &folder.file("whole.heap", whole));
    let said = stderr(&output);
    assert!(said.ends_with(": 1 references lead to no object of the dump\n"), "{said}");
    assert_eq!(output.status.code(), Some(0));
    // A list of ten thousand is shown with its middle left out.
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
         0x7f1200340120; see 'heapwright --help'\n"
    );
}
