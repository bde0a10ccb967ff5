use super::*;
use marline_wire::frame::{Frame, Frames};
use proptest::prelude::*;

const PTO: Duration = Duration::from_millis(100);
const START: Instant = Instant::EPOCH;
const TIMES: ValidationTimes = ValidationTimes {
    unknown: PTO,
    pto: PTO,
};

/// A pace without an amplification limit.
const PACE: ChallengePace = ChallengePace {
    interval: PTO,
    affordable: u64::MAX,
};

fn rng() -> SecureRng {
    SecureRng::from_seed([1; 32])
}

/// Writes one challenge and returns the answer to it.
fn challenge(path: &mut Validation, now: Instant, rng: &mut SecureRng) -> Option<PathResponse> {
    let mut buf = Vec::new();
    path.write_frames(now, rng, &PACE, &mut buf, 1200).then(|| {
        let Some(Ok(Frame::PathChallenge(PathChallenge { data }))) = Frames::new(&buf).next()
        else {
            panic!("not a PATH_CHALLENGE: {buf:?}");
        };
        PathResponse { data }
    })
}

#[test]
fn a_response_to_a_full_size_challenge_validates_the_path() {
    let mut path = Validation::new(START, TIMES);
    assert!(path.is_due(START, &PACE));
    let answer = challenge(&mut path, START, &mut rng()).unwrap();
    path.on_sent(1200);
    assert!(!path.is_due(START, &PACE));
    assert_eq!(
        path.on_response(START, &PathResponse { data: [9; 8] }),
        None
    );
    assert_eq!(path.on_response(START, &answer), Some(Proof::Path));
}

#[test]
fn a_response_to_a_small_challenge_validates_the_address_only() {
    let mut path = Validation::new(START, TIMES);
    let mut rng = rng();
    let answer = challenge(&mut path, START, &mut rng).unwrap();
    path.on_sent(1199);
    let later = START + PTO;
    assert_eq!(path.on_response(later, &answer), Some(Proof::Address));
    assert_eq!(path.on_response(later, &answer), None, "counted once");
    let answer = challenge(&mut path, later, &mut rng).unwrap();
    path.on_sent(1200);
    assert!(
        !path.is_expired(START + PTO * FAILS_AFTER),
        "the time limit starts again"
    );
    assert_eq!(path.on_response(later, &answer), Some(Proof::Path));
}

#[test]
fn challenges_are_repeated_with_other_data_until_validation_expires() {
    let mut path = Validation::new(START, TIMES);
    let mut rng = rng();
    let mut answers = Vec::new();
    let mut now = START;
    while !path.is_expired(now) {
        answers.extend(challenge(&mut path, now, &mut rng));
        path.on_sent(1200);
        let next = path.next_timeout(&PACE).unwrap();
        assert!(next > now);
        now = next;
    }
    assert_eq!(now, START + PTO * FAILS_AFTER);
    assert_eq!(answers.len(), FAILS_AFTER as usize);
    assert_ne!(answers[0], answers[1]);
    assert_eq!(challenge(&mut path, now, &mut rng), None);
    for answer in answers {
        assert_eq!(
            path.on_response(now, &answer),
            Some(Proof::Path),
            "any of them counts"
        );
    }
}

#[test]
fn intervals_double_from_the_probe_timeout_of_the_path_up_to_the_larger_one() {
    let pto = PTO * 10;
    let times = ValidationTimes { unknown: pto, pto };
    let mut path = Validation::new(START, times);
    let mut rng = rng();
    let mut sent = Vec::new();
    let mut now = START;
    while challenge(&mut path, now, &mut rng).is_some() {
        sent.push((now - START).as_millis() / PTO.as_millis());
        now = path.next_timeout(&PACE).unwrap();
    }
    assert_eq!(sent, [0, 1, 3, 7, 15, 25]);
    assert_eq!(now, START + pto * FAILS_AFTER);
}

/// Writes the challenges that a limit of `affordable` allows; returns their send times, in probe timeouts.
fn times_of(affordable: u64) -> Vec<u128> {
    let times = ValidationTimes {
        unknown: PTO,
        pto: PTO * 10,
    };
    let mut path = Validation::new(START, times);
    let mut rng = rng();
    let mut pace = ChallengePace { affordable, ..PACE };
    let mut left = Vec::new();
    while let Some(next) = path.next(&pace) {
        let mut buf = Vec::new();
        assert!(path.write_frames(next, &mut rng, &pace, &mut buf, 1200));
        left.push((next - START).as_millis() / PTO.as_millis());
        pace.affordable -= 1;
    }
    left
}

