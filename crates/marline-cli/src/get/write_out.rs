//! `-w`: a text about each object, with curl's variables and some of marline.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;

use http::header::REFERER;
use marline_http::client::{ConnectionReport, Exchange, ObjectReport, Report};

use super::curl;

/// Prints `template` for each object.
pub(super) struct WriteOut<'a> {
    pub(super) template: &'a str,
    pub(super) report: &'a Report,
}

impl WriteOut<'_> {
    /// The text about an object.
    pub(super) fn of(&self, index: usize) -> Text {
        let object = Object {
            index,
            report: self.report,
            object: &self.report.objects[index],
        };
        let mut text = Text::default();
        let mut rest = self.template;
        while let Some(at) = rest.find(['%', '\\']) {
            text.push(&rest[..at]);
            let special = &rest[at..];
            let taken = object.special(special, &mut text);
            rest = &special[taken..];
        }
        text.push(rest);
        text
    }
}

/// The text that is printed.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) out: String,
    pub(super) err: String,
    to_err: bool,
}

impl Text {
    fn push(&mut self, text: &str) {
        match self.to_err {
            true => self.err.push_str(text),
            false => self.out.push_str(text),
        }
    }
}

struct Object<'a> {
    index: usize,
    report: &'a Report,
    object: &'a ObjectReport,
}

impl Object<'_> {
    /// Appends what the text at the beginning of `special` stands for. Returns its length.
    fn special(&self, special: &str, text: &mut Text) -> usize {
        for (escape, value) in [("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ("%%", "%")] {
            if special.starts_with(escape) {
                text.push(value);
                return escape.len();
            }
        }
        let braced = |prefix: &str| {
            let rest = special.strip_prefix(prefix)?;
            Some(&rest[..rest.find('}')?])
        };
        if let Some(name) = braced("%header{") {
            let last = self.object.exchanges.last();
            let value = last.and_then(|last| last.response.get(name));
            text.push(&value.map_or("".into(), |value| String::from_utf8_lossy(value.as_bytes())));
            return "%header{}".len() + name.len();
        }
        if let Some(name) = braced("%{") {
            match name {
                "stderr" => text.to_err = true,
                "stdout" => text.to_err = false,
                "onerror" if self.object.is_complete() => return special.len(),
                "onerror" => {}
                name => match self.variable(name) {
                    Some(value) => text.push(&value.to_string()),
                    None => {
                        let name = marline::settings::quote(name);
                        crate::failure::print_message(&format!("-w: unknown variable {name}"));
                    }
                },
            }
            return "%{}".len() + name.len();
        }
        let first = special.chars().next().map_or(0, char::len_utf8);
        text.push(&special[..first]);
        first
    }

    fn connection(&self) -> Option<&ConnectionReport> {
        let id = self.object.connection?;
        self.report.connections.iter().find(|one| one.id == id)
    }

    /// When this connection was opened for this object: seconds since its start; 0 if it was open already.
    fn is_new_connection(&self) -> bool {
        let before = &self.report.objects[..self.index];
        !before
            .iter()
            .any(|other| other.connection == self.object.connection)
    }

    fn variable(&self, name: &str) -> Option<Value> {
        use Value::{Code, Count, Seconds, Text};

        let object = self.object;
        let last = object.exchanges.last();
        let since =
            |moment: Option<f64>| moment.map_or(0.0, |moment| (moment - object.start_s).max(0.0));
        let connection = self.connection();
        let path = connection.and_then(|one| one.paths.first());
        let port = |address: Option<SocketAddr>| Count(address.map_or(0, |one| one.port()).into());
        let ip = |address: Option<SocketAddr>| {
            Text(address.map_or_else(String::new, |one| one.ip().to_string()))
        };
        let uploaded = || last.and_then(|last| last.content_length).unwrap_or(0);
        let redirects = object
            .exchanges
            .iter()
            .filter(|one| one.status.is_redirection())
            .count();
        let redirects = match last.is_some_and(|last| last.status.is_redirection()) {
            true => redirects.saturating_sub(1),
            false => redirects,
        };
        let total = object.end_s - object.start_s;
        let per_second = |bytes: u64| Count((bytes as f64 / total.max(1e-6)) as u64);
        let sizes = |size: fn(&Exchange) -> usize| {
            Count(object.exchanges.iter().map(size).sum::<usize>() as u64)
        };
        let connected = since(object.connected_s);
        let transport = connection.filter(|_| self.is_new_connection());
        Some(match name {
            "http_code" | "response_code" => Code(object.status.unwrap_or(0)),
            "http_connect" => Code(0),
            "http_version" => Text(object.http_version.trim_end_matches('c').to_owned()),
            "content_type" => Text(last.map_or("", Exchange::content_type).to_owned()),
            "size_download" => Count(object.bytes),
            "size_upload" => Count(uploaded()),
            "size_header" => sizes(|one| one.head().len()),
            "size_request" => sizes(request_size),
            "speed_download" => per_second(object.bytes),
            "speed_upload" => per_second(uploaded()),
            "time_total" => Seconds(total),
            "time_namelookup" => Seconds(transport.map_or(0.0, |one| one.resolve_s)),
            "time_connect" => Seconds(transport.map_or(0.0, |one| one.resolve_s + one.transport_s)),
            "time_appconnect" | "time_pretransfer" => Seconds(connected),
            "time_starttransfer" => Seconds(since(object.first_byte_s)),
            "time_redirect" => Seconds(0.0),
            "num_redirects" => Count(redirects as u64),
            "num_connects" => Count(self.is_new_connection().into()),
            "num_headers" => Count(last.map_or(0, |last| last.response.len()) as u64),
            "redirect_url" => Text(last.and_then(Exchange::redirect_url).unwrap_or_default()),
            "referer" => {
                let referer = last.and_then(|last| last.request.get(REFERER)?.to_str().ok());
                Text(referer.unwrap_or_default().to_owned())
            }
            "url" => Text(object.url.clone()),
            "url_effective" => {
                Text(last.map_or_else(|| object.url.clone(), |last| last.uri.to_string()))
            }
            "urlnum" => Count(self.index as u64),
            "method" => Text(last.map_or_else(|| "GET".to_owned(), |last| last.method.to_string())),
            "scheme" => {
                let scheme = last.and_then(|last| last.uri.scheme_str());
                Text(scheme.unwrap_or_default().to_ascii_uppercase())
            }
            "remote_ip" => ip(path.map(|path| path.remote)),
            "remote_port" => port(path.map(|path| path.remote)),
            "local_ip" => ip(path.map(|path| path.local)),
            "local_port" => port(path.map(|path| path.local)),
            "filename_effective" => {
                let file = object.file.as_ref();
                Text(file.map_or_else(String::new, |file| file.display().to_string()))
            }
            "certs" => Text(connection.map_or_else(String::new, |one| one.certificates.to_pem())),
            "num_certs" => {
                Count(connection.map_or(0, |one| one.certificates.as_slice().len() as u64))
            }
            "curl_version" => Text(concat!("marline/", env!("CARGO_PKG_VERSION")).to_owned()),
            "ssl_verify_result" | "proxy_ssl_verify_result" => Count(0),
            "exitcode" => Count(curl::status_of_object(object).into()),
            "errormsg" => Text(object.error.clone().unwrap_or_default()),
            "ftp_entry_path" => Text(String::new()),
            "header_json" => Text(header_json(object)),
            "json" => Text(self.json()),
            "sha256" => Text(object.sha256.clone().unwrap_or_default()),
            "quic_version" => {
                let version = connection.and_then(|one| one.quic_version);
                Text(version.unwrap_or_default().to_owned())
            }
            "handshake" => Seconds(connection.map_or(0.0, |one| one.handshake_s)),
            "rtt" => Seconds(path.and_then(|path| path.rtt_s).unwrap_or(0.0)),
            "paths" => Count(connection.map_or(0, |one| one.paths.len()) as u64),
            "conn_id" | "connection" => {
                Text(object.connection.map_or(-1, |id| id as i64).to_string())
            }
            _ => return None,
        })
    }

    /// All variables of curl as an object.
    fn json(&self) -> String {
        let all = VARIABLES.iter().filter_map(|name| {
            let value = self.variable(name)?.json();
            Some(format!("\"{name}\":{value}"))
        });
        format!("{{{}}}", all.collect::<Vec<_>>().join(","))
    }
}

