//! Destinations of logs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::file::LogFile;
use super::journald::Journald;
use super::queue::Stream;
use super::rotation::LogRotation;
use super::syslog::{Syslog, SyslogAddress};
use super::{Entry, Sink};

/// The destination of a log.
///
/// Written as the path of a file, `-` for standard output, `stderr`, `syslog` (that of this machine), `syslog:HOST:PORT`
/// (over UDP), `syslog:/PATH` (a socket), or `journald`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogOutput {
    /// A file to which lines are appended, which may be a pipe that a process reads.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The socket of a syslog daemon, which gets messages of RFC 5424.
    SyslogSocket(PathBuf),
    /// Host and port of a syslog daemon, which gets messages of RFC 5424 over UDP (RFC 5426).
    SyslogUdp(String),
    /// The journal of systemd, by its native protocol.
    Journald,
}

/// The reason why a log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum LogOutputError {
    /// The file cannot be opened.
    #[error("cannot write the {log} {}: {cause}; choose another", path.display())]
    File {
        /// The log.
        log: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// Rotation is for files.
    #[error("the {log} {output} cannot be rotated: only regular files can; leave log_rotate out")]
    NotRotated {
        /// The log.
        log: &'static str,
        /// Its destination.
        output: LogOutput,
    },
    /// The standard stream or the socket cannot be used.
    #[error("cannot write the {log} to {output}: {cause}; choose another destination")]
    Other {
        /// The log.
        log: &'static str,
        /// Its destination.
        output: LogOutput,
        /// The error of the system.
        cause: io::Error,
    },
}

/// The socket of syslog of this machine.
const DEV_LOG: &str = "/dev/log";

impl LogOutput {
    /// The same, with a relative path of a file starting at `base`.
    #[must_use]
    pub fn relative_to(self, base: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(base.join(path)),
            other => other,
        }
    }

    /// Opens it for the log of this name. `is_stamped` is whether lines of text begin with time, level and subject.
    pub(crate) fn open(
        &self,
        log: &'static str,
        is_stamped: bool,
        rotation: Option<&LogRotation>,
    ) -> Result<Box<dyn Sink>, LogOutputError> {
        let failed = |cause| LogOutputError::Other {
            log,
            output: self.clone(),
            cause,
        };
        if let Self::File(path) = self {
            let of_file = |cause| LogOutputError::File {
                log,
                path: path.clone(),
                cause,
            };
            let file = LogFile::open(path, is_stamped, rotation.cloned()).map_err(of_file)?;
            return match rotation.is_some() && !file.is_regular() {
                true => Err(self.not_rotated(log)),
                false => Ok(Box::new(file)),
            };
        }
        let syslog = |address| Ok(Box::new(Syslog::open(address).map_err(failed)?) as Box<_>);
        match self {
            Self::Stdout => {
                let out = standard::output().map_err(failed)?;
                Ok(Box::new(Stream::new(out, is_stamped)))
            }
            Self::Stderr => {
                let out = standard::error().map_err(failed)?;
                Ok(Box::new(Stream::new(out, is_stamped)))
            }
            Self::SyslogSocket(path) => syslog(SyslogAddress::Socket(path.clone())),
            Self::SyslogUdp(host) => syslog(SyslogAddress::Udp(host.clone())),
            Self::Journald => Ok(Box::new(Journald::open().map_err(failed)?)),
            Self::File(_) => Err(self.not_rotated(log)),
        }
    }

    fn not_rotated(&self, log: &'static str) -> LogOutputError {
        LogOutputError::NotRotated {
            log,
            output: self.clone(),
        }
    }
}

impl Sink for Box<dyn Sink> {
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        (**self).write(entry)
    }
}

impl FromStr for LogOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "" => return Err("it is empty; write the path of a file".to_owned()),
            "-" | "stdout" => Self::Stdout,
            "stderr" => Self::Stderr,
            "journald" => Self::Journald,
            "syslog" => Self::SyslogSocket(DEV_LOG.into()),
            _ => match text.strip_prefix("syslog:") {
                Some(path) if path.starts_with('/') => Self::SyslogSocket(path.into()),
                Some(host) if is_host_and_port(host) => Self::SyslogUdp(host.to_owned()),
                Some(other) => {
                    return Err(format!(
                        "\"{other}\" is not HOST:PORT or the path of a socket; write as \"syslog:192.0.2.1:514\""
                    ));
                }
                None => {
                    refuse_parameter(text)?;
                    Self::File(text.into())
                }
            },
        })
    }
}

