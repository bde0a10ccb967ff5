use super::*;
use marline_wire::ErrorCode;

const ONE: PathId = PathId(1);

fn status(status: PathStatus, sequence: u64) -> Notice {
    Notice::Status {
        path: ONE,
        status,
        sequence,
    }
}

fn written(notices: &mut Notices) -> Vec<Notice> {
    let (mut buf, mut written) = (Vec::new(), Vec::new());
    notices.write_frames(&mut buf, 1200, &mut |notice| written.push(notice));
    written
}

#[test]
fn a_lost_notice_is_sent_again_until_one_is_acknowledged() {
    let mut notices = Notices::default();
    let abandon = Notice::Abandon {
        path: ONE,
        error: ErrorCode::NO_ERROR,
    };
    notices.announce(abandon);
    assert_eq!(written(&mut notices), [abandon]);
    assert!(!notices.has_frames());
    notices.on_lost(&abandon);
    assert_eq!(written(&mut notices), [abandon]);
    assert!(notices.is_abandoning(ONE));
    notices.on_acked(&abandon);
    notices.on_lost(&abandon);
    assert!(!notices.has_frames() && !notices.is_abandoning(ONE));
}

#[test]
fn only_the_latest_notice_about_the_same_thing_is_sent() {
    let mut notices = Notices::default();
    notices.announce(status(PathStatus::Backup, 0));
    assert_eq!(written(&mut notices).len(), 1);
    notices.announce(status(PathStatus::Available, 1));
    notices.on_lost(&status(PathStatus::Backup, 0));
    notices.announce(Notice::MaxPathId(PathId(3)));
    notices.announce(Notice::MaxPathId(PathId(4)));
    assert_eq!(
        written(&mut notices),
        [
            status(PathStatus::Available, 1),
            Notice::MaxPathId(PathId(4))
        ]
    );
}

#[test]
fn notices_that_do_not_fit_wait_for_the_next_packet() {
    let mut notices = Notices::default();
    notices.announce(Notice::PathsBlocked(ONE));
    notices.announce(Notice::CidsBlocked {
        path: ONE,
        next_sequence: 0,
    });
    let mut buf = Vec::new();
    notices.write_frames(&mut buf, 5, &mut |_| {});
    assert!(!buf.is_empty() && notices.has_frames());
}

#[test]
fn only_path_abandon_is_sent_about_a_path_that_was_removed() {
    let mut notices = Notices::default();
    notices.announce(status(PathStatus::Backup, 7));
    notices.announce(Notice::Abandon {
        path: ONE,
        error: ErrorCode::NO_ERROR,
    });
    notices.forget(ONE);
    assert_eq!(written(&mut notices).len(), 1);
    assert!(notices.is_abandoning(ONE));
}
