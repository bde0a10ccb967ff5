use std::collections::HashSet;

use super::*;
use crate::testing::hex;

/// The key of the draft's test vectors (appendix B.2).
const KEY: &str = "8f95f09245765f80256934e50c66207f";

fn key(digits: &str) -> [u8; QUIC_LB_KEY_LEN] {
    hex(digits).try_into().unwrap()
}

/// The bytes of an ID for the balancer, with the length in the first.
fn encoded(format: &QuicLbFormat, server_id: &str, nonce: &str) -> Vec<u8> {
    let mut block = [hex(server_id), hex(nonce)].concat();
    format.encrypt(&mut block);
    let first = format.config << 5 | block.len() as u8;
    [vec![first], block].concat()
}

fn format(config: u8, lens: [usize; 2], key: Option<[u8; QUIC_LB_KEY_LEN]>) -> QuicLbFormat {
    QuicLbFormat::new(config, lens[0], lens[1], key).unwrap()
}

fn server(config: u8, server_id: &[u8], key: Option<[u8; QUIC_LB_KEY_LEN]>) -> QuicLbConfig {
    let nonce_len = QuicLbConfig::default_nonce_len(server_id.len());
    let format = format(config, [server_id.len(), nonce_len], key);
    QuicLbConfig::new(format, ServerId::new(server_id).unwrap(), false).unwrap()
}

/// Appendix B. The last vector's first byte has the bits of configuration 0. The second one without encryption is left out: its
/// nonce has half a byte.
#[test]
fn ids_are_those_of_the_draft() {
    let vectors = [
        (0, None, "c4605e", "4504cc4f", "07c4605e4504cc4f"),
        (0, Some(KEY), "ed793a", "ee080dbf", "0720b1d07b359d3c"),
        (
            1,
            Some(KEY),
            "ed793a51d49b8f5fab65",
            "ee080dbf48",
            "2fcc381bc74cb4fbad2823a3d1f8fed2",
        ),
        (
            2,
            Some(KEY),
            "ed793a51d49b8f5f",
            "ee080dbf48c0d1e5",
            "504dd2d05a7b0de9b2b9907afb5ecf8cc3",
        ),
        (
            0,
            Some(KEY),
            "ed793a51d49b8f5fab",
            "ee080dbf48c0d1e55d",
            "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
        ),
        // Section 5.4.2.4.
        (
            0,
            Some("fdf726a9893ec05c0632d3956680baf0"),
            "31441a",
            "9c69c275",
            "0767947d29be054a",
        ),
    ];
    for (config, secret, server_id, nonce, id) in vectors {
        let lens = [server_id.len() / 2, nonce.len() / 2];
        let format = format(config, lens, secret.map(key));
        assert_eq!(encoded(&format, server_id, nonce), hex(id), "{id}");
        let expected = ServerId::new(&hex(server_id));
        assert_eq!(format.server_id(&hex(id)), expected, "{id}");
    }
}

#[test]
fn every_length_decrypts_to_the_server() {
    for server_id_len in 1..=MAX_SERVER_ID {
        for nonce_len in MIN_NONCE..=MAX_BLOCK - server_id_len {
            let format = format(6, [server_id_len, nonce_len], Some(key(KEY)));
            let id = encoded(
                &format,
                &"a7".repeat(server_id_len),
                &"3c".repeat(nonce_len),
            );
            let read = format.server_id(&id);
            assert_eq!(read, ServerId::new(&vec![0xa7; server_id_len]));
            assert_eq!(format.server_id(&id[..id.len() - 1]), None);
        }
    }
}

#[test]
fn ids_of_another_configuration_are_not_read() {
    let format = format(2, [1, 8], None);
    for config in (0..8).filter(|config| *config != 2) {
        assert_eq!(format.server_id(&[config << 5; 20]), None);
    }
    assert_eq!(format.server_id(&[]), None);
}

#[test]
fn values_out_of_range_are_refused() {
    let refused = |config, server_id_len, nonce_len| {
        QuicLbFormat::new(config, server_id_len, nonce_len, None).unwrap_err()
    };
    assert_eq!(refused(7, 1, 8), QuicLbError::Config(7));
    assert_eq!(refused(0, 0, 8), QuicLbError::ServerId(0));
    assert_eq!(refused(0, 16, 4), QuicLbError::ServerId(16));
    assert_eq!(refused(0, 1, 3), QuicLbError::Nonce(4, 3));
    assert_eq!(refused(0, 10, 10), QuicLbError::TooLong(21));
    let server_id = ServerId::new(&[1]).unwrap();
    let of_server = |nonce_len| {
        let format = format(0, [1, nonce_len], None);
        QuicLbConfig::new(format, server_id, false).map(|config| config.id_len())
    };
    assert_eq!(of_server(7), Err(QuicLbError::Nonce(8, 7)));
    assert_eq!(of_server(17), Ok(20));
    assert_eq!(of_server(18), Err(QuicLbError::TooLong(21)));
    assert_eq!(ServerId::new(&[]), None);
    assert_eq!(ServerId::new(&[0; 16]), None);
}

