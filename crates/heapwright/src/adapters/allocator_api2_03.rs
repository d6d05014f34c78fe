//! `Allocator` of `allocator-api2` 0.3, between hashbrown's version and 0.4.

super::allocator::implement!(allocator_api2_03::alloc);
