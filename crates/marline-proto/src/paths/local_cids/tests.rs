use super::*;
use marline_wire::frame::{Frame, Frames};
use proptest::prelude::*;

fn id(n: u8) -> ConnectionId {
    ConnectionId::new(&[n; 8]).unwrap()
}

fn retire(cids: &mut LocalCids, sequence: u64) -> Result<Option<ConnectionId>, ErrorCode> {
    cids.on_retire(&RetireConnectionId { sequence }, &id(255))
        .map_err(|error| error.code)
}

/// Issues all wanted IDs; the ID of sequence number `n` is `id(n)`.
fn fill(cids: &mut LocalCids) {
    for _ in 0..cids.want_more(LOCAL_CIDS) {
        let n = cids.next_sequence as u8;
        cids.issue(id(n), [n; 16]);
    }
}

/// Writes all due frames: sequence number and Retire Prior To of each.
fn written(cids: &mut LocalCids) -> Vec<(u64, u64)> {
    let (mut buf, mut tokens) = (Vec::new(), Vec::new());
    cids.write_frames(None, &mut buf, 10_000, &mut |token| tokens.push(token));
    let frames: Vec<_> = Frames::new(&buf)
        .map(|frame| match frame {
            Ok(Frame::NewConnectionId(frame)) => {
                assert_eq!(frame.id, id(frame.sequence as u8));
                assert_eq!(frame.reset_token, [frame.sequence as u8; 16]);
                (frame.sequence, frame.retire_prior_to)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(frames.iter().map(|&(sequence, _)| sequence).eq(tokens));
    frames
}

/// With limit 3, all acknowledged by the peer.
fn settled() -> LocalCids {
    let mut cids = LocalCids::new(id(0));
    cids.set_limit(3);
    fill(&mut cids);
    for (sequence, _) in written(&mut cids) {
        cids.on_acked(sequence);
    }
    cids
}

#[test]
fn as_many_ids_are_issued_as_both_ends_allow() {
    let mut cids = LocalCids::new(id(0));
    assert_eq!(cids.want_more(LOCAL_CIDS), 0, "the peer's limit is unknown");
    cids.set_limit(2);
    assert_eq!(cids.want_more(LOCAL_CIDS), 1);
    cids.set_limit(u64::MAX);
    assert_eq!(cids.want_more(LOCAL_CIDS), LOCAL_CIDS - 1);
    fill(&mut cids);
    assert_eq!(cids.want_more(LOCAL_CIDS), 0);
    assert_eq!(cids.iter().count(), LOCAL_CIDS);
}

#[test]
fn frames_are_sent_once_unless_lost() {
    let mut cids = LocalCids::new(id(0));
    cids.set_limit(3);
    fill(&mut cids);
    assert!(cids.has_frames());
    assert_eq!(written(&mut cids), [(1, 0), (2, 0)]);
    assert!(!cids.has_frames());
    cids.on_lost(1);
    cids.on_acked(2);
    cids.on_lost(2);
    assert_eq!(written(&mut cids), [(1, 0)]);
    cids.on_acked(1);
    cids.on_lost(1);
    assert_eq!(written(&mut cids), []);
}

#[test]
fn frames_that_do_not_fit_wait_for_the_next_packet() {
    let mut cids = LocalCids::new(id(0));
    cids.set_limit(3);
    fill(&mut cids);
    let mut buf = Vec::new();
    cids.write_frames(None, &mut buf, 40, &mut |token| assert_eq!(token, 1));
    assert!(buf.len() <= 40 && cids.has_frames());
    assert_eq!(written(&mut cids), [(2, 0)]);
}

#[test]
fn a_retired_id_is_replaced() {
    let mut cids = settled();
    assert_eq!(retire(&mut cids, 1), Ok(Some(id(1))));
    assert_eq!(retire(&mut cids, 1), Ok(None), "a retransmission");
    assert_eq!(cids.want_more(LOCAL_CIDS), 1);
    fill(&mut cids);
    assert_eq!(written(&mut cids), [(3, 0)]);
    assert!(cids.iter().eq([id(0), id(2), id(3)]));
}

#[test]
fn retiring_an_id_that_was_not_sent_is_a_protocol_violation() {
    let mut cids = settled();
    assert_eq!(retire(&mut cids, 3), Err(ErrorCode::PROTOCOL_VIOLATION));
    assert_eq!(
        retire(&mut cids, u64::MAX),
        Err(ErrorCode::PROTOCOL_VIOLATION)
    );
    cids.set_limit(4);
    fill(&mut cids);
    assert_eq!(retire(&mut cids, 3), Err(ErrorCode::PROTOCOL_VIOLATION));
    written(&mut cids);
    assert_eq!(retire(&mut cids, 3), Ok(Some(id(3))));
}

#[test]
fn retiring_the_id_that_the_packet_was_sent_to_is_a_protocol_violation() {
    let mut cids = settled();
    let error = cids
        .on_retire(&RetireConnectionId { sequence: 0 }, &id(0))
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(error.frame_type, RetireConnectionId::TYPE);
}

#[test]
fn rotation_issues_new_ids_before_old_ones_are_retired() {
    let mut cids = settled();
    assert!(cids.retire_prior_to(u64::MAX));
    assert_eq!(cids.want_more(LOCAL_CIDS), 3);
    fill(&mut cids);
    assert_eq!(cids.iter().count(), 6, "old IDs are still routed");
    assert_eq!(written(&mut cids), [(3, 3), (4, 3), (5, 3)]);
    assert!(!cids.retire_prior_to(4), "one rotation at a time");
    for sequence in 0..3 {
        assert!(retire(&mut cids, sequence).is_ok());
    }
    assert_eq!(cids.want_more(LOCAL_CIDS), 0);
    assert!(cids.retire_prior_to(4));
}

#[test]
fn a_retransmitted_frame_does_not_retire_its_own_id() {
    let mut cids = LocalCids::new(id(0));
    cids.set_limit(2);
    fill(&mut cids);
    assert_eq!(written(&mut cids), [(1, 0)]);
    assert!(cids.retire_prior_to(2));
    fill(&mut cids);
    cids.on_lost(1);
    assert_eq!(written(&mut cids), [(1, 1), (2, 2), (3, 2)]);
}

#[test]
fn the_id_of_the_preferred_address_is_not_sent_in_a_frame() {
    let mut cids = LocalCids::new(id(0));
    cids.issue_preferred(id(1), [1; 16]);
    assert!(!cids.has_frames());
    cids.set_limit(2);
    assert_eq!(cids.want_more(LOCAL_CIDS), 0);
    assert_eq!(retire(&mut cids, 1), Ok(Some(id(1))));
}

#[test]
fn an_endpoint_with_empty_ids_issues_no_others() {
    let mut cids = LocalCids::new(ConnectionId::EMPTY);
    cids.set_limit(8);
    assert_eq!(cids.want_more(LOCAL_CIDS), 0);
    assert!(!cids.retire_prior_to(1));
    assert_eq!(retire(&mut cids, 0), Err(ErrorCode::PROTOCOL_VIOLATION));
}

proptest! {
    /// For any retirements and losses, the number of IDs is bounded and sequence numbers stay in order.
    #[test]
    fn the_number_of_ids_is_bounded_and_sequence_numbers_stay_in_order(
        limit: u64,
        events in prop::collection::vec((0..6u8, 0..40u64), 0..200),
    ) {
        let mut cids = LocalCids::new(id(0));
        cids.set_limit(limit);
        for (event, n) in events {
            match event {
                0 => fill(&mut cids),
                1 => drop(written(&mut cids)),
                2 => drop(retire(&mut cids, n)),
                3 => drop(cids.retire_prior_to(n)),
                4 => cids.on_lost(n),
                _ => cids.on_acked(n),
            }
            prop_assert!(cids.issued.len() <= 2 * LOCAL_CIDS);
            prop_assert!(cids.issued.iter().is_sorted_by_key(|issued| issued.sequence));
            if cids.next_sequence > 200 {
                break;
            }
        }
    }
}
