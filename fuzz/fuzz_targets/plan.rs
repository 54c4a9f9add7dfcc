//! Plan files, up to what this machine allows.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::plan(bytes));
