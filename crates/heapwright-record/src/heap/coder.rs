//! Converts entries to bytes and back. [`Entry`] shows the bytes.
//!
//! An object or a reference is coded by its differences from the one before. Nothing here panics or
//! indexes: the writer works while the world is stopped, and the reader may get any bytes.

use super::OLDEST;
use super::facts::{Aside, Object, Occupancy, Page, PageState, Root, RootKind, kind};
use super::reader::Entry;
use crate::leb::{Out, byte, fold, number, unfold};

/// Codes of entries that are neither objects nor references.
const TYPE: u8 = 1;
const PAGE: u8 = 2;
const ROOT: u8 = 3;
/// The code before an object whose age differs from the preceding object's.
const AGE: u8 = 4;

/// A reference: its top bit, the bit that says that more follows, and the bits beside them.
const REFERENCE: u8 = 0x80;
const MORE: u8 = 0x40;
const LOW_BITS: u32 = 6;
const LOW: u8 = 0x3f;

/// An object: its two top bits, and its flags.
const OBJECT: u8 = 0x40;
const TOP: u8 = 0xc0;
const USED: u8 = 0x20;
const NEXT: u8 = 0x10;
const SAME_SIZE: u8 = 0x08;
const SAME_TYPE: u8 = 0x04;

/// Objects' addresses are multiples of 8: the zero bits move to the top.
const fn place(address: u64) -> u64 {
    address.rotate_right(3)
}

const fn address(place: u64) -> u64 {
    place.rotate_left(3)
}

/// The state that both sides keep about earlier entries of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coder {
    version: u32,
    place: u64,
    end: u64,
    size: u64,
    type_id: u32,
    old: bool,
    /// The object whose references may follow, if there is one.
    owner: Option<u64>,
    /// The place of the last reference, or of its object.
    reference: u64,
}

impl Coder {
    /// Returns the state at a frame's start. `owner` is the object whose references continue.
    pub(super) fn after(owner: Option<u64>, version: u32) -> Self {
        Self { version, owner, reference: place(owner.unwrap_or_default()), ..Self::default() }
    }

    pub(super) const fn owner(&self) -> Option<u64> {
        self.owner
    }

    /// Writes a frame's start. The entries that follow begin with the state [`after`](Self::after).
    pub(super) fn put_begin(before: u64, owner: Option<u64>, out: &mut Out<'_>) {
        out.number(before);
        out.number(place(owner.unwrap_or_default()));
    }

    pub(super) fn take_begin(rest: &mut &[u8]) -> Option<(u64, Option<u64>)> {
        let before = number(rest)?;
        let owner = address(number(rest)?);
        Some((before, (owner != 0).then_some(owner)))
    }

    pub(super) fn put_type(id: u32, name: &[u8], out: &mut Out<'_>) {
        out.byte(TYPE);
        out.number(u64::from(id));
        out.text(name);
    }

    /// Writes a page. Only the bits of its slots count; missing words are zero.
    pub(super) fn put_page(page: &Page, occupancy: &[u64], out: &mut Out<'_>) {
        out.byte(PAGE);
        out.number(page.number);
        out.number(place(page.address));
        out.number(page.bytes);
        out.number(u64::from(page.pool));
        out.byte(page.kind & kind::ALL | (page.state as u8) << 2 | (page.aside as u8) << 4);
        out.number(page.slot);
        out.number(u64::from(page.slots));
        out.number(page.pins);
        out.number(page.moved_in);
        out.number(u64::from(page.old));
        let words = occupancy.iter().flat_map(|word| word.to_le_bytes());
        let mut left = page.slots;
        let mut words = words.chain(core::iter::repeat(0));
        while left != 0 {
            let bits = left.min(u8::BITS);
            let mask = u8::MAX >> (u8::BITS - bits);
            out.byte(words.next().unwrap_or_default() & mask);
            left -= bits;
        }
    }

    pub(super) fn put_root(root: &Root, out: &mut Out<'_>) {
        out.byte(ROOT);
        out.byte(root.kind as u8);
        out.number(u64::from(root.mutator));
        out.number(place(root.address));
    }

    pub(super) fn put_object(&mut self, object: &Object, out: &mut Out<'_>) {
        let here = place(object.address);
        let flag = |flag, is: bool| if is { flag } else { 0 };
        let (used, next) = (object.used != 0, object.address == self.end);
        let (same_size, same_type) = (object.size == self.size, object.type_id == self.type_id);
        if object.old != self.old {
            out.byte(AGE);
        }
        out.byte(
            OBJECT
                | flag(USED, used)
                | flag(NEXT, next)
                | flag(SAME_SIZE, same_size)
                | flag(SAME_TYPE, same_type)
                | object.kind & kind::ALL,
        );
        if !next {
            out.number(fold(here.wrapping_sub(self.place).cast_signed()));
        }
        if !same_size {
            out.number(object.size);
        }
        if !same_type {
            out.number(u64::from(object.type_id));
        }
        if used {
            out.number(object.used);
        }
        self.met(object);
    }

