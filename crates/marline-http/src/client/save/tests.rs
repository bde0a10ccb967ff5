#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::thread;

use super::*;

fn open(path: &Path) -> Result<Sink, ClientError> {
    Sink::open(&Destination::File(path.to_owned()), false)
}

/// Writes `content` to `path`, which has its old content until the last moment.
fn save(path: &Path, content: &[u8]) {
    let before = fs::read(path).ok();
    let mut sink = open(path).unwrap();
    sink.start_over(Validator::default()).unwrap();
    sink.write(content).unwrap();
    assert_eq!(fs::read(path).ok(), before);
    let saved = sink.finish().unwrap();
    assert_eq!(saved.file.as_deref(), Some(path));
    assert_eq!(fs::read(path).unwrap(), content);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_existing_file_keeps_its_permissions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for permissions in [0o600, 0o640, 0o664, 0o666, 0o755, 0o200] {
        fs::write(&path, "old").unwrap();
        set_mode(&path, permissions);
        let sink = open(&path).unwrap();
        let part = directory.path().join(".file.part");
        assert_eq!(
            mode(&part),
            0o600,
            "no other user can read an incomplete file"
        );
        drop(sink);
        let mut sink = open(&path).unwrap();
        sink.write(b"new").unwrap();
        sink.finish().unwrap();
        assert_eq!(mode(&path), permissions);
        set_mode(&path, 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn symbolic_links_are_followed_and_stay() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("far")).unwrap();
    fs::write(at.join("far/target"), "old").unwrap();
    set_mode(&at.join("far/target"), 0o600);
    symlink("far/target", at.join("relative")).unwrap();
    symlink(at.join("far/target"), at.join("absolute")).unwrap();
    symlink("relative", at.join("chain")).unwrap();
    symlink("far/new", at.join("dangling")).unwrap();
    for (link, target) in [
        ("relative", "far/target"),
        ("absolute", "far/target"),
        ("chain", "far/target"),
        ("dangling", "far/new"),
    ] {
        save(&at.join(link), link.as_bytes());
        let known = fs::symlink_metadata(at.join(link)).unwrap();
        assert!(known.is_symlink(), "{link}");
        assert_eq!(fs::read(at.join(target)).unwrap(), link.as_bytes());
    }
    assert_eq!(mode(&at.join("far/target")), 0o600);
    assert_eq!(names(&at.join("far")), ["new", "target"]);
    symlink("circle", at.join("circle")).unwrap();
    let error = open(&at.join("circle")).err().unwrap().to_string();
    assert!(error.contains("symbolic links"), "{error}");
}

#[test]
fn a_part_that_is_kept_lies_beside_the_target_of_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("far")).unwrap();
    symlink("far/target", at.join("link")).unwrap();
    let destination = Destination::File(at.join("link"));
    let tag = || Validator(Some(HeaderValue::from_static("\"1\"")));
    let mut sink = Sink::open(&destination, true).unwrap();
    sink.start_over(tag()).unwrap();
    sink.write(b"be").unwrap();
    drop(sink);
    assert_eq!(names(&at.join("far")), [".target.part", ".target.part.tag"]);
    let mut sink = Sink::open(&destination, true).unwrap();
    assert_eq!(sink.resume_point().unwrap().offset, 2);
    sink.write(b"gun").unwrap();
    sink.finish().unwrap();
    assert_eq!(fs::read(at.join("far/target")).unwrap(), b"begun");
    assert_eq!(names(&at.join("far")), ["target"]);
    assert_eq!(names(at), ["far", "link"]);
}

#[test]
fn all_names_of_a_file_have_the_new_content() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("one"), "old and longer").unwrap();
    set_mode(&at.join("one"), 0o640);
    fs::hard_link(at.join("one"), at.join("two")).unwrap();
    save(&at.join("one"), b"new");
    assert_eq!(fs::read(at.join("two")).unwrap(), b"new");
    assert_eq!(mode(&at.join("two")), 0o640);
    assert_eq!(names(at), ["one", "two"]);
}

#[test]
fn pieces_of_a_file_reach_all_of_its_names() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("one"), "old").unwrap();
    fs::hard_link(at.join("one"), at.join("two")).unwrap();
    symlink("two", at.join("link")).unwrap();
    let mut sink = open(&at.join("link")).unwrap();
    let pieces = sink.begin_pieces().unwrap().unwrap();
    pieces.write(3, b"gun").unwrap();
    pieces.write(0, b"be").unwrap();
    pieces.write(2, b"_").unwrap();
    sink.end_pieces(6).unwrap();
    sink.finish().unwrap();
    assert_eq!(fs::read(at.join("one")).unwrap(), b"be_gun");
}

