use std::fs::OpenOptions;
use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;

use marline::{Instant, Runtime, TokioRuntime};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::super::RadioSignal;
use super::*;

fn lines(input: &[u8]) -> Vec<Line> {
    let mut lines = Lines::default();
    let mut said: Vec<_> = input.iter().map(|&byte| lines.push(byte)).collect();
    said.push(lines.finish());
    said.retain(|line| *line != Line::None);
    said
}

fn sample(sinr_db: f64) -> Line {
    Line::Sample(RadioSample::of_sinr(sinr_db))
}

#[test]
fn a_line_is_sinr_or_a_time_and_sinr() {
    let input = b"12.5\n# a comment\n\n 3 -4 -110\n1,7\r\n20";
    let wanted = [12.5, -4.0, 7.0, 20.0].map(sample);
    assert_eq!(lines(input), wanted);
}

#[test]
fn lines_that_are_no_samples_are_counted_and_passed_over() {
    for wrong in ["x", "1 x", "nan", "inf", "\u{1}", "12dB"] {
        let input = format!("{wrong}\n5\n");
        assert_eq!(
            lines(input.as_bytes()),
            [Line::Malformed(wrong.to_owned()), sample(5.0)]
        );
    }
    assert!(matches!(lines(b"\xff\xfe\n")[..], [Line::Malformed(_)]));
}

#[test]
fn a_line_takes_no_more_memory_than_the_longest_may() {
    let mut reader = Lines::default();
    // It would be a sample if its end were ignored.
    let digits = [b'1'; MAX_SIGNAL_LINE];
    for &byte in digits.iter().cycle().take(1 << 20) {
        assert_eq!(reader.push(byte), Line::None);
    }
    assert!(reader.line.capacity() <= 2 * MAX_SIGNAL_LINE);
    assert!(matches!(reader.push(b'\n'), Line::Malformed(_)));
    assert_eq!(reader.push(b'7'), Line::None);
    assert_eq!(reader.push(b'\n'), sample(7.0));
}

/// A signal from a pipe, and its notices.
struct Radio {
    runtime: Arc<TokioRuntime>,
    signal: LiveSignal,
    notices: mpsc::Receiver<SignalNotice>,
    path: PathBuf,
    _directory: TempDir,
}

impl Radio {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let runtime = Arc::new(TokioRuntime::current().unwrap());
        let (sender, notices) = mpsc::channel();
        let host = SignalHost {
            runtime: Arc::clone(&runtime) as Arc<dyn Runtime>,
            notify: Box::new(move |notice| sender.send(notice).unwrap_or_default()),
        };
        Self {
            signal: LineSource::Pipe(path.clone()).start(host).unwrap(),
            runtime,
            notices,
            path,
            _directory: directory,
        }
    }

    fn write(&self, text: &str) {
        let mut pipe = OpenOptions::new().write(true).open(&self.path).unwrap();
        pipe.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the quality at a moment after now is `sinr`. Ends with the test's own timeout otherwise.
    async fn has(&self, sinr: Option<f64>, after: Duration) {
        let at = |now: Instant| self.signal.sample(now + after)?.sinr_db;
        while at(self.runtime.now()) != sinr {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn a_pipe_may_be_opened_for_each_line_and_its_last_one_holds_for_a_time() {
    let radio = Radio::new();
    assert_eq!(radio.signal.sample(radio.runtime.now()), None);
    let soon = SIGNAL_HOLD / 2;
    radio.write("21\n");
    radio.has(Some(21.0), soon).await;
    radio.has(None, SIGNAL_HOLD).await;
    radio.write("17.5 -3\nwrong\nworse\n");
    radio.has(Some(-3.0), soon).await;
    radio.has(None, SIGNAL_HOLD).await;
    let first = SignalNotice::Malformed {
        line: 3,
        text: "wrong".to_owned(),
    };
    assert_eq!(radio.notices.try_recv(), Ok(first));
    assert!(radio.notices.try_recv().is_err());
}

#[tokio::test]
async fn the_last_sample_holds_while_a_program_keeps_the_pipe_open() {
    let radio = Radio::new();
    let mut pipe = OpenOptions::new().write(true).open(&radio.path).unwrap();
    pipe.write_all(b"8\n").unwrap();
    radio.has(Some(8.0), Duration::ZERO).await;
    radio.has(Some(8.0), 100 * SIGNAL_HOLD).await;
}

#[tokio::test]
async fn the_thread_ends_when_the_signal_is_dropped() {
    let Radio {
        signal, notices, ..
    } = Radio::new();
    drop(signal);
    // The thread owns the sender.
    assert_eq!(notices.recv(), Err(mpsc::RecvError));
}

#[tokio::test]
async fn input_without_lines_is_given_up() {
    let radio = Radio::new();
    radio.write("7\n");
    let mut pipe = OpenOptions::new().write(true).open(&radio.path).unwrap();
    let zeros = [0; 4096];
    // It fails once the reader is closed.
    while pipe.write_all(&zeros).is_ok() {}
    let notice = radio.notices.recv().unwrap();
    assert!(matches!(notice, SignalNotice::NoLines { bytes } if bytes > MAX_WITHOUT_LINE));
    assert_eq!(radio.signal.sample(radio.runtime.now()), None);
}

#[tokio::test]
async fn devices_without_lines_are_refused() {
    for device in ["/dev/zero", "/dev/urandom", "/dev/full", "/dev/null"] {
        let host = SignalHost {
            runtime: Arc::new(TokioRuntime::current().unwrap()),
            notify: Box::new(drop),
        };
        let refused = LineSource::Pipe(device.into()).start(host).unwrap_err();
        assert!(
            refused.to_string().contains("no lines"),
            "{device}: {refused}"
        );
    }
}
