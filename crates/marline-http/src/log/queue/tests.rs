use std::sync::mpsc;

use super::*;
use crate::log::Level;

const LIMIT: Duration = Duration::from_secs(10);

const REPORTS: Reports = Reports {
    name: "test log",
    dropped: |time, dropped| Some(entry_at(time, &format!("{dropped} dropped"))),
    operator: |_| {},
};

fn entry_at(time: f64, text: &str) -> Entry {
    Entry {
        time,
        level: Level::Information,
        subject: "test",
        text: text.as_bytes().to_vec(),
    }
}

fn entry(text: &str) -> Entry {
    entry_at(7.0, text)
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        lines: Mutex::default(),
        changed: Condvar::new(),
    })
}

/// Writes with the permission of a test: each write takes one.
struct Gate {
    permissions: mpsc::Receiver<io::Result<usize>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without further permissions, everything is written.
        let len = self.permissions.recv().unwrap_or(Ok(bytes.len()))?;
        let len = len.min(bytes.len());
        self.written
            .lock()
            .unwrap()
            .extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Gated {
    queue: Queue,
    permit: mpsc::Sender<io::Result<usize>>,
    written: Arc<Mutex<Vec<u8>>>,
}

fn gated() -> Gated {
    let (permit, permissions) = mpsc::channel();
    let written = Arc::default();
    let out = Gate {
        permissions,
        written: Arc::clone(&written),
    };
    Gated {
        queue: Queue::new(Stream::new(out, false), REPORTS),
        permit,
        written,
    }
}

fn lines(written: &Mutex<Vec<u8>>) -> Vec<String> {
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_operator_is_told_once_a_minute_that_lines_are_dropped() {
    static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let reports = Reports {
        operator: |message| MESSAGES.lock().unwrap().push(message.to_owned()),
        ..REPORTS
    };
    let mut writer = Writer::new(shared(), Stream::new(io::sink(), false), reports);
    for seconds in 0..150 {
        writer.shared.lines().drop_line();
        writer.complain("no space", 1.7e9 + f64::from(seconds));
    }
    let messages = MESSAGES.lock().unwrap();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[2].contains("121 so far"), "{messages:?}");
}

/// Every write to it fails, as to a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_line_that_cannot_be_written_is_reported() {
    static REPORTED: Mutex<usize> = Mutex::new(0);
    let shared = shared();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let reports = Reports {
        operator: |_| *REPORTED.lock().unwrap() += 1,
        ..REPORTS
    };
    let writer = Writer::new(Arc::clone(&shared), Stream::new(full, false), reports);
    let queue = Queue(Arc::new(Owner(shared)));
    queue.push(entry("first"));
    queue.push(entry("second"));
    drop(queue);
    writer.run();
    assert_eq!(*REPORTED.lock().unwrap(), 1);
}

#[test]
fn a_reader_that_stalls_blocks_nobody_and_loses_lines_that_are_counted() {
    let Gated {
        queue,
        permit,
        written,
    } = gated();
    let long = "x".repeat(limits::LOG_QUEUE_BYTES / 10);
    for _ in 0..30 {
        queue.push(entry(&long));
    }
    let dropped = queue.dropped();
    assert!((15..30).contains(&dropped), "{dropped}");
    drop(permit);
    queue.finish(LIMIT);
    queue.push(entry("after"));
    queue.finish(LIMIT);
    let lines = lines(&written);
    let report = format!("{dropped} dropped");
    assert_eq!(lines.iter().filter(|line| **line == report).count(), 1);
    assert_eq!(lines.last().unwrap(), "after");
    assert_eq!(lines.len() as u64, 30 - dropped + 2);
}

#[test]
fn empty_lines_take_memory_as_well() {
    let Gated { queue, permit, .. } = gated();
    let most = limits::LOG_QUEUE_BYTES / size_of::<Entry>();
    for _ in 0..most + 10 {
        queue.push(entry(""));
    }
    // The thread may have one.
    assert!((9..=10).contains(&queue.dropped()), "{}", queue.dropped());
    drop(permit);
}

#[test]
fn a_log_that_blocks_does_not_delay_the_end() {
    let Gated {
        queue,
        permit,
        written,
    } = gated();
    queue.push(entry("never"));
    queue.finish(Duration::from_millis(1));
    assert!(written.lock().unwrap().is_empty());
    drop(permit);
}

#[test]
fn a_line_after_one_that_was_torn_begins_anew() {
    let Gated {
        queue,
        permit,
        written,
    } = gated();
    permit.send(Ok(3)).unwrap();
    permit.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
    // The line feed of the second line fails, too.
    permit.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
    drop(permit);
    for text in ["first", "second", "third"] {
        queue.push(entry(text));
        queue.finish(LIMIT);
    }
    assert_eq!(lines(&written), ["fir", "2 dropped", "third"]);
    assert_eq!(queue.dropped(), 2);
}

#[test]
fn a_stamped_line_has_time_level_and_subject() {
    let stream = Stream::new(io::sink(), true);
    let line = stream.line(&entry_at(1.7e9 + 0.25, "something"));
    assert_eq!(
        String::from_utf8(line).unwrap(),
        "2023-11-14T22:13:20.250Z information test: something\n"
    );
}
