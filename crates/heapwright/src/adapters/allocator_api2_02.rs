//! `Allocator` of `allocator-api2` 0.2: hashbrown, bumpalo.

super::allocator::implement!(allocator_api2_02::alloc);
