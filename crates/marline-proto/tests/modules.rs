//! The structure that `ARCHITECTURE.md` describes, read from the sources.
//!
//! The top-level modules of each crate form no circle: one that imports another, directly or through others, is not
//! imported by it. A reader can then take them one at a time, from the bottom. Tests may import what they like. No source is
//! longer than [`MOST_LINES`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules that still are in a circle, by crate. The list may only shrink.
const KNOWN: &[(&str, &[&str])] = &[
    ("marline", &["connection", "endpoint", "stream"]),
    ("marline-cli", &["config_file", "server"]),
    ("marline-lab", &["emu", "execution", "kernel", "run"]),
    ("marline-link", &["preset", "spec"]),
    ("marline-report", &["chart", "html"]),
];

/// The lines of a source, tests inside it included, above which it is cut by subject.
const MOST_LINES: usize = 700;

/// The imports of a crate's top-level modules among each other.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The source files below `folder`, except those of tests.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_test {
            sources(&path, files);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !is_test {
            files.push(path);
        }
    }
}

/// The names at the first level of the tree that follows `crate::` in a `use`.
fn first_names(tree: &str) -> Vec<&str> {
    let Some(list) = tree.strip_prefix('{') else {
        let end = tree.find(|c: char| !c.is_alphanumeric() && c != '_');
        return vec![&tree[..end.unwrap_or(tree.len())]];
    };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.extend(first_names(list[start..at].trim()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.extend(first_names(list[start..at].trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

/// The imports of one file that is `depth` modules below the root of its crate.
fn imports_of(text: &str, depth: usize) -> Vec<&str> {
    let to_root = "super::".repeat(depth);
    let mut names = Vec::new();
    for root in [to_root.as_str(), "crate::"] {
        for (at, _) in text.match_indices(root) {
            names.extend(first_names(&text[at + root.len()..]));
        }
    }
    names
}

/// A source without comments and without its tests.
fn code(text: &str) -> String {
    let own = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = own
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn imports(name: &str) -> Imports {
    let src = crates().join(name).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut imports = Imports::new();
    let mut found = Vec::new();
    for file in &files {
        let inner = file
            .strip_prefix(&src)
            .expect("a file of the crate")
            .with_extension("");
        let parts = inner
            .iter()
            .map(|part| part.to_str().expect("a name in UTF-8"));
        let path: Vec<&str> = parts.filter(|part| *part != "mod").collect();
        if let [module, ..] = path[..]
            && !["lib", "main"].contains(&module)
        {
            let text = code(&fs::read_to_string(file).expect("a source"));
            let named = imports_of(&text, path.len()).into_iter().map(str::to_owned);
            found.push((module.to_owned(), named.collect::<Vec<_>>()));
            imports.entry(module.to_owned()).or_default();
        }
    }
    for (module, named) in found {
        let others = named.into_iter().filter(|other| *other != module);
        let others: Vec<String> = others.filter(|other| imports.contains_key(other)).collect();
        imports.entry(module).or_default().extend(others);
    }
    imports
}

/// Everything that `module` imports, directly or through others.
fn reached<'a>(imports: &'a Imports, module: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = imports[module].iter().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(imports[next].iter().map(String::as_str));
        }
    }
    reached
}

/// The modules that import themselves through others.
fn in_circles(imports: &Imports) -> BTreeSet<&str> {
    let modules = imports.keys().map(String::as_str);
    modules
        .filter(|module| reached(imports, module).contains(module))
        .collect()
}

#[test]
fn imports_are_read_from_lists_and_through_super() {
    let text = "use crate::{a::{b, c}, d};\nuse super::super::e::f;\nuse super::g;\nlet x = crate::h::i();";
    assert_eq!(imports_of(text, 2), ["e", "a", "d", "h"]);
    let circle = |pairs: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in pairs {
            imports
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
            imports.entry((*to).to_owned()).or_default();
        }
        in_circles(&imports)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(circle(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    assert_eq!(circle(&[("a", "b"), ("b", "c"), ("c", "b")]), ["b", "c"]);
}

#[test]
fn top_level_modules_form_no_circle() {
    let mut names = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    assert!(names.iter().any(|name| name == "marline-http"), "{names:?}");
    for name in names {
        let imports = imports(&name);
        let known = KNOWN.iter().find(|(of, _)| *of == name);
        let known: BTreeSet<&str> = known
            .map_or(&[][..], |(_, modules)| modules)
            .iter()
            .copied()
            .collect();
        let circles = in_circles(&imports);
        let new: Vec<_> = circles.difference(&known).collect();
        let edges = imports
            .iter()
            .filter(|(from, _)| circles.contains(from.as_str()));
        assert!(
            new.is_empty(),
            "{name}: {new:?} are in a circle: {:#?}",
            edges.collect::<Vec<_>>()
        );
        let gone: Vec<_> = known.difference(&circles).collect();
        assert!(
            gone.is_empty(),
            "{name}: {gone:?} are in no circle any more: remove them from `KNOWN`"
        );
    }
}

/// The functions of one walk in `ARCHITECTURE.md`, with the file of each.
fn functions(section: &str) -> Vec<(&str, &str)> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| {
        let mut quoted = row.split('`').skip(1).step_by(2);
        let file = quoted.next().unwrap_or_default();
        quoted.map(move |function| (file, function))
    })
    .collect()
}

/// That `file`, of the core or of another crate, has `function`.
fn assert_exists(file: &str, function: &str) {
    let of_core = crates().join("marline-proto/src").join(file);
    let path = if of_core.exists() {
        of_core
    } else {
        crates().join(file)
    };
    let source = fs::read_to_string(&path).unwrap_or_else(|_| panic!("no file {file}"));
    let is_there = |kind| source.contains(&format!("fn {function}{kind}"));
    assert!(
        is_there('(') || is_there('<'),
        "no function {function} in {file}"
    );
}

#[test]
fn the_functions_of_the_three_walks_exist() {
    let text = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let walks = text.split("## Three walks").nth(1).expect("the section");
    let walks = walks.split("\n## ").next().unwrap();
    let sections: Vec<&str> = walks.split("\n### ").skip(1).collect();
    assert_eq!(sections.len(), 3);
    for section in sections {
        let named = functions(section);
        for (file, function) in &named {
            assert_exists(file, function);
        }
        let files: BTreeSet<&str> = named.iter().map(|(file, _)| *file).collect();
        let all: BTreeSet<_> = named.into_iter().collect();
        let counts = format!("\n{} functions in {} files.\n", all.len(), files.len());
        assert!(section.contains(&counts), "the counts are {counts}");
    }
}

#[test]
fn the_functions_of_steps_exist() {
    let text = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let tables: Vec<&str> = text
        .split("| step | file | functions |\n")
        .skip(1)
        .collect();
    assert!(!tables.is_empty());
    for table in tables {
        let rows = table
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with('|'));
        for row in rows {
            let cells: Vec<&str> = row.split(" | ").collect();
            let [_, file, named] = cells[..] else {
                panic!("{row} has other columns");
            };
            let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
            assert!(!named.is_empty(), "{row} names no function");
            for function in named {
                assert_exists(file.trim_matches('`'), function);
            }
        }
    }
}

#[test]
fn no_source_is_so_long_that_it_has_several_subjects() {
    let mut files = Vec::new();
    for one in fs::read_dir(crates()).expect("the crates") {
        let src = one.expect("an entry").path().join("src");
        if src.is_dir() {
            sources(&src, &mut files);
        }
    }
    assert!(files.len() > 100, "{}", files.len());
    let long = files.iter().filter_map(|file| {
        let lines = fs::read_to_string(file).expect("a source").lines().count();
        (lines > MOST_LINES).then(|| format!("{}: {lines} lines", file.display()))
    });
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "over {MOST_LINES} lines: {long:#?}");
}
