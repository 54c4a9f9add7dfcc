//! Files: reading, writing and copying them.

pub mod checksum;
