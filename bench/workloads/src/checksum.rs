//! Combines numbers into one. [`fold`] depends on the order, so it notices a value at the wrong
//! place. Threads whose order is random use `wrapping_add`.

pub(crate) fn fold(sum: u64, value: u64) -> u64 {
    (sum.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_matters() {
        assert_ne!(fold(fold(0, 1), 2), fold(fold(0, 2), 1));
    }
}
