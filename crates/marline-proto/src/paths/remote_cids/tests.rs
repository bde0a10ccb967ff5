use super::*;
use crate::limits::LOCAL_CIDS;
use crate::paths::local_cids::LocalCids;
use marline_wire::frame::{Frame, Frames};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn id(n: u64) -> ConnectionId {
    ConnectionId::new(&n.to_be_bytes()).unwrap()
}

fn token(n: u64) -> [u8; 16] {
    u128::from(n).to_be_bytes()
}

fn frame(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    NewConnectionId {
        sequence,
        retire_prior_to,
        id: id(sequence),
        reset_token: token(sequence),
    }
}

/// Receives frame (`sequence`, `retire_prior_to`).
fn receive(cids: &mut RemoteCids, sequence: u64, retire_prior_to: u64) -> Result<(), ErrorCode> {
    cids.on_new_connection_id(&frame(sequence, retire_prior_to))
        .map_err(|error| {
            assert_eq!(error.frame_type, NewConnectionId::TYPE);
            error.code
        })
}

/// Holds sequence numbers 0 to `last`.
fn holding(last: u64) -> RemoteCids {
    let mut cids = RemoteCids::new(id(0));
    for sequence in 1..=last {
        receive(&mut cids, sequence, 0).unwrap();
    }
    cids
}

