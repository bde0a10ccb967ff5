//! Bytes in the notation of the RFCs.

/// The bytes of the hexadecimal string `hex`; white space is ignored.
///
/// # Panics
///
/// If `hex` contains anything but pairs of hexadecimal digits.
pub(crate) fn hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("a hexadecimal digit"))
        .collect();
    let (pairs, []) = digits.as_chunks::<2>() else {
        panic!("an odd number of digits");
    };
    pairs.iter().map(|[a, b]| (a << 4 | b) as u8).collect()
}
