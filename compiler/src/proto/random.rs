//! Random .proto files: all become WIT, which has as many types, members and functions as the descriptors.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use protox::prost_reflect::{DescriptorPool, MessageDescriptor};
use wit_parser::{Resolve, TypeDefKind};

use super::{Request, generate};

/// Files that are made, each from its seed.
const SEEDS: u64 = 400;

/// xorshift64*, so that a seed gives the same file on each machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).expect("31 bits") % end.max(1)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// A file: names that meet, types that nest and reach each other.
struct File {
    random: Random,
    is_proto3: bool,
    /// Full names, as fields name types.
    messages: Vec<String>,
    enums: Vec<String>,
    text: String,
}

const WORDS: [&str; 12] =
    ["Item", "item", "Type", "LIST", "fooBar", "Foo_Bar", "HTTPUrl", "x", "A1", "a_1", "Node", "unrecognized"];
const SCALARS: [&str; 15] = [
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64",
    "bool", "string", "bytes",
];
const KEYS: [&str; 4] = ["string", "int32", "uint64", "bool"];

impl File {
    fn new(seed: u64) -> File {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let is_proto3 = random.below(3) > 0;
        File { random, is_proto3, messages: Vec::new(), enums: Vec::new(), text: String::new() }
    }

    /// A name that is new in this scope. Protobuf refuses two whose JSON names are one, so that a number tells those apart.
    fn name(&mut self, taken: &mut BTreeSet<String>) -> String {
        loop {
            let mut name = self.random.one(&WORDS).to_owned();
            if self.random.below(3) == 0 {
                let _ = write!(name, "_{}", self.random.below(30));
            }
            if taken.insert(name.replace('_', "").to_ascii_lowercase()) {
                return name;
            }
            let number = taken.len();
            let name = format!("{name}_n{number}");
            if taken.insert(name.replace('_', "").to_ascii_lowercase()) {
                return name;
            }
        }
    }

    /// Decides on the types first: fields may name any.
    fn plan(&mut self, scope: &str, depth: usize, taken: &mut BTreeSet<String>) -> Vec<Plan> {
        let count = if depth == 0 { 1 + self.random.below(7) } else { self.random.below(3) };
        let mut plans = Vec::new();
        for _ in 0..count {
            // Types may differ in capitals and `_` only: `Foo_Bar`, `fooBar`.
            let name = loop {
                let name = format!("{}{}", self.random.one(&WORDS), ["", "", "_2", "B"][self.random.below(4)]);
                if taken.insert(name.clone()) {
                    break name;
                }
                if taken.len() > 30 {
                    break self.name(taken);
                }
            };
            let full = format!("{scope}.{name}");
            if self.random.below(4) == 0 {
                self.enums.push(full);
                plans.push(Plan { name, inner: None });
            } else {
                self.messages.push(full.clone());
                let inner = if depth < 3 { self.plan(&full, depth + 1, &mut BTreeSet::new()) } else { Vec::new() };
                plans.push(Plan { name, inner: Some(inner) });
            }
        }
        plans
    }

    fn write(&mut self, plans: &[Plan], scope: &str) {
        for plan in plans {
            let full = format!("{scope}.{}", plan.name);
            match &plan.inner {
                None => self.write_enum(&plan.name, &full),
                Some(inner) => {
                    let _ = writeln!(self.text, "message {} {{", plan.name);
                    self.write(inner, &full);
                    self.write_fields(inner);
                    self.text.push_str("}\n");
                }
            }
        }
    }

    /// Values of an enum are names of the scope around it.
    fn write_enum(&mut self, name: &str, full: &str) {
        let prefix = full.replace('.', "_");
        let _ = writeln!(self.text, "enum {name} {{\n  option allow_alias = true;\n  {prefix}_0 = 0;");
        for at in 1..=1 + self.random.below(5) {
            let number = [at.to_string(), "0".to_owned(), format!("-{at}")][self.random.below(3)].clone();
            let _ = writeln!(self.text, "  {prefix}{}{at} = {number};", ["_", "__", "x", "_X"][self.random.below(4)]);
        }
        self.text.push_str("  reserved 1000;\n}\n");
    }

    fn value(&mut self) -> String {
        match self.random.below(4) {
            0 if !self.enums.is_empty() => format!(".{}", self.enums[self.random.below(self.enums.len())]),
            1 | 2 if !self.messages.is_empty() => format!(".{}", self.messages[self.random.below(self.messages.len())]),
            _ => self.random.one(&SCALARS).to_owned(),
        }
    }

    /// Fields; types inside are names of the same scope.
    fn write_fields(&mut self, inner: &[Plan]) {
        let mut taken: BTreeSet<String> = inner.iter().map(|plan| plan.name.replace('_', "").to_ascii_lowercase()).collect();
        let mut number = 0;
        for _ in 0..self.random.below(7) {
            let name = self.name(&mut taken);
            number += 1;
            let (value, key) = (self.value(), self.random.one(&KEYS).to_owned());
            let label = match (self.is_proto3, self.random.below(4)) {
                (_, 0) => "repeated ",
                (true, 1 | 2) => "",
                (false, 1) if !value.starts_with('.') => "required ",
                _ => "optional ",
            };
            match self.random.below(6) {
                0 => {
                    let _ = writeln!(self.text, "  map<{key}, {value}> {name} = {number};");
                }
                1 => {
                    let _ = writeln!(self.text, "  oneof {name} {{");
                    for _ in 0..=self.random.below(3) {
                        let (name, value) = (self.name(&mut taken), self.value());
                        number += 1;
                        let _ = writeln!(self.text, "    {value} {name} = {number};");
                    }
                    self.text.push_str("  }\n");
                }
                _ => {
                    let _ = writeln!(self.text, "  // A */ comment /// with \\ {name}.\n  {label}{value} {name} = {number};");
                }
            }
        }
    }

