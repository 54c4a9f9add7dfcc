//! Texts of /proc, each by its own parser.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::kernel::kernel(bytes));
