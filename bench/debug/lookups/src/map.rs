//! The library's way, with nothing around it: a table entry for each unit of 64 KiB, and
//! arithmetic from there.
//!
//! ```text
//!   address --> unit --> entries[unit] --> first bucket + place in the unit --> open[bucket]
//! ```
//!
//! Two loads; a bucket that is opened or emptied changes one byte.
#![forbid(unsafe_code)]

use crate::{BASE, BUCKET_BYTES, Policy, start_of};

const UNIT: usize = 64 << 10;
const BUCKETS_A_UNIT: usize = UNIT / BUCKET_BYTES;

/// The address map.
pub(crate) struct Map {
    /// The first bucket of each unit.
    entries: Vec<u32>,
    open: Vec<bool>,
}

impl Map {
    /// The bucket that an address is in, open or not.
    fn bucket_at(&self, address: usize) -> Option<u32> {
        let offset = address.wrapping_sub(BASE);
        let first = *self.entries.get(offset / UNIT)?;
        Some(first + (offset % UNIT / BUCKET_BYTES) as u32)
    }
}

impl Policy for Map {
    fn new(buckets: usize) -> Self {
        let units = buckets.div_ceil(BUCKETS_A_UNIT);
        let first = |unit: usize| (unit * BUCKETS_A_UNIT) as u32;
        Self { entries: (0..units).map(first).collect(), open: vec![false; units * BUCKETS_A_UNIT] }
    }

    fn open(&mut self, bucket: u32) {
        debug_assert_eq!(self.bucket_at(start_of(bucket)), Some(bucket));
        self.open[bucket as usize] = true;
    }

    fn find(&mut self, address: usize) -> Option<u32> {
        self.bucket_at(address).filter(|&bucket| self.open[bucket as usize])
    }

    fn empty(&mut self, address: usize) -> Option<u32> {
        let bucket = self.find(address)?;
        self.open[bucket as usize] = false;
        Some(bucket)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.open)
    }
}
