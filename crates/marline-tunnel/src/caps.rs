//! Monthly caps of networks: what each has carried since the beginning of the month, in a file that outlasts the process.
//!
//! Months are those of UTC. The bytes are those that the paths of the tunnel have carried, with their IP headers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use marline::settings::read_bytes;
use marline::{PathRule, PathSource, Runtime, SpentBytes, TokioRuntime};
use marline_http::log::timestamp;
use serde::{Deserialize, Serialize};

/// Networks with a cap; a machine has a few.
pub const MAX_CAPS: usize = 16;

/// The file in the directory of the state.
const FILE: &str = "tunnel-usage.json";

/// More than such a file has, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The interval at which the counts are looked at.
const CHECK: Duration = Duration::from_secs(1);

/// The part of a cap after which its count is written: what a crash forgets, beside a second's bytes.
const SAVED_PARTS: u64 = 1000;

/// The cap of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    network: String,
    bytes: u64,
}

/// Why a text is not a [`Cap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a network and the bytes that it may carry in a month, as wwan0=5GB")]
pub struct InvalidCap;

impl FromStr for Cap {
    type Err = InvalidCap;

    /// Parses `NAME=SIZE`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, size) = text.split_once('=').ok_or(InvalidCap)?;
        let Ok(PathSource::Interface(network)) = name.trim().parse() else {
            return Err(InvalidCap);
        };
        let bytes = size.parse().or_else(|_| read_bytes(size.trim()));
        match bytes {
            Ok(bytes) if bytes > 0 => Ok(Self { network, bytes }),
            _ => Err(InvalidCap),
        }
    }
}

/// Why caps cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum CapsError {
    /// The file cannot be read or written.
    #[error("cannot use {}, which has the bytes that networks with a cap have carried: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// The content of the file is not that of marline.
    #[error(
        "{}, which has the bytes that networks with a cap have carried, is damaged: {cause}; remove it to count from 0",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: serde_json::Error,
    },
    /// A network has two caps.
    #[error("{0} has two caps; keep one of them")]
    Repeated(String),
    /// The rules for paths name networks, and not this one.
    #[error("{0} has a cap, but no --path names it")]
    NoPath(String),
    /// More than [`MAX_CAPS`].
    #[error("more than {MAX_CAPS} networks have a cap")]
    TooMany,
    /// There is no clock.
    #[error("cannot read the clock: {0}")]
    Clock(io::Error),
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Usage {
    /// The month, as `2026-11`.
    month: String,
    /// Bytes by network.
    bytes: BTreeMap<String, u64>,
}

/// The usage of a network with a cap this month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used<'a> {
    /// The network.
    pub network: &'a str,
    /// Bytes that it has carried this month.
    pub bytes: u64,
    /// The bytes that it may carry.
    pub cap: u64,
}

impl Used<'_> {
    /// Whether it carries nothing more.
    pub fn is_spent(&self) -> bool {
        self.bytes >= self.cap
    }
}

/// A network with a cap.
#[derive(Debug)]
struct Capped {
    cap: Cap,
    spent: SpentBytes,
}

impl Capped {
    fn used(&self) -> Used<'_> {
        Used {
            network: &self.cap.network,
            bytes: self.spent.get(),
            cap: self.cap.bytes,
        }
    }
}

/// The caps of networks, and what these have carried. Dropped, it is written to the file.
#[derive(Debug)]
pub(crate) struct Caps {
    capped: Vec<Capped>,
    file: PathBuf,
    /// As the file has it.
    saved: Usage,
    runtime: TokioRuntime,
}

/// The month of a time since 1970, as `2026-11`.
fn month(unix_time: Duration) -> String {
    let mut text = timestamp(unix_time.as_secs_f64());
    text.truncate("2026-11".len());
    text
}

impl Caps {
    /// The caps, with the counts of the file in this directory.
    ///
    /// # Errors
    /// See [`CapsError`].
    pub(crate) fn open(caps: &[Cap], directory: &Path) -> Result<Self, CapsError> {
        if caps.len() > MAX_CAPS {
            return Err(CapsError::TooMany);
        }
        let file = directory.join(FILE);
        let runtime = TokioRuntime::current().map_err(CapsError::Clock)?;
        let saved = match caps.is_empty() {
            true => Usage::default(),
            false => read(&file)?.unwrap_or_default(),
        };
        let mut kept = Self {
            capped: Vec::new(),
            file,
            saved,
            runtime,
        };
        kept.begin_month();
        for cap in caps {
            if kept.find(&cap.network).is_some() {
                return Err(CapsError::Repeated(cap.network.clone()));
            }
            let before = kept.saved.bytes.get(&cap.network);
            kept.capped.push(Capped {
                cap: cap.clone(),
                spent: SpentBytes::new(before.copied().unwrap_or(0)),
            });
        }
        Ok(kept)
    }

