//! Pages of a collected heap, with the fill of each sixteenth.

use heapwright_record::heap::{Occupancy, Page, PageState};

/// The number of parts in a page's picture: 4 KiB each for a page of 64 KiB.
pub(crate) const SEGMENTS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRow {
    pub(crate) page: Page,
    pub(crate) taken: u32,
    /// The fill of each part. 255: the part is full.
    pub(crate) parts: [u8; SEGMENTS],
}

impl PageRow {
    pub(super) fn new(page: Page, occupancy: Occupancy<'_>) -> Self {
        let mut full = [0_u64; SEGMENTS];
        let part = (page.bytes / SEGMENTS as u64).max(1);
        for slot in (0..page.slots).filter(|&slot| occupancy.is_taken(slot)) {
            let mut from = u64::from(slot).saturating_mul(page.slot);
            let to = from.saturating_add(page.slot);
            // A slot lies in one part or in several.
            while from < to {
                let Some(place) = full.get_mut((from / part) as usize) else { break };
                let end = (from / part + 1).saturating_mul(part).min(to);
                *place += end - from;
                from = end;
            }
        }
        let parts = full.map(|bytes| {
            let share = (u128::from(bytes) * 255).div_ceil(u128::from(part));
            u8::try_from(share).unwrap_or(u8::MAX)
        });
        Self { page, taken: occupancy.taken(), parts }
    }

    pub(crate) fn taken_bytes(&self) -> u64 {
        u64::from(self.taken).saturating_mul(self.page.slot)
    }

    pub(crate) fn share(&self) -> f64 {
        if self.page.bytes == 0 { 0.0 } else { self.taken_bytes() as f64 / self.page.bytes as f64 }
    }

    /// Returns the bytes behind the page's last slot.
    pub(super) fn tail(&self) -> u64 {
        match self.page.state {
            PageState::Empty => 0,
            _ => {
                let slots = u64::from(self.page.slots).saturating_mul(self.page.slot);
                self.page.bytes.saturating_sub(slots)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(slot: u64, slots: u32, bits: &[u8]) -> PageRow {
        let page = Page { bytes: 64 << 10, slot, slots, ..Page::default() };
        PageRow::new(page, Occupancy { bytes: bits })
    }

    #[test]
    fn parts_are_as_full_as_their_slots() {
        let parts = row(2048, 32, &[0b0000_0111, 0, 0, 0x80]).parts;
        assert_eq!(parts[..3], [255, 128, 0]);
        assert_eq!(parts[15], 128);
        let one = row(10_000, 6, &[1]);
        assert_eq!(
            (one.parts[..4].to_vec(), one.taken_bytes(), one.tail()),
            (vec![255, 255, 113, 0], 10_000, 5536)
        );
        // Slots beyond the page's end are ignored.
        assert_eq!(row(u64::MAX, 9, &[0xff, 1]).parts, [255; SEGMENTS]);
        assert_eq!(row(0, 9, &[0xff, 1]).parts, [0; SEGMENTS]);
    }
}