#[test]
fn the_last_challenge_that_the_amplification_limit_allows_waits_longer_than_those_before() {
    assert_eq!(times_of(1), [0]);
    assert_eq!(times_of(2), [0, 2]);
    assert_eq!(times_of(3), [0, 1, 5]);
    assert_eq!(times_of(4), [0, 1, 3, 11]);
}

#[test]
fn credit_and_round_trip_times_that_come_later_advance_the_next_challenge() {
    let pto = PTO * 10;
    let mut path = Validation::new(START, ValidationTimes { unknown: pto, pto });
    let scarce = ChallengePace {
        interval: pto,
        affordable: 2,
    };
    let mut buf = Vec::new();
    assert!(path.write_frames(START, &mut rng(), &scarce, &mut buf, 1200));
    let next = |interval, affordable| {
        let pace = ChallengePace {
            interval,
            affordable,
        };
        path.next(&pace).map(|next| next - START)
    };
    assert_eq!(next(pto, 0), None, "no timer for what may not leave");
    assert_eq!(next(pto, 1), Some(pto * 2));
    assert_eq!(next(pto, 2), Some(pto));
    assert_eq!(next(PTO, 1), Some(PTO * 2));
    assert_eq!(next(PTO, 2), Some(PTO));
    assert_eq!(next(Duration::ZERO, 2), Some(MIN_INTERVAL));
}

#[test]
fn a_persistent_validation_does_not_fail_and_challenges_ever_less_often() {
    let mut path = Validation::new(START, TIMES);
    path.persist();
    let mut rng = rng();
    let mut now = START;
    let mut count = 0;
    while now - START < Duration::from_secs(60) {
        assert!(!path.is_expired(now));
        count += usize::from(challenge(&mut path, now, &mut rng).is_some());
        now = path.next_timeout(&PACE).unwrap();
    }
    assert!((12..20).contains(&count), "{count} challenges in a minute");
}

#[test]
fn a_challenge_that_does_not_fit_stays_due() {
    let mut path = Validation::new(START, TIMES);
    let mut buf = vec![0; 100];
    assert!(!path.write_frames(START, &mut rng(), &PACE, &mut buf, 108));
    path.on_sent(1200);
    assert!(path.is_due(START, &PACE));
    assert!(path.write_frames(START, &mut rng(), &PACE, &mut buf, 109));
    assert_eq!(buf.len(), 109);
}

#[test]
fn only_the_latest_challenges_of_a_flood_are_answered() {
    let mut responses = Responses::default();
    assert!(!responses.is_due());
    for n in 0..100 {
        responses.on_challenge(&PathChallenge { data: [n; 8] });
    }
    let mut buf = Vec::new();
    assert!(responses.write_frames(&mut buf, 1200));
    assert!(!responses.is_due());
    let answered: Vec<u8> = Frames::new(&buf)
        .map(|frame| match frame {
            Ok(Frame::PathResponse(PathResponse { data })) => data[0],
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(answered, [96, 97, 98, 99]);
}

proptest! {
    /// Every challenge but those beyond the limit is answered once, in order, for any space in packets.
    #[test]
    fn each_challenge_is_answered_once(steps in prop::collection::vec((any::<bool>(), 0..40usize), 0..100)) {
        let mut responses = Responses::default();
        let (mut asked, mut answered) = (Vec::new(), Vec::new());
        for (n, (asks, room)) in (0u64..).zip(steps) {
            if asks {
                responses.on_challenge(&PathChallenge { data: n.to_be_bytes() });
                asked.push(n);
                if asked.len() > PATH_RESPONSES {
                    asked.remove(0);
                }
            } else {
                let mut buf = Vec::new();
                let wrote = responses.write_frames(&mut buf, room);
                prop_assert_eq!(wrote, !buf.is_empty());
                prop_assert!(buf.len() <= room);
                for frame in Frames::new(&buf) {
                    let Ok(Frame::PathResponse(PathResponse { data })) = frame else {
                        panic!("{frame:?}");
                    };
                    answered.push(u64::from_be_bytes(data));
                    prop_assert_eq!(Some(asked.remove(0)), answered.last().copied());
                }
            }
            prop_assert_eq!(responses.is_due(), !asked.is_empty());
        }
    }
}
