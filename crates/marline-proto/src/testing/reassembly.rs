//! Random segments for the assembler, which is private to this crate.

use crate::buffers::{Assembler, RangeSet};

/// Reassembles segments: each has an offset and a length, and may have a maximum number of bytes to read after it.
///
/// # Panics
///
/// If the data read differs from the data inserted, or counts differ from those of a model.
pub fn check_reassembly(pieces: &[(u16, u16, Option<u16>)]) {
    let byte = |offset: u64| (offset ^ offset >> 8) as u8;
    let mut assembler = Assembler::new();
    let mut model = RangeSet::default();
    let mut read = 0;
    for &(offset, len, want) in pieces {
        let offset = u64::from(offset);
        let end = offset + u64::from(len % 2048);
        let data: Vec<u8> = (offset..end).map(byte).collect();
        assembler.insert(offset, &data);
        model.insert(offset..end);
        if let Some(bytes) = want.and_then(|want| assembler.read(want.into())) {
            for &got in &*bytes {
                assert_eq!(got, byte(read));
                read += 1;
            }
        }
        let gap = model.gaps(0..u64::MAX).next().map_or(0, |gap| gap.start);
        assert_eq!(assembler.received(), gap.max(read));
        assert_eq!(assembler.bytes_read(), read);
        let known: u64 = model.iter().map(|range| range.end - range.start).sum();
        assert_eq!(assembler.buffered() as u64, known - read);
    }
}
