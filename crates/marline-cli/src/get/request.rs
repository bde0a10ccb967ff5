//! The flags about requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use http::header::{
    ACCEPT, CONTENT_TYPE, COOKIE, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, RANGE, REFERER,
    USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use marline_http::client::{CookieJar, Credentials, Message};

use super::REQUESTS;
use super::curl::{BAD_FUNCTION_ARGUMENT, READ_ERROR};
use super::data::{Content, DataFlags, encoded};
use super::file;
use crate::failure::{Failure, WRITE_ERROR, print_message};

#[derive(Debug, Args)]
pub(crate) struct RequestFlags {
    /// Use this method [default: GET, or what the content asks for]
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = REQUESTS)]
    request: Option<Method>,

    #[command(flatten)]
    data: DataFlags,

    /// Append DATA to URLs as their query, encoded unless it begins with +; repeatable
    #[arg(long, value_name = "DATA", allow_hyphen_values = true, help_heading = REQUESTS, hide_short_help = true)]
    url_query: Vec<String>,

    /// Append the content of --data to the URL, and send GET
    #[arg(short = 'G', long = "get", help_heading = REQUESTS, hide_short_help = true)]
    get: bool,

    /// Request headers only, by HEAD, and print them
    #[arg(short = 'I', long, help_heading = REQUESTS)]
    pub(super) head: bool,

    /// Send this header field; repeatable. `Name:` sends none of this name, `Name;` one without a value, @FILE those of a file.
    /// `Host` names the host of the request, not the server
    #[arg(short = 'H', long, value_name = "K: V", help_heading = REQUESTS)]
    header: Vec<String>,

    /// Send this name and password by the scheme Basic
    #[arg(short = 'u', long, value_name = "NAME:PASSWORD", help_heading = REQUESTS)]
    user: Option<String>,

    /// Send this token by the scheme Bearer
    #[arg(long, value_name = "TOKEN", help_heading = REQUESTS, hide_short_help = true)]
    oauth2_bearer: Option<String>,

    /// Look up names and passwords of hosts in ~/.netrc
    #[arg(short = 'n', long, help_heading = REQUESTS, hide_short_help = true)]
    netrc: bool,

    /// Look up names and passwords of hosts in FILE
    #[arg(long, value_name = "FILE", help_heading = REQUESTS, hide_short_help = true)]
    netrc_file: Option<PathBuf>,

    /// Look up names and passwords in ~/.netrc if there is one
    #[arg(long, help_heading = REQUESTS, hide_short_help = true)]
    netrc_optional: bool,

    /// Send this as User-Agent [default: marline/VERSION]
    #[arg(short = 'A', long, value_name = "NAME", help_heading = REQUESTS, hide_short_help = true)]
    user_agent: Option<String>,

    /// Send this as Referer; with `;auto` after it or alone, redirects name the URL before
    #[arg(short = 'e', long, value_name = "URL", help_heading = REQUESTS, hide_short_help = true)]
    referer: Option<String>,

    /// Send these cookies, written as a=1; b=2, or those of FILE, which may be missing; repeatable
    #[arg(short = 'b', long, value_name = "DATA|FILE", help_heading = REQUESTS)]
    cookie: Vec<String>,

    /// Keep cookies, and write them to FILE at the end, - for standard output; FILE is not read
    #[arg(short = 'c', long, value_name = "FILE", help_heading = REQUESTS, hide_short_help = true)]
    cookie_jar: Option<PathBuf>,

    /// Leave out the cookies of files that end with a session
    #[arg(short = 'j', long, help_heading = REQUESTS, hide_short_help = true)]
    junk_session_cookies: bool,

    /// Ask for compressed content, and decompress it
    #[arg(long, help_heading = REQUESTS)]
    pub(super) compressed: bool,

    /// Ask for this range of bytes, as 0-499, 500- or -500
    #[arg(short = 'r', long, value_name = "RANGE", value_parser = byte_ranges, allow_hyphen_values = true, help_heading = REQUESTS, hide_short_help = true)]
    range: Option<String>,

    /// Fetch only what has changed since this date, or since the date of FILE; with - before it, what has not
    #[arg(short = 'z', long, value_name = "DATE|FILE", allow_hyphen_values = true, help_heading = REQUESTS, hide_short_help = true)]
    time_cond: Option<String>,
}

/// Ranges of bytes as RFC 9110, section 14.1.2, has them; a number alone is the beginning of one, as for curl.
fn byte_ranges(text: &str) -> Result<String, String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let range = |range: &str| match range.trim().split_once('-') {
        Some(("", last)) if is_number(last) => Some(format!("-{last}")),
        Some((first, "")) if is_number(first) => Some(format!("{first}-")),
        Some((first, last)) if is_number(first) && is_number(last) => {
            Some(format!("{first}-{last}"))
        }
        None if is_number(range.trim()) => Some(format!("{}-", range.trim())),
        _ => None,
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    let ranges = ranges.ok_or("write bytes as 0-499, 500- or -500, several with commas")?;
    Ok(ranges.join(","))
}

