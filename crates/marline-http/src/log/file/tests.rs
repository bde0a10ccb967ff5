use std::io::Read;

use tempfile::TempDir;

use super::*;

/// 2023-11-14T00:00:00Z.
const MIDNIGHT: f64 = 1_699_920_000.0;

struct Bench {
    directory: TempDir,
    file: LogFile,
}

impl Bench {
    fn new(rotation: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = open(&directory, rotation);
        Self { directory, file }
    }

    fn write(&mut self, time: f64, text: &str) {
        self.file.write(&entry(time, text)).unwrap();
    }

    /// The names of its files, once what is tidied up is.
    fn names(&self) -> Vec<String> {
        self.file.rotating.as_ref().unwrap().rotated.wait();
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

fn open(directory: &TempDir, rotation: &str) -> LogFile {
    let path = directory.path().join("log");
    LogFile::open(&path, false, Some(rotation.parse().unwrap())).unwrap()
}

fn entry(time: f64, text: &str) -> Entry {
    Entry {
        time,
        level: Level::Information,
        subject: "test",
        text: text.as_bytes().to_vec(),
    }
}

#[test]
fn a_full_file_is_renamed_and_the_oldest_are_removed() {
    let mut bench = Bench::new("size=1KiB,keep=2");
    let long = "x".repeat(1000);
    for hour in 0..4 {
        bench.write(MIDNIGHT + f64::from(hour) * 3600.0, &long);
        bench.write(MIDNIGHT + f64::from(hour) * 3600.0, "short");
    }
    assert_eq!(
        bench.names(),
        ["log", "log.20231114-020000", "log.20231114-030000"]
    );
    assert!(bench.content("log.20231114-030000").ends_with("x\nshort\n"));
}

#[test]
fn files_of_one_second_have_different_names() {
    let mut bench = Bench::new("size=1KiB,keep=9");
    for text in ["a", "b", "c"] {
        bench.write(MIDNIGHT, &text.repeat(1020));
    }
    assert_eq!(
        bench.names(),
        ["log", "log.20231114-000000", "log.20231114-000000-02"]
    );
}

#[test]
fn a_day_ends_at_midnight_also_if_the_server_was_restarted_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, "yesterday\n").unwrap();
    let yesterday = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(MIDNIGHT - 5.0);
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(yesterday).unwrap();
    let file = open(&directory, "every=1d");
    let mut bench = Bench { directory, file };
    bench.write(MIDNIGHT + 5.0, "today");
    bench.write(MIDNIGHT + 80_000.0, "later");
    assert_eq!(bench.content("log"), "today\nlater\n");
    bench.write(MIDNIGHT + 86_400.0, "tomorrow");
    assert_eq!(bench.content("log"), "tomorrow\n");
    assert_eq!(
        bench.names(),
        ["log", "log.20231114-000005", "log.20231115-000000"]
    );
}

#[test]
fn a_file_of_the_same_day_is_continued_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, "before\n").unwrap();
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(MIDNIGHT))
        .unwrap();
    let file = open(&directory, "every=1d");
    let mut bench = Bench { directory, file };
    bench.write(MIDNIGHT + 5.0, "after");
    assert_eq!(bench.content("log"), "before\nafter\n");
}

#[test]
fn all_but_the_newest_rotated_file_are_compressed() {
    let mut bench = Bench::new("size=1KiB,gzip");
    let long = "x".repeat(1020);
    for hour in 0..3 {
        bench.write(MIDNIGHT + f64::from(hour) * 3600.0, &long);
    }
    assert_eq!(
        bench.names(),
        ["log", "log.20231114-010000.gz", "log.20231114-020000"]
    );
    let compressed = File::open(bench.directory.path().join("log.20231114-010000.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed)
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, format!("{long}\n"));
}

#[test]
fn what_a_crash_left_half_compressed_is_compressed_again() {
    let mut bench = Bench::new("size=1KiB,gzip");
    let at = |name: &str| bench.directory.path().join(name);
    fs::write(at("log.20231113-000000"), "old\n").unwrap();
    fs::write(at("log.20231113-000000.gz.part"), "half").unwrap();
    fs::write(at("log.other"), "of somebody else").unwrap();
    for _ in 0..2 {
        bench.write(MIDNIGHT, &"x".repeat(1020));
    }
    assert_eq!(
        bench.names(),
        [
            "log",
            "log.20231113-000000.gz",
            "log.20231114-000000",
            "log.other"
        ]
    );
}

#[cfg(unix)]
#[test]
fn of_two_writers_one_rotates_and_the_other_follows() {
    let mut bench = Bench::new("size=1KiB,keep=9");
    let mut other = open(&bench.directory, "size=1KiB,keep=9");
    let long = "x".repeat(1020);
    bench.write(MIDNIGHT, &long);
    other.write(&entry(MIDNIGHT + 1.0, &long)).unwrap();
    // The other has rotated it.
    bench.write(MIDNIGHT + 2.0, &long);
    assert_eq!(bench.content("log"), format!("{long}\n"));
    assert_eq!(
        bench.names(),
        ["log", "log.20231114-000001", "log.20231114-000002"]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_renamed_keeps_its_lines() {
    let directory = tempfile::tempdir().unwrap();
    // The longest name that a file can have, to which no time can be added.
    let path = directory.path().join("x".repeat(255));
    let mut file = LogFile::open(&path, false, Some("size=1KiB".parse().unwrap())).unwrap();
    let long = "x".repeat(1020);
    for (second, text) in [long.as_str(), "next"].into_iter().enumerate() {
        file.write(&entry(MIDNIGHT + second as f64, text)).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("{long}\nnext\n")
    );
}
