//! The metrics of tunnels.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use marline_http::server::{MetricsSource, metric_head};

use super::{Refusal, Tunnels};
use crate::counters::{Carried, Dropped};

impl Tunnels {
    /// The bytes of each path of each client's connection, UDP payload.
    fn write_paths(&self, out: &mut String) -> fmt::Result {
        let name = "marline_tunnel_path_bytes_total";
        metric_head(
            out,
            name,
            "counter",
            "Bytes of UDP payload of each path of a client's connection.",
        )?;
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        // One of the addresses of a client names it.
        let mut links: BTreeMap<_, _> = BTreeMap::new();
        for (address, link) in clients.iter() {
            let named = links.entry(Arc::as_ptr(link)).or_insert((*address, link));
            named.0 = named.0.min(*address);
        }
        for (address, link) in links.values() {
            for path in link.datagrams.path_stats() {
                let id = path.id;
                for (direction, bytes) in [
                    ("to_client", path.udp_sent.bytes),
                    ("from_client", path.udp_received.bytes),
                ] {
                    writeln!(
                        out,
                        "{name}{{client=\"{address}\",path=\"{id}\",direction=\"{direction}\"}} {bytes}"
                    )?;
                }
            }
        }
        Ok(())
    }
}

impl MetricsSource for Tunnels {
    fn write(&self, out: &mut String) -> fmt::Result {
        let name = "marline_tunnel_clients";
        metric_head(out, name, "gauge", "Clients that have addresses now.")?;
        writeln!(out, "{name} {}", self.config.pool.leases())?;
        let carried = [
            ("to_client", self.counters.sent()),
            ("from_client", self.counters.received()),
        ];
        let name = "marline_tunnel_packets_total";
        metric_head(out, name, "counter", "IP packets that were carried.")?;
        for (direction, Carried { packets, .. }) in carried {
            writeln!(out, "{name}{{direction=\"{direction}\"}} {packets}")?;
        }
        let name = "marline_tunnel_bytes_total";
        metric_head(
            out,
            name,
            "counter",
            "Bytes of IP packets that were carried.",
        )?;
        for (direction, Carried { bytes, .. }) in carried {
            writeln!(out, "{name}{{direction=\"{direction}\"}} {bytes}")?;
        }
        let name = "marline_tunnel_copied_packets_total";
        metric_head(
            out,
            name,
            "counter",
            "IP packets to clients that were sent on a second path.",
        )?;
        writeln!(out, "{name} {}", self.counters.copied())?;
        self.write_paths(out)?;
        let name = "marline_tunnel_refused_total";
        metric_head(
            out,
            name,
            "counter",
            "Requests that got no tunnel, by the reason.",
        )?;
        for (reason, refused) in Refusal::REASONS.iter().zip(&self.refused) {
            let refused = refused.load(Relaxed);
            writeln!(out, "{name}{{reason=\"{reason}\"}} {refused}")?;
        }
        let name = "marline_tunnel_dropped_packets_total";
        metric_head(
            out,
            name,
            "counter",
            "IP packets that were dropped, by the reason.",
        )?;
        for why in Dropped::ALL {
            let (reason, dropped) = (why.name(), self.counters.dropped(why));
            writeln!(out, "{name}{{reason=\"{reason}\"}} {dropped}")?;
        }
        if let Some(dialer) = &self.dialer {
            dialer.write(out, self.counters.split())?;
        }
        match &self.udp {
            Some(proxy) => proxy.write(out),
            None => Ok(()),
        }
    }
}
