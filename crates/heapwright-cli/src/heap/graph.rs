//! Objects and references, as arrays of numbers.
//!
//! ```text
//! object   0        1        2   ...     in the order of the file
//! address  u64      u64      u64
//! shape    u32      u32      u32         index of its size, kind, type and age
//! first    u32      u32      u32         the index of its first target
//! targets  u32 u32 | u32 | u32 u32 u32 | ...
//!
//! lookup   64-KiB unit -> its objects -> the object at an address
//! ```

use heapwright_record::heap::{RootKind, kind};

pub(super) const NONE: u32 = u32::MAX;

const UNIT_SHIFT: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) size: u64,
    /// An index into the table of types.
    pub(super) type_: u32,
    pub(super) kind: u8,
    pub(super) old: bool,
}

impl Shape {
    /// Returns whether such an object may hold references.
    pub(super) fn is_traced(&self) -> bool {
        self.kind & kind::LEAF == 0
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) kind: RootKind,
    /// The root's number among the roots of its kind, from 1.
    pub(super) number: u32,
    pub(super) mutator: u32,
    pub(super) object: u32,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) addresses: Vec<u64>,
    pub(super) shape: Vec<u32>,
    pub(super) shapes: Vec<Shape>,
    /// The index of each object's first target. The last entry is the number of all targets.
    pub(super) first: Vec<u32>,
    pub(super) targets: Vec<u32>,
    pub(super) roots: Vec<Root>,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }

    pub(super) fn shape(&self, object: u32) -> &Shape {
        &self.shapes[self.shape[object as usize] as usize]
    }

    pub(super) fn size(&self, object: u32) -> u64 {
        self.shape(object).size
    }

    pub(super) fn targets(&self, object: u32) -> &[u32] {
        let object = object as usize;
        &self.targets[self.first[object] as usize..self.first[object + 1] as usize]
    }
}

#[derive(Debug)]
pub(super) struct Lookup {
    /// Objects by address; `None` if the dump has them in that order.
    order: Option<Vec<u32>>,
    /// The units in which objects begin, each with its first object; then an end.
    units: Vec<(u64, u32)>,
    /// For each unit from the first one on, its index in `units`; empty if units are far apart.
    direct: Vec<u32>,
}

impl Lookup {
    pub(super) fn new(addresses: &[u64]) -> Self {
        let order = (!addresses.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0..addresses.len() as u32).collect();
            order.sort_by_key(|&object| addresses[object as usize]);
            order
        });
        let at =
            |place: usize| addresses[order.as_ref().map_or(place, |order| order[place] as usize)];
        let mut units: Vec<(u64, u32)> = Vec::new();
        for place in 0..addresses.len() {
            let unit = at(place) >> UNIT_SHIFT;
            if units.last().is_none_or(|(last, _)| *last != unit) {
                units.push((unit, place as u32));
            }
        }
        let span = match (units.first(), units.last()) {
            (Some((first, _)), Some((last, _))) => last - first + 1,
            _ => 0,
        };
        let mut direct = Vec::new();
        if span <= (8 * units.len() + (1 << 16)) as u64 {
            direct = vec![NONE; span as usize];
            for (place, (unit, _)) in units.iter().enumerate() {
                direct[(unit - units[0].0) as usize] = place as u32;
            }
        }
        units.push((u64::MAX, addresses.len() as u32));
        Self { order, units, direct }
    }

    fn object(&self, place: usize) -> usize {
        self.order.as_ref().map_or(place, |order| order[place] as usize)
    }

    /// Returns the object that begins at an address.
    pub(super) fn exactly(&self, addresses: &[u64], address: u64) -> Option<u32> {
        let unit = address >> UNIT_SHIFT;
        let place = if self.direct.is_empty() {
            self.units.binary_search_by_key(&unit, |(unit, _)| *unit).ok()?
        } else {
            let place = *self.direct.get(unit.checked_sub(self.units[0].0)? as usize)?;
            if place == NONE {
                return None;
            }
            place as usize
        };
        let (mut low, end) = (self.units[place].1 as usize, self.units[place + 1].1 as usize);
        let mut high = end;
        while low < high {
            let middle = low.midpoint(high);
            if addresses[self.object(middle)] < address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let object = (low < end).then(|| self.object(low))?;
        (addresses[object] == address).then_some(object as u32)
    }

    /// Returns the object that contains an address, given the size of each object.
    pub(super) fn within(
        &self,
        addresses: &[u64],
        address: u64,
        size: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        let (mut low, mut high) = (0, addresses.len());
        while low < high {
            let middle = low.midpoint(high);
            if addresses[self.object(middle)] <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let object = self.object(low.checked_sub(1)?) as u32;
        (address - addresses[object as usize] < size(object).max(1)).then_some(object)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes objects at 0x10000 and on, in steps of 0x100.
    pub(in crate::heap) fn graph(sizes: &[u64], edges: &[(u32, u32)], roots: &[u32]) -> Graph {
        let mut graph = Graph::default();
        for (object, &size) in sizes.iter().enumerate() {
            graph.addresses.push(0x10000 + 0x100 * object as u64);
            graph.shape.push(object as u32);
            graph.shapes.push(Shape { size, type_: 0, kind: 0, old: false });
        }
        for object in 0..sizes.len() as u32 {
            graph.first.push(graph.targets.len() as u32);
            let targets = edges.iter().filter(|(from, _)| *from == object).map(|(_, to)| *to);
            graph.targets.extend(targets);
        }
        graph.first.push(graph.targets.len() as u32);
        graph.roots = (1..)
            .zip(roots)
            .map(|(number, &object)| Root { kind: RootKind::Handle, number, mutator: 1, object })
            .collect();
        graph
    }

    #[test]
    fn addresses_are_found_whatever_their_order() {
        let near: Vec<u64> = (0..1000).map(|number| 0x7f00_0000_0000 + number * 48).collect();
        let far: Vec<u64> = (1..100).map(|number| number << 50).collect();
        let mut mixed = [&near[..], &far, &[u64::MAX, 1, 0]].concat();
        mixed.reverse();
        mixed.swap(3, 500);
        for addresses in [near, far, mixed, Vec::new(), vec![8, 8, 8]] {
            let lookup = Lookup::new(&addresses);
            for address in &addresses {
                let found = lookup.exactly(&addresses, *address).expect("is there");
                assert_eq!(addresses[found as usize], *address);
                let found = lookup.within(&addresses, address.saturating_add(5), |_| 6);
                let found = addresses[found.expect("is in it") as usize];
                assert!(found.wrapping_sub(*address) <= 5, "{found:#x} {address:#x}");
                assert_eq!(
                    lookup.within(&addresses, address.saturating_add(7), |_| 6).is_some(),
                    *address == u64::MAX,
                    "{address:#x}"
                );
            }
            for address in [3, 0x7f00_0000_0001, 0x7f00_0000_0000 - 48, 77 << 49 | 1 << 20] {
                assert_eq!(lookup.exactly(&addresses, address), None, "{address:#x}");
            }
        }
    }
}
