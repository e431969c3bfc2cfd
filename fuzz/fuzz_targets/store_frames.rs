#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tagwire_fuzz::store_frames(data));
