use super::super::TokenChange;
use super::*;
use crate::limits::LOCAL_CIDS;

fn id(n: u8) -> ConnectionId {
    ConnectionId::new(&[n; 8]).expect("short enough")
}

fn issued(sequence: u64, n: u8) -> NewConnectionId {
    NewConnectionId {
        sequence,
        retire_prior_to: 0,
        id: id(n),
        reset_token: [n; 16],
    }
}

fn reserve(last: u32) -> Reserve {
    let mut reserve = Reserve::new();
    reserve.extend(PathId(last));
    reserve
}

#[test]
fn every_path_id_is_reserved_once() {
    let mut reserve = reserve(3);
    reserve.extend(PathId(2));
    assert!(reserve.take(PathId(2)).is_some());
    assert!(reserve.take(PathId(2)).is_none());
    reserve.extend(PathId(4));
    let left: Vec<u32> = reserve.iter().map(|path| path.id.0).collect();
    assert_eq!(left, [1, 3, 4]);
    let common: Vec<u32> = reserve.up_to(PathId(3)).map(|path| path.id.0).collect();
    assert_eq!(common, [1, 3]);
}

#[test]
fn no_path_is_reserved_beyond_the_largest_id() {
    let mut reserve = Reserve {
        list: Vec::new(),
        next: Some(PathId(u32::MAX - 1)),
    };
    reserve.extend(PathId::MAX);
    reserve.extend(PathId::MAX);
    assert_eq!(reserve.iter().count(), 2);
}

#[test]
fn a_path_is_ready_once_both_ends_have_an_id() {
    let mut reserve = reserve(1);
    let path = reserve.get_mut(PathId(1)).expect("it is there");
    assert_eq!(path.local.want_more(LOCAL_CIDS), 2);
    path.local.issue(id(1), [1; 16]);
    path.on_new_connection_id(&issued(0, 9))
        .expect("the first is accepted");
    assert!(!path.is_ready(), "the own ID is not acknowledged");
    let mut buf = Vec::new();
    path.local
        .write_frames(Some(PathId(1)), &mut buf, 1200, &mut |_| {});
    path.local.on_acked(0);
    assert!(path.is_ready());
    assert_eq!(reserve.by_destination(&id(1)), Some(PathId(1)));
    assert_eq!(reserve.by_destination(&id(9)), None);
}

#[test]
fn reset_tokens_are_registered_while_the_path_is_open() {
    let mut remote = RemoteCids::reserved(&issued(1, 7));
    assert_eq!(remote.poll_token_change(), None);
    remote.on_new_connection_id(&issued(0, 6)).expect("late");
    remote.begin_use();
    assert_eq!(remote.poll_token_change(), Some(TokenChange::Add([7; 16])));
    remote.next_unused();
    remote.retire_all();
    let changes: Vec<_> = std::iter::from_fn(|| remote.poll_token_change()).collect();
    assert_eq!(
        changes,
        [
            TokenChange::Add([6; 16]),
            TokenChange::Remove([7; 16]),
            TokenChange::Remove([6; 16])
        ]
    );
    assert!(!remote.has_frames() && remote.active_reset_token().is_none());
}
