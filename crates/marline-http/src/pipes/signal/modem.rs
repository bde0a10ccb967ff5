//! The signal of an LTE or 5G modem, from ModemManager over D-Bus.
//!
//! Its interface `org.freedesktop.ModemManager1.Modem.Signal` (ModemManager's D-Bus reference) has a property for each
//! technology, which a modem updates once `Setup` has set how often.

use std::collections::HashMap;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use zbus::Connection;
use zbus::connection;
use zbus::zvariant::{DynamicType, OwnedObjectPath, OwnedValue};

use super::RadioSample;
use super::live::{LiveSignal, SignalHost};
use super::polled::{Radio, RadioError, Reading, not_started, start};
use crate::limits::{RADIO_ANSWER_TIMEOUT, SIGNAL_POLL};

const NAME: &str = "org.freedesktop.ModemManager1";
const ROOT: &str = "/org/freedesktop/ModemManager1";
const MODEMS: &str = "/org/freedesktop/ModemManager1/Modem/";
const SIGNAL: &str = "org.freedesktop.ModemManager1.Modem.Signal";

/// Technologies whose SINR counts, with their names. Where a modem has both, as 5G with an anchor in LTE does, it is 5G's.
const TECHNOLOGIES: [(&str, &str); 2] = [("Nr5g", "5G"), ("Lte", "LTE")];

/// The plausible SINR. Modems report values beyond for an unknown one.
const PLAUSIBLE_SINR_DB: std::ops::RangeInclusive<f64> = -50.0..=100.0;
const PLAUSIBLE_RSRP_DBM: std::ops::RangeInclusive<f64> = -200.0..=0.0;

/// The time limit for disabling the modem's measurements at the end.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A modem of ModemManager. Unless measurements of its signal are already enabled, this enables them, every
/// [`SIGNAL_POLL`] until its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModemSource {
    /// Its number, as `mmcli --list-modems` shows it; `None` for the first that measures its
    /// signal.
    pub modem: Option<u32>,
    /// The address of the bus; `None` for the system bus.
    pub bus: Option<String>,
}

impl ModemSource {
    /// Polls the modem every [`SIGNAL_POLL`], on a thread. Waits for the first answer, for at most
    /// [`RADIO_ANSWER_TIMEOUT`]. If the modem is removed later, the source searches for it again.
    ///
    /// # Errors
    /// There is no bus, ModemManager or modem, or access to the modem is denied.
    pub fn start(self, host: SignalHost) -> Result<LiveSignal, RadioError> {
        start("radio modem", host, move || Modem::new(self))
    }
}

/// A modem that is polled.
struct Modem {
    source: ModemSource,
    /// Runs only while the modem is polled.
    runtime: Runtime,
    link: Option<Link>,
}

/// A modem that was found.
struct Link {
    bus: Connection,
    modem: u32,
    path: OwnedObjectPath,
    /// Whether this link enabled the measurements.
    is_set_up: bool,
}

impl Modem {
    fn new(source: ModemSource) -> Result<Self, RadioError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            source,
            runtime: runtime.map_err(|error| not_started(&error))?,
            link: None,
        })
    }
}

impl Radio for Modem {
    fn read(&mut self) -> Result<Reading, RadioError> {
        let (source, link) = (&self.source, self.link.take());
        let answer = self.runtime.block_on(async {
            timeout(RADIO_ANSWER_TIMEOUT, async {
                let mut link = match link {
                    Some(link) => link,
                    None => Link::find(source).await?,
                };
                Ok((link.read().await?, link))
            })
            .await
        });
        let (reading, link) = answer.unwrap_or_else(|_| {
            Err(RadioError::Modem {
                reason: format!("no answer in {} s", RADIO_ANSWER_TIMEOUT.as_secs()),
            })
        })?;
        self.link = Some(link);
        Ok(reading)
    }
}

impl Drop for Modem {
    fn drop(&mut self) {
        let Some(link) = self.link.take().filter(|link| link.is_set_up) else {
            return;
        };
        self.runtime.block_on(async {
            // ModemManager may have ended, or the modem been removed: then it does not measure
            // either.
            let _ = timeout(STOP_TIMEOUT, link.set_up(0)).await;
        });
    }
}

type Properties = HashMap<String, OwnedValue>;
type Objects = HashMap<OwnedObjectPath, HashMap<String, Properties>>;

