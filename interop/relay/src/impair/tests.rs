use super::*;

fn config() -> Config {
    Config::new(([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into())
}

fn outcomes(config: &Config, count: usize) -> Vec<Outcome> {
    let mut impairment = Impairment::new(config, Direction::ToServer);
    (0..count).map(|_| impairment.apply(&mut [0; 8])).collect()
}

#[test]
fn without_settings_all_datagrams_pass() {
    assert!(
        outcomes(&config(), 1000)
            .iter()
            .all(|&f| f == Outcome::Forward)
    );
}

#[test]
fn equal_seeds_give_equal_outcomes() {
    let config = Config {
        loss: 30.0,
        corrupt: 10.0,
        seed: 7,
        ..config()
    };
    assert_eq!(outcomes(&config, 500), outcomes(&config, 500));
    let other = Config {
        seed: 8,
        ..config.clone()
    };
    assert_ne!(outcomes(&config, 500), outcomes(&other, 500));
}

#[test]
fn losses_have_the_configured_rate_and_burst_limit() {
    let config = Config {
        loss: 30.0,
        burst: 3,
        ..config()
    };
    let outcomes = outcomes(&config, 20_000);
    let lost = outcomes.iter().filter(|&&f| f == Outcome::Lost).count();
    assert!((5_400..6_300).contains(&lost), "{lost}");
    assert!(
        outcomes
            .windows(4)
            .all(|four| four.contains(&Outcome::Forward))
    );
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
        assert_eq!(impairment.apply(&mut datagram), Outcome::Corrupted);
        assert_eq!(datagram.iter().filter(|&&byte| byte != 0).count(), 1);
    }
    assert_eq!(impairment.apply(&mut []), Outcome::Forward);
}
