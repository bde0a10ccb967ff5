use super::{EcmpHash, FiveTuple};

fn flow(source_port: u16) -> FiveTuple {
    FiveTuple {
        source: [10, 0, 0, 2].into(),
        destination: [10, 0, 1, 2].into(),
        source_port,
        destination_port: 443,
        protocol: 6,
    }
}

#[test]
fn of_the_literal_hash_only_the_parity_of_the_port_counts() {
    let paths = |step: u16| {
        (0..100)
            .map(|index| EcmpHash::Xor.path(&flow(40_000 + index * step), 2))
            .collect::<Vec<_>>()
    };
    assert!(paths(2).iter().all(|path| *path == 1));
    assert_eq!(paths(1).iter().sum::<usize>(), 50);
}

#[test]
fn the_mixing_hash_spreads_ports_of_one_parity() {
    for paths in 2..5 {
        let mut counts = vec![0; paths];
        for index in 0..6000 {
            counts[EcmpHash::Mixed.path(&flow(2 * index + 1), paths)] += 1;
        }
        let fair = 6000 / paths;
        assert!(
            counts.iter().all(|count| fair.abs_diff(*count) < fair / 10),
            "{counts:?}"
        );
    }
}
