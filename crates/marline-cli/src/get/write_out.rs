//! `-w`: a text about each object, with curl's variables and some of marline.

use std::fmt::Write as _;

use marline_http::client::{ConnectionReport, ObjectReport, Report};

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
                    Some(value) => text.push(&value),
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

    fn variable(&self, name: &str) -> Option<String> {
        let object = self.object;
        let last = object.exchanges.last();
        let since =
            |moment: Option<f64>| moment.map_or(0.0, |moment| (moment - object.start_s).max(0.0));
        let seconds = |time: f64| format!("{time:.6}");
        let connection = self.connection();
        let path = connection.and_then(|one| one.paths.first());
        let header_bytes = || {
            object
                .exchanges
                .iter()
                .map(|one| one.head().len())
                .sum::<usize>()
        };
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
        let connected = since(object.connected_s);
        let transport = connection.filter(|_| self.is_new_connection());
        Some(match name {
            "http_code" | "response_code" => format!("{:03}", object.status.unwrap_or(0)),
            "http_connect" => "000".to_owned(),
            "http_version" => object.http_version.trim_end_matches('c').to_owned(),
            "content_type" => last
                .and_then(|last| last.response.get(http::header::CONTENT_TYPE)?.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            "size_download" => object.bytes.to_string(),
            "size_upload" => last
                .and_then(|last| {
                    last.request
                        .get(http::header::CONTENT_LENGTH)?
                        .to_str()
                        .ok()
                })
                .unwrap_or("0")
                .to_owned(),
            "size_header" => header_bytes().to_string(),
            "speed_download" => format!("{:.0}", object.bytes as f64 / total.max(1e-6)),
            "time_total" => seconds(total),
            "time_namelookup" => seconds(transport.map_or(0.0, |one| one.resolve_s)),
            "time_connect" => seconds(transport.map_or(0.0, |one| one.resolve_s + one.transport_s)),
            "time_appconnect" => seconds(connected),
            "time_pretransfer" => seconds(connected),
            "time_starttransfer" => seconds(since(object.first_byte_s)),
            "time_redirect" => seconds(0.0),
            "num_redirects" => redirects.to_string(),
            "num_connects" => u8::from(self.is_new_connection()).to_string(),
            "num_headers" => last.map_or(0, |last| last.response.len()).to_string(),
            "redirect_url" => last
                .and_then(|last| last.redirect_url())
                .unwrap_or_default(),
            "url" => object.url.clone(),
            "url_effective" => last.map_or_else(|| object.url.clone(), |last| last.uri.to_string()),
            "urlnum" => self.index.to_string(),
            "method" => last.map_or_else(|| "GET".to_owned(), |last| last.method.to_string()),
            "scheme" => last
                .and_then(|last| last.uri.scheme_str())
                .unwrap_or_default()
                .to_ascii_uppercase(),
            "remote_ip" => path.map_or_else(String::new, |path| path.remote.ip().to_string()),
            "remote_port" => path.map_or(0, |path| path.remote.port()).to_string(),
            "local_ip" => path.map_or_else(String::new, |path| path.local.ip().to_string()),
            "local_port" => path.map_or(0, |path| path.local.port()).to_string(),
            "filename_effective" => object
                .file
                .as_ref()
                .map_or_else(String::new, |file| file.display().to_string()),
            "ssl_verify_result" | "proxy_ssl_verify_result" => "0".to_owned(),
            "exitcode" => curl::status_of_object(object).to_string(),
            "errormsg" => object.error.clone().unwrap_or_default(),
            "header_json" => header_json(object),
            "json" => serde_json::to_string(object).unwrap_or_default(),
            "sha256" => object.sha256.clone().unwrap_or_default(),
            "quic_version" => connection
                .and_then(|one| one.quic_version)
                .unwrap_or_default()
                .to_owned(),
            "handshake" => seconds(connection.map_or(0.0, |one| one.handshake_s)),
            "rtt" => seconds(path.and_then(|path| path.rtt_s).unwrap_or(0.0)),
            "paths" => connection.map_or(0, |one| one.paths.len()).to_string(),
            "conn_id" | "connection" => object.connection.map_or(-1, |id| id as i64).to_string(),
            _ => return None,
        })
    }
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
