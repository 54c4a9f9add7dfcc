//! Runs that were exported whole by somebody else.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::import(bytes));
