//! `--signal`: the source of radio quality.

#[cfg(target_os = "linux")]
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use marline::{Runtime, TokioRuntime};
use marline_http::limits::MAX_SIGNAL_BYTES;
#[cfg(target_os = "linux")]
use marline_http::pipes::{LineSource, LiveSignal, SignalHost};
#[cfg(all(target_os = "linux", feature = "radio"))]
use marline_http::pipes::{ModemSource, RadioError, WifiSource};
use marline_http::pipes::{RadioSignal, SignalTrace};
use marline_http::read_regular_file;

use crate::failure::Failure;

/// A source, as written in the flag.
#[derive(Clone, Debug)]
pub(crate) struct SignalFlag {
    text: String,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// Standard input.
    Stdin,
    /// A file, which is a recorded signal, or a pipe.
    File(PathBuf),
    /// A modem, the first one without a number.
    #[cfg(all(target_os = "linux", feature = "radio"))]
    Modem(Option<u32>),
    /// An interface of Wi-Fi, the first client without a name.
    #[cfg(all(target_os = "linux", feature = "radio"))]
    Wifi(Option<String>),
}

impl FromStr for SignalFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, which) = match text.split_once(':') {
            Some((name, which)) => (name, Some(which)),
            None => (text, None),
        };
        let source = match name {
            "-" if which.is_none() => Source::Stdin,
            "modem" => modem(which)?,
            "wifi" => wifi(which)?,
            _ => Source::File(text.into()),
        };
        let text = text.to_owned();
        Ok(Self { text, source })
    }
}

#[cfg(all(target_os = "linux", feature = "radio"))]
fn modem(number: Option<&str>) -> Result<Source, String> {
    let number = number.map(str::parse).transpose();
    let number = number.map_err(|_| {
        "modems have numbers, as modem:0; a file of this name is ./modem:...".to_owned()
    })?;
    Ok(Source::Modem(number))
}

#[cfg(all(target_os = "linux", feature = "radio"))]
fn wifi(interface: Option<&str>) -> Result<Source, String> {
    match interface {
        Some("") => Err("the name of an interface is missing, as wifi:wlan0".to_owned()),
        name => Ok(Source::Wifi(name.map(str::to_owned))),
    }
}

#[cfg(not(all(target_os = "linux", feature = "radio")))]
fn wifi(_interface: Option<&str>) -> Result<Source, String> {
    Err(NOT_BUILT.to_owned())
}

#[cfg(not(all(target_os = "linux", feature = "radio")))]
fn modem(_number: Option<&str>) -> Result<Source, String> {
    Err(NOT_BUILT.to_owned())
}

/// The error of a command built without radios.
#[cfg(not(all(target_os = "linux", feature = "radio")))]
const NOT_BUILT: &str = "radios are read on Linux, by a command with the feature `radio`; a file of this name is ./NAME";

impl SignalFlag {
    /// Opens the source. Its later messages go to standard error.
    pub(crate) fn open(&self) -> Result<Arc<dyn RadioSignal>, Failure> {
        let opened = match &self.source {
            Source::Stdin => self.lines(None),
            Source::File(path) if is_pipe(path) => self.lines(Some(path)),
            Source::File(path) => read_trace(path),
            #[cfg(all(target_os = "linux", feature = "radio"))]
            Source::Modem(modem) => {
                let source = ModemSource {
                    modem: *modem,
                    bus: None,
                };
                self.radio(|host| source.start(host))
            }
            #[cfg(all(target_os = "linux", feature = "radio"))]
            Source::Wifi(interface) => {
                let source = WifiSource {
                    interface: interface.clone(),
                };
                self.radio(|host| source.start(host))
            }
        };
        opened.map_err(|why| Failure::Failed(format!("--signal {}: {why}", self.text)))
    }

    #[cfg(target_os = "linux")]
    fn lines(&self, pipe: Option<&Path>) -> Result<Arc<dyn RadioSignal>, String> {
        let source = match pipe {
            None => LineSource::Stdin,
            Some(path) => LineSource::Pipe(path.to_owned()),
        };
        let live = source.start(self.host()?);
        live.map(as_signal).map_err(|error| error.to_string())
    }

    #[cfg(not(target_os = "linux"))]
    fn lines(&self, _pipe: Option<&Path>) -> Result<Arc<dyn RadioSignal>, String> {
        Err("on this system, a signal is a regular file".to_owned())
    }

    #[cfg(all(target_os = "linux", feature = "radio"))]
    fn radio(
        &self,
        start: impl FnOnce(SignalHost) -> Result<LiveSignal, RadioError>,
    ) -> Result<Arc<dyn RadioSignal>, String> {
        let live = start(self.host()?);
        live.map(as_signal).map_err(|error| error.to_string())
    }

    #[cfg(target_os = "linux")]
    fn host(&self) -> Result<SignalHost, String> {
        let text = self.text.clone();
        Ok(SignalHost {
            runtime: Arc::new(runtime()?),
            notify: Box::new(move |notice| match notice.is_warning() {
                true => errln!("warning: --signal {text}: {notice}"),
                false => errln!("--signal {text}: {notice}"),
            }),
        })
    }
}

#[cfg(target_os = "linux")]
fn as_signal(live: LiveSignal) -> Arc<dyn RadioSignal> {
    Arc::new(live)
}

/// Whether its lines come as time passes.
#[cfg(target_os = "linux")]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;

    fs::metadata(path).is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_fifo() || kind.is_char_device()
    })
}

#[cfg(not(target_os = "linux"))]
fn is_pipe(_path: &Path) -> bool {
    false
}

fn runtime() -> Result<TokioRuntime, String> {
    TokioRuntime::current().map_err(|error| error.to_string())
}

/// Reads a recorded signal that begins now.
fn read_trace(file: &Path) -> Result<Arc<dyn RadioSignal>, String> {
    let text = read_regular_file(file, MAX_SIGNAL_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| "it is not text".to_owned())?;
    let trace = SignalTrace::parse(&text, runtime()?.now()).map_err(|error| error.to_string())?;
    Ok(Arc::new(trace))
}
