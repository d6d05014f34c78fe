//! Makes a heap dump of any size, for `ci/bounds.sh heap`.
//!
//! ```text
//! heap_dumps FILE OBJECTS SHAPE
//! ```
//!
//! OBJECTS objects of 16 to 112 bytes lie in pages of 64 KiB that are nine tenths full. Each object
//! has up to three references. Most objects are old, and one page in 50 is pinned. SHAPE says where
//! the references lead: `tree` (to two children, and anywhere), `list` (to the next object, and to
//! two earlier ones), `random` (anywhere).

use heapwright_record::heap::{
    Aside, Heap, Object, Page, PageState, Root, RootKind, Writer as Dump, kind,
};
use std::error::Error;
use std::fs::File;
use std::io::Write;

const PAGE: u64 = 64 << 10;
const BASE: u64 = 0x7f00_0000_0000;
const POOLS: [u64; 4] = [16, 32, 64, 112];

/// Returns an object's place and size. Pages of the pools take turns; every tenth slot is empty.
fn place(number: u64) -> (u64, u64) {
    // Four pages, one of each pool, have `all` objects.
    let counts = POOLS.map(|slot| taken(PAGE / slot));
    let all: u64 = counts.iter().sum();
    let (block, mut left) = (number / all, number % all);
    let mut pool = 0;
    while left >= counts[pool] {
        left -= counts[pool];
        pool += 1;
    }
    let slot = left / 9 * 10 + left % 9;
    (BASE + (block * 4 + pool as u64) * PAGE + slot * POOLS[pool], POOLS[pool])
}

fn taken(slots: u64) -> u64 {
    slots / 10 * 9
}

/// Returns whether an object is old. The first of sixteen neighbours is young.
fn is_old(number: u64) -> bool {
    !number.is_multiple_of(16)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, objects, shape] = &words[..] else {
        return Err("heap_dumps FILE OBJECTS SHAPE".into());
    };
    let objects: u64 = objects.parse()?;
    let mut file = File::create(file)?;
    let mut buffer = vec![0; 256 << 10];
    let mut dump = Dump::new(&mut buffer, |piece: &[u8]| file.write_all(piece).is_ok());
    let heap = Heap { page_size: PAGE, pid: 1, cycles: 9, minor_cycles: 7, ..Heap::default() };
    dump.start(&heap, "fine", &POOLS);
    for id in 0..100 {
        dump.type_name(id, &format!("Type{id}"));
    }
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below.max(1)
    };
    for number in 0..objects {
        let (address, size) = place(number);
        if address % PAGE == 0 {
            page(&mut dump, address, size);
        }
        let type_id = (number / 7 % 100) as u32;
        let old = is_old(number);
        dump.object(&Object { address, size, type_id, old, ..Object::default() });
        let anywhere = random(objects);
        let targets = match shape.as_str() {
            "tree" => [2 * number + 1, 2 * number + 2, anywhere],
            "list" => [number + 1, number / 2, number.saturating_sub(1)],
            _ => [random(objects), random(objects), anywhere],
        };
        for target in targets.into_iter().filter(|target| *target < objects) {
            dump.reference(place(target).0);
        }
    }
    for number in 0..10_u64.min(objects) {
        let root = if shape == "list" { 0 } else { number };
        let (address, _) = place(root);
        dump.root(&Root { kind: RootKind::Handle, mutator: 1, address });
    }
    if dump.end() { Ok(()) } else { Err("it could not be written".into()) }
}

fn page<S: FnMut(&[u8]) -> bool>(dump: &mut Dump<'_, S>, address: u64, slot: u64) {
    let slots = (PAGE / slot) as u32;
    let mut bits = [0_u64; 64];
    for taken in (0..slots / 10 * 10).filter(|slot| slot % 10 != 9) {
        bits[taken as usize / 64] |= 1 << (taken % 64);
    }
    let page = Page {
        number: (address - BASE) / PAGE + 1,
        address,
        bytes: PAGE,
        pool: POOLS.iter().position(|&other| other == slot).unwrap_or_default() as u32,
        kind: kind::FREED,
        state: PageState::InUse,
        slot,
        slots,
        pins: u64::from((address / PAGE).is_multiple_of(50)),
        moved_in: address / PAGE % 3 * 40,
        old: taken(slots.into()) as u32 / 16 * 15,
        aside: Aside::No,
    };
    dump.page(&page, &bits);
}
