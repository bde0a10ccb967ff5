use std::net::SocketAddr;

use super::{EcmpHash, path};

fn hash(hash: EcmpHash, source_port: u16) -> u64 {
    let source: SocketAddr = ([10, 0, 0, 2], source_port).into();
    hash.of(source, ([10, 0, 1, 2], 443).into(), 6)
}

#[test]
fn xor_hash_over_two_paths_depends_only_on_port_parity() {
    let paths = |step: u16| {
        (0..100)
            .map(|index| path(hash(EcmpHash::Xor, 40_000 + index * step), 2))
            .collect::<Vec<_>>()
    };
    assert!(paths(2).iter().all(|path| *path == 1));
    assert_eq!(paths(1).iter().sum::<usize>(), 50);
}

#[test]
fn mixed_hash_spreads_ports_of_one_parity_evenly() {
    for paths in 2..5 {
        let mut counts = vec![0; paths];
        for index in 0..6000 {
            counts[path(hash(EcmpHash::Mixed, 2 * index + 1), paths)] += 1;
        }
        let fair = 6000 / paths;
        assert!(
            counts.iter().all(|count| fair.abs_diff(*count) < fair / 10),
            "{counts:?}"
        );
    }
}

#[test]
fn xor_hash_uses_both_halves_of_an_ipv6_address() {
    let of =
        |address: &str| EcmpHash::Xor.of(address.parse().unwrap(), ([0, 0, 0, 0], 0).into(), 0);
    assert_eq!(of("[1::2]:0"), (1 << 48) ^ 2);
    assert_eq!(path(7, 0), 0);
}
