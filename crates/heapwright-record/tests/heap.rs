//! The heap dump against random heaps and bytes.

use heapwright_record::heap::{
    Aside, Entry, HEADER, Heap, OLDEST, Object, Page, PageState, Reader, Root, RootKind, VERSION,
    Writer,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_u64, any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit)]
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![(1..1000_u64).prop_map(|slot| 0x7f00_0000_0000 + slot * 32), number()]
}

#[derive(Clone, Debug)]
enum Written {
    Type(u32, String),
    Page(Page, Vec<u64>),
    Object(Object),
    Reference(u64),
    Root(Root),
}

fn any_written() -> impl Strategy<Value = Written> {
    let object =
        (address(), prop_oneof![Just(32), number()], number(), 0..4_u8, 0..5_u32, any::<bool>())
            .prop_filter("there is none at 0", |object| object.0 != 0)
            .prop_map(|(address, size, used, kind, type_id, old)| {
                Written::Object(Object { address, size, used, kind, type_id, old })
            });
    let state = prop_oneof![Just(PageState::InUse), Just(PageState::Empty), Just(PageState::Large)];
    let aside = prop_oneof![Just(Aside::No), Just(Aside::Candidate), Just(Aside::Evacuated)];
    let place = (number(), address(), number(), any::<u32>());
    let moves = (number(), number(), any::<u32>(), aside);
    let page = (place, 0..4_u8, state, number(), 0..600_u32, moves).prop_map(
        |((number, address, bytes, pool), kind, state, slot, slots, moves)| {
            let (pins, moved_in, old, aside) = moves;
            Page {
                number,
                address,
                bytes,
                pool,
                kind,
                state,
                slot,
                slots,
                pins,
                moved_in,
                old,
                aside,
            }
        },
    );
    let root = (0..5_usize, any::<u32>(), address()).prop_map(|(kind, mutator, address)| {
        Written::Root(Root { kind: RootKind::ALL[kind], mutator, address })
    });
    prop_oneof![
        1 => (any::<u32>(), ".{0,9}").prop_map(|(id, name)| Written::Type(id, name)),
        1 => (page, vec(any::<u64>(), 10)).prop_map(|(page, bits)| Written::Page(page, bits)),
        5 => object,
        9 => address().prop_map(Written::Reference),
        2 => root,
    ]
}

fn written(heap: &Heap, layout: &str, pools: &[u64], all: &[Written], room: usize) -> Vec<u8> {
    let (mut buffer, mut file) = (vec![0xa5; Writer::LEAST + room], Vec::new());
    let mut writer = Writer::new(&mut buffer, |piece: &[u8]| {
        file.extend_from_slice(piece);
        true
    });
    writer.start(heap, layout, pools);
    for one in all {
        assert!(match one {
            Written::Type(id, name) => writer.type_name(*id, name),
            Written::Page(page, bits) => writer.page(page, bits),
            Written::Object(object) => writer.object(object),
            Written::Reference(to) => writer.reference(*to),
            Written::Root(root) => writer.root(root),
        });
    }
    assert!(writer.end());
    file
}

fn is(entry: &Entry<'_>, written: &Written) -> bool {
    match (entry, written) {
        (Entry::Type { id, name }, Written::Type(other, text)) => {
            id == other && *name == text.as_bytes()
        }
        (Entry::Page(page, bits), Written::Page(other, words)) => {
            let bit = |slot: u32| words[slot as usize / 64] >> (slot % 64) & 1 != 0;
            page == other && (0..page.slots).all(|slot| bits.is_taken(slot) == bit(slot))
        }
        (Entry::Object(object), Written::Object(other)) => object == other,
        (Entry::Reference(to), Written::Reference(other)) => to == other,
        (Entry::Root(root), Written::Root(other)) => root == other,
        _ => false,
    }
}

/// References before the first object have no owner, and are not written.
fn owned(all: Vec<Written>) -> Vec<Written> {
    let mut owner = false;
    all.into_iter()
        .filter(|one| {
            owner |= matches!(one, Written::Object(_));
            owner || !matches!(one, Written::Reference(_))
        })
        .collect()
}

proptest! {
    #[test]
    fn heaps_come_back(
        all in vec(any_written(), 0..400), numbers in vec(number(), 18), pid: u32, layout in ".{0,20}",
        pools in vec(number(), 0..64), room in 0..5000_usize,
    ) {
        let [
            page_size, _, time, live, in_use, empty, large, external, goal, cycles, flags,
            minor_cycles, old, compactions, moved_objects, moved_bytes, evacuated_pages, kept_pages,
        ] = numbers[..] else { unreachable!() };
        let heap = Heap {
            page_size, pid, time, live, in_use, empty, large, external, goal, cycles, flags,
            minor_cycles, old, compactions, moved_objects, moved_bytes, evacuated_pages, kept_pages,
        };
        let file = written(&heap, &layout, &pools, &all, room);
        let all = owned(all);
        let mut reader = Reader::new(&file).expect("is one");
        let Some(Entry::Start(read, name, slots)) = reader.next() else { panic!("no start") };
        prop_assert!(read == heap && name == layout.as_bytes() && slots.eq(pools));
        for one in &all {
            let entry = reader.next().expect("is there");
            prop_assert!(is(&entry, one), "{entry:?} {one:?}");
        }
        prop_assert!(matches!(reader.next(), Some(Entry::End(_))));
        prop_assert!(reader.next().is_none() && reader.is_whole());
    }

    #[test]
    fn a_cut_loses_what_is_at_the_end(all in vec(any_written(), 1..400), share in 0.0..1.0_f64) {
        let file = written(&Heap::default(), "", &[], &all, 0);
        let all = owned(all);
        let cut = HEADER.len() + ((file.len() - HEADER.len()) as f64 * share) as usize;
        let mut reader = Reader::new(&file[..cut]).expect("is one");
        let read: Vec<_> = reader.by_ref().skip(1).collect();
        prop_assert!(read.iter().zip(&all).all(|(entry, one)| is(entry, one)));
        prop_assert!(!reader.is_whole());
        prop_assert_eq!(reader.problem().is_some(), reader.position() < cut as u64);
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in vec(any::<u8>(), 0..300), version in OLDEST..=VERSION) {
        let mut file = [&HEADER[..], &bytes].concat();
        file[8] = version as u8;
        let mut reader = Reader::new(&file).expect("has a header");
        reader.by_ref().for_each(drop);
        prop_assert!(reader.position() as usize <= file.len());
        prop_assert_eq!(reader.problem().is_none(), reader.position() as usize == file.len());
    }
}