    /// Counts from 0 in a new month; returns whether it is one. A clock that is slow, as that of a router after its start, begins
    /// none.
    fn begin_month(&mut self) -> bool {
        let now = month(self.runtime.unix_time());
        let is_new = now > self.saved.month;
        if is_new {
            self.saved.month = now;
            self.saved.bytes.clear();
            for capped in &self.capped {
                capped.spent.reset();
            }
        }
        is_new
    }

    fn find(&self, network: &str) -> Option<&Capped> {
        let mut capped = self.capped.iter();
        capped.find(|capped| capped.cap.network == network)
    }

    /// The networks that have a cap.
    pub(crate) fn networks(&self) -> impl Iterator<Item = &str> {
        self.capped.iter().map(|capped| capped.cap.network.as_str())
    }

    /// The rule with the cap of a network, if it has one.
    pub(crate) fn capped(&self, rule: PathRule, network: &str) -> PathRule {
        match self.find(network) {
            Some(capped) => PathRule {
                cap_bytes: Some(capped.cap.bytes),
                spent: capped.spent.clone(),
                ..rule
            },
            None => rule,
        }
    }

    /// Gives the rules that a user has written their caps.
    ///
    /// # Errors
    /// A rule has a cap of its own, or a network no rule.
    pub(crate) fn apply(&self, rules: &mut [PathRule]) -> Result<(), CapsError> {
        for capped in &self.capped {
            let network = &capped.cap.network;
            let of_network = |rule: &&mut PathRule| match &rule.source {
                PathSource::Interface(name) => name == network,
                _ => false,
            };
            let rule = rules.iter_mut().find(of_network);
            let rule = rule.ok_or_else(|| CapsError::NoPath(network.clone()))?;
            if rule.cap_bytes.is_some() {
                return Err(CapsError::Repeated(network.clone()));
            }
            *rule = self.capped(rule.clone(), network);
        }
        Ok(())
    }

    /// The usage of each network this month.
    pub(crate) fn used(&self) -> Vec<Used<'_>> {
        self.capped.iter().map(Capped::used).collect()
    }

    /// The counts as the file should have them.
    fn present(&self) -> Usage {
        let mut present = self.saved.clone();
        for Used { network, bytes, .. } in self.used() {
            present.bytes.insert(network.to_owned(), bytes);
        }
        present
    }

    /// Whether a count has grown by so much that it is to be written.
    fn is_due(&self) -> bool {
        self.capped.iter().any(|capped| {
            let Used {
                network,
                bytes,
                cap,
            } = capped.used();
            let saved = self.saved.bytes.get(network).copied().unwrap_or(0);
            let is_spent_first = bytes >= cap && saved < cap;
            is_spent_first || bytes.saturating_sub(saved) > cap / SAVED_PARTS
        })
    }

    /// Keeps the file up to date. `on_change` learns when a cap is spent, and when a new month begins; `on_error` learns that the
    /// file cannot be written, once.
    pub(crate) async fn follow(
        &mut self,
        on_change: impl Fn(&[Used<'_>]),
        on_error: impl Fn(&CapsError),
    ) -> Infallible {
        if self.capped.is_empty() {
            return std::future::pending().await;
        }
        let spent = |caps: &Self| caps.used().iter().filter(|used| used.is_spent()).count();
        let (mut known, mut has_failed) = (spent(self), false);
        loop {
            tokio::time::sleep(CHECK).await;
            let is_new_month = self.begin_month();
            let now = spent(self);
            if std::mem::replace(&mut known, now) != now || is_new_month {
                on_change(&self.used());
            }
            if !is_new_month && !self.is_due() {
                continue;
            }
            let (file, present) = (self.file.clone(), self.present());
            let written = present.clone();
            // A disk may not answer.
            let result = tokio::task::spawn_blocking(move || write(&file, &written)).await;
            match result {
                Ok(Ok(())) => (self.saved, has_failed) = (present, false),
                Ok(Err(error)) if !std::mem::replace(&mut has_failed, true) => on_error(&error),
                // It has been reported; a panic has been printed.
                _ => {}
            }
        }
    }
}

impl Drop for Caps {
    fn drop(&mut self) {
        let present = self.present();
        if !self.capped.is_empty() && present != self.saved {
            // There is nobody left to report to.
            let _ = write(&self.file, &present);
        }
    }
}

fn read(file: &Path) -> Result<Option<Usage>, CapsError> {
    let bytes = match marline_http::read_regular_file(file, MAX_FILE_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|cause| CapsError::File {
            path: file.to_owned(),
            cause,
        })?,
    };
    let usage = serde_json::from_slice(&bytes);
    usage.map(Some).map_err(|cause| CapsError::Damaged {
        path: file.to_owned(),
        cause,
    })
}

