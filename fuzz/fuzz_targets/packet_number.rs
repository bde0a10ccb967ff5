//! Checks that expansion inverts truncation within the window of RFC 9000, appendix A.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_wire::packet::{expand, truncate};
use marline_wire::varint;

fuzz_target!(|input: (u64, Option<u64>, u32, u8)| {
    let (number, largest, truncated, len) = input;
    let _ = expand(largest, truncated, len.into());

    let number = number & varint::MAX;
    let largest = largest.map(|largest| largest & varint::MAX);
    let known = largest.filter(|largest| *largest < number && number - *largest < 1 << 31);
    if known.is_some() || number < 1 << 31 {
        let short = truncate(number, known);
        assert_eq!(expand(known, short.value(), short.len()), number);
    }
});
