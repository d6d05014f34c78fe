//! Random numbers, the same on every machine and in every run.
//!
//! SplitMix64 (Steele, Lea and Flood, 2014). Any seed is good, and threads get separate streams by
//! their number. All distributions use integers, so no machine's rounding changes the requests.

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Makes the generator of one of several threads or phases.
    pub(crate) fn of(seed: u64, thread: usize) -> Self {
        Self(Self(seed).next() ^ Self(thread as u64 + 1).next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The high half of the product: no division.
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Returns a number of `low..=high`, all equally likely.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns a typical size: three in four at most 128 bytes, nearly all others at most 1 KiB,
    /// one in 64 up to 8 KiB.
    pub(crate) fn small_size(&mut self) -> usize {
        match self.below(64) {
            0..48 => self.between(8, 128),
            48..63 => self.between(129, 1024),
            _ => self.between(1025, 8192),
        }
    }

    /// Returns a size from `low` to `low << doublings`. Each doubling has about as many bytes.
    pub(crate) fn power_law_size(&mut self, low: usize, doublings: u32) -> usize {
        let doubling = self.next().trailing_zeros() % doublings;
        let base = low << doubling;
        self.between(base, base * 2)
    }

    /// Returns a size from `low` to `low << doublings`. Each doubling is equally frequent.
    pub(crate) fn exponential_size(&mut self, low: usize, doublings: usize) -> usize {
        let base = low << self.below(doublings);
        self.between(base, base * 2)
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = Random::new(1234567);
        let numbers = [(); 3].map(|()| random.next());
        assert_eq!(
            numbers,
            [6457827717110365317, 3203168211198807973, 9817491932198370423],
            "SplitMix64 of seed 1234567"
        );
    }

    #[test]
    fn sizes_stay_in_their_ranges_and_reach_both_ends() {
        let mut random = Random::new(1);
        let (mut least, mut most) = (usize::MAX, 0);
        for _ in 0..1_000_000 {
            assert!((8..=8192).contains(&random.small_size()));
            assert!((16..=16 << 10).contains(&random.exponential_size(16, 10)));
            let size = random.power_law_size(16, 16);
            least = least.min(size);
            most = most.max(size);
        }
        assert_eq!(least, 16);
        assert!((1 << 19..=1 << 20).contains(&most), "{most}");
    }

    #[test]
    fn a_shuffle_keeps_all() {
        let mut items: Vec<usize> = (0..1000).collect();
        Random::new(2).shuffle(&mut items);
        assert_ne!(items, (0..1000).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }
}
