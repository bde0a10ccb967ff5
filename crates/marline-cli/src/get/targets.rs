//! The destination of each URL's content.

use std::collections::HashSet;
use std::path::Path;

use marline_http::client::{Destination, HttpVersion, Target, parse_url};

use super::Arguments;
use crate::failure::Failure;
use crate::transport::make_directory;

/// The URLs with their destinations.
pub(super) fn targets(arguments: &Arguments) -> Result<Vec<Target>, Failure> {
    for url in &arguments.urls {
        parse_url(url, arguments.version()).map_err(|error| {
            let cleartext = match parse_url(url, HttpVersion::Http11Cleartext) {
                Ok(_) => ", or fetch it with --http 1.1c",
                Err(_) => "",
            };
            Failure::Usage(format!("{error}{cleartext}"))
        })?;
    }
    let several = arguments.urls.len() > 1;
    if arguments.json && arguments.output.is_some() && arguments.output().is_none() {
        let message = "the report of --json and the content cannot both be written to standard output; \
                       leave --json out, or give -o FILE";
        return Err(Failure::Usage(message.to_owned()));
    }
    let destination: Box<dyn Fn(&str) -> Destination> = match arguments.output() {
        None if arguments.json => Box::new(|_| Destination::Nowhere),
        None => Box::new(|_| Destination::StandardOutput),
        Some(path) if several || is_directory(path) => {
            make_directory(path)?;
            let path = path.to_owned();
            Box::new(move |url| Destination::File(path.join(file_name(url))))
        }
        Some(path) => {
            let path = path.to_owned();
            Box::new(move |_| Destination::File(path.clone()))
        }
    };
    let mut names = HashSet::new();
    let mut targets = Vec::new();
    for url in &arguments.urls {
        let destination = destination(url);
        if let Destination::File(path) = &destination
            && !names.insert(path.clone())
        {
            let path = path.display();
            let message = format!("two URLs would be written to {path}; fetch them one by one");
            return Err(Failure::Usage(message));
        }
        targets.push(Target {
            url: url.clone(),
            destination,
            size: None,
        });
    }
    Ok(targets)
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
