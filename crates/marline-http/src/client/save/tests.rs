use std::os::unix::fs::FileTypeExt;
use std::process::Command;
use std::thread;

use super::*;

#[test]
fn pipes_are_written_to_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let reader = thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    let mut sink = Sink::open(&Destination::File(path.clone()), false).unwrap();
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