impl Link {
    async fn find(source: &ModemSource) -> Result<Self, RadioError> {
        let builder = match &source.bus {
            Some(address) => connection::Builder::address(address.as_str()),
            None => connection::Builder::system(),
        };
        let bus = match builder {
            Ok(builder) => builder.build().await,
            Err(error) => Err(error),
        };
        let bus = bus.map_err(|error| RadioError::Bus {
            reason: error.to_string(),
        })?;
        let answer = call(
            &bus,
            ROOT,
            "org.freedesktop.DBus.ObjectManager",
            "GetManagedObjects",
            &(),
        );
        let answer = answer.await.map_err(refused)?;
        let objects: Objects = answer.body().deserialize().map_err(refused)?;
        let modems = objects.into_iter().filter_map(|(path, interfaces)| {
            let modem: u32 = path.as_str().strip_prefix(MODEMS)?.parse().ok()?;
            let is_it = source.modem.is_none_or(|wanted| wanted == modem);
            (is_it && interfaces.contains_key(SIGNAL)).then_some((modem, path))
        });
        let first = modems.min_by_key(|(modem, _)| *modem);
        let (modem, path) = first.ok_or(RadioError::NoModem {
            modem: source.modem,
        })?;
        Ok(Self {
            bus,
            modem,
            path,
            is_set_up: false,
        })
    }

    async fn read(&mut self) -> Result<Reading, RadioError> {
        let mut properties = self.properties().await?;
        let rate = properties.get("Rate").map(u32::try_from);
        if let Some(Ok(0)) = rate {
            let seconds = u32::try_from(SIGNAL_POLL.as_secs()).unwrap_or(u32::MAX);
            self.set_up(seconds)
                .await
                .map_err(|error| self.denied(error))?;
            self.is_set_up = true;
            properties = self.properties().await?;
        }
        Ok(reading(self.modem, properties))
    }

    async fn properties(&self) -> Result<Properties, RadioError> {
        let answer = call(
            &self.bus,
            self.path.as_str(),
            "org.freedesktop.DBus.Properties",
            "GetAll",
            &SIGNAL,
        );
        let answer = answer.await.map_err(|error| match name_of(&error) {
            // The modem was removed.
            Some("org.freedesktop.DBus.Error.UnknownMethod")
            | Some("org.freedesktop.DBus.Error.UnknownObject") => RadioError::NoModem {
                modem: Some(self.modem),
            },
            _ => refused(error),
        })?;
        answer.body().deserialize().map_err(refused)
    }

    /// Has the modem measure every `seconds`; never, if that is 0.
    async fn set_up(&self, seconds: u32) -> zbus::Result<()> {
        call(&self.bus, self.path.as_str(), SIGNAL, "Setup", &seconds).await?;
        Ok(())
    }

    fn denied(&self, error: zbus::Error) -> RadioError {
        match name_of(&error) {
            Some(
                "org.freedesktop.ModemManager1.Error.Core.Unauthorized"
                | "org.freedesktop.DBus.Error.AccessDenied",
            ) => RadioError::Denied {
                modem: self.modem,
                reason: error.to_string(),
            },
            _ => refused(error),
        }
    }
}

async fn call(
    bus: &Connection,
    path: &str,
    interface: &str,
    method: &str,
    body: &(impl serde::Serialize + DynamicType),
) -> zbus::Result<zbus::Message> {
    bus.call_method(Some(NAME), path, Some(interface), method, body)
        .await
}

/// The name of an error that was the answer.
fn name_of(error: &zbus::Error) -> Option<&str> {
    match error {
        zbus::Error::MethodError(name, ..) => Some(name.as_str()),
        _ => None,
    }
}

fn refused(error: impl Into<zbus::Error>) -> RadioError {
    let error = error.into();
    match name_of(&error) {
        Some(
            "org.freedesktop.DBus.Error.ServiceUnknown"
            | "org.freedesktop.DBus.Error.NameHasNoOwner",
        ) => RadioError::NoModemManager,
        _ => RadioError::Modem {
            reason: error.to_string(),
        },
    }
}

/// The sample in the properties of a modem: of the first technology whose SINR is known.
fn reading(modem: u32, mut properties: Properties) -> Reading {
    for (property, technology) in TECHNOLOGIES {
        let values = properties.remove(property).map(Properties::try_from);
        let Some(Ok(values)) = values else { continue };
        let number = |name: &str, plausible: &std::ops::RangeInclusive<f64>| {
            let value = f64::try_from(values.get(name)?).ok()?;
            plausible.contains(&value).then_some(value)
        };
        let sinr_db = number("snr", &PLAUSIBLE_SINR_DB);
        if sinr_db.is_some() {
            return Reading {
                radio: format!("modem {modem} ({technology})"),
                sample: RadioSample {
                    sinr_db,
                    power_dbm: number("rsrp", &PLAUSIBLE_RSRP_DBM),
                },
            };
        }
    }
    Reading {
        radio: format!("modem {modem}"),
        sample: RadioSample::default(),
    }
}