    pub(super) fn put_reference(&mut self, to: u64, out: &mut Out<'_>) {
        let to = place(to);
        let step = fold(to.wrapping_sub(self.reference).cast_signed());
        let (low, high) = (step as u8 & LOW, step >> LOW_BITS);
        out.byte(REFERENCE | low | if high == 0 { 0 } else { MORE });
        if high != 0 {
            out.number(high);
        }
        self.reference = to;
    }

    fn met(&mut self, object: &Object) {
        *self = Self {
            version: self.version,
            place: place(object.address),
            end: object.address.wrapping_add(object.size),
            size: object.size,
            type_id: object.type_id,
            old: object.old,
            owner: Some(object.address),
            reference: place(object.address),
        };
    }

    /// Takes an entry, and moves `rest` behind it. Returns `None` if there is no valid entry.
    #[inline]
    pub(super) fn take<'a>(&mut self, rest: &mut &'a [u8]) -> Option<Entry<'a>> {
        Some(match byte(rest)? {
            first if first & REFERENCE != 0 => {
                self.owner?;
                let mut step = u64::from(first & LOW);
                if first & MORE != 0 {
                    let high = number(rest)?;
                    step |= high << LOW_BITS;
                    if step >> LOW_BITS != high {
                        return None;
                    }
                }
                self.reference = self.reference.wrapping_add(unfold(step).cast_unsigned());
                Entry::Reference(address(self.reference))
            }
            first if first & OBJECT != 0 => Entry::Object(self.take_object(first, rest)?),
            AGE if self.knows_ages() => {
                let first = byte(rest).filter(|first| first & TOP == OBJECT)?;
                self.old = !self.old;
                Entry::Object(self.take_object(first, rest)?)
            }
            TYPE => Entry::Type { id: small(rest)?, name: text(rest)? },
            PAGE => {
                let (number_, at, bytes) = (number(rest)?, address(number(rest)?), number(rest)?);
                let (pool, what) = (small(rest)?, byte(rest)?);
                let (slot, slots) = (number(rest)?, small(rest)?);
                let (state, aside) = (PageState::of(what >> 2 & 3)?, Aside::of(what >> 4)?);
                if aside != Aside::No && !self.knows_ages() {
                    return None;
                }
                let (pins, moved_in, old) = if self.knows_ages() {
                    (number(rest)?, number(rest)?, small(rest)?)
                } else {
                    (0, 0, 0)
                };
                let bits = split(rest, slots.div_ceil(u8::BITS) as usize)?;
                // Bits behind the last slot must be zero.
                let last = bits.last().copied().unwrap_or_default();
                if slots % u8::BITS != 0 && last >> (slots % u8::BITS) != 0 {
                    return None;
                }
                let page = Page {
                    number: number_,
                    address: at,
                    bytes,
                    pool,
                    kind: what & kind::ALL,
                    state,
                    slot,
                    slots,
                    pins,
                    moved_in,
                    old,
                    aside,
                };
                Entry::Page(page, Occupancy { bytes: bits })
            }
            ROOT => Entry::Root(Root {
                kind: RootKind::from_u8(byte(rest)?),
                mutator: small(rest)?,
                address: address(number(rest)?),
            }),
            _ => return None,
        })
    }

    #[inline]
    fn take_object(&mut self, first: u8, rest: &mut &[u8]) -> Option<Object> {
        let at = if first & NEXT != 0 {
            self.end
        } else {
            let step = unfold(number(rest)?).cast_unsigned();
            address(self.place.wrapping_add(step))
        };
        let size = if first & SAME_SIZE != 0 { self.size } else { number(rest)? };
        let type_id = if first & SAME_TYPE != 0 { self.type_id } else { small(rest)? };
        let used = if first & USED != 0 { number(rest)? } else { 0 };
        let (kind, old) = (first & kind::ALL, self.old);
        let object = Object { address: at, size, used, kind, type_id, old };
        if at == 0 {
            return None;
        }
        self.met(&object);
        Some(object)
    }

    fn knows_ages(&self) -> bool {
        self.version != OLDEST
    }
}

fn small(rest: &mut &[u8]) -> Option<u32> {
    u32::try_from(number(rest)?).ok()
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(bytes)
}

pub(super) fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    split(rest, length)
}