#[test]
fn attributes_of_an_existing_file_are_kept() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "old").unwrap();
    if setxattr(&path, "user.origin", b"here", XattrFlags::CREATE).is_err() {
        // The file system has none.
        return;
    }
    save(&path, b"new");
    let mut value = [0; 8];
    let len = getxattr(&path, "user.origin", &mut value).unwrap();
    assert_eq!(&value[..len], b"here");
}

#[test]
fn an_existing_file_keeps_its_owner() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "old").unwrap();
    if std::os::unix::fs::chown(&path, Some(4321), Some(1234)).is_err() {
        // Only root can give files away.
        return;
    }
    save(&path, b"new");
    let known = fs::metadata(&path).unwrap();
    assert_eq!((known.uid(), known.gid()), (4321, 1234));
}

/// Runs `work` on a thread without root's privileges over files.
#[cfg(target_os = "linux")]
fn without_privileges(work: impl FnOnce() + Send) {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    thread::scope(|scope| {
        let working = scope.spawn(|| {
            let none = CapabilitySets {
                effective: CapabilitySet::empty(),
                permitted: CapabilitySet::empty(),
                inheritable: CapabilitySet::empty(),
            };
            set_capabilities(None, none).unwrap();
            work();
        });
        working.join().unwrap();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_in_a_directory_that_takes_no_others_is_written_when_the_content_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("closed")).unwrap();
    fs::write(at.join("closed/file"), "old and longer").unwrap();
    set_mode(&at.join("closed"), 0o555);
    without_privileges(|| {
        let path = at.join("closed/file");
        save(&path, b"new");
        let mut sink = open(&path).unwrap();
        sink.write(b"incomplete").unwrap();
        drop(sink);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let error = Sink::open(&Destination::File(path), true).err().unwrap();
        assert!(error.to_string().contains(".file.part"), "{error}");
        let error = open(&at.join("closed/other")).err().unwrap();
        assert!(error.to_string().contains("denied"), "{error}");
    });
    set_mode(&at.join("closed"), 0o755);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "precious").unwrap();
    set_mode(&path, 0o444);
    without_privileges(|| {
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains("denied"), "{error}");
    });
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    assert_eq!(names(directory.path()), ["file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn names_of_descriptors_and_devices_are_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = File::create(directory.path().join("file")).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    symlink("/dev/null", directory.path().join("link")).unwrap();
    for (path, place) in [
        ("/dev/stdout", Place::StandardOutput),
        ("/dev/fd/1", Place::StandardOutput),
        ("/proc/self/fd/1", Place::StandardOutput),
        ("/dev/null", Place::Stream),
        (&format!("/dev/fd/{number}"), Place::Stream),
    ] {
        assert_eq!(Place::of(Path::new(path)).unwrap(), place, "{path}");
    }
    let link = directory.path().join("link");
    assert_eq!(Place::of(&link).unwrap(), Place::Stream);
    let own = format!("/proc/self/fd/{number}");
    let mut sink = open(Path::new(&own)).unwrap();
    sink.write(b"written").unwrap();
    sink.finish().unwrap();
    assert_eq!(fs::read(directory.path().join("file")).unwrap(), b"written");
    let mut full = open(Path::new("/dev/full")).unwrap();
    let error = full.write(b"no space").unwrap_err().to_string();
    assert!(error.contains("/dev/full"), "{error}");
}

#[tokio::test]
async fn pipes_are_waited_for_and_written_to_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let runtime = RuntimeHandle::new(None).unwrap();
    let destination = Destination::File(path.clone());
    let mut opening = std::pin::pin!(Sink::open_for_reader(&destination, false, &runtime));
    if cfg!(target_os = "linux") {
        let short = std::time::Duration::from_millis(100);
        let waited = tokio::time::timeout(short, opening.as_mut()).await;
        assert!(waited.is_err(), "it can be given up");
    }
    let reader = thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    let mut sink = opening.await.unwrap();
    sink.start_over(Validator::default()).unwrap();
    assert!(!sink.takes_pieces());
    sink.write(b"one, ").unwrap();
    sink.write(b"two").unwrap();
    let saved = sink.finish().unwrap();
    assert!(saved.sha256.is_some());
    assert_eq!(saved.file.as_deref(), Some(&*path));
    assert_eq!(reader.join().unwrap(), b"one, two");
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    let there = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(there, 1, "no other file");
}
