//! The cache of parts: code of a large module is compiled once, whatever data stand beside it, and what comes out is what would without a cache.

use sledge_tests::process::{self, Finished};
use sledge_tests::programs;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(120);

/// So many that they are divided into parts.
const FUNCTIONS: u32 = 200;

/// What a module is made of: the code of an engine, an application as its data.
#[derive(Clone)]
struct Engine {
    /// Types, imports: what stands first.
    head: String,
    memory: &'static str,
    table: &'static str,
    elements: &'static str,
    globals: [&'static str; 2],
    /// The last function of all.
    last: String,
    /// Behind all functions: exports, and what is not code.
    tail: String,
    data: String,
}

impl Engine {
    /// What it writes depends on all its functions and on the data.
    fn new() -> Engine {
        Engine {
            head: String::new(),
            memory: "(memory (export \"memory\") 2)",
            table: "(table 4 funcref)",
            elements: "(elem (i32.const 1) func $f0 $f1)",
            globals: ["(global $count (mut i32) (i32.const 1))", "(global $factor i32 (i32.const 3))"],
            last: "(func $last (param i32) (result i32) (i32.xor (local.get 0) (i32.const 5)))".to_owned(),
            tail: String::new(),
            data: "(data (i32.const 64) \"one\")".to_owned(),
        }
    }

    /// The same engine beside another application: other data, more of them, in a larger memory and table, with another state. The globals take more bytes, so
    /// that code stands elsewhere.
    fn with_other_data(self) -> Engine {
        Engine {
            memory: "(memory (export \"memory\") 3 9)",
            table: "(table 7 9 funcref)",
            elements: "(elem (i32.const 2) func $f1 $f0 $f1)",
            globals: ["(global $count (mut i32) (i32.const 1000000000))", self.globals[1]],
            data: "(data (i32.const 64) \"another application\") (data (i32.const 4096) \"its module\")".to_owned(),
            ..self
        }
    }

