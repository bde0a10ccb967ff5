//! The certificate of `serve`.

use std::net::{IpAddr, SocketAddr};

use marline_http::server::{Identity, StateDirectory};

use super::Arguments;
use crate::failure::{Failure, print_message};

/// The certificate that was given, or the self-signed one of the state directory.
pub(super) fn identity(
    arguments: &Arguments,
    address: IpAddr,
    state: Option<&StateDirectory>,
) -> Result<Identity, Failure> {
    let failed = |error: String| Failure::Failed(error);
    match (&arguments.cert, &arguments.key) {
        (Some(cert), Some(key)) => {
            Identity::from_pem_files(cert, key).map_err(|error| failed(error.to_string()))
        }
        (None, None) => {
            let mut names = vec![
                "localhost".to_owned(),
                "127.0.0.1".to_owned(),
                "::1".to_owned(),
            ];
            if !address.is_unspecified() && !address.is_loopback() {
                names.push(address.to_string());
            }
            match state {
                Some(state) => state
                    .self_signed(&names)
                    .map_err(|error| failed(error.to_string())),
                None => Identity::self_signed(names).map_err(|error| failed(error.to_string())),
            }
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

/// Prints how clients come to trust a self-signed certificate of a server at `address`.
pub(super) fn print_trust(
    identity: &Identity,
    address: SocketAddr,
    state: Option<&StateDirectory>,
) {
    let Some(pin) = identity.pin() else { return };
    let host = match address.ip() {
        ip if ip.is_loopback() || ip.is_unspecified() => "localhost".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let port = address.port();
    print_message(&format!(
        "self-signed certificate; for Chromium: --origin-to-force-quic-on={host}:{port} \
         --ignore-certificate-errors-spki-list={pin}"
    ));
    if let Some(state) = state {
        let path = state.certificate_path();
        let path = path.display();
        print_message(&format!(
            "for other clients: marline get --cacert {path}, curl --cacert {path}"
        ));
    }
}
