//! What comes from behind a launcher before there are frames.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::bootstrap(bytes));
