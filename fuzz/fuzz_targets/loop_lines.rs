//! The lines of a program that is asked in the loop protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::loop_lines(bytes));
