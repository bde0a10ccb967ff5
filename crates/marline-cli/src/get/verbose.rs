//! `-v`: connections, and the headers of requests and responses, on standard error.

use std::collections::HashSet;

use http::HeaderMap;
use http::header::HOST;
use marline_http::client::{ConnectionReport, Exchange, ObjectReport, Report};

/// Prints what was done for all objects.
pub(super) fn print(report: &Report) {
    let mut known = HashSet::new();
    for object in &report.objects {
        for exchange in &object.exchanges {
            let id = exchange.connection;
            if known.insert(id) {
                let connection = report.connections.iter().find(|one| one.id == id);
                connection.into_iter().for_each(print_connection);
            } else {
                errln!("* uses connection {id}");
            }
            print_exchange(exchange);
        }
        match &object.error {
            None => errln!("* {} bytes of content", object.bytes),
            Some(error) => errln!("* {error}"),
        }
        print_phases(object);
    }
}

/// Prints when the phases of a fetch ended, since it was asked for.
fn print_phases(object: &ObjectReport) {
    let after = |moment: Option<f64>| match moment {
        Some(moment) => format!("{:.1} ms", (moment - object.start_s).max(0.0) * 1e3),
        None => "never".to_owned(),
    };
    errln!(
        "* connected after {}, first byte after {}, end after {}",
        after(object.connected_s),
        after(object.first_byte_s),
        after(Some(object.end_s))
    );
}

fn print_connection(one: &ConnectionReport) {
    for path in &one.paths {
        errln!(
            "* connection {}, path {}: from {} to {}",
            one.id,
            path.id,
            path.local,
            path.remote
        );
    }
    let transport = match (one.quic_version, one.http_version) {
        (Some(version), _) => format!("QUIC {version} with TLS 1.3"),
        (None, "1.1c") => "TCP".to_owned(),
        (None, _) => "TCP with TLS".to_owned(),
    };
    let milliseconds = |seconds: f64| seconds * 1e3;
    errln!(
        "* connection {}: HTTP/{} over {transport}; name {:.1} ms, handshake {:.1} ms",
        one.id,
        one.http_version.trim_end_matches('c'),
        milliseconds(one.resolve_s),
        milliseconds(one.handshake_s)
    );
    let path = one.paths.first();
    if let (Some(rtt), Some(lost)) = (path.and_then(|path| path.rtt_s), one.packets_lost_observed) {
        let rtt = milliseconds(rtt);
        errln!(
            "* connection {}: round-trip time {rtt:.1} ms, {lost} packets lost",
            one.id
        );
    }
}

fn print_exchange(exchange: &Exchange) {
    let Exchange {
        uri,
        method,
        request,
        ..
    } = exchange;
    let version = exchange.http_version.trim_end_matches('c');
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    errln!("> {method} {target} HTTP/{version}");
    if let Some(authority) = uri.authority().filter(|_| !request.contains_key(HOST)) {
        errln!("> host: {authority}");
    }
    print_fields('>', request);
    errln!(">");
    errln!("< HTTP/{version} {}", exchange.status);
    print_fields('<', &exchange.response);
    errln!("<");
}

fn print_fields(direction: char, headers: &HeaderMap) {
    for (name, value) in headers {
        errln!(
            "{direction} {name}: {}",
            String::from_utf8_lossy(value.as_bytes())
        );
    }
}
