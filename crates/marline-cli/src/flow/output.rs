//! The outputs of `marline flow`: files, and an IPFIX collector.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use marline::settings::read_bytes;
use marline_flow::output::{Files, OutputError, Rotation, Sink, Written};
use marline_flow::{Anonymizer, KeyError, Record};
use marline_report::units::counted;

use super::collector::{Collector, CollectorUrl, Sent};
use super::unwritable;
use crate::duration::duration;
use crate::failure::Failure;

/// Flags of the output.
#[derive(Debug, Args)]
pub(super) struct OutputFlags {
    /// The file to write, which is replaced if it exists: Parquet, CSV or IPFIX, by the extension
    /// of its name
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present = "collector"
    )]
    pub(super) output: Option<PathBuf>,

    /// Complete the file at each multiple of this time (UTC), and begin another; the names have the time, as flows-20261128T190500Z.parquet
    #[arg(long, value_name = "TIME", value_parser = interval, requires = "output")]
    rotate_interval: Option<Duration>,

    /// Complete the file when it has this many bytes, as 100MB, and begin another
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "output")]
    rotate_size: Option<u64>,

    /// Send records as IPFIX to a collector: udp://HOST:PORT or tcp://HOST:PORT, in addition to -o or instead of it
    #[arg(long, value_name = "URL")]
    collector: Option<CollectorUrl>,

    /// Replace addresses by Crypto-PAn, and names by a hash, with the key in FILE: 32 bytes or 64 hexadecimal digits that only you can read
    #[arg(long, value_name = "FILE")]
    pub(super) anonymize: Option<PathBuf>,
}

/// A time between files.
fn interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_secs(1);
    match duration(text)? {
        short if short < SHORTEST => {
            Err("it must be a second or more: names of files have seconds".into())
        }
        time => Ok(time),
    }
}

/// The bytes of a file.
fn size(text: &str) -> Result<u64, String> {
    /// Files begin with the names of all columns, or templates, of up to 4 kB.
    const SMALLEST: u64 = 10_000;
    match read_bytes(text)? {
        small if small < SMALLEST => {
            Err("it must be 10kB or more: each file describes its columns".into())
        }
        bytes => Ok(bytes),
    }
}

impl OutputFlags {
    fn rotation(&self) -> Rotation {
        let interval = self.rotate_interval.map(|interval| interval.as_nanos());
        Rotation {
            interval_ns: interval.map(|ns| u64::try_from(ns).unwrap_or(u64::MAX)),
            size: self.rotate_size,
        }
    }

    /// Whether records are written while packets arrive, so that an interrupt keeps them.
    pub(super) fn is_continuous(&self) -> bool {
        self.rotation().is_on() || self.collector.is_some()
    }

    /// Opens the outputs.
    pub(super) fn open(&self) -> Result<Outputs, Failure> {
        let anonymizer = self.anonymize.as_deref().map(Anonymizer::read);
        let anonymizer = anonymizer
            .transpose()
            .map_err(|error: KeyError| Failure::Failed(error.to_string()))?;
        let collector = match &self.collector {
            Some(url) => Some(Collector::connect(url, anonymizer.clone())?),
            None => None,
        };
        let files = self.output.as_deref();
        let files = files.map(|path| Files::create(path, self.rotation(), anonymizer));
        Ok(Outputs {
            files: files.transpose().map_err(|error| unwritable(&error))?,
            collector,
        })
    }

    /// The name of the output in messages.
    pub(super) fn name(&self) -> String {
        match (&self.output, &self.collector) {
            (Some(path), _) => path.to_string_lossy().into_owned(),
            (None, Some(url)) => url.to_string(),
            (None, None) => String::new(),
        }
    }
}

/// Files, a collector, or both.
pub(super) struct Outputs {
    files: Option<Files>,
    collector: Option<Collector>,
}

/// The bytes written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    pub(super) files: Option<Written>,
    pub(super) collector: Option<Sent>,
}

impl Outputs {
    pub(super) fn left(&self) -> Left {
        Left {
            files: self.files.as_ref().map(Files::written),
            collector: self.collector.as_ref().map(Collector::sent),
        }
    }

    /// Completes the open file and begins another, and another session with the collector.
    pub(super) fn divide(&mut self) -> Result<(), OutputError> {
        if let Some(collector) = &mut self.collector {
            collector.reopen();
        }
        match &mut self.files {
            Some(files) => files.divide(),
            None => Ok(()),
        }
    }

    /// Completes open files.
    pub(super) fn finish(self) -> Result<Left, Failure> {
        let collector = self.collector.map(Collector::finish);
        let files = self.files.map(Files::finish).transpose();
        let files = files.map_err(|error| unwritable(&error))?;
        Ok(Left { files, collector })
    }
}

impl Left {
    /// Fails if records were lost.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.collector.map_or(0, |sent| sent.lost_records) {
            0 => Ok(()),
            lost => {
                let lost = counted(lost, "record");
                Err(Failure::Failed(format!(
                    "{lost} did not reach the collector"
                )))
            }
        }
    }
}

impl Sink for Outputs {
    fn write(&mut self, record: &Record) -> Result<(), OutputError> {
        if let Some(collector) = &mut self.collector {
            collector.add(record);
        }
        match &mut self.files {
            Some(files) => files.write(record),
            None => Ok(()),
        }
    }

    #[inline]
    fn advance(&mut self, now_ns: u64) -> Result<(), OutputError> {
        if let Some(collector) = &mut self.collector {
            collector.advance(now_ns);
        }
        match &mut self.files {
            Some(files) => files.advance(now_ns),
            None => Ok(()),
        }
    }
}
