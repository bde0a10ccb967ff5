//! Network address translation of a server's clients, by nftables.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use ipnet::IpNet;

/// Rules that give packets of clients the address of the server. Dropped, they are removed.
#[derive(Debug)]
pub struct Nat {
    table: String,
}

/// Why there is no translation.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// There is no program `nft`.
    #[error(
        "--nat needs the program nft; install the package nftables, or route the pool to this machine instead"
    )]
    NoNft,
    /// It cannot be run.
    #[error("cannot run nft: {0}")]
    Run(io::Error),
    /// The kernel, or the program, refuses.
    #[error("nft refuses the rules: {0}")]
    Refused(String),
}

impl Nat {
    /// Translates the source of packets from `prefixes` that leave through other devices than `device`, and lets TCP know what
    /// the tunnel carries. Replaces what a killed server has left.
    ///
    /// # Errors
    /// See [`NatError`].
    pub fn new(device: &str, prefixes: &[IpNet]) -> Result<Self, NatError> {
        let table = format!("marline_{}", device.replace(['-', '.'], "_"));
        run(&rules(&table, device, prefixes))?;
        Ok(Self { table })
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        // The rules do nothing without the device.
        let _ = run(&format!("delete table inet {}\n", self.table));
    }
}

/// The rules, which replace a table of this name.
fn rules(table: &str, device: &str, prefixes: &[IpNet]) -> String {
    let mut text = format!(
        "add table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n\
         chain postrouting {{\ntype nat hook postrouting priority srcnat;\n"
    );
    for prefix in prefixes {
        let family = if prefix.addr().is_ipv4() { "ip" } else { "ip6" };
        let prefix = prefix.trunc();
        text += &format!("{family} saddr {prefix} oifname != \"{device}\" masquerade\n");
    }
    text += "}\nchain forward {\ntype filter hook forward priority mangle;\n";
    for direction in ["iifname", "oifname"] {
        text += &format!(
            "{direction} \"{device}\" tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu\n"
        );
    }
    text + "}\n}\n"
}

fn run(rules: &str) -> Result<(), NatError> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => NatError::NoNft,
            _ => NatError::Run(error),
        })?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(rules.as_bytes()).map_err(NatError::Run)?;
    }
    let output = child.wait_with_output().map_err(NatError::Run)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().next().unwrap_or("no reason given");
            Err(NatError::Refused(line.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_translate_what_leaves_through_other_devices() {
        let prefixes = ["10.77.0.1/24", "fd77::1/64"].map(|text| text.parse().unwrap());
        let rules = rules("marline_tun0", "tun0", &prefixes);
        assert!(rules.contains("ip saddr 10.77.0.0/24 oifname != \"tun0\" masquerade"));
        assert!(rules.contains("ip6 saddr fd77::/64 oifname != \"tun0\" masquerade"));
    }
}