/// Refuses the path of a file with what nginx and Apache write behind it: a level, a format, or `gzip` and the like.
fn refuse_parameter(text: &str) -> Result<(), String> {
    const LEVELS: [&str; 12] = [
        "debug",
        "info",
        "information",
        "notice",
        "warn",
        "warning",
        "error",
        "err",
        "crit",
        "alert",
        "emerg",
        "fatal",
    ];
    const FORMATS: [&str; 5] = ["combined", "common", "json", "main", "vhost_combined"];
    let Some((path, last)) = text.rsplit_once(char::is_whitespace) else {
        return Ok(());
    };
    let (path, word) = (path.trim_end(), last.to_ascii_lowercase());
    let key = match word.as_str() {
        level if LEVELS.contains(&level) => "error_log_level",
        format if FORMATS.contains(&format) => "access_log_format",
        "gzip" => "log_rotate",
        other if other.starts_with("buffer=") || other.starts_with("flush=") => {
            return Err(format!(
                "\"{last}\" is not part of a path; leave it out: lines are written at once"
            ));
        }
        _ => return Ok(()),
    };
    Err(format!(
        "\"{last}\" is not part of a path; write \"{path}\", and set {key} for the rest"
    ))
}

fn is_host_and_port(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

impl fmt::Display for LogOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Stdout => f.write_str("-"),
            Self::Stderr => f.write_str("stderr"),
            Self::SyslogSocket(path) if path == Path::new(DEV_LOG) => f.write_str("syslog"),
            Self::SyslogSocket(path) => write!(f, "syslog:{}", path.display()),
            Self::SyslogUdp(host) => write!(f, "syslog:{host}"),
            Self::Journald => f.write_str("journald"),
        }
    }
}

/// The standard streams without a buffer or a lock: the outcome of each write is known, and a stalled reader blocks nothing
/// else.
#[cfg(unix)]
mod standard {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;

    pub(super) fn output() -> io::Result<File> {
        Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
    }

    pub(super) fn error() -> io::Result<File> {
        Ok(io::stderr().as_fd().try_clone_to_owned()?.into())
    }
}

#[cfg(not(unix))]
mod standard {
    use std::io;

    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
    pub(super) fn output() -> io::Result<io::Stdout> {
        Ok(io::stdout())
    }

    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
    pub(super) fn error() -> io::Result<io::Stderr> {
        Ok(io::stderr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_read_as_they_are_shown() {
        for text in [
            "-",
            "stderr",
            "journald",
            "syslog",
            "syslog:/run/log",
            "syslog:logs.example:514",
            "syslog:[::1]:514",
            "access.log",
            "./syslog",
        ] {
            let output: LogOutput = text.parse().unwrap();
            assert_eq!(output.to_string(), text);
        }
    }

    #[test]
    fn words_of_other_servers_behind_a_path_are_refused() {
        for (text, key) in [
            ("error.log warn", "set error_log_level "),
            ("/var/log/error.log  CRIT", "set error_log_level "),
            ("access.log combined", "set access_log_format "),
            ("access.log gzip", "set log_rotate "),
            ("access.log buffer=32k", "leave it out"),
        ] {
            let error = text.parse::<LogOutput>().unwrap_err();
            assert!(error.contains(key), "{error}");
        }
        for text in ["my logs/access.log", "my log", "warn", "a.log ."] {
            assert!(text.parse::<LogOutput>().is_ok(), "{text}");
        }
    }

    #[test]
    fn only_paths_of_files_start_at_the_configuration_file() {
        let at = |text: &str| {
            let output: LogOutput = text.parse().unwrap();
            output.relative_to(Path::new("/etc/marline")).to_string()
        };
        assert_eq!(at("access.log"), "/etc/marline/access.log");
        assert_eq!(at("/var/log/access.log"), "/var/log/access.log");
        assert_eq!(at("syslog"), "syslog");
        assert_eq!(at("-"), "-");
    }

    #[test]
    fn a_wrong_address_of_syslog_is_refused_with_a_right_one() {
        for text in ["syslog:", "syslog:host", "syslog:host:x", "syslog::514"] {
            let error = text.parse::<LogOutput>().unwrap_err();
            assert!(error.contains("syslog:192.0.2.1:514"), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_not_rotated() {
        let output = LogOutput::File("/dev/null".into());
        let rotation = "size=1MB".parse().unwrap();
        let opened = output.open("access log", false, Some(&rotation));
        assert!(matches!(opened, Err(LogOutputError::NotRotated { .. })));
        assert!(output.open("access log", false, None).is_ok());
    }
}