#[test]
fn the_default_nonce_fills_a_block_of_aes() {
    for len in 1..=8 {
        assert_eq!(QuicLbConfig::default_nonce_len(len) + len, AES_BLOCK);
    }
    assert_eq!(QuicLbConfig::default_nonce_len(10), 8);
}

#[test]
fn ids_name_server_and_worker_and_differ() {
    let worker_key = WorkerKey::new(&[5; 32]);
    let mut rng = SecureRng::from_seed([6; 32]);
    for secret in [None, Some(key(KEY))] {
        for server_id in [&[9][..], &[9; 10]] {
            let lb = QuicLb::new(server(3, server_id, secret), &[7; 32]);
            let format = lb.present.read().unwrap().format.clone();
            let mut ids = HashSet::new();
            let mut masked = HashSet::new();
            for number in 0..200 {
                let id = lb.connection_id(number, &worker_key, &mut rng);
                assert_eq!(id.len(), lb.id_len());
                assert_eq!(format.server_id(&id), ServerId::new(server_id));
                assert_eq!(worker_key.worker(&id, lb.worker_field()), Some(number));
                masked.insert(id[lb.id_len() - 1] ^ number);
                assert!(ids.insert(id[1..].to_vec()));
            }
            assert!(masked.len() > 80, "{}", masked.len());
        }
    }
}

#[test]
fn the_first_byte_has_the_length_or_random_bits() {
    let mut rng = SecureRng::from_seed([6; 32]);
    let mut low_bits = |encode_length| {
        let mut config = server(5, &[1, 2], Some(key(KEY)));
        config.encode_length = encode_length;
        let lb = QuicLb::new(config, &[7; 32]);
        let ids = (0..200).map(|_| lb.connection_id(0, &WorkerKey::new(&[5; 32]), &mut rng));
        let mut seen = HashSet::new();
        for id in ids {
            assert_eq!(id[0] >> 5, 5);
            seen.insert(id[0] & 0x1f);
        }
        seen
    };
    assert_eq!(low_bits(true), HashSet::from([17]));
    assert!(low_bits(false).len() > 20);
}

/// One after another, and over a configuration that is replaced: a nonce is never used twice.
#[test]
fn nonces_count_from_a_random_number() {
    let nonce_of = |lb: &QuicLb| {
        let format = lb.present.read().unwrap().format.clone();
        let mut rng = SecureRng::from_seed([6; 32]);
        let id = lb.connection_id(0, &WorkerKey::new(&[5; 32]), &mut rng);
        let mut block: [u8; 16] = id[1..17].try_into().unwrap();
        format.decrypt(&mut block);
        u128::from_be_bytes(block) & u128::from(u64::MAX)
    };
    let lb = QuicLb::new(server(0, &[1], Some(key(KEY))), &[7; 32]);
    let first = nonce_of(&lb);
    assert_eq!(nonce_of(&lb), first + 1);
    assert_eq!(lb.replace(server(1, &[1], Some([3; 16]))), Ok(true));
    assert_eq!(nonce_of(&lb), first + 2);
    let other = QuicLb::new(server(0, &[1], Some(key(KEY))), &[8; 32]);
    assert!(nonce_of(&other).abs_diff(first) > 1 << 32);
}

#[test]
fn a_new_configuration_has_another_identifier_and_ids_of_the_same_length() {
    let lb = QuicLb::new(server(0, &[1], Some([3; 16])), &[7; 32]);
    assert_eq!(lb.replace(server(0, &[1], Some([3; 16]))), Ok(false));
    let same = lb.replace(server(0, &[1], Some([4; 16])));
    assert_eq!(same, Err(QuicLbError::SameConfig(0)));
    let longer = lb.replace(server(1, &[1; 9], None));
    assert_eq!(longer, Err(QuicLbError::OtherLength(18, 19)));
    assert!(!lb.is_readable());
    assert_eq!(lb.replace(server(1, &[1, 2], None)), Ok(true));
    assert!(lb.is_readable());
}

#[test]
fn server_ids_and_keys_are_written_in_hexadecimal() {
    assert_eq!(
        "c0fFee".parse(),
        Ok(ServerId::new(&[0xc0, 0xff, 0xee]).unwrap())
    );
    assert_eq!(ServerId::new(&[0xc0, 0x01]).unwrap().to_string(), "c001");
    for wrong in [
        "",
        "c",
        "c0f",
        "g0",
        "+f",
        "00112233445566778899aabbccddeeff",
    ] {
        assert_eq!(wrong.parse::<ServerId>(), Err(QuicLbError::ServerIdText));
    }
    assert_eq!(quic_lb_key(&format!(" {KEY}\n")), Ok(key(KEY)));
    let separated: Vec<_> = KEY
        .as_bytes()
        .chunks(2)
        .map(|pair| str::from_utf8(pair).unwrap())
        .collect();
    assert_eq!(quic_lb_key(&separated.join(":")), Ok(key(KEY)));
    for wrong in ["", &KEY[1..], &KEY[2..], "8f95f09245765f80256934e50c66207g"] {
        assert_eq!(quic_lb_key(wrong), Err(QuicLbError::Key));
    }
}
