//! Command lines, a word a line: sizes, durations, rates, programs and all other values.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::arguments(bytes));
