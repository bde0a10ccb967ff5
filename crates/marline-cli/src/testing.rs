//! The checks of the fuzz target for configuration files.

use std::path::Path;

use marline::TransportConfig;

use crate::config_file::{ConfigFile, FileKeys};

/// Checks the text of a configuration file. The error of a refused file is one line, which names a line of the file.
/// Applying the settings of an accepted file twice gives the same configuration.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check_config_file(text: &str) {
    for verb in [FileKeys::Serve, FileKeys::Proxy] {
        check_config_file_of(verb, text);
    }
}

fn check_config_file_of(verb: FileKeys, text: &str) {
    const NAME: &str = "site.toml";
    match ConfigFile::parse(NAME, text, Path::new(""), verb) {
        Ok(file) => {
            let [once, twice] = [1, 2].map(|times| {
                let mut transport = TransportConfig::default();
                for _ in 0..times {
                    let applied = file
                        .transport
                        .apply(TransportConfig::SETTINGS, &mut transport);
                    applied.expect("it was checked when it was read");
                }
                format!("{transport:?}")
            });
            assert_eq!(once, twice);
        }
        Err(problem) => {
            let place = problem
                .strip_prefix(NAME)
                .and_then(|rest| rest.strip_prefix(':'));
            let line = place.and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
            let lines = text.split('\n').count();
            assert!(
                line.is_some_and(|line| (1..=lines).contains(&line)),
                "{problem}"
            );
            assert!(!problem.contains('\n'), "{problem}");
        }
    }
}
