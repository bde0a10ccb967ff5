//! The servers.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use marline::{QuicLbFormat, quic_lb_key};
use tempfile::TempDir;

use crate::network::{Network, machine_address};
use crate::{Run, until};

/// The numbers of the servers, which are their IDs as well.
pub(crate) const IDS: [u8; 3] = [1, 2, 3];

/// Their ports for HTTPS and for metrics.
pub(crate) const PORT: u16 = 4433;
pub(crate) const METRICS_PORT: u16 = 9090;

/// The content of a large file.
pub(crate) fn large() -> Vec<u8> {
    (0..150_000_u32).map(|n| (n * 31 + n / 251) as u8).collect()
}

/// The keys of the two configurations of connection IDs.
const KEYS: [&str; 2] = [
    "8f95f09245765f80256934e50c66207f",
    "fdf726a9893ec05c0632d3956680baf0",
];

pub(crate) struct Machines {
    directory: TempDir,
    run: Run,
    running: Vec<Machine>,
}

struct Machine {
    id: u8,
    child: Child,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Machines {
    pub(crate) fn start(network: &Arc<Network>, run: Run) -> Self {
        let directory = TempDir::new().unwrap();
        let secret = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        };
        secret("secret", "what all machines behind the balancer know\n");
        for (config, key) in KEYS.iter().enumerate() {
            secret(&format!("key{config}"), key);
        }
        let mut machines = Self {
            directory,
            run,
            running: Vec::new(),
        };
        for id in IDS {
            machines.write_content(id);
            machines.write_config(id, 0);
            let child = machines.serve(network, id);
            machines.running.push(Machine { id, child });
        }
        machines
    }

    /// The directory of a machine.
    fn home(&self, id: u8) -> std::path::PathBuf {
        self.directory.path().join(id.to_string())
    }

    /// Writes the files that a machine serves; not while it does.
    fn write_content(&self, id: u8) {
        let www = self.home(id).join("www");
        fs::create_dir_all(&www).unwrap();
        fs::write(www.join("id"), [id]).unwrap();
        fs::write(www.join("large"), large()).unwrap();
    }

    /// Writes the settings of a machine, with the configuration of connection IDs that has this number.
    fn write_config(&self, id: u8, config: usize) {
        let (home, address) = (self.home(id), machine_address(id));
        let key_file = match self.run.is_encrypted {
            true => format!("../key{config}"),
            false => "none".to_owned(),
        };
        let text = format!(
            "dir = 'www'\nlisten = '{address}:{PORT}'\nmetrics = '{address}:{METRICS_PORT}'\n\
             state = 'state'\nworkers = {}\nshared_secret_file = '../secret'\n\
             [quic_lb]\nserver_id = '00{id:02x}'\nconfig = {config}\nkey_file = '{key_file}'\n",
            self.run.workers
        );
        fs::write(home.join("site.toml"), text).unwrap();
    }

    fn serve(&self, network: &Network, id: u8) -> Child {
        let config = self.home(id).join("site.toml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
        command.args([Path::new("serve"), Path::new("--config"), &config]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = network
            .machine(id)
            .inside(|| command.spawn())
            .unwrap()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut printed = Vec::new();
        loop {
            let line = lines.next();
            let line = line
                .unwrap_or_else(|| panic!("it ended: {printed:?}"))
                .unwrap();
            if line.starts_with("listening on ") {
                break;
            }
            printed.push(line);
        }
        // It must not find its standard error closed.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        child
    }

    /// The formats of both configurations, as a balancer knows them.
    pub(crate) fn formats(&self) -> Vec<QuicLbFormat> {
        let configs = (0..).zip(KEYS);
        let format = |(config, key)| {
            let key = self.run.is_encrypted.then(|| quic_lb_key(key).unwrap());
            QuicLbFormat::new(config, 2, 14, key).unwrap()
        };
        configs.map(format).collect()
    }

    /// Has all machines use the second configuration of connection IDs.
    pub(crate) fn reconfigure(&self) {
        for machine in &self.running {
            self.write_config(machine.id, 1);
            machine.signal("HUP");
        }
    }

    fn machine(&mut self, id: u8) -> &mut Machine {
        let mut machines = self.running.iter_mut();
        machines.find(|machine| machine.id == id).unwrap()
    }

    pub(crate) fn kill(&mut self, id: u8) {
        self.machine(id).child.kill().unwrap();
    }

    pub(crate) fn stop(&mut self, id: u8) {
        self.machine(id).signal("TERM");
    }

    /// Waits until a machine that stops has ended.
    pub(crate) fn wait(&mut self, id: u8) {
        let child = &mut self.machine(id).child;
        let mut status = None;
        until("the server that stops has ended", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success());
    }
}

impl Machine {
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }
}
