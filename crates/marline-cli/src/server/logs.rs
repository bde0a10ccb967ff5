//! The access log and the error log of a server.

use std::sync::Arc;

use clap::Args;
use marline::TokioRuntime;
use marline_http::log::{
    InvalidLogRotation, Level, LogOutput, LogOutputError, LogRotation, MessageLog, Subject, emit,
};
use marline_http::server::{AccessLog, AccessLogFormat};

use crate::config_file::ConfigFile;
use crate::failure::Failure;
use crate::values::named;

/// The form of a destination, in messages.
pub(crate) const OUTPUT: &str = "the path of a file, \"-\" for standard output, \"stderr\", \"syslog\", \"syslog:HOST:PORT\", \"syslog:/SOCKET\", or \"journald\"";

/// The form of a rotation, in messages.
pub(crate) const ROTATION: &str = "\"size=SIZE\", \"every=TIME\", or both, and optionally \"keep=N\" and \"gzip\", as \"size=100MB,every=1d,keep=10,gzip\"";

/// The flags of a server's logs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerLogs {
    /// Append a line for each request to FILE, or print it with `-`
    ///
    /// Other destinations are stderr, syslog (that of this machine), syslog:HOST:PORT (over UDP), and journald.
    #[arg(long, value_name = "FILE|-")]
    access_log: Option<LogOutput>,

    /// The form of these lines [default: json]
    #[arg(long, value_name = "FORMAT", value_parser = named::<AccessLogFormat>("format"), hide_short_help = true)]
    access_log_format: Option<AccessLogFormat>,

    /// The destination of messages, written as that of --access-log [default: stderr]
    #[arg(long, value_name = "FILE")]
    error_log: Option<LogOutput>,

    /// The least serious messages of the error log [default: information]
    #[arg(long, value_name = "LEVEL", value_parser = named::<Level>("level"), hide_short_help = true)]
    error_log_level: Option<Level>,

    /// Begin new files of both logs at a size, at times, or both, as size=100MB,every=1d,keep=10,gzip
    ///
    /// Days begin at midnight in UTC. The former files get the time as the end of their names; the newest `keep` stay [10].
    #[arg(long, value_name = "WHEN", value_parser = rotation, hide_short_help = true)]
    log_rotate: Option<LogRotation>,

    /// The file and the line of `log_rotate`, if it is from the configuration file
    #[arg(skip)]
    rotation_place: Option<String>,
}

fn rotation(text: &str) -> Result<LogRotation, InvalidLogRotation> {
    text.parse()
}

impl ServerLogs {
    /// Fills in flags that were not given from `file`.
    pub(crate) fn fill_from(&mut self, file: &mut ConfigFile) {
        self.access_log = self.access_log.take().or(file.access_log.take());
        self.access_log_format = self.access_log_format.or(file.access_log_format);
        self.error_log = self.error_log.take().or(file.error_log.take());
        self.error_log_level = self.error_log_level.or(file.error_log_level);
        if self.log_rotate.is_none() {
            self.log_rotate = file.log_rotate.take();
            let is_written = self.log_rotate.is_some();
            self.rotation_place = is_written.then(|| file.place("log_rotate"));
        }
    }

    /// Opens the access log, if there is one.
    pub(crate) fn open_access_log(&self) -> Result<Option<AccessLog>, Failure> {
        let Some(output) = &self.access_log else {
            return match self.access_log_format {
                Some(_) => Err(Failure::Usage(
                    "access_log_format needs an access log; set access_log as well".to_owned(),
                )),
                None => Ok(None),
            };
        };
        let format = self.access_log_format.unwrap_or_default();
        let log = AccessLog::open(output, format, self.rotation_of(output));
        log.map(Some).map_err(|error| failed(&error))
    }

    /// Opens the error log.
    pub(crate) fn open_error_log(&self) -> Result<ErrorLog, Failure> {
        if self.log_rotate.is_some() {
            let place = self.rotation_place.as_deref();
            let outputs = self.access_log.iter().chain(&self.error_log);
            check_rotation(place.unwrap_or("--log-rotate"), outputs)?;
        }
        let output = self.error_log.clone().unwrap_or(LogOutput::Stderr);
        let runtime = TokioRuntime::current()
            .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
        let level = self.error_log_level.unwrap_or_default();
        let rotation = self.rotation_of(&output);
        let log = MessageLog::open(&output, level, rotation, Arc::new(runtime));
        Ok(ErrorLog {
            log: log.map_err(|error| failed(&error))?,
            is_stderr: output == LogOutput::Stderr,
        })
    }

    /// The rotation of a log: only files have one.
    fn rotation_of(&self, output: &LogOutput) -> Option<&LogRotation> {
        self.log_rotate.as_ref().filter(|_| is_file(output))
    }
}

fn is_file(output: &LogOutput) -> bool {
    matches!(output, LogOutput::File(_))
}

/// Refuses the rotation that is set at `place` if none of the logs is in a file.
pub(crate) fn check_rotation<'a>(
    place: &str,
    outputs: impl IntoIterator<Item = &'a LogOutput>,
) -> Result<(), Failure> {
    match outputs.into_iter().any(is_file) {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "{place}: no log is in a file, and only files are begun anew; set access_log or error_log to the path of a file"
        ))),
    }
}

fn failed(error: &LogOutputError) -> Failure {
    Failure::Failed(error.to_string())
}

/// An open error log.
#[derive(Debug)]
pub(crate) struct ErrorLog {
    log: MessageLog,
    is_stderr: bool,
}

impl ErrorLog {
    /// Has messages go there from now on.
    pub(crate) fn install(&self) {
        self.log.install();
    }

    /// Prints that the server has started with `line`, which scripts wait for; another log has it as well.
    pub(crate) fn announce(&self, line: &str) {
        errln!("{line}");
        if !self.is_stderr {
            emit(Level::Information, Subject::Server, line);
        }
    }

    /// Logs the reason why the server ends, which is printed on standard error in any case.
    pub(crate) fn ended(&self, failure: &Failure) {
        if !self.is_stderr {
            emit(Level::Error, Subject::Server, &failure.to_string());
        }
    }
}
