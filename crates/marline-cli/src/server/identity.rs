//! The certificate of a server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use marline::{Runtime, TokioRuntime};
use marline_http::log::{Level, Subject, emit};
use marline_http::server::{Identity, StateDirectory};
use marline_site::SiteConfig;

use super::ServerFlags;
use crate::failure::{Failure, print_message};

/// The certificate that was given, or the self-signed one of the state directory; none if all sites have their own.
pub(super) fn identity(
    arguments: &ServerFlags,
    sites: &[SiteConfig],
    address: IpAddr,
    state: Option<&StateDirectory>,
) -> Result<Option<Identity>, Failure> {
    let failed = |error: String| Failure::Failed(error);
    match (&arguments.cert, &arguments.key) {
        (Some(cert), Some(key)) => {
            let identity = Identity::from_pem_files(cert, key);
            let identity = identity.map_err(|error| failed(error.to_string()))?;
            warn_of_dates(cert, &identity);
            Ok(Some(identity))
        }
        (None, None) if sites.iter().all(|site| !site.certificates.is_empty()) => Ok(None),
        (None, None) => {
            let mut names = vec![
                "localhost".to_owned(),
                "127.0.0.1".to_owned(),
                "::1".to_owned(),
            ];
            if !address.is_unspecified() && !address.is_loopback() {
                names.push(address.to_string());
            }
            let without = sites.iter().filter(|site| site.certificates.is_empty());
            names.extend(without.flat_map(|site| site.names.iter().map(ToString::to_string)));
            let identity = match state {
                Some(state) => state
                    .self_signed(&names)
                    .map_err(|error| failed(error.to_string())),
                None => Identity::self_signed(names).map_err(|error| failed(error.to_string())),
            };
            identity.map(Some)
        }
        (Some(_), None) => {
            let message = "--cert needs its private key; give it with --key FILE";
            Err(Failure::Usage(message.to_owned()))
        }
        (None, Some(_)) => {
            let message = "--key needs its certificate; give it with --cert FILE";
            Err(Failure::Usage(message.to_owned()))
        }
    }
}

/// Logs if the certificates of `path` are not valid now. The server starts nevertheless: the clock may be wrong, and some clients
/// are better than none.
fn warn_of_dates(path: &Path, identity: &Identity) {
    let now = TokioRuntime::current().map(|runtime| runtime.unix_time());
    if let Some(validity) = now.ok().and_then(|now| identity.validity(now)) {
        let text = format!("{}: {validity}", path.display());
        emit(Level::Warning, Subject::Tls, &text);
    }
}

/// Prints how clients come to trust a self-signed certificate of a server at `addresses`.
pub(super) fn print_trust(
    identity: &Identity,
    addresses: &[SocketAddr],
    state: Option<&StateDirectory>,
) {
    let Some(pin) = identity.pin() else { return };
    if let Some(origin) = origin(addresses) {
        print_message(&format!(
            "self-signed certificate; for Chromium: --origin-to-force-quic-on={origin} \
             --ignore-certificate-errors-spki-list={pin}"
        ));
    }
    if let Some(state) = state {
        let path = state.certificate_path();
        let path = path.display();
        print_message(&format!(
            "for other clients: marline get --cacert {path}, curl --cacert {path}"
        ));
    }
}

/// Host and port under which a client on this machine reaches a server at `addresses`: `localhost`, which a client may resolve
/// to either loopback, if the server listens on both, else the first address.
fn origin(addresses: &[SocketAddr]) -> Option<String> {
    let first = addresses.first()?;
    let port = first.port();
    let listens = |loopback: IpAddr| {
        addresses.iter().any(|one| {
            let ip = one.ip();
            // Whether [::] takes IPv4 as well depends on the system.
            let takes =
                ip == loopback || (ip.is_unspecified() && ip.is_ipv4() == loopback.is_ipv4());
            takes && one.port() == port
        })
    };
    let (v4, v6) = (Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    if listens(v4.into()) && listens(v6.into()) {
        return Some(format!("localhost:{port}"));
    }
    let host = match first.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => v4.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => v6.into(),
        ip => ip,
    };
    Some(SocketAddr::new(host, port).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_the_origin_only_if_the_server_listens_on_both_loopbacks() {
        for (addresses, expected) in [
            (&["127.0.0.1:4433", "[::1]:4433"][..], "localhost:4433"),
            (&["127.0.0.1:4433"], "127.0.0.1:4433"),
            (&["[::1]:4433"], "[::1]:4433"),
            (&["127.0.0.1:4433", "[::1]:4434"], "127.0.0.1:4433"),
            (&["0.0.0.0:4433"], "127.0.0.1:4433"),
            (&["192.0.2.1:443"], "192.0.2.1:443"),
            (&["[2001:db8::1]:443"], "[2001:db8::1]:443"),
        ] {
            let addresses: Vec<_> = addresses.iter().map(|one| one.parse().unwrap()).collect();
            assert_eq!(origin(&addresses).unwrap(), expected);
        }
    }
}
