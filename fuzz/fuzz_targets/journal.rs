//! The journal of sysctls that a killed run left.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::journal(bytes));
