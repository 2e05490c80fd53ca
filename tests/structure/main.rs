//! The structure that the folders promise: inside a crate, imports lead in one direction.
//!
//! The files and folders at the top of a crate are its *rooms*. A room imports another if its code, tests left out, names `crate::ROOM`. Rooms that import
//! each other, directly or by way of others, could be neither read nor tested one at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Crates whose rooms are to have an order.
const CRATES: [&str; 3] = ["compiler/src", "runtime/sandbox/src", "runtime/src"];

/// Where a room names another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: PathBuf,
    line: usize,
}

/// The rooms of a crate, and for each those that it imports with the first place of each.
type Rooms = BTreeMap<String, BTreeMap<String, Place>>;

#[test]
fn no_room_imports_one_that_imports_it() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    for source in CRATES {
        let rooms = rooms(&workspace.join(source));
        assert!(rooms.len() > 5 && rooms.values().any(|imports| imports.len() > 2), "{source}: {rooms:?}");
        if let Some(circle) = circle(&rooms) {
            let lines = circle.iter().map(|(from, to, place)| {
                let file = place.file.strip_prefix(workspace).unwrap_or(&place.file);
                format!("  {from} imports {to}: {}:{}", file.display(), place.line)
            });
            panic!("{source}: rooms import each other in a circle:\n{}", lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

#[test]
fn a_circle_is_found_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("lib.rs", "mod a; mod b; mod c;");
    write("a.rs", "//! crate::c\nuse crate::{b::{self, X}, std::Y};\n#[cfg(test)]\nmod tests { use crate::c; }\n");
    write("b/mod.rs", "mod inner;");
    write("b/inner.rs", "fn f() {\n    g!(super::super::c::h());\n}\n");
    write("b/tests.rs", "use crate::a;");
    write("c.rs", "#[cfg(test)]\nuse crate::a;\nconst T: &str = \"crate::a\";\n");
    let found = rooms(folder.path());
    let names = |room: &str| found[room].keys().cloned().collect::<Vec<_>>();
    assert_eq!((names("a"), names("b"), names("c")), (vec!["b".to_owned()], vec!["c".to_owned()], Vec::new()));
    assert_eq!(circle(&found), None);

    write("c.rs", "\npub(in crate::c) fn h() -> crate::a::Z {}\n");
    let found = circle(&rooms(folder.path())).expect("a circle");
    let named: Vec<_> = found.iter().map(|(from, to, place)| (&**from, &**to, place.line)).collect();
    assert_eq!(named, [("a", "b", 2), ("b", "c", 2), ("c", "a", 2)]);
}

/// The rooms below `source`.
fn rooms(source: &Path) -> Rooms {
    let mut files = Vec::new();
    collect(source, &mut files);
    let room_of = |file: &Path| -> Option<String> {
        let first = file.strip_prefix(source).ok()?.iter().next()?;
        let name = Path::new(first).file_stem()?.to_str()?.to_owned();
        (!["lib", "main"].contains(&&*name)).then_some(name)
    };
    let mut rooms: Rooms = files.iter().filter_map(|file| Some((room_of(file)?, BTreeMap::new()))).collect();
    let names: BTreeSet<String> = rooms.keys().cloned().collect();
    for file in &files {
        let Some(room) = room_of(file) else { continue };
        let text = fs::read_to_string(file).expect("a file of the source");
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut found = Vec::new();
        named(tokens, depth(source, file), &mut found);
        let imports = rooms.get_mut(&room).expect("one of them");
        for (name, line) in found.into_iter().filter(|(name, _)| *name != room && names.contains(name)) {
            imports.entry(name).or_insert(Place { file: file.clone(), line });
        }
    }
    rooms
}

/// Files of code; those of tests left out.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// How many `super` lead from a file's module to the crate.
fn depth(source: &Path, file: &Path) -> usize {
    let path = file.strip_prefix(source).expect("a file of the source");
    path.components().count() - usize::from(path.file_stem().is_some_and(|stem| stem == "mod"))
}

/// What code names right below the crate, and where. `depth`: how far below the crate the code is.
fn named(tokens: TokenStream, depth: usize, found: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Group(group) => named(group.stream(), depth, found),
            TokenTree::Punct(punct) if punct.as_char() == '#' && is_test(tokens.get(at)) => {
                // To the end of the item.
                while let Some(token) = tokens.get(at) {
                    at += 1;
                    match token {
                        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                        TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                        _ => {}
                    }
                }
            }
            TokenTree::Ident(ident) if *ident == "crate" || *ident == "super" => {
                let mut above = if *ident == "super" { 1 } else { depth };
                while let Some(next) = behind_colons(&tokens, at) {
                    at += 2;
                    match next {
                        TokenTree::Ident(ident) if *ident == "super" => {
                            at += 1;
                            above += 1;
                            continue;
                        }
                        TokenTree::Ident(ident) if above == depth => found.push((ident.to_string(), ident.span().start().line)),
                        TokenTree::Group(group) if above == depth => firsts(group.stream(), found),
                        _ => {}
                    }
                    break;
                }
            }
            _ => {}
        }
    }
}

/// The token behind `::`.
fn behind_colons(tokens: &[TokenTree], at: usize) -> Option<&TokenTree> {
    let is_colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    if is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1)) { tokens.get(at + 2) } else { None }
}

/// The first name of each path in `{a::b, c, d::{e}}`.
fn firsts(tokens: TokenStream, found: &mut Vec<(String, usize)>) {
    let mut is_first = true;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if is_first => {
                found.push((ident.to_string(), ident.span().start().line));
                is_first = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => is_first = true,
            _ => {}
        }
    }
}

/// Whether an attribute is `[cfg(test)]`.
fn is_test(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.to_string().replace(' ', "") == "[cfg(test)]")
}

/// A shortest circle, if there is one: each step with where it is taken.
fn circle(rooms: &Rooms) -> Option<Vec<(String, String, Place)>> {
    rooms.keys().filter_map(|start| way_back(rooms, start)).min_by_key(Vec::len)
}

/// A shortest way from a room to itself.
fn way_back(rooms: &Rooms, start: &str) -> Option<Vec<(String, String, Place)>> {
    let mut ways = VecDeque::from([vec![start.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for to in rooms[&way[way.len() - 1]].keys() {
            let way: Vec<String> = way.iter().chain([to]).cloned().collect();
            if to == start {
                let step = |pair: &[String]| (pair[0].clone(), pair[1].clone(), rooms[&pair[0]][&pair[1]].clone());
                return Some(way.windows(2).map(step).collect());
            }
            if seen.insert(to.clone()) {
                ways.push_back(way);
            }
        }
    }
    None
}
