//! Downloads of a client with two networks, of which the one that it uses is lost on the way (RFC 9000, section 9).

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use marline::PathPolicy;
use marline_http::client::{Client, ClientConfig, HttpVersion, ParsedUrl, Trust, parse_url};
use marline_lab::emu::Namespace;
use tempfile::TempDir;

use crate::STEP;
use crate::namespaces::{ip, join, namespace};
use crate::network::block_on;

/// The address of the server, which both networks reach.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 1);

const PORT: u16 = 4433;

/// The client's devices, with their addresses and the addresses of their routers.
const WLAN: Device = Device {
    name: "wlan0",
    peer: "to-wlan",
    network: 1,
};
const WWAN: Device = Device {
    name: "wwan0",
    peer: "to-wwan",
    network: 2,
};

/// Bytes that arrive before the network is lost, and in all. Less than the rest is on its way or received then.
const BEFORE: usize = 1 << 20;
const LENGTH: usize = 48 << 20;

/// The time within which a download goes on: long for a busy machine, and short to the idle timeout of 30 s.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy)]
struct Device {
    name: &'static str,
    peer: &'static str,
    network: u8,
}

impl Device {
    fn address(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 1, self.network, host)
    }
}

/// How the client loses its first network.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// Its device is set down, and keeps its address.
    LinkDown,
    /// The other end of the device is set down, so that it has no carrier and keeps its routes.
    NoCarrier,
    /// The address is removed.
    NoAddress,
    /// The route is removed.
    NoRoute,
    /// Nothing changes at the client, and nothing arrives any more in either direction.
    Silence,
}

/// A client with two networks, and a server.
struct Networks {
    client: Arc<Namespace>,
    server: Arc<Namespace>,
}

impl Networks {
    fn new() -> Result<Self, String> {
        let networks = Self {
            client: namespace()?,
            server: namespace()?,
        };
        let server = &networks.server;
        ip(server, "link set lo up")?;
        ip(server, &format!("address add {SERVER}/32 dev lo"))?;
        for (device, metric) in [(WLAN, 100), (WWAN, 200)] {
            let Device { name, peer, .. } = device;
            join(server, peer, &networks.client, name)?;
            for (namespace, name, host) in [(server, peer, 1), (&networks.client, name, 2)] {
                let address = device.address(host);
                ip(namespace, &format!("address add {address}/24 dev {name}"))?;
            }
            let router = device.address(1);
            let route = format!("route add default via {router} dev {name} metric {metric}");
            ip(&networks.client, &route)?;
        }
        // Answers arrive at a device that is not that of the route.
        let accept = || {
            ["all", WLAN.name, WWAN.name]
                .into_iter()
                .try_for_each(|name| {
                    std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0")
                })
        };
        let accepted = networks.client.inside(accept).and_then(|accepted| accepted);
        accepted.map_err(|error| error.to_string())?;
        Ok(networks)
    }

    /// Loses the client's first network.
    fn lose(&self, loss: Loss) {
        let address = WLAN.address(2).to_string();
        let prefix = format!("{address}/24");
        let (client, server) = (&self.client, &self.server);
        // To a host that does not exist.
        let mute = |namespace, host: &str, device| {
            let hardware = "lladdr 02:00:00:00:00:99 nud permanent";
            let words = format!("neighbour replace {host} dev {device} {hardware}");
            ip(namespace, &words)
        };
        let (wlan, peer) = (WLAN.name, WLAN.peer);
        let lost = match loss {
            Loss::LinkDown => ip(client, &format!("link set {wlan} down")),
            Loss::NoCarrier => ip(server, &format!("link set {peer} down")),
            Loss::NoAddress => ip(client, &format!("address delete {prefix} dev {wlan}")),
            Loss::NoRoute => ip(client, &format!("route delete default dev {wlan}")),
            Loss::Silence => mute(client, &WLAN.address(1).to_string(), wlan)
                .and_then(|_| mute(server, &address, peer)),
        };
        lost.unwrap();
    }
}

struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of a directory, without multipath.
fn serve(networks: &Networks, directory: &Path) -> Serving {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.arg("serve").arg(directory);
    command.args(["--listen", &format!("{SERVER}:{PORT}")]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let spawned = networks.server.inside(|| command.spawn());
    let mut serving = Serving(spawned.unwrap().unwrap());
    let mut lines = BufReader::new(serving.0.stderr.take().unwrap()).lines();
    let is_listening = |line: &std::io::Result<String>| {
        line.as_ref()
            .is_ok_and(|line| line.starts_with("listening on "))
    };
    assert!(lines.any(|line| is_listening(&line)), "it does not listen");
    // It must not find its standard error closed.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    serving
}

fn content() -> Vec<u8> {
    (0..LENGTH as u32)
        .map(|n| (n * 31 + n / 251) as u8)
        .collect()
}

fn config(rules: &[&str]) -> ClientConfig {
    let rules = rules.iter().map(|rule| rule.parse().unwrap());
    let paths = PathPolicy {
        rules: rules.collect(),
        ..PathPolicy::default()
    };
    ClientConfig {
        trust: Trust::Insecure,
        fallback: false,
        paths: (!paths.rules.is_empty()).then_some(paths),
        ..ClientConfig::default()
    }
}

/// The outcome of a download whose network was lost.
struct Outcome {
    content: Vec<u8>,
    /// The longest time without content since then.
    pause: Duration,
    /// The client's address at the end.
    local: IpAddr,
}

/// Downloads the file, and loses the network on the way.
async fn download(networks: &Networks, config: ClientConfig, loss: Loss) -> Outcome {
    let url = format!("https://{SERVER}:{PORT}/file");
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
    let client = Client::new(config).unwrap();
    let connection = client.connect(&origin).await.unwrap();
    let quic = connection.quic().unwrap().clone();
    quic.confirmed().await.unwrap();
    assert_eq!(quic.local_address().ip(), WLAN.address(2));
    let response = connection.get(&origin, &uri, &HeaderMap::new()).await;
    let mut body = response.unwrap().into_body();
    let mut content = Vec::new();
    let mut lost_at = None;
    let mut pause = Duration::ZERO;
    let mut last = Instant::now();
    loop {
        let chunk = tokio::time::timeout(STEP, body.chunk()).await;
        let Some(chunk) = chunk.expect("the download stalls").unwrap() else {
            break;
        };
        content.extend_from_slice(&chunk);
        if lost_at.is_some() {
            pause = pause.max(last.elapsed());
        } else if content.len() > BEFORE {
            networks.lose(loss);
            lost_at = Some(content.len());
        }
        last = Instant::now();
    }
    // A download may end before its connection moves from an address that can still send.
    let moved = async {
        while quic.local_address().ip() == WLAN.address(2) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = tokio::time::timeout(STEP, moved).await;
    Outcome {
        content,
        pause,
        local: quic.local_address().ip(),
    }
}

#[test]
fn downloads_continue_over_another_network_when_theirs_is_lost() {
    let directory = TempDir::new().unwrap();
    let content = content();
    std::fs::write(directory.path().join("file"), &content).unwrap();
    let by_rules = ["wlan0", "wwan0,backup"];
    for (loss, rules) in [
        (Loss::LinkDown, &[][..]),
        (Loss::LinkDown, &by_rules),
        (Loss::NoCarrier, &[]),
        (Loss::NoAddress, &[]),
        (Loss::NoRoute, &[]),
        (Loss::Silence, &[]),
        (Loss::Silence, &by_rules),
    ] {
        let networks = match Networks::new() {
            Ok(networks) => Arc::new(networks),
            Err(error) => {
                println!("skipped: {error}");
                return;
            }
        };
        let _serving = serve(&networks, directory.path());
        let config = config(rules);
        let (found, outcome) = std::sync::mpsc::channel();
        let inside = Arc::clone(&networks);
        let client = std::thread::spawn(move || {
            let networks = Arc::clone(&inside);
            let work = move || {
                block_on(async move {
                    found.send(download(&networks, config, loss).await).unwrap();
                });
            };
            inside.client.inside(work).unwrap();
        });
        let outcome = outcome.recv();
        client.join().unwrap();
        let Outcome {
            content: received,
            pause,
            local,
        } = outcome.unwrap();
        println!("{loss:?} with rules {rules:?}: a pause of {pause:?}");
        assert!(received == content, "{loss:?}: {} bytes", received.len());
        assert_eq!(local, WWAN.address(2), "{loss:?}");
        assert!(pause < LONGEST_PAUSE, "{loss:?}: {pause:?}");
    }
}
