use super::*;

fn config() -> Config {
    Config::new(([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into())
}

fn fates(config: &Config, count: usize) -> Vec<Fate> {
    let mut impairment = Impairment::new(config, Direction::ToServer);
    (0..count).map(|_| impairment.apply(&mut [0; 8])).collect()
}

#[test]
fn nothing_by_itself() {
    assert!(fates(&config(), 1000).iter().all(|&f| f == Fate::Forward));
}

#[test]
fn same_seed_same_fates() {
    let config = Config {
        loss: 30.0,
        corrupt: 10.0,
        seed: 7,
        ..config()
    };
    assert_eq!(fates(&config, 500), fates(&config, 500));
    let other = Config {
        seed: 8,
        ..config.clone()
    };
    assert_ne!(fates(&config, 500), fates(&other, 500));
}

#[test]
fn loses_as_often_as_asked_in_short_bursts() {
    let config = Config {
        loss: 30.0,
        burst: 3,
        ..config()
    };
    let fates = fates(&config, 20_000);
    let lost = fates.iter().filter(|&&f| f == Fate::Lost).count();
    assert!((5_400..6_300).contains(&lost), "{lost}");
    assert!(fates.windows(4).all(|four| four.contains(&Fate::Forward)));
}

#[test]
fn corruption_changes_one_byte() {
    let config = Config {
        corrupt: 100.0,
        ..config()
    };
    let mut impairment = Impairment::new(&config, Direction::ToClient);
    for _ in 0..100 {
        let mut datagram = [0; 8];
        assert_eq!(impairment.apply(&mut datagram), Fate::Corrupted);
        assert_eq!(datagram.iter().filter(|&&byte| byte != 0).count(), 1);
    }
    assert_eq!(impairment.apply(&mut []), Fate::Forward);
}
