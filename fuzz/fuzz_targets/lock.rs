//! What stands in the lock of the machine.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::lock::lock_file(bytes));
