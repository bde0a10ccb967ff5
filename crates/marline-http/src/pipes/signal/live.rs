//! Live signals: the samples that pools read, and the common parts of all sources.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use marline::{Instant, Runtime};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::{RadioSample, RadioSignal};
use crate::limits::MAX_LIVE_SAMPLES;

/// The environment of a source.
pub struct SignalHost {
    /// The clock of samples: that of the pools which read them.
    pub runtime: Arc<dyn Runtime>,
    /// Called on a thread of the source with notices for the user.
    pub notify: Box<dyn Fn(SignalNotice) + Send>,
}

impl fmt::Debug for SignalHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalHost").finish_non_exhaustive()
    }
}

/// A report of a running source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SignalNotice {
    /// The radio was found, initially or after it was lost.
    Found {
        /// The name of the radio.
        radio: String,
        /// Its quality.
        sample: RadioSample,
    },
    /// The radio was removed, or does not respond. The source searches for it from now on.
    Lost {
        /// The radio that was searched for, and the error.
        why: String,
    },
    /// A line is not a sample: the first such line, further ones are only counted.
    Malformed {
        /// Its number, from 1.
        line: u64,
        /// Its beginning.
        text: String,
    },
    /// The input has no lines: this many bytes arrived without the end of one. It is not read any
    /// further.
    NoLines {
        /// The number of bytes.
        bytes: u64,
    },
    /// The input has ended, and its last sample no longer counts.
    Ended {
        /// Lines of it that were not samples.
        malformed: u64,
    },
}

impl SignalNotice {
    /// Whether the user should do something about it.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Found { .. } => false,
            Self::Lost { .. }
            | Self::Malformed { .. }
            | Self::NoLines { .. }
            | Self::Ended { .. } => true,
        }
    }
}

impl fmt::Display for SignalNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { radio, sample } => write!(f, "{radio}: {sample}"),
            Self::Lost { why } => write!(f, "no radio for now: {why}"),
            Self::Malformed { line, text } => write!(
                f,
                "line {line}: \"{text}\" is not SINR in dB, or a time and SINR, as 12 or 1.5 12; such lines are ignored"
            ),
            Self::NoLines { bytes } => write!(
                f,
                "it has no lines: {bytes} bytes arrived without a line feed; it is no longer read, and the radio is unknown"
            ),
            Self::Ended { malformed: 0 } => {
                f.write_str("the input has ended: the radio is unknown")
            }
            Self::Ended { malformed } => write!(
                f,
                "the input has ended: the radio is unknown; {malformed} lines were not samples"
            ),
        }
    }
}

/// A live signal. Its source, which has a thread of its own, ends when this is dropped.
#[derive(Debug)]
pub struct LiveSignal {
    samples: Arc<Samples>,
    /// Closed when this is dropped, which ends the thread.
    _open: PipeWriter,
}

impl LiveSignal {
    /// Runs `source` on a thread.
    pub(super) fn spawn(
        name: &str,
        source: impl FnOnce(Arc<Samples>, Stop) + Send + 'static,
    ) -> io::Result<Self> {
        let (reader, open) = io::pipe()?;
        let samples = Arc::new(Samples::default());
        let written = Arc::clone(&samples);
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || source(written, Stop(reader)))?;
        Ok(Self {
            samples,
            _open: open,
        })
    }
}

impl RadioSignal for LiveSignal {
    fn sample(&self, now: Instant) -> Option<RadioSample> {
        self.samples.at(now)
    }
}

/// The last samples, in order of time. Pools that sample rarely catch up on some.
#[derive(Debug, Default)]
pub(super) struct Samples(Mutex<VecDeque<Held>>);

/// A sample, or its absence, until the next.
#[derive(Clone, Copy, Debug)]
struct Held {
    from: Instant,
    sample: Option<RadioSample>,
}

impl Samples {
    /// From `from` on, the quality is `sample`, replacing what was set for later times.
    pub(super) fn set(&self, from: Instant, sample: Option<RadioSample>) {
        let mut held = self.held();
        while held.back().is_some_and(|last| last.from >= from) {
            held.pop_back();
        }
        if held.len() >= MAX_LIVE_SAMPLES {
            held.pop_front();
        }
        held.push_back(Held { from, sample });
    }

    fn at(&self, now: Instant) -> Option<RadioSample> {
        let held = self.held();
        let later = held.partition_point(|held| held.from <= now);
        held.get(later.checked_sub(1)?)?.sample
    }

    fn held(&self) -> MutexGuard<'_, VecDeque<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait of a source's thread.
#[derive(Debug)]
pub(super) struct Stop(PipeReader);

/// The event that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The signal was dropped: the source is to end.
    Stopped,
    /// The input has something to read, or has ended.
    Readable,
    /// The time has run out.
    TimedOut,
}

impl Stop {
    /// Waits for `time`, if it is limited, or until `input` can be read.
    pub(super) fn wait(&self, input: Option<BorrowedFd<'_>>, time: Option<Duration>) -> Waited {
        let timeout = time.and_then(|time| Timespec::try_from(time).ok());
        let stop = PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN);
        let mut ready = vec![stop];
        ready.extend(input.map(|input| PollFd::from_borrowed_fd(input, PollFlags::IN)));
        loop {
            return match poll(&mut ready, timeout.as_ref()) {
                Ok(0) => Waited::TimedOut,
                Ok(_) if !ready[0].revents().is_empty() => Waited::Stopped,
                Ok(_) => Waited::Readable,
                // A signal to the process, which threads of the runtime handle.
                Err(Errno::INTR) => continue,
                Err(_) => Waited::Stopped,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn an_end_that_is_announced_is_taken_back_by_a_sample_before_it() {
        let samples = Samples::default();
        samples.set(at(1), Some(RadioSample::of_sinr(20.0)));
        samples.set(at(11), None);
        assert_eq!(samples.at(at(0)), None);
        assert_eq!(samples.at(at(10)), Some(RadioSample::of_sinr(20.0)));
        assert_eq!(samples.at(at(11)), None);
        samples.set(at(5), Some(RadioSample::of_sinr(3.0)));
        assert_eq!(samples.at(at(4)), Some(RadioSample::of_sinr(20.0)));
        assert_eq!(samples.at(at(11)), Some(RadioSample::of_sinr(3.0)));
    }

    #[test]
    fn the_oldest_samples_make_room() {
        let samples = Samples::default();
        for second in 0..=MAX_LIVE_SAMPLES as u64 {
            samples.set(at(second), Some(RadioSample::default()));
        }
        assert_eq!(samples.at(at(0)), None);
        assert_eq!(samples.at(at(1)), Some(RadioSample::default()));
        assert_eq!(samples.held().len(), MAX_LIVE_SAMPLES);
    }
}
