//! The `Allocator` of `allocator-api2` 0.3.

super::allocator::implement!(allocator_api2_03::alloc);
