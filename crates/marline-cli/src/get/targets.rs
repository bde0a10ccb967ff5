//! The URLs, and the destination of each one's content.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use marline_http::client::{Destination, Message, Target, WithoutUser, parse_url, without_user};

use super::arguments::is_standard_output;
use super::glob::{self, Expanded};
use super::request::Requests;
use super::{Arguments, curl};
use crate::failure::{Failure, print_message};
use crate::transport::make_directory;

/// A URL, and what is requested there.
struct Wanted {
    url: String,
    message: Message,
    expanded: Expanded,
    /// The number of the URL, as it is written, among the arguments.
    argument: usize,
}

/// The URLs with their destinations.
pub(super) fn targets(arguments: &Arguments, requests: &Requests) -> Result<Vec<Target>, Failure> {
    let mut wanted = Vec::new();
    for (argument, text) in arguments.all_urls().enumerate() {
        for expanded in expanded(arguments, text)? {
            wanted.push(one(arguments, requests, expanded, argument)?);
        }
    }
    let is_on_standard_output = !arguments.output.is_empty() && !arguments.writes_files();
    if arguments.json && is_on_standard_output {
        let message = "the report of --json and the content cannot both be written to standard output; \
                       leave --json out, or give -o FILE";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut names = HashSet::new();
    let several = wanted.len() > 1;
    let mut targets = Vec::new();
    for wanted in wanted {
        let destination = destination(arguments, &wanted, several)?;
        if let Destination::File(path) = &destination
            && !is_device(path)
            && !names.insert(path.clone())
        {
            let path = path.display();
            let message = format!("two URLs would be written to {path}; fetch them one by one");
            return Err(Failure::Usage(message));
        }
        targets.push(Target {
            url: wanted.url,
            destination,
            size: None,
            message: wanted.message,
        });
    }
    Ok(targets)
}

/// The targets of a URL of the arguments.
fn expanded(arguments: &Arguments, text: &str) -> Result<Vec<Expanded>, Failure> {
    let expanded = match arguments.globoff {
        true => Ok(vec![Expanded {
            url: text.to_owned(),
            values: Vec::new(),
        }]),
        false => glob::expand(text),
    };
    expanded.map_err(|reason| {
        print_message(&reason);
        Failure::Status(curl::URL_MALFORMAT)
    })
}

fn one(
    arguments: &Arguments,
    requests: &Requests,
    expanded: Expanded,
    argument: usize,
) -> Result<Wanted, Failure> {
    let mut message = requests.message.clone();
    let text = match expanded.url.contains("://") {
        true => expanded.url.clone(),
        false if arguments.version() == marline_http::client::HttpVersion::Http11Cleartext => {
            format!("http://{}", expanded.url)
        }
        false => format!("https://{}", expanded.url),
    };
    let WithoutUser {
        mut url,
        credentials,
    } = without_user(&text);
    message.credentials = message.credentials.or(credentials);
    if let Some(query) = &requests.query {
        let plain = url.split('#').next().unwrap_or_default();
        let separator = if plain.contains('?') { '&' } else { '?' };
        url = format!("{plain}{separator}{query}");
    }
    if let Some(name) = requests.file.as_deref().and_then(Path::file_name)
        && url.ends_with('/')
    {
        url.push_str(&name.to_string_lossy());
    }
    parse_url(&url, arguments.version()).map_err(|error| {
        print_message(&error.to_string());
        Failure::Status(curl::status(&error))
    })?;
    Ok(Wanted {
        url,
        message,
        expanded,
        argument,
    })
}

fn destination(
    arguments: &Arguments,
    wanted: &Wanted,
    several: bool,
) -> Result<Destination, Failure> {
    let place = match &arguments.output[..] {
        _ if arguments.remote_name => None,
        [] if arguments.json => return Ok(Destination::Nowhere),
        [] => return Ok(Destination::StandardOutput),
        [one] if !is_device(one) => Some(one),
        each => match each.get(wanted.argument) {
            None => return Ok(Destination::StandardOutput),
            Some(one) => Some(one),
        },
    };
    if place.is_some_and(|place| is_standard_output(place)) {
        return Ok(Destination::StandardOutput);
    }
    let name = file_name(&wanted.url);
    let directory = arguments.output_dir.as_deref();
    let within =
        |path: &Path| directory.map_or_else(|| path.to_owned(), |directory| directory.join(path));
    let Some(place) = place else {
        let directory = within(Path::new(super::HERE));
        if arguments.output_dir.is_some() {
            make_parent(arguments, &directory.join(&name))?;
        }
        return Ok(match arguments.remote_header_name {
            true => Destination::Named { directory, name },
            false => Destination::File(directory.join(name)),
        });
    };
    let text = place.to_string_lossy();
    if text.contains('#') && !wanted.expanded.values.is_empty() {
        let path = within(Path::new(&wanted.expanded.name(&text)));
        make_parent(arguments, &path)?;
        return Ok(Destination::File(path));
    }
    let path = within(place);
    let is_for_all = several && arguments.output.len() == 1 && !is_device(&path);
    if is_for_all || is_directory(&path) {
        make_directory(&path)?;
        return Ok(Destination::File(path.join(name)));
    }
    make_parent(arguments, &path)?;
    Ok(Destination::File(path))
}

/// Creates the directory of a file, if the flags say so.
fn make_parent(arguments: &Arguments, path: &Path) -> Result<(), Failure> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match parent.filter(|_| arguments.create_dirs) {
        Some(parent) => make_directory(&PathBuf::from(parent)),
        None => Ok(()),
    }
}

/// Whether a path is that of something that takes the content of any number of objects, as `/dev/null` does.
fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|known| !known.is_file() && !known.is_dir())
}

fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The last name in a URL's path, which cannot be a path itself.
fn file_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let last = match path.split_once('/') {
        Some((_, path)) => path.rsplit('/').next().unwrap_or_default(),
        None => "",
    };
    // Names with a leading dot would collide with partial files.
    let name = last.trim_start_matches('.');
    if name.is_empty() {
        "index.html".to_owned()
    } else {
        name.to_owned()
    }
}