    fn write_services(&mut self) {
        let mut names = BTreeSet::new();
        for at in 0..self.random.below(3) {
            let _ = writeln!(self.text, "service S{at}Types {{");
            names.clear();
            for _ in 0..self.random.below(6) {
                let name = self.name(&mut names);
                let mut side = || {
                    let stream = ["", "stream "][self.random.below(2)];
                    format!("{stream}.{}", self.messages[self.random.below(self.messages.len())])
                };
                let (input, output) = (side(), side());
                let _ = writeln!(self.text, "  rpc {name}({input}) returns ({output});");
            }
            self.text.push_str("}\n");
        }
    }

    fn make(mut self) -> String {
        let syntax = if self.is_proto3 { "proto3" } else { "proto2" };
        let _ = writeln!(self.text, "syntax = \"{syntax}\";\npackage p.v1;");
        let mut taken = BTreeSet::from(["p".to_owned()]);
        let plans = self.plan("p.v1", 0, &mut taken);
        self.write(&plans, "p.v1");
        if !self.messages.is_empty() {
            self.write_services();
        }
        self.text
    }
}

/// A type: an enum, or a message with what is inside.
struct Plan {
    name: String,
    inner: Option<Vec<Plan>>,
}

/// Types, members of types, functions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    types: usize,
    members: usize,
    functions: usize,
}

fn messages(pool: &DescriptorPool) -> Vec<MessageDescriptor> {
    pool.all_messages().filter(|message| message.package_name() == "p.v1" && !message.is_map_entry()).collect()
}

/// What the WIT of these descriptors has to have. What is in a cycle is found by asking, for each message, which ones it reaches.
fn expected(pool: &DescriptorPool) -> Counts {
    let mut counts = Counts::default();
    let messages = messages(pool);
    let reached = |from: &MessageDescriptor| {
        let (mut waiting, mut reached) = (vec![from.clone()], BTreeSet::new());
        while let Some(message) = waiting.pop() {
            for field in message.fields() {
                let kind = field.kind();
                let next = match kind.as_message() {
                    Some(entry) if field.is_map() => entry.map_entry_value_field().kind().as_message().cloned(),
                    other => other.cloned(),
                };
                if let Some(next) = next
                    && reached.insert(next.full_name().to_owned())
                {
                    waiting.push(next);
                }
            }
        }
        reached
    };
    let reaches: Vec<BTreeSet<String>> = messages.iter().map(reached).collect();
    let mut several = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let oneofs: Vec<_> = message.oneofs().filter(|oneof| !oneof.is_synthetic()).collect();
        let in_oneofs: usize = oneofs.iter().map(|oneof| oneof.fields().len()).sum();
        counts.types += 1 + oneofs.len();
        // A field is a member of the record or of its variant; an empty message has one case.
        counts.members += message.fields().len() + oneofs.len();
        assert!(in_oneofs <= message.fields().len());
        counts.members += usize::from(message.fields().len() == 0);
        if reaches[at].contains(message.full_name()) {
            // The node, and the field `nodes`.
            counts.types += 1;
            counts.members += 1;
            let is_with = |other: &usize| *other != at && reaches[at].contains(messages[*other].full_name());
            let with: Vec<usize> =
                (0..messages.len()).filter(is_with).filter(|other| reaches[*other].contains(message.full_name())).collect();
            if !with.is_empty() {
                // A list in the record of all, of which there is one.
                counts.members += 1;
                several.insert(with.into_iter().chain([at]).min());
            }
        }
    }
    counts.types += several.len();
    for one in pool.all_enums().filter(|one| one.package_name() == "p.v1") {
        let numbers: BTreeSet<i32> = one.values().map(|value| value.number()).collect();
        let is_closed = one.parent_file().file_descriptor_proto().syntax() != "proto3";
        counts.types += 1;
        counts.members += numbers.len() + usize::from(!is_closed);
    }
    counts.functions = pool.services().map(|service| service.methods().len()).sum();
    counts
}

/// What the WIT has, in packages of ours; names that `use` brings are no types of their own.
fn found(text: &str) -> Counts {
    let mut resolve = Resolve::default();
    resolve.push_str("random.wit", text).expect("WIT");
    let mut counts = Counts::default();
    for (_, interface) in &resolve.interfaces {
        let package = interface.package.map(|package| resolve.packages[package].name.to_string());
        if package.as_deref() != Some("proto:p@1.0.0") {
            continue;
        }
        counts.functions += interface.functions.len();
        for id in interface.types.values() {
            let members = match &resolve.types[*id].kind {
                TypeDefKind::Record(record) => record.fields.len(),
                TypeDefKind::Variant(variant) => variant.cases.len(),
                TypeDefKind::Enum(one) => one.cases.len(),
                TypeDefKind::Type(_) => continue,
                other => panic!("a type of another kind: {other:?}"),
            };
            counts.types += 1;
            counts.members += members;
        }
    }
    counts
}

#[test]
fn random_files_become_wit() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cycles = 0;
    for seed in 0..SEEDS {
        let text = File::new(seed).make();
        fs::write(folder.path().join("p.proto"), &text).expect("write a file");
        let request = Request {
            files: vec!["p.proto".into()],
            includes: vec![folder.path().to_owned()],
            package: "test:random".to_owned(),
            functions: Vec::new(),
        };
        let wit = generate(&request).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}")).single();
        let read = super::read::read(&request.files, &request.includes).expect("it was read before");
        assert_eq!(found(&wit), expected(&read.pool), "seed {seed}\n{text}\n{wit}");
        cycles += usize::from(wit.contains("-node {"));
    }
    assert!(cycles > 20, "{cycles} files with cycles");
}
