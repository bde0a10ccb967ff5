//! A bus of its own, with a mocked ModemManager (python3-dbusmock).

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use zbus::Connection;
use zbus::connection::Builder;
use zbus::zvariant::{DynamicType, OwnedValue, Value};

const NAME: &str = "org.freedesktop.ModemManager1";
const ROOT: &str = "/org/freedesktop/ModemManager1";
const SIGNAL: &str = "org.freedesktop.ModemManager1.Modem.Signal";
const MOCK: &str = "org.freedesktop.DBus.Mock";

/// The code of `Setup`: as in ModemManager, or a refusal.
pub(crate) const SETS_RATE: &str =
    "self.UpdateProperties(self.interface, {'Rate': dbus.UInt32(args[0])})";
pub(crate) const REFUSES: &str = "raise dbus.exceptions.DBusException('PolicyKit authorization failed', \
                           name='org.freedesktop.ModemManager1.Error.Core.Unauthorized')";

/// Allows everything.
const CONFIG: &str = r#"<busconfig>
  <type>session</type>
  <listen>unix:dir=DIRECTORY</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"#;

pub(crate) type Values = HashMap<&'static str, Value<'static>>;

/// A bus without services.
pub(crate) struct Bus {
    pub(crate) address: String,
    connection: Connection,
    daemon: Child,
    manager: Option<Child>,
    _directory: TempDir,
}

impl Bus {
    /// `None`, with the reason printed, if a program for it is missing.
    pub(crate) async fn start() -> Option<Self> {
        if python().is_none() {
            println!("skipped: there is no python3-dbusmock");
            return None;
        }
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("bus.conf");
        let text = CONFIG.replace("DIRECTORY", directory.path().to_str().unwrap());
        fs::write(&config, text).unwrap();
        let daemon = Command::new("dbus-daemon")
            .arg("--config-file")
            .arg(&config)
            .args(["--nofork", "--nopidfile", "--print-address"])
            .stdout(Stdio::piped())
            .spawn();
        let mut daemon = match daemon {
            Ok(daemon) => daemon,
            Err(why) => {
                println!("skipped: there is no dbus-daemon: {why}");
                return None;
            }
        };
        let mut address = String::new();
        let mut printed = BufReader::new(daemon.stdout.take().unwrap());
        printed.read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        let builder = Builder::address(address.as_str()).unwrap();
        Some(Self {
            connection: builder.build().await.unwrap(),
            address,
            daemon,
            manager: None,
            _directory: directory,
        })
    }

    /// Starts ModemManager, without a modem.
    pub(crate) async fn start_manager(&mut self) {
        let child = Command::new(python().unwrap())
            .args(["-m", "dbusmock", "--system", "--is-object-manager"])
            .args([NAME, ROOT, NAME])
            .env("DBUS_SYSTEM_BUS_ADDRESS", &self.address)
            .stdout(Stdio::null())
            .spawn();
        self.manager = Some(child.unwrap());
        while !self.has_manager().await {
            let manager = self.manager.as_mut().unwrap();
            assert_eq!(manager.try_wait().unwrap(), None, "dbusmock has ended");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn has_manager(&self) -> bool {
        let bus = "org.freedesktop.DBus";
        let answer = self
            .connection
            .call_method(
                Some(bus),
                "/org/freedesktop/DBus",
                Some(bus),
                "NameHasOwner",
                &NAME,
            )
            .await;
        answer.unwrap().body().deserialize().unwrap()
    }

    /// Ends ModemManager.
    pub(crate) async fn stop_manager(&mut self) {
        let mut manager = self.manager.take().unwrap();
        manager.kill().unwrap();
        manager.wait().unwrap();
        while self.has_manager().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Adds a modem that measures every `rate` seconds; `setup` is the code of its method.
    pub(crate) async fn add_modem(&self, number: u32, rate: u32, setup: &str, lte: Values) {
        let properties: Values = HashMap::from([
            ("Rate", Value::from(rate)),
            ("Lte", Value::from(lte)),
            ("Nr5g", Value::from(Values::new())),
        ]);
        let methods = vec![("Setup", "u", "", setup)];
        let body = (modem(number), SIGNAL, properties, methods);
        self.mock(ROOT, "AddObject", &body).await;
    }

    pub(crate) async fn remove_modem(&self, number: u32) {
        self.mock(ROOT, "RemoveObject", &modem(number)).await;
    }

    /// Sets the measurements of a modem for a technology.
    pub(crate) async fn set(&self, number: u32, technology: &'static str, values: Values) {
        let body = (SIGNAL, technology, Value::from(values));
        self.properties(number, "Set", &body).await;
    }

    /// The interval of a modem's measurements, in seconds.
    pub(crate) async fn rate(&self, number: u32) -> u32 {
        let answer = self.properties(number, "Get", &(SIGNAL, "Rate")).await;
        let value: OwnedValue = answer.body().deserialize().unwrap();
        u32::try_from(value).unwrap()
    }

    async fn properties(
        &self,
        number: u32,
        method: &str,
        body: &(impl serde::Serialize + DynamicType),
    ) -> zbus::Message {
        let interface = "org.freedesktop.DBus.Properties";
        let path = modem(number);
        let call =
            self.connection
                .call_method(Some(NAME), path.as_str(), Some(interface), method, body);
        call.await.unwrap()
    }

    async fn mock(&self, path: &str, method: &str, body: &(impl serde::Serialize + DynamicType)) {
        let call = self
            .connection
            .call_method(Some(NAME), path, Some(MOCK), method, body);
        call.await.unwrap();
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        for child in self.manager.iter_mut().chain([&mut self.daemon]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn modem(number: u32) -> String {
    format!("{ROOT}/Modem/{number}")
}

/// A Python with dbusmock: Debian's, which need not be the first.
fn python() -> Option<&'static str> {
    let has_it = |python: &&str| {
        let command = &mut Command::new(python);
        let command = command
            .args(["-c", "import dbusmock"])
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_it)
}
