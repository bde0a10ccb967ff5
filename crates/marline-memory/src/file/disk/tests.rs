use std::net::SocketAddr;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::{Average, PathScope, StoreLimits};

use super::*;

const UNIX: Duration = Duration::from_secs(1_800_000_000);

fn cache() -> Cache {
    Cache::new(StoreLimits::default(), Instant::EPOCH, UNIX)
}

#[test]
fn after_an_error_the_next_commit_opens_the_file_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let cache = cache();
    let mut disk = Disk::open(&path, &cache).unwrap().disk;
    let key = PathScope::Global.key(SocketAddr::from(([192, 0, 2, 1], 443)), None);
    cache.update(Instant::EPOCH, &key, &mut |record| {
        record.windows.add(Average::Mean, 40_000);
    });

    // The state after an error, while another process has the file open.
    disk.database = None;
    let other = Database::open(&path).unwrap();
    let keys = [key.clone()];
    let error = disk.commit(&cache, &keys, false, 9).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(other);
    disk.commit(&cache, &keys, false, 9).unwrap();
    drop(disk);

    let next = self::cache();
    Disk::open(&path, &next).unwrap();
    assert!(next.holds(&key));
}

#[test]
fn concurrent_creation_leaves_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let create = || create(&path).is_ok();
    let (one, other) = std::thread::scope(|scope| {
        let threads = (scope.spawn(create), scope.spawn(create));
        (threads.0.join().unwrap(), threads.1.join().unwrap())
    });
    assert!(one && other);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    Disk::open(&path, &cache()).unwrap();
}