/// The parts of all requests that the flags describe.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pub(super) message: Message,
    /// The text that is added to the query of URLs.
    pub(super) query: Option<String>,
    /// The file of `-T`, whose name is added to URLs that end with a slash.
    pub(super) file: Option<PathBuf>,
}

impl RequestFlags {
    /// Whether redirects name the URL before them.
    pub(super) fn refers(&self) -> bool {
        let referer = self.referer.as_deref();
        referer.is_some_and(|referer| referer.ends_with(";auto"))
    }

    /// Whether ranges are asked for.
    pub(super) fn has_range(&self) -> bool {
        self.range.is_some()
    }

    /// The requests.
    ///
    /// # Errors
    /// A file cannot be read, or a flag cannot be sent.
    pub(super) fn requests(&self) -> Result<Requests, Failure> {
        let Content {
            upload,
            media_type,
            is_json,
            query,
            file,
        } = self.data.content(self.get || self.head)?;
        let method = match &self.request {
            Some(method) => method.clone(),
            None if self.head => Method::HEAD,
            None if file.is_some() => Method::PUT,
            None if upload.is_none() => Method::GET,
            None => Method::POST,
        };
        let mut headers = HeaderMap::new();
        let agent = concat!("marline/", env!("CARGO_PKG_VERSION"));
        set(
            &mut headers,
            USER_AGENT,
            self.user_agent.as_deref().unwrap_or(agent),
        )?;
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if let Some(media_type) = media_type {
            headers.insert(CONTENT_TYPE, media_type);
        }
        if is_json {
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        }
        let referer = self
            .referer
            .as_deref()
            .map(|text| text.trim_end_matches(";auto"));
        set(&mut headers, REFERER, referer.unwrap_or_default())?;
        set(&mut headers, COOKIE, &self.cookies().join("; "))?;
        if let Some(range) = &self.range {
            set(&mut headers, RANGE, &format!("bytes={range}"))?;
        }
        if let Some(condition) = &self.time_cond {
            add_condition(&mut headers, condition)?;
        }
        self.add_headers(&mut headers)?;
        Ok(Requests {
            message: Message {
                method,
                headers,
                upload,
                credentials: self.credentials()?,
            },
            // That of -G takes its place, as in curl.
            query: match query {
                Some(query) => Some(query),
                None => self.url_query()?,
            },
            file,
        })
    }

    /// The text of `--url-query`, if there is some.
    fn url_query(&self) -> Result<Option<String>, Failure> {
        let parts = self
            .url_query
            .iter()
            .map(|text| match text.strip_prefix('+') {
                Some(plain) => Ok(plain.to_owned()),
                None => encoded(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            });
        let parts = parts.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Some(parts.join("&")).filter(|query| !query.is_empty()))
    }

    /// Whether the content is that of curl's POST, whatever the method.
    pub(super) fn posts(&self) -> bool {
        self.data.posts()
    }

    /// Whether a method is given.
    pub(super) fn has_method(&self) -> bool {
        self.request.is_some()
    }

