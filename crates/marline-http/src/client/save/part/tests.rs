use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn part(directory: &Path, keep: bool) -> Result<Part, ClientError> {
    let target = directory.join("file");
    Part::open(&target, target.clone(), keep)
}

fn refusal(directory: &Path) -> String {
    match part(directory, true) {
        Ok(_) => panic!("it was taken over"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn links_in_place_of_a_part_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("victim"), "precious").unwrap();
    symlink(at.join("victim"), at.join(".file.part")).unwrap();
    fs::hard_link(at.join("victim"), at.join(".file.2.part")).unwrap();
    let mut written = part(at, false).unwrap();
    written.write(b"content").unwrap();
    assert_eq!(written.path(), at.join(".file.3.part"));
    written.publish().unwrap();
    assert_eq!(fs::read(at.join("victim")).unwrap(), b"precious");
    assert_eq!(fs::read(at.join("file")).unwrap(), b"content");
    assert!(refusal(at).contains("a link"), "{}", refusal(at));
}

#[test]
fn a_link_in_place_of_a_tag_is_not_written_through() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("victim"), "precious").unwrap();
    symlink(at.join("victim"), at.join(".file.part.tag")).unwrap();
    let mut resumable = part(at, true).unwrap();
    assert_eq!(resumable.validator(), None);
    let tag = HeaderValue::from_static("\"1\"");
    resumable.start_over(Validator(Some(tag))).unwrap();
    assert_eq!(fs::read(at.join("victim")).unwrap(), b"precious");
    assert_eq!(fs::read(at.join(".file.part.tag")).unwrap(), b"\"1\"");
}

#[test]
fn what_a_killed_fetch_left_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join(".file.part"), "much longer than the content").unwrap();
    fs::write(at.join(".file.part.tag"), "\"1\"").unwrap();
    let mut written = part(at, false).unwrap();
    written.write(b"content").unwrap();
    written.publish().unwrap();
    assert_eq!(names(at), ["file"]);
    assert_eq!(fs::read(at.join("file")).unwrap(), b"content");
}

#[test]
fn fetches_of_one_file_at_the_same_time_write_different_parts() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let [mut first, mut second] = [part(at, false).unwrap(), part(at, false).unwrap()];
    assert!(refusal(at).contains("another process"), "{}", refusal(at));
    first.write(b"first").unwrap();
    second.write(b"second").unwrap();
    first.publish().unwrap();
    assert_eq!(fs::read(at.join("file")).unwrap(), b"first");
    second.publish().unwrap();
    assert_eq!(fs::read(at.join("file")).unwrap(), b"second");
    assert_eq!(names(at), ["file"]);
}

#[test]
fn a_file_has_the_permissions_of_any_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("other"), "").unwrap();
    part(at, false).unwrap().publish().unwrap();
    let mode = |name: &str| fs::metadata(at.join(name)).unwrap().permissions().mode();
    assert_eq!(mode("file"), mode("other"));
}

#[test]
fn files_with_the_longest_names_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("n".repeat(MAX_NAME));
    for keep in [false, true] {
        let mut written = Part::open(&target, target.clone(), keep).unwrap();
        let tag = HeaderValue::from_static("\"1\"");
        written.start_over(Validator(Some(tag))).unwrap();
        written.write(b"content").unwrap();
        written.publish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"content");
        assert_eq!(names(directory.path()).len(), 1);
    }
}
