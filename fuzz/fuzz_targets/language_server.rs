#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| vmdisk_fuzz::fuzz::Target::named("language-server").run(input));