/// The variables of `%{json}`.
const VARIABLES: [&str; 41] = [
    "certs",
    "content_type",
    "curl_version",
    "errormsg",
    "exitcode",
    "filename_effective",
    "ftp_entry_path",
    "http_code",
    "http_connect",
    "http_version",
    "local_ip",
    "local_port",
    "method",
    "num_certs",
    "num_connects",
    "num_headers",
    "num_redirects",
    "proxy_ssl_verify_result",
    "redirect_url",
    "referer",
    "remote_ip",
    "remote_port",
    "response_code",
    "scheme",
    "size_download",
    "size_header",
    "size_request",
    "size_upload",
    "speed_download",
    "speed_upload",
    "ssl_verify_result",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_pretransfer",
    "time_redirect",
    "time_starttransfer",
    "time_total",
    "url",
    "url_effective",
    "urlnum",
];

/// The value of a variable.
enum Value {
    Text(String),
    Count(u64),
    /// A status, of three digits as text.
    Code(u16),
    Seconds(f64),
}

impl Value {
    fn json(&self) -> String {
        match self {
            Self::Text(text) if text.is_empty() => "null".to_owned(),
            Self::Text(text) => serde_json::to_string(text).unwrap_or_default(),
            Self::Code(code) => code.to_string(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Code(code) => write!(f, "{code:03}"),
            Self::Seconds(seconds) => write!(f, "{seconds:.6}"),
        }
    }
}

/// The bytes of a request's header in HTTP/1.1.
fn request_size(exchange: &Exchange) -> usize {
    let uri = &exchange.uri;
    let path = uri.path_and_query().map_or(1, |path| path.as_str().len());
    let host = uri.authority().map_or(0, |host| host.as_str().len());
    let fields = exchange.request.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    exchange.method.as_str().len()
        + path
        + "  HTTP/1.1\r\nhost: \r\n\r\n".len()
        + host
        + fields.sum::<usize>()
}

/// The header fields of the last response: a list of values for each name.
fn header_json(object: &ObjectReport) -> String {
    let mut text = String::from("{");
    if let Some(last) = object.exchanges.last() {
        for name in last.response.keys() {
            let values = last.response.get_all(name).iter();
            let values: Vec<_> = values
                .map(|value| String::from_utf8_lossy(value.as_bytes()))
                .collect();
            let separator = if text.len() > 1 { ",\n" } else { "" };
            let name = serde_json::to_string(name.as_str()).unwrap_or_default();
            let values = serde_json::to_string(&values).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = write!(text, "{separator}{name}:{values}");
        }
    }
    text + "\n}"
}