    fn text(&self) -> String {
        let Engine { head, memory, table, elements, globals: [count, factor], last, tail, data } = self;
        let step = |constant: u32| {
            format!(
                "(local.set 0 (i32.add (i32.mul (local.get 0) (global.get $factor)) (i32.xor (global.get $count) (i32.const {constant}))))"
            )
        };
        let functions: String = (0..FUNCTIONS)
            .map(|index| {
                let body: String = (0..130).map(|line| step(index * 1_000 + line)).collect();
                format!("(func $f{index} (param i32) (result i32) {body} (i32.load8_u (i32.and (local.get 0) (i32.const 127))))")
            })
            .collect();
        let calls: String = (0..FUNCTIONS)
            .map(|index| {
                format!(
                    "(i32.store (i32.const 16) (i32.add (i32.load (i32.const 16)) (call $f{index} (i32.load (i32.const 16)))))"
                )
            })
            .collect();
        format!(
            "(module {head}
               (import \"wasi_snapshot_preview1\" \"fd_write\" (func $write (param i32 i32 i32 i32) (result i32)))
               {memory} {table} {count} {factor} {functions}
               (func (export \"_start\")
                 {calls}
                 (i32.store (i32.const 16) (call $last (i32.load (i32.const 16))))
                 (i64.store (i32.const 0) (i64.const 0x400000010))
                 (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
               {last} {tail} {elements} {data})"
        )
    }
}

/// A compilation that has succeeded.
struct Compiled {
    artifact: Vec<u8>,
    /// How many parts the cache had, and how many it may have.
    parts: Option<(usize, usize)>,
    done: Finished,
}

/// Compiles a text with options, within a folder.
fn compile(folder: &Path, text: &str, options: &[&str]) -> Compiled {
    let input = tempfile::Builder::new().suffix(".wasm").tempfile_in(folder).expect("a file");
    fs::write(input.path(), wat::parse_str(text).expect("a module")).expect("write a file");
    let output = input.path().with_extension("so");
    let mut command = programs::awsm_command(&["compile"]);
    command.env_remove("AWSM_NO_CACHE").env("XDG_CACHE_HOME", folder.join("home")).current_dir(folder);
    let done = process::run(command.arg(input.path()).arg("-o").arg(&output).args(options), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{options:?}: {}", done.stderr);
    let parts = done.stderr.split(", ").find_map(|said| {
        let mut words = said.split_ascii_whitespace();
        let (found, "of", kept, "parts") = (words.next()?, words.next()?, words.next()?, words.next()?) else { return None };
        Some((found.parse().ok()?, kept.parse().ok()?))
    });
    Compiled { artifact: fs::read(&output).expect("the artifact"), parts, done }
}

/// Compiles with the folder's cache at the least level.
fn cached(folder: &Path, text: &str, options: &[&str]) -> Compiled {
    let level: &[&str] = if options.iter().any(|option| option.starts_with("-O")) { &[] } else { &["-O0"] };
    compile(folder, text, &[level, &["--cache", "cache"], options].concat())
}

/// The same without it: what has to come out.
fn uncached(folder: &Path, text: &str, options: &[&str]) -> Vec<u8> {
    let compiled = cached(folder, text, &[options, &["--no-cache"]].concat());
    assert_eq!(compiled.parts, None, "{}", compiled.done.stderr);
    compiled.artifact
}

/// What the artifact writes.
fn run(folder: &Path, artifact: &[u8]) -> Vec<u8> {
    let path = folder.join("run.so");
    fs::write(&path, artifact).expect("write a file");
    let done = process::run(programs::sledge_command(&["run"]).arg(&path), b"", TIME_MAX);
    assert_eq!((done.code(), done.stdout.len()), (0, 4), "{}", done.stderr);
    done.stdout
}

/// The files of the cache.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(folder.join("cache")).expect("the cache").flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

impl Compiled {
    /// The number of parts; each came from the cache, or none.
    fn all(&self, are_found: bool) -> usize {
        let (found, kept) = self.parts.unwrap_or_else(|| panic!("nothing is said of parts: {}", self.done.stderr));
        assert!(kept >= 8 && found == if are_found { kept } else { 0 }, "{}", self.done.stderr);
        kept
    }
}

#[test]
fn code_beside_other_data_is_not_compiled_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (one, other) = (Engine::new().text(), Engine::new().with_other_data().text());
    let first = cached(folder, &one, &[]);
    let count = first.all(false);
    assert!(first.artifact == uncached(folder, &one, &[]));
    assert_eq!(entries(folder).len(), count);
    assert_eq!(fs::metadata(folder.join("cache")).expect("the cache").permissions().mode() & 0o777, 0o700);

    let second = cached(folder, &other, &[]);
    second.all(true);
    assert!(second.artifact == uncached(folder, &other, &[]));
    assert_ne!(run(folder, &first.artifact), run(folder, &second.artifact));
    assert_eq!(entries(folder).len(), count, "the second had nothing to add");

    // Neither lines of the source nor the number of threads are in the code.
    let third = cached(folder, &other, &["--debug", "-j", "1"]);
    third.all(true);
    assert!(third.artifact == uncached(folder, &other, &["--debug"]));
}

/// At a level that inlines, moves and vectorises, too.
#[test]
fn optimised_code_beside_other_data_is_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (one, other) = (Engine::new().text(), Engine::new().with_other_data().text());
    cached(folder, &one, &["-O3"]).all(false);
    let second = cached(folder, &other, &["-O3"]);
    second.all(true);
    assert!(second.artifact == uncached(folder, &other, &["-O3"]));
    assert_eq!(run(folder, &second.artifact), run(folder, &uncached(folder, &other, &["-O0"])));
}

/// Each of these is something on which code depends. If it were not in the key, the artifact would be another than without a cache.
#[test]
fn whatever_code_depends_on_makes_another_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = Engine::new().text();
    let with = |change: &dyn Fn(&mut Engine)| {
        let mut engine = Engine::new();
        change(&mut engine);
        engine.text()
    };
    let last = |body: &str| with(&|engine| engine.last = format!("(func $last (param i32) (result i32) {body})"));
    let head = |text: &str| with(&|engine| engine.head = text.to_owned());
    let tail = |text: &str| with(&|engine| engine.tail = text.to_owned());
    let two =
        "(call $two (local.get 0) (i32.const 5))) (func $two (param i32 i32) (result i32) (i32.xor (local.get 0) (local.get 1))";
    let cases: Vec<(&str, String, &[&str])> = vec![
        ("level", text.clone(), &["-O1"]),
        ("bounds", text.clone(), &["--bounds", "software"]),
        ("segment", text.clone(), &["--bounds", "segment"]),
        ("processor", text.clone(), &["--cpu", "x86-64-v3"]),
        ("exceptions of others", text.clone(), &["--foreign-exceptions"]),
        ("instruction", last("(i32.xor (local.get 0) (i32.const 6))"), &[]),
        ("local", last("(local i64) (i32.xor (local.get 0) (i32.const 5))"), &[]),
        ("signature", last(two), &[]),
        ("name", text.replace("$last", "$lost"), &[]),
        ("constant", with(&|engine| engine.globals[1] = "(global $factor i32 (i32.const 7))"), &[]),
        ("variable", with(&|engine| engine.globals[1] = "(global $factor (mut i32) (i32.const 3))"), &[]),
        ("type", head("(type (func (param i64 i64 i64 i64 i64 i64 i64 i64)))"), &[]),
        ("import", head("(import \"wasi_snapshot_preview1\" \"sched_yield\" (func (result i32)))"), &[]),
        ("name of an import", text.replace("\"fd_write\"", "\"fd_read\""), &[]),
        ("export", tail("(export \"last\" (func $last))"), &[]),
        ("start", tail("(start $begin) (func $begin)"), &[]),
        ("element", with(&|engine| engine.elements = "(elem (i32.const 1) func $f0 $f2)"), &[]),
        ("table", tail("(table 1 externref)"), &[]),
        ("memory", tail("(memory 1)"), &[]),
        ("global", tail("(global (mut i64) (i64.const 0))"), &[]),
        ("tag", tail("(tag (param i32))"), &[]),
    ];
    let base = ["--cpu", "x86-64-v2"];
    cached(folder, &text, &base).all(false);
    for (what, text, options) in cases {
        let options = if options.contains(&"--cpu") { options.to_vec() } else { [&base, options].concat() };
        let wanted = uncached(folder, &text, &options);
        for is_there in [false, true] {
            let compiled = cached(folder, &text, &options);
            assert!(compiled.artifact == wanted, "{what}");
            assert!(compiled.parts.is_some_and(|(found, _)| (found > 0) == is_there), "{what}: {}", compiled.done.stderr);
        }
    }
    cached(folder, &text, &base).all(true);
}

/// A throw says where in the module it stands, so such code is for one place in it.
#[test]
fn code_that_throws_says_where_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let throws = |engine: Engine| Engine { tail: "(tag $t) (func (export \"throws\") (throw $t))".to_owned(), ..engine }.text();
    let (one, other) = (throws(Engine::new()), throws(Engine::new().with_other_data()));
    cached(folder, &one, &[]).all(false);
    let elsewhere = cached(folder, &other, &[]);
    elsewhere.all(false);
    assert!(elsewhere.artifact == uncached(folder, &other, &[]));
    // Data alone move nothing.
    let same_place = throws(Engine { data: "(data (i32.const 64) \"two and more\")".to_owned(), ..Engine::new() });
    let compiled = cached(folder, &same_place, &[]);
    compiled.all(true);
    assert!(compiled.artifact == uncached(folder, &same_place, &[]));
}

/// A function is not divided, so a large one is all of its module.
#[test]
fn a_module_of_one_part_is_kept_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let body = "(drop (i32.const 1))".repeat(100_000);
    let text = format!("(module (func (export \"_start\") {body}))");
    let wanted = uncached(folder, &text, &[]);
    for found in [0, 1] {
        let compiled = cached(folder, &text, &[]);
        assert_eq!(compiled.parts, Some((found, 1)), "{}", compiled.done.stderr);
        assert!(compiled.artifact == wanted);
    }
}

