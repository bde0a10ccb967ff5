use super::*;

const DEAD: Conditions = Conditions {
    delay: Duration::from_millis(10),
    jitter: Duration::ZERO,
    loss: 0.0,
    burst: 1,
    duplicate: 0.0,
    corrupt: 0.0,
    mark: 0.0,
    erase_marks: false,
    rate: None,
    queue: 0,
    mtu: 1472,
    down: true,
};

/// Lets a transfer run until `received` bytes are there; panics if that takes longer than `time`.
fn reach(several: &mut Several, transfer: &mut Transfer, received: usize, time: Duration) {
    let done = several.pair.drive_until(time, |pair| {
        transfer.advance(pair) || transfer.received() >= received
    });
    assert!(done, "{} of {received} bytes", transfer.received());
}

#[test]
fn a_transfer_survives_the_silence_of_either_path() {
    for from in [Side::Server, Side::Client] {
        for silent in [PathId::INITIAL, ONE] {
            let mut several = Several::two(narrow());
            let ends = several.ends();
            let data = pattern(6_000_000);
            let mut transfer = match from {
                Side::Server => Transfer::down(&mut several.pair, ends, &data),
                Side::Client => Transfer::up(&mut several.pair, ends, &data),
            };
            reach(&mut several, &mut transfer, 2_000_000, PATIENCE);
            match silent {
                ONE => several.pair.network.set_link(address(1), DEAD),
                _ => several.pair.network.set(DEAD),
            }
            // What is on its way arrives; then the stream waits for what the dead path had.
            several.pair.drive(Duration::from_millis(10));
            transfer.advance(&mut several.pair);
            let stuck_at = transfer.received();
            let time = Duration::from_millis(200);
            reach(&mut several, &mut transfer, stuck_at + 50_000, time);

            // For a while, and it comes back and is used again.
            reach(&mut several, &mut transfer, 3_000_000, PATIENCE);
            match silent {
                ONE => several.pair.network.set_link(address(1), narrow()),
                _ => several.pair.network.set(narrow()),
            }
            let before = several.sent(from, silent);
            transfer.complete(&mut several.pair);
            let again = several.sent(from, silent) - before;
            assert!(again > 200_000, "{again} bytes on path {silent} again");
        }
    }
}

#[test]
fn acknowledgments_leave_a_dead_path() {
    let mut several = Several::two(narrow());
    let ends = several.ends();
    let data = pattern(4_000_000);
    // The way back of path 1 dies, and only that.
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    reach(&mut several, &mut transfer, 1_000_000, PATIENCE);
    several
        .pair
        .network
        .link(address(1), Direction::ToServer)
        .down = true;
    transfer.complete(&mut several.pair);
}

#[test]
fn silence_of_all_paths_is_survived() {
    let mut several = Several::two(narrow());
    let ends = several.ends();
    let data = pattern(2_000_000);
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    reach(&mut several, &mut transfer, 500_000, PATIENCE);
    several.pair.network.set(DEAD);
    several.pair.network.set_link(address(1), DEAD);
    several.pair.drive(Duration::from_secs(3));
    several.pair.network.set(narrow());
    several.pair.network.set_link(address(1), narrow());
    transfer.complete(&mut several.pair);
}

#[test]
fn a_path_that_does_not_answer_is_given_up() {
    let mut several = Several::new();
    several.pair.network.set_link(address(1), DEAD);
    assert_eq!(several.open(1), Ok(ONE));
    several.pair.drive(Duration::from_secs(10));
    assert_eq!(
        several.closed(Side::Client, ONE),
        Some(ErrorCode::PATH_UNSTABLE_OR_POOR)
    );
    assert_eq!(several.paths(Side::Client), [0]);
    assert_eq!(several.paths(Side::Server), [0]);
    let ends = several.ends();
    download(&mut several.pair, ends.0, ends.1, &pattern(300_000));
}

#[test]
fn what_waits_for_a_path_that_dies_takes_another() {
    // It queues on paths whose windows are full.
    let mut several = Several::two_of(scheduled(PathAlgorithm::Hbes), narrow());
    let ends = several.ends();
    let data = pattern(4_000_000);
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    let waits = |several: &mut Several| {
        let server = several.server();
        let at = server.paths.by_id(ONE).expect("the path is there");
        server.paths[at].queue.bytes()
    };
    let has_queue = several.pair.drive_until(PATIENCE, |pair| {
        transfer.advance(pair);
        let server = pair.server(ends.1);
        let at = server.paths.by_id(ONE).expect("the path is there");
        transfer.received() > 500_000 && server.paths[at].queue.bytes() > 5_000
    });
    assert!(has_queue);
    several.pair.network.set_link(address(1), DEAD);
    let stuck_at = transfer.received();
    let time = Duration::from_millis(400);
    reach(&mut several, &mut transfer, stuck_at + 200_000, time);
    assert_eq!(waits(&mut several), 0);
    transfer.complete(&mut several.pair);
}
