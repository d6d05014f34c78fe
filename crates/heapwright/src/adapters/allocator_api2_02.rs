//! The `Allocator` of `allocator-api2` 0.2, the version of hashbrown and bumpalo.

super::allocator::implement!(allocator_api2_02::alloc);
