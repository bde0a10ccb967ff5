use super::*;
use crate::scenario::VideoChoice;

fn second(seconds: u64) -> Instant {
    Instant::EPOCH + Duration::from_secs(seconds)
}

#[test]
fn the_player_waits_for_room_and_counts_stalls() {
    let video = VideoDef {
        ladder: vec![1_000_000, 3_000_000],
        segments: 4,
        segment: Duration::from_secs(4),
        buffer: Duration::from_secs(8),
        choice: VideoChoice::Buffer,
    };
    let mut player = Player::new(&video, second(0));
    player.fetched(0, second(0), second(1));
    // 4 s at 1 s, 3 s at 2 s: 7 s then, of which 4 s have room.
    player.fetched(1, second(1), second(2));
    assert_eq!(player.wait(second(2)), Duration::from_secs(3));
    // The 7 s end at 9 s: a stall of 3 s.
    player.fetched(0, second(5), second(12));
    let metrics: BTreeMap<_, _> = player.metrics().into_iter().collect();
    assert_eq!(metrics["video_startup_s"], 1.0);
    assert_eq!(
        (metrics["video_stalls"], metrics["video_stalled_s"]),
        (1.0, 3.0)
    );
    assert_eq!(metrics["video_switches"], 2.0);
    // (5 Mb/s, less two changes of 2, less 3 s at 3 Mb/s) / 3 segments.
    assert!(
        (metrics["video_quality_mbps"] + 8.0 / 3.0).abs() < 1e-9,
        "{metrics:?}"
    );
}
