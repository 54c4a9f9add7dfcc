//! Tables of others and what perf stat prints, for `iolens audit`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iolens_fuzz::hostile::tables(bytes));