    fn credentials(&self) -> Result<Option<Credentials>, Failure> {
        if let Some(token) = &self.oauth2_bearer {
            let wrong = || unsendable("--oauth2-bearer");
            return Credentials::bearer(token).map(Some).ok_or_else(wrong);
        }
        let user = self.user.as_deref();
        Ok(user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            Credentials::basic(name.as_bytes(), password.as_bytes())
        }))
    }

    /// Fields of `-H`, which replace those that the command would send.
    fn add_headers(&self, headers: &mut HeaderMap) -> Result<(), Failure> {
        let mut own = HeaderMap::new();
        let mut lines = Vec::new();
        for text in &self.header {
            match text.strip_prefix('@') {
                None => lines.push(text.clone()),
                Some(file) => lines.extend(read(Path::new(file))?.lines().map(str::to_owned)),
            }
        }
        for line in lines.iter().filter(|line| !line.trim().is_empty()) {
            let (name, value) = match (line.split_once(':'), line.strip_suffix(';')) {
                (Some((name, value)), _) => (name, Some(value.trim())),
                (None, Some(name)) => (name, None),
                (None, None) => {
                    let message = format!("--header {line}: write it as 'Name: value'");
                    return Err(Failure::Usage(message));
                }
            };
            let name: HeaderName = name
                .trim()
                .parse()
                .map_err(|_| Failure::Usage(format!("--header {line}: the name is not valid")))?;
            match value {
                Some("") => {
                    headers.remove(&name);
                }
                value => {
                    let value = HeaderValue::from_str(value.unwrap_or_default()).map_err(|_| {
                        Failure::Usage(format!("--header {line}: the value is not valid"))
                    })?;
                    own.append(name, value);
                }
            }
        }
        headers.extend(own);
        Ok(())
    }

    /// Cookies that are written in the command.
    fn cookies(&self) -> Vec<&str> {
        let given = self.cookie.iter().map(String::as_str);
        given.filter(|text| text.contains('=')).collect()
    }

    /// The jar, if there is one, with the cookies of files.
    ///
    /// # Errors
    /// A file exists and cannot be read.
    pub(super) fn jar(&self) -> Result<Option<Arc<CookieJar>>, Failure> {
        let files = self.cookie.iter().filter(|text| !text.contains('='));
        let files: Vec<_> = files.collect();
        if files.is_empty() && self.cookie_jar.is_none() {
            return Ok(None);
        }
        let jar = CookieJar::new();
        for file in files.into_iter().filter(|file| !file.is_empty()) {
            match jar.read(Path::new(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unreadable(Path::new(file), &error));
                }
                _ => {}
            }
        }
        if self.junk_session_cookies {
            jar.end_session();
        }
        Ok(Some(Arc::new(jar)))
    }

    /// Writes the cookies of `jar` where `-c` says.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write_jar(&self, jar: Option<&CookieJar>) -> Result<(), Failure> {
        let (Some(path), Some(jar)) = (&self.cookie_jar, jar) else {
            return Ok(());
        };
        let text = jar.to_netscape();
        if path.as_os_str() == super::STANDARD_OUTPUT {
            return crate::output::write(text.as_bytes());
        }
        super::private::write(path, text.as_bytes()).map_err(|error| {
            print_message(&format!(
                "cannot write cookies to {}: {error}",
                path.display()
            ));
            Failure::Status(WRITE_ERROR)
        })
    }

    /// The credentials of a file `.netrc`, if one is to be used.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn netrc(&self) -> Result<std::collections::BTreeMap<String, Credentials>, Failure> {
        let is_needed = self.netrc_file.is_some() || self.netrc;
        if !is_needed && !self.netrc_optional {
            return Ok(Default::default());
        }
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".netrc"));
        let Some(path) = self.netrc_file.clone().or_else(home) else {
            return Ok(Default::default());
        };
        match file::read_text(&path, file::MAX_LIST) {
            Ok(text) => Ok(super::netrc::read(&text)),
            // As curl does.
            Err(_) if self.netrc_file.is_none() => Ok(Default::default()),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }
}

/// Sets a field unless its value is empty.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Failure> {
    if !value.is_empty() {
        let wrong = |_| unsendable(name.as_str());
        let value = HeaderValue::from_str(value).map_err(wrong)?;
        headers.insert(name, value);
    }
    Ok(())
}

fn unsendable(name: &str) -> Failure {
    print_message(&format!(
        "{name} has characters that a header field cannot have"
    ));
    Failure::Status(BAD_FUNCTION_ARGUMENT)
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = file::read_input_text(path, file::MAX_SMALL);
    text.map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    print_message(&format!("cannot read {}: {error}", path.display()));
    Failure::Status(READ_ERROR)
}

/// Adds the condition of `-z`. The date is that of a file if there is one of this name.
fn add_condition(headers: &mut HeaderMap, text: &str) -> Result<(), Failure> {
    let (name, text) = match text.strip_prefix('-') {
        Some(text) => (IF_UNMODIFIED_SINCE, text),
        None => (IF_MODIFIED_SINCE, text),
    };
    let of_file = std::fs::metadata(text).and_then(|metadata| metadata.modified());
    let date = match of_file {
        Ok(date) => Some(date),
        Err(_) => httpdate::parse_http_date(text).ok(),
    };
    let Some(date) = date else {
        print_message(&format!(
            "-z {text} is neither a file nor a date as `Sun, 06 Nov 1994 08:49:37 GMT`: everything is fetched"
        ));
        return Ok(());
    };
    set(headers, name, &httpdate::fmt_http_date(date))
}

#[cfg(test)]
mod tests {
    use super::byte_ranges;

    #[test]
    fn ranges_that_servers_would_ignore_are_refused_or_completed() {
        for (text, ranges) in [
            ("0-499", "0-499"),
            ("5", "5-"),
            ("5-", "5-"),
            ("-5", "-5"),
            ("0-1, 4-5,-1", "0-1,4-5,-1"),
        ] {
            assert_eq!(byte_ranges(text).as_deref(), Ok(ranges));
        }
        for text in ["", "-", "abc", "1-2-3", "0-1,", "bytes=0-1", "0--1"] {
            assert!(byte_ranges(text).is_err(), "{text}");
        }
    }
}
