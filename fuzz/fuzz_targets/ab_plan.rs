//! Plan files of `iolens ab`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::ab_plan(bytes));
