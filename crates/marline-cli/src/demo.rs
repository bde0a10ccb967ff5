//! `marline demo`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use marline_lab::kernel::Image;
use marline_lab::run::{self, Options};
use marline_lab::scenario::Experiment;

use crate::failure::Failure;
use crate::lab::{backends::Backends, progress::Bar, report, stop_switch, table};

/// A page and documents over LTE and Wi-Fi, with a placeholder for the directory. The file is a link to
/// `experiments/demo/page.toml`, so that the crate's package contains it; the next one is alike.
const PAGE: &str = include_str!("demo-page.toml");

/// Two networks at once, and a second visit.
const PRODUCTS: &str = include_str!("demo-products.toml");

/// The directory in that of the results for those of [`PRODUCTS`].
const PRODUCTS_OUT: &str = "products";

/// The line with the documents of a directory.
const DOCUMENTS: &str = "documents = { \"workload.files\" = \"docs\" }\n";

/// The lines of it between which it needs the kernel of `make kernel`.
const KERNEL: &str = "# With the kernel's TCP:\n";
const ALWAYS: &str = "# In any case:\n";

const OUT: &str = "marline-demo";
const SEED: u64 = 1;

/// Load a web page over emulated LTE and Wi-Fi, in a few seconds
///
/// Loads a typical web page, and fetches the files of a directory if there is one, over HTTP/3, through an emulated LTE
/// cell at three locations and a public Wi-Fi, in virtual time, with the default and with QUIC as in its RFCs;
/// compares every file's checksum; prints a table and writes DIR/report.html with charts. Where `make kernel` has built
/// a kernel, the same over HTTP/2 and its TCP is shown beside it, which takes some minutes. Then Wi-Fi and LTE at once,
/// and a second visit, with a table of their own and DIR/products/report.html.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline demo\n  \
    marline demo public --out public-over-lte\n\n\
    An experiment of your own: see `marline lab run --help`, which also explains the table and the digest.")]
pub(crate) struct Arguments {
    /// The directory whose files are fetched [default: docs if it exists, else only the page is loaded]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    /// The directory for results
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,

    /// The seed of all randomness: equal seeds give equal results
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,

    /// Run each cell only a few times
    #[arg(long)]
    quick: bool,
}

impl Arguments {
    /// The command line of these arguments, for a shell.
    fn command(&self) -> String {
        let mut command = "marline demo".to_owned();
        if let Some(directory) = &self.directory {
            command.push_str(&format!(" {}", quoted(directory)));
        }
        if self.out != Path::new(OUT) {
            command.push_str(&format!(" --out {}", quoted(&self.out)));
        }
        if self.seed != SEED {
            command.push_str(&format!(" --seed {}", self.seed));
        }
        if self.quick {
            command.push_str(" --quick");
        }
        command
    }
}

/// `path` as one word of a shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    if path.chars().all(is_plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let has_kernel = Image::find().is_ok();
    if !has_kernel {
        errln!("without the kernel's TCP, which needs a kernel: `make kernel` builds it");
    }
    let directory = arguments.directory.as_deref();
    let out = &arguments.out;
    let stop = stop_switch()?;
    for (experiment, out) in [
        (page(directory, out, has_kernel)?, out),
        (read(PRODUCTS, "products")?, &out.join(PRODUCTS_OUT)),
    ] {
        show(experiment, out, arguments, &stop)?;
    }
    Ok(())
}

/// Runs `experiment`, prints its table, and writes its report into `out`.
fn show(
    mut experiment: Experiment,
    out: &Path,
    arguments: &Arguments,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    experiment.seed = arguments.seed;
    experiment.command = Some(arguments.command());
    let mut options = Options {
        quick: arguments.quick,
        out: Some(out.to_owned()),
        watch: true,
        commit: option_env!("MARLINE_COMMIT"),
        stop: Some(stop),
        ..Options::default()
    };
    let mut bar = Bar::new("demo");
    let backends = Backends::of(&experiment, stop)?;
    let mut run = |options: &Options<'_>| {
        run::run(&experiment, &backends, options, &mut |progress| {
            bar.show(progress);
        })
    };
    // An interrupted demonstration goes on; one of another build or directory is made again.
    let finished = match run(&options) {
        Err(error) if error.is_of_other_runs() => {
            options.fresh = true;
            run(&options)
        }
        finished => finished,
    };
    drop(bar);
    let finished = finished.map_err(|error| Failure::Failed(error.to_string()))?;
    if let Some(results) = &finished.results {
        table::print(results);
    }
    report::write(out)?;
    if finished.failed > 0 {
        return Err(Failure::Failed(format!(
            "{} of the runs failed",
            finished.failed
        )));
    }
    Ok(())
}

