use std::fs;

use proptest::prelude::*;

use super::*;

/// The key of the published sample.
const KEY: [u8; 32] = [
    21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121,
    121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
];

#[test]
fn published_vectors_are_met() {
    let anonymizer = Anonymizer::new(&KEY);
    // From the sample trace of Crypto-PAn 1.0.
    for (original, expected) in [
        ("128.11.68.132", "135.242.180.132"),
        ("129.118.74.4", "134.136.186.123"),
        ("130.132.252.244", "133.68.164.234"),
        ("141.223.7.43", "141.167.8.160"),
        ("141.233.145.108", "141.129.237.235"),
        ("152.163.225.39", "151.140.114.167"),
        ("156.29.3.236", "147.225.12.42"),
        ("165.247.96.84", "162.9.99.234"),
        ("166.107.77.190", "160.132.178.185"),
        ("192.102.249.13", "252.138.62.131"),
        ("192.215.32.125", "252.43.47.189"),
        ("24.0.250.221", "100.15.198.226"),
        ("24.13.62.231", "100.2.192.247"),
        ("38.15.67.68", "64.3.66.187"),
        ("4.3.88.225", "124.60.155.63"),
        ("63.14.55.111", "95.9.215.7"),
        ("64.39.15.238", "0.219.7.41"),
        // Of the same by 128 bits, from yacryptopan.
        ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
        ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
        ("::ffff", "78ff:f001:9fc0:20df:8380:b1f1:704:f838"),
        ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
    ] {
        let address = anonymizer.address(original.parse().unwrap());
        assert_eq!(address.to_string(), expected, "for {original}");
    }
}

proptest! {
    #[test]
    fn prefixes_are_kept_and_no_more(a: u32, b: u32, c: u128, d: u128) {
        let anonymizer = Anonymizer::new(&KEY);
        let of4 = |bits| match anonymizer.address(Ipv4Addr::from_bits(bits).into()) {
            IpAddr::V4(address) => address.to_bits(),
            IpAddr::V6(address) => panic!("{address}"),
        };
        prop_assert_eq!((of4(a) ^ of4(b)).leading_zeros(), (a ^ b).leading_zeros());
        let of6 = |bits| match anonymizer.address(Ipv6Addr::from_bits(bits).into()) {
            IpAddr::V6(address) => address.to_bits(),
            IpAddr::V4(address) => panic!("{address}"),
        };
        prop_assert_eq!((of6(c) ^ of6(d)).leading_zeros(), (c ^ d).leading_zeros());
    }
}

#[test]
fn names_are_equal_where_they_were_and_need_the_key() {
    let anonymizer = Anonymizer::new(&KEY);
    let name = anonymizer.name("www.example.org");
    assert_eq!(name.len(), 32);
    assert_eq!(name, anonymizer.name("www.example.org"));
    assert_ne!(name, anonymizer.name("example.org"));
    assert_ne!(name, Anonymizer::new(&[1; 32]).name("www.example.org"));
}

#[cfg(unix)]
#[test]
fn a_key_is_read_from_a_file_that_only_its_owner_reads() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let digits: String = KEY.iter().map(|byte| format!("{byte:02X}")).collect();
    let write = |content: &[u8], mode| {
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Anonymizer::read(&path)
    };
    for content in [
        &KEY[..],
        digits.as_bytes(),
        format!("{digits}\n").as_bytes(),
    ] {
        let anonymizer = write(content, 0o600).unwrap();
        let address = anonymizer.address("128.11.68.132".parse().unwrap());
        assert_eq!(address.to_string(), "135.242.180.132");
    }
    for mode in [0o640, 0o604, 0o660, 0o644] {
        let error = write(&KEY, mode).unwrap_err().to_string();
        assert!(
            error.contains("key: others can read") && error.contains("chmod 600"),
            "{error}"
        );
    }
    let long = format!("{digits}00");
    for content in [
        &b""[..],
        &KEY[..31],
        b"short\n",
        long.as_bytes(),
        &[b'g'; 64],
        &[0; 1000],
    ] {
        let error = write(content, 0o600).unwrap_err().to_string();
        assert!(error.contains("32 bytes"), "{error}");
    }
    fs::remove_file(&path).unwrap();
    let error = Anonymizer::read(&path).unwrap_err();
    assert!(matches!(error, KeyError::Io { .. }), "{error}");
}
