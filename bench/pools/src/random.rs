//! SplitMix64 from a fixed seed: every contender sees the same requests in the
//! same order. `zig/article.zig` has the same one.

/// The generator.
pub struct Random(u64);

impl Random {
    /// The one that every pattern starts from.
    pub fn new() -> Self {
        Self(42)
    }

    /// 64 random bits.
    #[inline(always)]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 53 bits, from 0 to below 1.
    #[inline(always)]
    pub fn fraction(&mut self) -> f64 {
        // Signed, which is one instruction everywhere.
        (self.bits() >> 11).cast_signed() as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// From 0 to below `limit`, which has at most 32 bits.
    #[inline(always)]
    pub fn below(&mut self, limit: usize) -> usize {
        (((self.bits() >> 32) * limit as u64) >> 32) as usize
    }

    /// Puts a list in a random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}