#[test]
fn a_damaged_entry_is_compiled_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = Engine::new().text();
    let first = cached(folder, &text, &[]);
    let count = first.all(false);
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| *bytes.last_mut().expect("bytes") ^= 1,
        |bytes| bytes[0] ^= 1,
        |bytes| bytes.truncate(100),
        |bytes| bytes.clear(),
    ];
    for damage in damages {
        let entry = &entries(folder)[1];
        let mut bytes = fs::read(entry).expect("an entry");
        damage(&mut bytes);
        fs::write(entry, bytes).expect("write a file");
        let compiled = cached(folder, &text, &[]);
        assert_eq!(compiled.parts, Some((count - 1, count)));
        assert!(compiled.artifact == first.artifact);
        cached(folder, &text, &[]).all(true);
    }
    // Right as it is, but another's.
    let entries = entries(folder);
    fs::copy(&entries[0], &entries[1]).expect("copy a file");
    let compiled = cached(folder, &text, &[]);
    assert_eq!(compiled.parts, Some((count - 1, count)));
    assert!(compiled.artifact == first.artifact);
}

#[test]
fn compilers_share_a_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let texts = [Engine::new().text(), Engine::new().with_other_data().text()];
    let wanted = texts.each_ref().map(|text| uncached(folder, text, &[]));
    std::thread::scope(|scope| {
        for (text, wanted) in texts.iter().zip(&wanted).cycle().take(6) {
            scope.spawn(move || assert!(cached(folder, text, &["-j", "1"]).artifact == *wanted));
        }
    });
    let count = cached(folder, &texts[0], &[]).all(true);
    assert_eq!(entries(folder).len(), count, "nothing unfinished is left");
}

