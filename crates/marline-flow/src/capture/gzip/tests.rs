use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::capture::{Capture, CaptureError, Problem};
use crate::testing::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A capture of `count` datagrams whose content does not compress well.
fn capture(count: u32) -> Vec<u8> {
    let packets: Vec<_> = (0..count)
        .map(|i| {
            let noise = |j: u32| (i * 7919 + j * 104_729).wrapping_mul(2_654_435_761) >> 24;
            let payload: Vec<_> = (0..500).map(|j| noise(j) as u8).collect();
            let from = address("10.0.0.1:5000");
            udp(from, address("10.0.0.2:443"), &payload)
        })
        .collect();
    let packets: Vec<_> = packets.iter().map(|packet| (START, &packet[..])).collect();
    pcap(101, &packets)
}

/// The number of packets before the end, or the error.
fn packets(bytes: &[u8]) -> (u64, Option<CaptureError>) {
    let mut capture = match Capture::new(bytes, "a.pcap.gz") {
        Ok(capture) => capture,
        Err(error) => return (0, Some(error)),
    };
    let mut count = 0;
    loop {
        match capture.next() {
            Ok(Some(_)) => count += 1,
            Ok(None) => {
                assert_eq!(capture.position(), bytes.len() as u64);
                return (count, None);
            }
            Err(error) => return (count, Some(error)),
        }
    }
}

#[test]
fn a_compressed_capture_is_read_as_the_original() {
    let original = capture(2000);
    assert_eq!(packets(&original).0, 2000);
    let (count, error) = packets(&gzip(&original));
    assert_eq!(count, 2000);
    assert!(error.is_none(), "{error:?}");
}

#[test]
fn members_that_follow_each_other_are_one_capture() {
    let original = capture(100);
    // The border is within a packet, and there are members of a byte and of none.
    let [a, b] = [&original[..10_001], &original[10_001..]];
    let members = [gzip(a), gzip(&[]), gzip(&b[..1]), gzip(&b[1..])].concat();
    let (count, error) = packets(&members);
    assert_eq!(count, 100);
    assert!(error.is_none(), "{error:?}");
}

#[test]
fn a_compressed_capture_that_was_cut_anywhere_is_truncated() {
    let original = capture(100);
    let compressed = gzip(&original);
    let mut most = 0;
    for len in (3..compressed.len())
        .step_by(97)
        .chain([compressed.len() - 1])
    {
        let (count, error) = packets(&compressed[..len]);
        assert!(count >= most, "packets before the end are read");
        most = count;
        let error = error.unwrap_or_else(|| panic!("{len} bytes are taken for the whole"));
        // Of a few bytes there is not even the beginning of a capture.
        assert!(error.is_truncation(), "{len}: {error}");
    }
    assert_eq!(most, 100, "only the check is missing");
}

#[test]
fn zeros_behind_the_stream_are_ignored() {
    let original = capture(100);
    let [a, b] = [&original[..10_001], &original[10_001..]];
    let members = [gzip(a), gzip(b)].concat();
    // To the end of a block of a tape, in one piece of what is read and in many.
    for zeros in [1, 2, 9, 10, 511, 512, 100_000] {
        let padded = [&members[..], &vec![0; zeros]].concat();
        let (count, error) = packets(&padded);
        assert_eq!(count, 100);
        assert!(error.is_none(), "{zeros}: {error:?}");
    }
}

#[test]
fn damaged_data_is_named() {
    let original = capture(100);
    let mut compressed = gzip(&original);
    let end = compressed.len();
    // The sum of the content (RFC 1952, section 2.3.1).
    compressed[end - 8] ^= 1;
    let garbage = [&gzip(&original)[..], b"garbage, and more of it"].concat();
    let behind_zeros = [&gzip(&original)[..], &[0; 50], b"garbage, and more of it"].concat();
    for bytes in [compressed, garbage, behind_zeros] {
        let (count, error) = packets(&bytes);
        assert_eq!(count, 100);
        let error = error.unwrap();
        assert!(
            matches!(error.problem(), Problem::Malformed { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("damaged"), "{error}");
    }
}

#[test]
fn what_is_compressed_twice_or_otherwise_is_refused() {
    let twice = gzip(&gzip(&capture(1)));
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd][..], &[0; 100]].concat();
    let xz = [&[0xfd, b'7', b'z', b'X', b'Z', 0][..], &[0; 100]].concat();
    for bytes in [twice, zstd, xz, b"BZh91AY&SY".to_vec()] {
        let error = packets(&bytes).1.unwrap();
        assert!(matches!(error.problem(), Problem::Compressed), "{error}");
    }
    let text = packets(&gzip(b"no capture")).1.unwrap();
    assert!(matches!(text.problem(), Problem::NoCapture), "{text}");
    let empty = packets(&gzip(&[])).1.unwrap();
    assert!(matches!(empty.problem(), Problem::Empty), "{empty}");
}

#[test]
fn a_capture_of_many_times_its_size_takes_bounded_memory() {
    // A packet of zeros in many: 40 MB in 40 kB.
    let packet = udp(address("10.0.0.1:1"), address("10.0.0.2:2"), &[0; 1300]);
    let packets_of: Vec<_> = (0..100).map(|_| (START, &packet[..])).collect();
    let some = pcap(101, &packets_of);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&some).unwrap();
    for _ in 0..300 {
        encoder.write_all(&some[24..]).unwrap();
    }
    let compressed = encoder.finish().unwrap();
    assert!(compressed.len() < 400_000, "{}", compressed.len());
    assert_eq!(packets(&compressed).0, 30_100);
}