/// The experiment `demo/NAME`, of the text of its file.
fn read(text: &str, name: &str) -> Result<Experiment, Failure> {
    let mut experiment = Experiment::parse(text, &format!("{name}.toml"), &[])
        .map_err(|error| Failure::Usage(error.to_string()))?;
    experiment.id = format!("demo/{name}");
    Ok(experiment)
}

/// [`PAGE`] with the files of `directory`, which must not be `out`; without the kernel's variants if there is no
/// kernel.
fn page(directory: Option<&Path>, out: &Path, has_kernel: bool) -> Result<Experiment, Failure> {
    let docs = Path::new("docs");
    let directory = directory.or_else(|| docs.is_dir().then_some(docs));
    let (head, rest) = PAGE.split_once(KERNEL).unwrap_or((PAGE, ""));
    let (kernel, tail) = rest.split_once(ALWAYS).unwrap_or((rest, ""));
    let text = format!("{head}{}{tail}", if has_kernel { kernel } else { "" });
    let text = match directory {
        Some(directory) => {
            check_directory(directory, out)?;
            // A JSON string is a valid TOML string.
            let quoted = serde_json::Value::from(directory.display().to_string()).to_string();
            text.replace("\"docs\"", &quoted)
        }
        None => text.replace(DOCUMENTS, ""),
    };
    read(&text, "page")
}

/// Refuses a path that is not a directory, or that is the directory for results.
fn check_directory(directory: &Path, out: &Path) -> Result<(), Failure> {
    let place = std::fs::canonicalize(directory);
    let problem = if !directory.is_dir() {
        format!(
            "there is no directory {}; name one with files to fetch",
            directory.display()
        )
    } else if place.is_ok_and(|place| std::fs::canonicalize(out).is_ok_and(|out| out == place)) {
        format!(
            "the results in {} would be among the fetched files; choose another --out",
            out.display()
        )
    } else {
        return Ok(());
    };
    Err(Failure::Usage(problem))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use marline_lab::scenario::BackendKind;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn the_command_that_repeats_the_demo_is_the_one_that_was_given() {
        for line in [
            "marline demo",
            "marline demo --quick",
            "marline demo public --out public-over-lte --seed 7 --quick",
        ] {
            let words = line.split(' ').skip(1);
            assert_eq!(Line::parse_from(words).arguments.command(), line);
        }
        let spaced = Line::parse_from(["demo", "it's mine"]).arguments;
        assert_eq!(spaced.command(), "marline demo 'it'\\''s mine'");
    }

    #[test]
    fn only_with_a_kernel_is_its_tcp_compared() {
        let variants = |has_kernel| {
            let directory = tempfile::tempdir().unwrap();
            let out = directory.path().join("out");
            let experiment = page(Some(directory.path()), &out, has_kernel).unwrap();
            let kernel = experiment.uses(BackendKind::Kernel);
            (
                experiment.variants.len(),
                experiment.comparisons.len(),
                kernel,
            )
        };
        assert_eq!(variants(false), (2, 1, false));
        assert_eq!(variants(true), (4, 3, true));
    }

    /// Tests run in the directory of the crate, which has no `docs`.
    #[test]
    fn without_documents_only_the_page_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let contents = |of: Option<&Path>| {
            let experiment = page(of, Path::new("out"), false).unwrap();
            experiment.points.len()
        };
        assert_eq!(contents(None) * 2, contents(Some(directory.path())));
        let absent = directory.path().join("absent");
        let error = page(Some(&absent), Path::new("out"), false).unwrap_err();
        assert!(error.to_string().contains("no directory"), "{error}");
    }

    #[test]
    fn results_are_not_written_into_the_fetched_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let error = page(Some(path), &path.join("."), false).unwrap_err();
        assert!(error.to_string().contains("--out"), "{error}");
        page(Some(path), &path.join("out"), false).unwrap();
    }
}
