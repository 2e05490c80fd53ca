//! `awsm proto`: the WIT of our .proto files, what it says where there is none, and what a folder of it has.

use std::path::Path;

use wit_parser::{Resolve, WorldItem};

/// A folder with the files of `protos/`, as imports name them.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/protos");
    for file in ["shop/v1/shop.proto", "money/money.proto", "legacy/legacy.proto", "edition.proto", "edition_old.proto"] {
        write(folder.path(), file, &std::fs::read_to_string(protos.join(file)).expect("read a file"));
    }
    folder
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
    std::fs::write(path, text).expect("write a file");
}

fn proto(folder: &Path, arguments: &[&str]) -> sledge_tests::process::Finished {
    super::awsm(folder, &[&["proto"], arguments].concat())
}

#[test]
fn wit() {
    let folder = folder();
    let mut failures = Vec::new();
    let mut case = |name: &str, arguments: &[&str]| {
        let done = proto(folder.path(), &[arguments, &["-o", "-"]].concat());
        assert_eq!(done.code(), 0, "{name}: {}", done.stderr);
        let again = proto(folder.path(), &[arguments, &["-o", "-"]].concat());
        assert_eq!(done.text(), again.text(), "{name}");
        failures.extend(super::compare(&format!("proto-{name}"), &super::shown(&done, folder.path())));
    };
    case("shop", &["shop/v1/shop.proto"]);
    case("legacy", &["legacy/legacy.proto"]);
    case("edition", &["edition.proto"]);
    case("money", &["-I", "money", "money.proto", "--package", "my:enum@1.2.3"]);
    case("function", &["shop/v1/shop.proto", "--export", "shop.v1.Types", "--import", "shop.v1.Cart"]);
    let both = ["--import", "basket=shop.v1.Types", "--export", "types=shop.v1.Types", "--export", "basket=shop.v1.Cart"];
    case("functions", &[&["shop/v1/shop.proto"], both.as_slice()].concat());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A folder is what tools of WIT want: the same packages as one file has.
#[test]
fn a_folder_of_wit() {
    let folder = folder();
    let arguments = ["shop/v1/shop.proto", "--export", "shop.v1.Cart", "--import", "shop.v1.Catalogue", "--world", "front"];
    for output in ["wit", "one.wit"] {
        let done = proto(folder.path(), &[&arguments, ["-o", output].as_slice()].concat());
        assert_eq!((done.code(), &*done.stderr), (0, ""), "{output}");
    }
    let read = |path: &str| {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_path(folder.path().join(path)).expect("WIT");
        let world = resolve.select_world(&[package], Some("front")).expect("the world");
        let mut packages: Vec<String> = resolve.packages.iter().map(|(_, package)| package.name.to_string()).collect();
        packages.sort();
        let services = |items: &wit_parser::IndexMap<wit_parser::WorldKey, WorldItem>| {
            let names = items.keys().map(|key| resolve.name_world_key(key)).filter(|name| !name.contains("/types"));
            names.collect::<Vec<_>>()
        };
        let world = &resolve.worlds[world];
        (packages, services(&world.imports), services(&world.exports))
    };
    let (packages, imports, exports) = read("wit");
    assert_eq!((&packages, &imports, &exports), (&read("one.wit").0, &read("one.wit").1, &read("one.wit").2));
    assert_eq!(imports, ["proto:shop/catalogue@1.0.0"]);
    assert_eq!(exports, ["proto:shop/cart@1.0.0"]);
    assert!(packages.iter().any(|package| package == "sledge:grpc@0.1.0"), "{packages:?}");
}

/// What is refused is named with its line, and nothing is written.
#[test]
fn refusals() {
    let folder = folder();
    let files = [
        (
            "group.proto",
            "syntax = \"proto2\";\npackage a;\nmessage M {\n  optional group Result = 1 { optional int32 x = 1; }\n}\n",
        ),
        ("extensible.proto", "syntax = \"proto2\";\nmessage M {\n  optional int32 x = 1;\n  extensions 100 to 199;\n}\n"),
        ("extension.proto", "syntax = \"proto2\";\nimport \"extensible.proto\";\nextend M {\n  optional int32 more = 100;\n}\n"),
        ("set.proto", "syntax = \"proto2\";\nmessage M {\n  option message_set_wire_format = true;\n  extensions 4 to max;\n}\n"),
        ("required.proto", "syntax = \"proto2\";\nmessage A {\n  required B b = 1;\n}\nmessage B {\n  required A a = 1;\n}\n"),
        ("syntax.proto", "syntax = \"proto3\";\nmessage M {\n  int32 = 1;\n}\n"),
        ("unknown-type.proto", "syntax = \"proto3\";\nmessage M {\n  Missing m = 1;\n}\n"),
        ("unknown-import.proto", "syntax = \"proto3\";\nimport \"there/is/none.proto\";\n"),
        ("circle.proto", "syntax = \"proto3\";\nimport \"circle.proto\";\n"),
        ("escape.proto", "syntax = \"proto3\";\nimport \"\\033[2J\\007.proto\";\n"),
        ("binary.proto", "syntax = \"proto3\"\u{1b};\n"),
        ("future.proto", "/* 1 */ // 2\n  edition = '2024';\n"),
        (
            "delimited.proto",
            "edition = \"2023\";\noption features.message_encoding = DELIMITED;\nmessage A {\n  string s = 1;\n  A a = 2;\n}\n",
        ),
        ("closed.proto", "edition = \"2023\";\nenum E {\n  A = 1;\n}\n"),
        ("optional.proto", "edition = \"2023\";\nmessage A {\n  optional string s = 1;\n}\n"),
        (
            "feature-target.proto",
            "edition = \"2023\";\nmessage A {\n  option features.field_presence = IMPLICIT;\n  string s = 1;\n}\n",
        ),
        ("feature.proto", "edition = \"2023\";\nmessage A {\n  string s = 1 [features.field_presents = IMPLICIT];\n}\n"),
        ("feature-value.proto", "edition = \"2023\";\nmessage A {\n  string s = 1 [features.field_presence = NEVER];\n}\n"),
        (
            "default.proto",
            "edition = \"2023\";\nmessage A {\n  string s = 1 [\n    default = \"x\", features.field_presence = IMPLICIT];\n}\n",
        ),
        ("default-type.proto", "edition = \"2023\";\nmessage A {\n  int32 s = 1 [default = \"x\"];\n}\n"),
        (
            "implicit.proto",
            "edition = \"2023\";\noption features.field_presence = IMPLICIT;\nenum E {\n  option features.enum_type = CLOSED;\n  A = 0;\n}\nmessage M {\n  string s = 1;\n  E e = 2;\n}\n",
        ),
        ("edition-import.proto", "edition = \"2023\";\nimport \"there/is/none.proto\";\n"),
        ("edition-type.proto", "edition = \"2023\";\nmessage M {\n  reserved a; Missing m = 1 [default = 1];\n}\n"),
        ("edition-syntax.proto", "edition = \"2023\"; message M {\n  int32 = 1;\n}\n"),
        ("a1.proto", "syntax = \"proto3\";\npackage a;\nmessage Low {}\n"),
        ("b.proto", "syntax = \"proto3\";\npackage b;\nimport \"a1.proto\";\nmessage Middle { a.Low low = 1; }\n"),
        (
            "a2.proto",
            "syntax = \"proto3\";\npackage a;\nimport \"a1.proto\";\nimport \"b.proto\";\nmessage High {\n  b.Middle middle = 1;\n  Low low = 2;\n}\n",
        ),
        ("same1.proto", "syntax = \"proto3\";\npackage x.y_z;\nmessage M {}\n"),
        ("same2.proto", "syntax = \"proto3\";\n\npackage x.y.z;\nmessage M {}\n"),
        ("ours.proto", "syntax = \"proto3\";\npackage sledge.application;\nmessage M {}\n"),
        ("none.proto", "syntax = \"proto3\";\nmessage M {}\n"),
    ];
    for (file, text) in files {
        write(folder.path(), file, text);
    }
    let long = format!("syntax = \"proto3\";\nmessage M {{\n  int32 {} = 1;\n}}\n", "x".repeat(1001));
    write(folder.path(), "long.proto", &long);
    let fields: String = (1..=10_001).map(|at| format!("  int32 f{at} = {at};\n")).collect();
    write(folder.path(), "many.proto", &format!("syntax = \"proto3\";\nmessage M {{\n{fields}}}\n"));
    let mut failures = Vec::new();
    let mut case = |name: &str, arguments: &[&str]| {
        let done = proto(folder.path(), &[arguments, &["-o", "out.wit"]].concat());
        assert_ne!(done.code(), 0, "{name}");
        assert!(!folder.path().join("out.wit").exists(), "{name}");
        failures.extend(super::compare(&format!("proto-no-{name}"), &super::shown(&done, folder.path())));
    };
    case("edition-2024", &["future.proto"]);
    for file in files
        .iter()
        .map(|(file, _)| *file)
        .filter(|file| !["a1.proto", "b.proto", "same1.proto", "same2.proto", "none.proto", "future.proto"].contains(file))
    {
        case(file.trim_end_matches(".proto"), &[file]);
    }
    case("long-name", &["long.proto"]);
    case("many-fields", &["many.proto"]);
    case("same-package", &["same1.proto", "same2.proto"]);
    case("file", &["missing.proto"]);
    case("outside", &["shop/v1/shop.proto", "-I", "shop/v1"]);
    case("service", &["shop/v1/shop.proto", "--export", "shop.v1.Carts"]);
    case("service-at-all", &["none.proto", "--import", "Cart"]);
    case("world-name", &["shop/v1/shop.proto", "--export", "1=shop.v1.Cart"]);
    case("world-alone", &["shop/v1/shop.proto", "--world", "front"]);
    case("package-name", &["none.proto", "--package", "mine"]);
    case("package-version", &["none.proto", "--package", "my:own@1"]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Descriptors are of files that WIT has no image for, too, and of what they import.
#[test]
fn descriptors() {
    let folder = folder();
    let done = proto(folder.path(), &["shop/v1/shop.proto", "legacy/legacy.proto", "--descriptors", "-o", "all.binpb"]);
    assert_eq!((done.code(), &*done.stderr), (0, ""));
    let bytes = std::fs::read(folder.path().join("all.binpb")).expect("a file");
    // Of files and what they import: field 1 of each, its name. And services.
    for name in
        ["\u{a}\u{12}shop/v1/shop.proto", "\u{a}\u{13}legacy/legacy.proto", "\u{a}\u{11}money/money.proto", "\u{a}\u{4}Cart"]
    {
        assert!(bytes.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{name:?}");
    }
    // An edition stays one, and its features with it; groups, too.
    write(folder.path(), "group.proto", "edition = \"2023\";\nmessage G { G g = 1 [features.message_encoding = DELIMITED]; }\n");
    let done = proto(folder.path(), &["edition.proto", "group.proto", "--descriptors", "-o", "edition.binpb"]);
    assert_eq!((done.code(), &*done.stderr), (0, ""));
    let bytes = std::fs::read(folder.path().join("edition.binpb")).expect("a file");
    let count = |words: &[u8]| bytes.windows(words.len()).filter(|bytes| bytes == &words).count();
    // `syntax`, `edition`, `features` of a field.
    assert_eq!((count(b"b\x08editions"), count(b"p\xe8\x07"), count(b"\xaa\x01\x02\x28\x02")), (3, 3, 1));
    assert_eq!((count(b"optional"), count(b"_efault"), count(b"_egated")), (0, 0, 0));
    let done = proto(folder.path(), &["shop/v1/shop.proto", "--descriptors", "--export", "shop.v1.Cart", "-o", "x"]);
    assert!(done.code() == 2 && done.stderr.contains("cannot be used with"), "{}", done.stderr);
}
