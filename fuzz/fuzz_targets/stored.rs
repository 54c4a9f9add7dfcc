//! Plans of stored runs that are to be measured again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::stored_plan(bytes));