#[test]
fn the_cache_has_a_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = Engine::new().text();
    let size = || entries(folder).iter().map(|entry| fs::metadata(entry).expect("an entry").len()).sum::<u64>();
    for options in [&["--bounds", "software"], &["--cpu", "x86-64-v2"], &["--cpu", "x86-64-v3"], &["--cpu", "x86-64-v4"]] {
        cached(folder, &text, options).all(false);
    }
    assert!(size() > 1 << 20, "{}", size());
    // What it makes room for is its own.
    let first = cached(folder, &text, &["--cache-max-mb", "1"]);
    let count = first.all(false);
    assert!((1..=1 << 20).contains(&size()), "{}", size());
    let second = cached(folder, &text, &["--cache-max-mb", "1"]);
    assert_eq!(second.all(true), count);
    assert!(second.artifact == first.artifact);
}

#[test]
fn a_folder_that_others_can_write_to_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::create_dir(folder.join("cache")).expect("a folder");
    fs::set_permissions(folder.join("cache"), fs::Permissions::from_mode(0o777)).expect("another mode");
    let compiled = cached(folder, &Engine::new().text(), &[]);
    assert_eq!((compiled.parts, entries(folder)), (None, Vec::new()));
    let warning = "awsm: warning: cache: not used as a cache: it belongs to another user, or can be written by others";
    assert!(compiled.done.stderr.contains(warning), "{}", compiled.done.stderr);
}

#[test]
fn parts_go_to_the_users_cache_folder_and_small_modules_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let small = compile(folder, "(module (func (export \"_start\")))", &[]);
    assert!(small.parts.is_none() && !folder.join("home").exists(), "{}", small.done.stderr);
    let count = compile(folder, &Engine::new().text(), &["-O0"]).all(false);
    assert_eq!(fs::read_dir(folder.join("home/awsm/parts")).expect("the cache").count(), count);
}

/// The modules of a component are known by themselves: one stays what it is beside another.
#[test]
fn modules_of_a_component_have_parts_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let component = |first: &Engine, second: &Engine| {
        let module = |name: &str, engine: &Engine| {
            let text = engine.text();
            let start = text.find("(import").expect("an import");
            let end = start + text[start..].find(")))").expect("its end") + 3;
            // A component has no imports that the host of core modules offers.
            let text = [&text[..start], &text[end..]].concat();
            let body = text.trim_start_matches("(module").rsplit_once(')').expect("the module's end").0;
            let write = "(func $write (param i32 i32 i32 i32) (result i32) (i32.const 0))";
            format!("(core module ${name} {body} {write})")
        };
        format!(
            "(component {} {} (core instance (instantiate $a)) (core instance $i (instantiate $b))
               (func $run (result (result)) (canon lift (core func $i \"run\")))
               (instance $run (export \"run\" (func $run)))
               (export \"wasi:cli/run@0.2.0\" (instance $run)))",
            module("a", first),
            module("b", second)
        )
    };
    let one = Engine { tail: "(func (export \"run\") (result i32) (i32.const 0))".to_owned(), ..Engine::new() };
    let two =
        Engine { last: "(func $last (param i32) (result i32) (i32.add (local.get 0) (i32.const 5)))".to_owned(), ..one.clone() };
    let first = cached(folder, &component(&one, &one), &[]);
    let count = first.all(false);
    let second = component(&one, &two);
    let compiled = cached(folder, &second, &[]);
    assert!(
        compiled.parts.is_some_and(|(found, kept)| (8..=count - 8).contains(&found) && kept == count),
        "{}",
        compiled.done.stderr
    );
    assert!(compiled.artifact == uncached(folder, &second, &[]));
}
