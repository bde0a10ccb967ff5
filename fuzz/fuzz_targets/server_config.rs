//! Arbitrary configuration files of `marline serve`. Checks that a problem is reported in one line, with its place, and that
//! settings are applied alike each time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_cli::testing::check_config_file;

fuzz_target!(|text: &str| {
    check_config_file(text);
});
