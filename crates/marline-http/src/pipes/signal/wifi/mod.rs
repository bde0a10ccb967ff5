//! The signal of Wi-Fi, from the kernel: nl80211 over generic netlink (`linux/nl80211.h`).
//!
//! SINR is the signal of the access point, as the driver averages it, less the noise in the channel that is in use.

mod answers;
mod netlink;

use super::RadioSample;
use super::live::{LiveSignal, SignalHost};
use super::polled::{Radio, RadioError, Reading, start};

use self::answers::{Interface, interfaces, noise_dbm, signal_dbm};
use self::netlink::{Message, NetlinkError, Socket};

/// The noise that is assumed where a driver does not measure it, in dBm: that of 20 MHz at room temperature (-101 dBm), and of a
/// receiver with a noise figure of 6 dB.
pub const ASSUMED_NOISE_DBM: i8 = -95;

const GET_INTERFACE: u8 = 5;
const GET_STATION: u8 = 17;
const GET_SURVEY: u8 = 50;

/// An interface of Wi-Fi that is a client of an access point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WifiSource {
    /// Its name; without one, the first that has an access point.
    pub interface: Option<String>,
}

impl WifiSource {
    /// Polls the kernel every [`SIGNAL_POLL`](crate::limits::SIGNAL_POLL), on a thread. Waits for the first answer. If
    /// the interface is removed later, the source searches for it again; without an access point, the quality is
    /// unknown.
    ///
    /// # Errors
    /// The kernel has no Wi-Fi, or no such interface.
    pub fn start(self, host: SignalHost) -> Result<LiveSignal, RadioError> {
        start("radio wifi", host, move || {
            Ok(Wifi {
                source: self,
                socket: None,
            })
        })
    }
}

struct Wifi {
    source: WifiSource,
    socket: Option<Socket>,
}

impl Radio for Wifi {
    fn read(&mut self) -> Result<Reading, RadioError> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => Socket::open("nl80211").map_err(|error| match error.is_missing() {
                true => RadioError::NoNl80211,
                false => wrong(&error),
            })?,
        };
        let reading = self.source.read(&mut socket)?;
        self.socket = Some(socket);
        Ok(reading)
    }
}

fn wrong(error: &NetlinkError) -> RadioError {
    RadioError::Wifi {
        reason: error.to_string(),
    }
}

impl WifiSource {
    fn read(&self, socket: &mut Socket) -> Result<Reading, RadioError> {
        let answer = socket.dump(GET_INTERFACE, None);
        let clients = interfaces(&answer.map_err(|error| wrong(&error))?);
        let wanted = clients.into_iter().filter(|client| {
            let name = self.interface.as_ref();
            name.is_none_or(|name| *name == client.name)
        });
        let mut first = None;
        for client in wanted {
            let stations = about(socket, GET_STATION, &client).map_err(|error| wrong(&error))?;
            if let Some(signal) = signal_dbm(&stations) {
                // Drivers without surveys answer with an error.
                let survey = about(socket, GET_SURVEY, &client).unwrap_or_default();
                return Ok(reading(&client.name, signal, noise_dbm(&survey)));
            }
            first.get_or_insert(client);
        }
        match first {
            Some(client) => Ok(Reading {
                radio: format!("{} (no access point)", client.name),
                sample: RadioSample::default(),
            }),
            None => Err(RadioError::NoInterface {
                interface: self.interface.clone(),
            }),
        }
    }
}

fn about(
    socket: &mut Socket,
    command: u8,
    client: &Interface,
) -> Result<Vec<Message>, NetlinkError> {
    socket.dump(command, Some(client.index))
}

fn reading(interface: &str, signal: i8, noise: Option<i8>) -> Reading {
    let radio = match noise {
        Some(noise) => format!("{interface} (noise {noise} dBm)"),
        None => format!("{interface} (noise not measured, {ASSUMED_NOISE_DBM} dBm assumed)"),
    };
    let (signal, noise) = (
        f64::from(signal),
        f64::from(noise.unwrap_or(ASSUMED_NOISE_DBM)),
    );
    Reading {
        radio,
        sample: RadioSample {
            sinr_db: Some(signal - noise),
            power_dbm: Some(signal),
        },
    }
}

#[cfg(test)]
mod tests;
