//! Compares lists of units with a double-ended queue. Each unit is in two lists at once, so that
//! the test detects a write to the links of the wrong list.

extern crate std;

use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::testing::{cases, units};
#[derive(Clone, Debug)]
enum ListOp {
    Push,
    InsertAfter(Index),
    Remove(Index),
}

fn list_op() -> impl Strategy<Value = ListOp> {
    prop_oneof![
        Just(ListOp::Push),
        any::<Index>().prop_map(ListOp::InsertAfter),
        any::<Index>().prop_map(ListOp::Remove),
    ]
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn lists_of_units_are_lists(
        ops in prop::collection::vec(list_op(), 1..if cfg!(miri) { 12 } else { 60 }),
    ) {
        let (os, map, first) = units(4096, 61);
        let list: UnitList<BySize> = UnitList::new();
        let other: UnitList<ByOwner> = UnitList::new();
        let mut model = VecDeque::new();
        for (unit, op) in (first..).zip(&ops) {
            match op {
                ListOp::Push => {
                    list.push(map, unit);
                    model.push_front(unit);
                }
                ListOp::InsertAfter(which) if !model.is_empty() => {
                    let at = which.index(model.len());
                    list.insert_after(map, Some(model[at]), unit);
                    model.insert(at + 1, unit);
                }
                ListOp::InsertAfter(_) => {
                    list.insert_after(map, None, unit);
                    model.push_front(unit);
                }
                ListOp::Remove(which) if !model.is_empty() => {
                    let gone = model.remove(which.index(model.len())).unwrap();
                    list.remove(map, gone);
                }
                ListOp::Remove(_) => {}
            }
            other.push(map, unit);
            prop_assert_eq!(list.first(), model.front().copied());
            for (at, &unit) in model.iter().enumerate() {
                prop_assert_eq!(list.after(map, unit), model.get(at + 1).copied());
                let before = at.checked_sub(1).map(|before| model[before]);
                prop_assert_eq!(list.before(map, unit), before);
            }
        }
        // SAFETY: no thread uses any of it.
        unsafe { os.give_back() };
    }
}
