//! `Allocator` of `allocator-api2` 0.3: what was written between the version of hashbrown and 0.4.

super::allocator::implement!(allocator_api2_03::alloc);
