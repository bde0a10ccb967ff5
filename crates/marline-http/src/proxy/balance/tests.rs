//! Shares of requests by weight, and the applications of keys.

use http::HeaderValue;
use http::header::COOKIE;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn candidates(weights: &[u32]) -> Vec<Candidate> {
    let weights = weights.iter().enumerate();
    weights
        .map(|(index, weight)| Candidate {
            index,
            weight: f64::from(*weight),
            in_flight: 0,
            id: Key::of(format!("http://app{index}:80").as_bytes()),
        })
        .collect()
}

/// The requests that each of `weights` gets if `choose` chooses `requests` times, and no request ends.
fn shares(
    weights: &[u32],
    requests: u32,
    mut choose: impl FnMut(&[Candidate], u64) -> Option<usize>,
) -> Vec<u64> {
    let mut all = candidates(weights);
    for request in 0..requests {
        let chosen = choose(&all, request.into()).expect("there is one");
        all[chosen].in_flight += 1;
    }
    all.iter().map(|one| one.in_flight).collect()
}

/// Whether `shares` of `requests` are as `weights`, but for `tolerance` of all requests.
fn are_as(weights: &[u32], shares: &[u64], requests: u32, tolerance: f64) -> bool {
    let total: u32 = weights.iter().sum();
    let pairs = weights.iter().zip(shares);
    pairs.into_iter().all(|(weight, share)| {
        let expected = f64::from(requests) * f64::from(*weight) / f64::from(total);
        let share = f64::from(u32::try_from(*share).expect("it is small"));
        (share - expected).abs() <= tolerance * f64::from(requests)
    })
}

/// Independent numbers.
fn random(seed: u64, number: u64) -> u64 {
    Key::of(&[seed.to_be_bytes(), number.to_be_bytes()].concat()).0
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    vec(1..10_u32, 1..8)
}

proptest! {
    #[test]
    fn turns_are_exactly_as_weights(weights in weights(), rounds in 1..5_u32) {
        let mut turns = WeightedTurns::new(weights.len());
        let total: u32 = weights.iter().sum();
        let shares = shares(&weights, rounds * total, |all, _| turns.next(all));
        let expected: Vec<_> = weights.iter().map(|weight| u64::from(weight * rounds)).collect();
        prop_assert_eq!(shares, expected);
    }

    #[test]
    fn requests_in_flight_become_as_weights(weights in weights(), seed in any::<u64>()) {
        let least = shares(&weights, 2000, |all, turn| {
            least_requests(all, usize::try_from(turn).expect("it is small"))
        });
        prop_assert!(are_as(&weights, &least, 2000, 0.005), "{:?}", least);
        let drawn = shares(&weights, 2000, |all, number| {
            random_two(all, [random(seed, 2 * number), random(seed, 2 * number + 1)])
        });
        prop_assert!(are_as(&weights, &drawn, 2000, 0.03), "{:?}", drawn);
    }

    #[test]
    fn keys_are_distributed_by_weight(weights in weights(), seed in any::<u64>()) {
        let shares = shares(&weights, 4000, |all, number| {
            rendezvous(all, Key(random(seed, number)))
        });
        prop_assert!(are_as(&weights, &shares, 4000, 0.04), "{:?}", shares);
    }

    #[test]
    fn only_the_keys_of_an_application_that_goes_away_move(
        weights in vec(1..10_u32, 2..8),
        away in any::<prop::sample::Index>(),
        key in any::<[u8; 16]>(),
    ) {
        let all = candidates(&weights);
        let away = away.index(all.len());
        let left: Vec<_> = all.iter().filter(|one| one.index != away).copied().collect();
        let before = rendezvous(&all, Key::of(&key));
        let after = rendezvous(&left, Key::of(&key));
        match before == Some(away) {
            true => prop_assert_ne!(after, Some(away)),
            false => prop_assert_eq!(after, before),
        }
    }
}

#[test]
fn keys_get_the_same_application_in_every_process() {
    let all = candidates(&[1, 1, 1, 1]);
    let chosen = ["ana", "ben", "eva", "max"].map(|key| rendezvous(&all, Key::of(key.as_bytes())));
    assert_eq!(chosen, [Some(0), Some(1), Some(3), Some(3)]);
}

#[test]
fn none_is_chosen_of_none() {
    assert_eq!(WeightedTurns::new(0).next(&[]), None);
    assert_eq!(random_two(&[], [0, 0]), None);
    assert_eq!(least_requests(&[], 7), None);
    assert_eq!(rendezvous(&[], Key(1)), None);
}

#[test]
fn slow_start_gives_more_with_time() {
    let part = |seconds| slow_start_part(Duration::from_secs(seconds), Duration::from_secs(20));
    assert_eq!(
        [part(0), part(10), part(20), part(90)],
        [0.1, 0.5, 1.0, 1.0]
    );
    assert_eq!(slow_start_part(Duration::ZERO, Duration::ZERO), 1.0);
}

#[test]
fn the_key_of_a_request_is_its_cookie_its_field_or_its_client() {
    let mut headers = HeaderMap::new();
    headers.append(COOKIE, HeaderValue::from_static("a=1; xsession=2"));
    headers.append(COOKIE, HeaderValue::from_static("session=3;b=4"));
    headers.insert("x-user", HeaderValue::from_static("ana"));
    let client: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
    let key = |text: &str| text.parse::<Balance>().unwrap().key(&headers, Some(client));
    assert_eq!(key("hash cookie session"), Some(Key::of(b"3")));
    assert_eq!(key("hash cookie other"), None);
    assert_eq!(key("hash header X-User"), Some(Key::of(b"ana")));
    assert_eq!(key("hash client"), Some(Key::of(b"192.0.2.1")));
    assert_eq!(key("least_requests"), None);
}

#[test]
fn policies_are_read_as_they_are_written() {
    for text in [
        "round_robin",
        "random_two",
        "least_requests",
        "hash client",
        "hash cookie session",
        "hash header x-user",
    ] {
        assert_eq!(text.parse::<Balance>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "hash",
        "hash cookie",
        "hash cookie a=b",
        "hash header a:b",
        "turns",
    ] {
        let error = text.parse::<Balance>().unwrap_err().to_string();
        assert!(error.contains("least_requests"), "{error}");
    }
}