fn written(cids: &mut RemoteCids) -> Vec<u64> {
    let (mut buf, mut tokens) = (Vec::new(), Vec::new());
    cids.write_frames(None, &mut buf, 10_000, &mut |token| tokens.push(token));
    let frames: Vec<_> = Frames::new(&buf)
        .map(|frame| match frame {
            Ok(Frame::RetireConnectionId(frame)) => frame.sequence,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(frames, tokens);
    frames
}

fn changes(cids: &mut RemoteCids) -> Vec<TokenChange> {
    std::iter::from_fn(|| cids.poll_token_change()).collect()
}

#[test]
fn the_first_id_and_its_reset_token_come_from_the_handshake() {
    let mut cids = RemoteCids::new(id(77));
    cids.replace_first(id(78));
    cids.replace_first(id(0));
    assert_eq!(cids.active(), &id(0));
    assert_eq!(cids.active_reset_token(), None);
    cids.set_first_token(token(0));
    assert_eq!(cids.active_reset_token(), Some(token(0)));
    assert_eq!(changes(&mut cids), [TokenChange::Add(token(0))]);
}

#[test]
fn a_migration_takes_an_unused_id_and_retires_the_old_one() {
    let mut cids = holding(2);
    cids.set_first_token(token(0));
    assert_eq!(
        cids.next_unused(),
        Some(RemoteCid {
            sequence: 1,
            id: id(1)
        })
    );
    assert_eq!(
        cids.active(),
        &id(0),
        "probing does not change the active ID"
    );
    cids.activate(1);
    cids.activate(2);
    assert_eq!(
        cids.active_sequence(),
        1,
        "an ID is taken before it is active"
    );
    cids.retire(1);
    assert!(cids.holds(1) && !cids.has_frames(), "the active ID is kept");
    cids.retire(0);
    cids.retire(0);
    assert!(!cids.holds(0));
    assert_eq!(written(&mut cids), [0]);
    let [zero, one] = [token(0), token(1)];
    assert_eq!(
        changes(&mut cids),
        [
            TokenChange::Add(zero),
            TokenChange::Add(one),
            TokenChange::Remove(zero)
        ]
    );
    assert_eq!(
        cids.next_unused(),
        Some(RemoteCid {
            sequence: 2,
            id: id(2)
        })
    );
    assert_eq!(cids.next_unused(), None);
}

#[test]
fn retirements_are_repeated_until_acknowledged() {
    let mut cids = holding(3);
    cids.retire(2);
    cids.retire(3);
    let mut buf = Vec::new();
    cids.write_frames(None, &mut buf, 2, &mut |_| ());
    assert_eq!(written(&mut cids), [3], "the other was written before");
    assert!(!cids.has_frames());
    cids.on_lost(2);
    assert_eq!(written(&mut cids), [2]);
    cids.on_acked(2);
    cids.on_acked(3);
    cids.on_lost(2);
    assert_eq!(written(&mut cids), []);
}

#[test]
fn repeated_frames_change_nothing() {
    let mut cids = holding(2);
    receive(&mut cids, 1, 0).unwrap();
    cids.retire(1);
    receive(&mut cids, 1, 0).unwrap();
    assert!(!cids.holds(1), "a retired ID stays retired");
    assert_eq!(written(&mut cids), [1]);
}

#[test]
fn frames_that_contradict_earlier_ones_are_a_protocol_violation() {
    let good = frame(1, 0);
    for bad in [
        NewConnectionId { id: id(9), ..good },
        NewConnectionId {
            sequence: 2,
            ..good
        },
        NewConnectionId {
            reset_token: [9; 16],
            ..good
        },
        NewConnectionId { id: id(0), ..good },
        NewConnectionId {
            id: id(9),
            ..frame(0, 0)
        },
    ] {
        let error = holding(1).on_new_connection_id(&bad).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION, "{bad:?}");
    }
    let mut cids = RemoteCids::new(ConnectionId::EMPTY);
    assert_eq!(receive(&mut cids, 1, 0), Err(ErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn more_ids_than_allowed_are_a_connection_id_limit_error() {
    let last = REMOTE_CIDS as u64 - 1;
    let mut cids = holding(last);
    assert_eq!(
        receive(&mut cids.clone(), last + 1, 1),
        Ok(()),
        "another ID was retired by the frame"
    );
    assert_eq!(
        receive(&mut cids, last + 1, 0),
        Err(ErrorCode::CONNECTION_ID_LIMIT_ERROR)
    );
}

#[test]
fn retire_prior_to_replaces_the_active_id() {
    let mut cids = holding(2);
    cids.set_first_token(token(0));
    receive(&mut cids, 3, 2).unwrap();
    assert_eq!(cids.active(), &id(2));
    assert_eq!(written(&mut cids), [1, 0]);
    assert_eq!(
        changes(&mut cids),
        [
            TokenChange::Add(token(0)),
            TokenChange::Add(token(2)),
            TokenChange::Remove(token(0))
        ]
    );
    receive(&mut cids, 4, 1).unwrap();
    assert_eq!(written(&mut cids), [], "a smaller bound has no effect");
}

#[test]
fn an_id_that_is_already_retired_when_it_arrives_is_retired_once() {
    let mut cids = RemoteCids::new(id(0));
    receive(&mut cids, 3, 3).unwrap();
    receive(&mut cids, 2, 0).unwrap();
    receive(&mut cids, 2, 0).unwrap();
    assert!(!cids.holds(2));
    assert_eq!(written(&mut cids), [0, 2]);
}

#[test]
fn the_only_id_stays_in_use_until_another_arrives() {
    let mut cids = holding(1);
    cids.retire(1);
    receive(&mut cids, 1, 1).unwrap();
    assert_eq!(cids.active(), &id(0));
    assert_eq!(written(&mut cids), [1]);
    receive(&mut cids, 2, 0).unwrap();
    assert_eq!(cids.active(), &id(2));
    assert_eq!(written(&mut cids), [0]);
}

#[test]
fn the_id_of_the_preferred_address_has_sequence_number_one() {
    let mut cids = RemoteCids::new(id(0));
    cids.set_preferred(id(1), token(1));
    assert_eq!(receive(&mut cids, 1, 0), Ok(()));
    assert_eq!(
        cids.next_unused(),
        Some(RemoteCid {
            sequence: 1,
            id: id(1)
        })
    );
}

#[test]
fn a_flood_of_retirements_is_a_connection_id_limit_error() {
    let mut cids = RemoteCids::new(id(0));
    let flooded = (1..1000).find_map(|n| receive(&mut cids, n, n).err().map(|code| (n, code)));
    let expected = (
        RETIRED_CIDS as u64 + 1,
        ErrorCode::CONNECTION_ID_LIMIT_ERROR,
    );
    assert_eq!(flooded, Some(expected));

    let mut cids = RemoteCids::new(id(0));
    receive(&mut cids, 1 << 60, 0).unwrap();
    let flooded = (1..1000).find_map(|n| receive(&mut cids, n, 0).err());
    assert_eq!(flooded, Some(ErrorCode::CONNECTION_ID_LIMIT_ERROR));
    assert!(cids.retired.len() <= RETIRED_CIDS + 1);
}

proptest! {
    /// `Seen` agrees with a set, except that numbers far below the largest count as seen.
    #[test]
    fn seen_behaves_like_a_set_of_recent_numbers(
        numbers in prop::collection::vec(prop_oneof![0..300u64, any::<u64>()], 0..200),
    ) {
        let (mut seen, mut model) = (Seen::default(), BTreeSet::new());
        for n in numbers {
            let largest = model.last().copied().unwrap_or(0).max(127);
            let expected = n >= largest - 127 && !model.contains(&n);
            prop_assert_eq!(seen.insert(n), expected);
            model.insert(n);
        }
    }

    /// For any frames of a peer, the state stays bounded and the registered tokens are those of the IDs in use.
    #[test]
    fn any_frames_leave_bounded_state_and_the_reset_tokens_in_use(
        frames in prop::collection::vec((0..40u64, 0..40u64, 0..4u8), 0..100),
    ) {
        let mut cids = RemoteCids::new(id(0));
        let mut tokens = BTreeSet::new();
        for (sequence, prior, then) in frames {
            if receive(&mut cids, sequence, prior.min(sequence)).is_err() {
                break;
            }
            match then {
                0 => if let Some(RemoteCid { sequence: taken, .. }) = cids.next_unused() { cids.activate(taken) },
                1 => cids.retire(prior),
                2 => written(&mut cids).into_iter().for_each(|sequence| cids.on_acked(sequence)),
                _ => (),
            }
            for change in changes(&mut cids) {
                match change {
                    TokenChange::Add(token) => prop_assert!(tokens.insert(token)),
                    TokenChange::Remove(token) => prop_assert!(tokens.remove(&token)),
                }
            }
            let in_use = cids.held().filter(|remote| remote.used).filter_map(|remote| remote.reset_token);
            prop_assert_eq!(in_use.collect::<BTreeSet<_>>(), tokens.clone());
            prop_assert!(cids.others.len() < REMOTE_CIDS);
            prop_assert!(cids.retired.len() <= RETIRED_CIDS);
        }
    }

    /// Two ends over a network with losses and reordering: no error occurs, the issuer routes every ID in use, and in
    /// the end both hold the same IDs.
    #[test]
    fn two_ends_hold_the_same_ids_after_losses_and_reordering(
        steps in prop::collection::vec((0..8u8, any::<usize>()), 0..300),
    ) {
        let mut local = LocalCids::new(id(0));
        local.set_limit(REMOTE_CIDS as u64);
        let mut remote = RemoteCids::new(id(0));
        let (mut issues, mut retirements) = (Vec::new(), Vec::new());
        let mut next = 1;
        let drain = (0..400).map(|n| ([0, 2, 3, 4][n % 4], 0));
        for (step, index) in steps.into_iter().chain(drain) {
            match step {
                0 => {
                    for _ in 0..local.want_more(LOCAL_CIDS) {
                        prop_assert_eq!(local.issue(id(next), token(next)), next);
                        next += 1;
                    }
                    let mut buf = Vec::new();
                    local.write_frames(None, &mut buf, 1200, &mut |_| ());
                    issues.extend(Frames::new(&buf).map(|frame| match frame {
                        Ok(Frame::NewConnectionId(frame)) => frame,
                        other => panic!("{other:?}"),
                    }));
                }
                1 => drop(local.retire_prior_to(next.saturating_sub(2))),
                2 if !issues.is_empty() => {
                    let frame = issues.swap_remove(index % issues.len());
                    prop_assert_eq!(remote.on_new_connection_id(&frame), Ok(()));
                    local.on_acked(frame.sequence);
                }
                3 => retirements.extend(
                    written(&mut remote).into_iter().map(|sequence| (sequence, *remote.active())),
                ),
                4 if !retirements.is_empty() => {
                    let (sequence, destination) = retirements.swap_remove(index % retirements.len());
                    let frame = RetireConnectionId { sequence };
                    prop_assert!(local.on_retire(&frame, &destination).is_ok());
                    remote.on_acked(sequence);
                }
                5 => if let Some(RemoteCid { sequence: taken, .. }) = remote.next_unused() {
                    let old = remote.active_sequence();
                    remote.activate(taken);
                    remote.retire(old);
                },
                6 if !issues.is_empty() => {
                    local.on_lost(issues.swap_remove(index % issues.len()).sequence);
                }
                7 if !retirements.is_empty() => {
                    remote.on_lost(retirements.swap_remove(index % retirements.len()).0);
                }
                _ => (),
            }
            prop_assert!(remote.held().all(|held| local.iter().any(|id| id == held.id)));
        }
        let held: BTreeSet<_> = remote.held().map(|held| held.id).collect();
        prop_assert_eq!(held, local.iter().collect::<BTreeSet<_>>());
    }
}
