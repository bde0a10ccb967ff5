use std::net::SocketAddr;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::{Average, PathScope, StoreLimits};

use super::*;

const UNIX: Duration = Duration::from_secs(1_800_000_000);

fn front() -> Front {
    Front::new(StoreLimits::default(), Instant::EPOCH, UNIX)
}

#[test]
fn after_a_failure_the_file_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let front = front();
    let (mut disk, _) = Disk::open(&path, &front).unwrap();
    let key = PathScope::Global.key(SocketAddr::from(([192, 0, 2, 1], 443)), None);
    front.update(Instant::EPOCH, &key, &mut |record| {
        record.windows.add(Average::Mean, 40_000);
    });

    // As it is after an error. Meanwhile somebody else uses the file.
    disk.database = None;
    let other = Database::open(&path).unwrap();
    let keys = [key.clone()];
    let error = disk.commit(&front, &keys, false, 9).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(other);
    disk.commit(&front, &keys, false, 9).unwrap();
    drop(disk);

    let next = self::front();
    Disk::open(&path, &next).unwrap();
    assert!(next.holds(&key));
}

#[test]
fn two_that_begin_a_file_at_once_agree_on_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let begin = || begin(&path).is_ok();
    let (one, other) = std::thread::scope(|scope| {
        let threads = (scope.spawn(begin), scope.spawn(begin));
        (threads.0.join().unwrap(), threads.1.join().unwrap())
    });
    assert!(one && other);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    Disk::open(&path, &front()).unwrap();
}