fn write(file: &Path, usage: &Usage) -> Result<(), CapsError> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let write = || {
        fs::create_dir_all(directory)?;
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut new, usage)?;
        new.flush()?;
        // The machine may lose its power.
        new.as_file().sync_all()?;
        new.persist(file)?;
        Ok(())
    };
    write().map_err(|cause| CapsError::File {
        path: file.to_owned(),
        cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(texts: &[&str]) -> Vec<Cap> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn spend(caps: &mut Caps, network: &str, bytes: u64) {
        let capped = caps
            .capped
            .iter_mut()
            .find(|capped| capped.cap.network == network);
        capped.unwrap().spent = SpentBytes::new(bytes);
    }

    #[test]
    fn caps_are_a_network_and_a_size() {
        let cap: Cap = "wwan0=5GB".parse().unwrap();
        assert_eq!((cap.network.as_str(), cap.bytes), ("wwan0", 5_000_000_000));
        for text in [
            "wwan0",
            "wwan0=",
            "=5GB",
            "wwan0=0",
            "192.0.2.7=5GB",
            "wwan0=x",
        ] {
            assert_eq!(text.parse::<Cap>(), Err(InvalidCap), "{text}");
        }
    }

    #[tokio::test]
    async fn a_cap_that_is_spent_is_so_in_the_next_process() {
        let directory = tempfile::tempdir().unwrap();
        let open = |texts: &[&str]| Caps::open(&caps(texts), directory.path());
        let mut first = open(&["wwan0=1MB", "wwan1=5GB"]).unwrap();
        assert!(first.used().iter().all(|used| used.bytes == 0));
        spend(&mut first, "wwan0", 1_000_001);
        spend(&mut first, "wwan1", 7);
        assert!(first.is_due());
        drop(first);
        // The count of a network that has no cap meanwhile stays.
        drop(open(&["wwan1=5GB"]).unwrap());
        let next = open(&["wwan0=1MB"]).unwrap();
        let used = next.used();
        assert_eq!(used[0].bytes, 1_000_001);
        assert!(used[0].is_spent());
        let rule = next.capped("wwan0".parse().unwrap(), "wwan0");
        assert_eq!(
            (rule.cap_bytes, rule.spent.get()),
            (Some(1_000_000), 1_000_001)
        );
        assert!(!next.is_due());

        fs::write(directory.path().join(FILE), "{").unwrap();
        assert!(matches!(open(&["a=1MB"]), Err(CapsError::Damaged { .. })));
        // Without caps, nobody looks at it.
        assert!(open(&[]).is_ok());
    }

    #[tokio::test]
    async fn a_new_month_begins_at_0_and_a_slow_clock_begins_none() {
        let directory = tempfile::tempdir().unwrap();
        for (month, bytes) in [("1970-01", 0), ("2999-12", 600)] {
            let usage = Usage {
                month: month.to_owned(),
                bytes: [("wwan0".to_owned(), 600)].into(),
            };
            write(&directory.path().join(FILE), &usage).unwrap();
            let caps = Caps::open(&caps(&["wwan0=1kB"]), directory.path()).unwrap();
            assert_eq!(caps.used()[0].bytes, bytes);
        }
        assert_eq!(month(Duration::from_secs(1_796_083_199)), "2026-11");
        assert_eq!(month(Duration::from_secs(1_796_083_200)), "2026-12");
    }

    #[tokio::test]
    async fn rules_of_the_user_get_their_caps() {
        let directory = tempfile::tempdir().unwrap();
        let apply = |texts: &[&str], rules: &[&str]| {
            let mut rules: Vec<PathRule> = rules.iter().map(|text| text.parse().unwrap()).collect();
            let caps = Caps::open(&caps(texts), directory.path())?;
            caps.apply(&mut rules).map(|()| rules)
        };
        let rules = apply(&["b=1MB"], &["a", "b,backup"]).unwrap();
        let of_rules = rules.iter().map(|rule| rule.cap_bytes);
        assert_eq!(of_rules.collect::<Vec<_>>(), [None, Some(1_000_000)]);
        assert!(matches!(
            apply(&["c=1MB"], &["a"]),
            Err(CapsError::NoPath(_))
        ));
        for (texts, rules) in [(&["a=1MB"][..], "a,cap=1MB"), (&["a=1MB", "a=2MB"], "a")] {
            assert!(matches!(
                apply(texts, &[rules]),
                Err(CapsError::Repeated(_))
            ));
        }
    }
}
