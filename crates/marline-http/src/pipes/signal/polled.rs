//! Radios that are polled at an interval.

use std::sync::{Arc, mpsc};

use super::RadioSample;
use super::live::{LiveSignal, Samples, SignalHost, SignalNotice, Stop, Waited};
use crate::limits::SIGNAL_POLL;

/// The reason why no radio can be polled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RadioError {
    /// The system bus cannot be reached.
    #[error(
        "ModemManager is reached over the D-Bus system bus, which cannot be reached ({reason}); start dbus, or set \
         DBUS_SYSTEM_BUS_ADDRESS"
    )]
    Bus {
        /// The reason.
        reason: String,
    },
    /// No process owns ModemManager's name on the bus.
    #[error(
        "ModemManager (org.freedesktop.ModemManager1) is not on the system bus; install and start it"
    )]
    NoModemManager,
    /// ModemManager has no such modem.
    #[error("ModemManager has no {}; `mmcli --list-modems` lists those that it has", modem_name(*.modem))]
    NoModem {
        /// The number that was asked for, if one was.
        modem: Option<u32>,
    },
    /// ModemManager does not let this process start measurements.
    #[error(
        "ModemManager does not let this user measure modem {modem} ({reason}); run as root, or have root run `mmcli -m \
         {modem} --signal-setup=1`"
    )]
    Denied {
        /// The modem's number.
        modem: u32,
        /// Its error message.
        reason: String,
    },
    /// An answer of ModemManager is an error, or none came.
    #[error("ModemManager does not respond correctly: {reason}")]
    Modem {
        /// The reason.
        reason: String,
    },
    /// The kernel has no Wi-Fi.
    #[error(
        "the kernel has no Wi-Fi (its netlink family nl80211); load the driver of a Wi-Fi card"
    )]
    NoNl80211,
    /// There is no such interface that is a client.
    #[error("there is no Wi-Fi client{} in this network namespace; `iw dev` lists the interfaces of Wi-Fi", client_name(.interface.as_deref()))]
    NoInterface {
        /// The name that was asked for, if one was.
        interface: Option<String>,
    },
    /// The kernel does not answer.
    #[error("the kernel does not answer correctly about Wi-Fi: {reason}")]
    Wifi {
        /// The reason.
        reason: String,
    },
    /// No thread can be started.
    #[error("the source of the signal cannot start: {reason}")]
    Start {
        /// The reason.
        reason: String,
    },
}

fn modem_name(modem: Option<u32>) -> String {
    match modem {
        Some(number) => format!("modem {number}, or one that does not measure its signal"),
        None => "modem that measures its signal".to_owned(),
    }
}

fn client_name(interface: Option<&str>) -> String {
    interface.map_or_else(String::new, |name| format!(" {name}"))
}

/// A measurement of a radio.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// The name of the radio.
    pub(super) radio: String,
    pub(super) sample: RadioSample,
}

/// A radio that can be polled. An answer takes a few seconds at most.
pub(super) trait Radio {
    /// Polls it. After an error, the source searches for it again.
    fn read(&mut self) -> Result<Reading, RadioError>;
}

/// Polls a radio every [`SIGNAL_POLL`], on a thread that `open` runs on, too. Waits for the first
/// answer.
pub(super) fn start<R: Radio>(
    name: &str,
    host: SignalHost,
    open: impl FnOnce() -> Result<R, RadioError> + Send + 'static,
) -> Result<LiveSignal, RadioError> {
    let (sender, first) = mpsc::channel();
    let live = LiveSignal::spawn(name, move |samples, stop| {
        let opened = open().and_then(|mut radio| Ok((radio.read()?, radio)));
        let (reading, radio) = match opened {
            Ok(opened) => opened,
            Err(error) => return sender.send(Err(error)).unwrap_or_default(),
        };
        let mut poller = Poller {
            radio,
            host,
            samples,
            is_lost: true,
        };
        poller.take(Ok(reading));
        sender.send(Ok(())).unwrap_or_default();
        poller.run(&stop);
    });
    let live = live.map_err(|error| not_started(&error))?;
    first.recv().map_err(|error| not_started(&error))??;
    Ok(live)
}

pub(super) fn not_started(error: &dyn std::error::Error) -> RadioError {
    RadioError::Start {
        reason: error.to_string(),
    }
}

/// The thread.
struct Poller<R> {
    radio: R,
    host: SignalHost,
    samples: Arc<Samples>,
    /// Whether the last answer was an error.
    is_lost: bool,
}

impl<R: Radio> Poller<R> {
    fn run(mut self, stop: &Stop) {
        while stop.wait(None, Some(SIGNAL_POLL)) != Waited::Stopped {
            let reading = self.radio.read();
            self.take(reading);
        }
    }

    fn take(&mut self, reading: Result<Reading, RadioError>) {
        let now = self.host.runtime.now();
        let was_lost = std::mem::replace(&mut self.is_lost, reading.is_err());
        match reading {
            Ok(Reading { radio, sample }) => {
                if was_lost {
                    (self.host.notify)(SignalNotice::Found { radio, sample });
                }
                self.samples.set(now, Some(sample));
            }
            Err(error) => {
                if !was_lost {
                    let why = error.to_string();
                    (self.host.notify)(SignalNotice::Lost { why });
                }
                self.samples.set(now, None);
            }
        }
    }
}
