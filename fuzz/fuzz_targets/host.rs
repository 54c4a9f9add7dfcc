//! Files in /proc and /sys that describe the machine.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::host(bytes));
