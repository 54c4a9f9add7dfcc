//! What a worker and its coordinator say to each other.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::frames(bytes));
