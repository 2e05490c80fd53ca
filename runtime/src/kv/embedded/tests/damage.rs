//! Files of which bytes were changed: they are refused, or all is there; and what can be read of them is salvaged.

use std::collections::BTreeMap;

use redb::backends::InMemoryBackend;

use super::*;
use crate::kv::embedded::{salvage, tool};

/// A file of two tenants in many pages, closed in good order, and what it holds.
fn file() -> (Vec<u8>, BTreeMap<(String, BucketKey), Entry>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.redb");
    let mut file = File::open(FileBackend::new(open_file(&path, true).unwrap()).unwrap()).unwrap();
    let mut wanted = BTreeMap::new();
    for version in 1..=30_u64 {
        let tenant = if version % 3 == 0 { "one" } else { "two" };
        let entries: Vec<(BucketKey, Entry)> = (0..12)
            .map(|index| {
                let value = format!("{version} {index} {}", "x".repeat((version * 37 % 900) as usize));
                (key(&format!("{index}-{}", version % 7)), Entry { version, value: value.into() })
            })
            .collect();
        let writes = entries.iter().map(|(key, entry)| (tenant, key, Some(entry)));
        assert!(file.commit(writes, [(tenant, version)].into_iter(), &[]).is_ok());
        wanted.extend(entries.into_iter().map(|(key, entry)| ((tenant.to_owned(), key), entry)));
    }
    drop(file);
    (std::fs::read(&path).unwrap(), wanted)
}

fn flat(contents: Contents) -> BTreeMap<(String, BucketKey), Entry> {
    let of = |(tenant, content): (Box<str>, file::Content)| {
        content.entries.into_iter().map(move |(key, entry)| ((tenant.to_string(), key), entry))
    };
    contents.into_iter().flat_map(of).collect()
}

fn load(bytes: &[u8]) -> Result<Contents, FileError> {
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64)?;
    backend.write(0, bytes)?;
    File::open(backend)?.load()
}

#[test]
fn a_file_with_a_changed_byte_is_refused_or_whole_and_is_salvaged() {
    let (bytes, wanted) = file();
    assert_eq!(flat(load(&bytes).unwrap()), wanted);
    let whole = salvage::salvage(&bytes);
    assert_eq!((whole.lost.len(), whole.verified, whole.unverified), (0, wanted.len(), 0));
    assert_eq!(flat(whole.contents), wanted);
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let (mut seed, mut refused, mut most) = (0x5eed_0016_u64, 0, 0);
    for round in 0..400 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The first pages are what all others hang on.
        let at = (seed >> 33) as usize % if round % 4 == 0 { 512 } else { used + 1 };
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (seed >> 20 & 7);
        match load(&changed) {
            Ok(contents) => assert!(flat(contents) == wanted, "byte {at}: what is read is not what was written"),
            Err(_) => refused += 1,
        }
        let salvaged = salvage::salvage(&changed);
        let (verified, unverified, lost) = (salvaged.verified, salvaged.unverified, salvaged.lost.len());
        let found = flat(salvaged.contents);
        assert_eq!(lost == 0, verified == wanted.len(), "byte {at}: {verified} of {}", wanted.len());
        let right = found.iter().filter(|(place, entry)| wanted.get(place) == Some(entry)).count();
        assert!(right >= verified && right + 60 >= wanted.len(), "byte {at}: {right} of {} are right", wanted.len());
        most = most.max(unverified);
    }
    assert!(refused > 20 && most > 0, "{refused} were refused, at most {most} found otherwise");
}

#[test]
fn salvage_reads_anything_and_ends() {
    let (bytes, _) = file();
    let mut seed = 0x5eed_0017_u64;
    for round in 0..60 {
        let mut changed = bytes[..bytes.len() * (round % 4 + 1) / 4].to_vec();
        for _ in 0..3_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % changed.len();
            changed[at] = (seed >> 20) as u8;
        }
        drop(salvage::salvage(&changed));
        drop(load(&changed));
    }
    assert_eq!(salvage::salvage(&[]).verified + salvage::salvage(&[0xff; 10_000]).verified, 0);
}

#[test]
fn files_are_checked_exported_imported_and_salvaged() {
    let (bytes, wanted) = file();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("good"), &bytes).unwrap();
    let report = tool::check(&at("good")).unwrap();
    assert_eq!(report.tenants.iter().map(|tenant| tenant.entries).sum::<usize>(), wanted.len());
    assert_eq!((report.tenants[0].tenant.as_str(), report.tenants[0].version, report.tenants[1].version), ("one", 30, 29));
    let (mut lines, mut again) = (Vec::new(), Vec::new());
    tool::export(&at("good"), &mut lines).unwrap();
    assert_eq!(tool::import(&at("new"), &*lines).unwrap().tenants, report.tenants);
    tool::export(&at("new"), &mut again).unwrap();
    assert_eq!(String::from_utf8(lines.clone()).unwrap(), String::from_utf8(again).unwrap());
    assert!(matches!(tool::import(&at("new"), &*lines), Err(tool::ToolError::Exists(_))));
    let wrong = tool::import(&at("none"), &b"{\"format\":2}\n{\"tenant\":\"a\"}\n"[..]).unwrap_err().to_string();
    assert!(wrong.contains("line 2: has no `version`") && !at("none").exists(), "{wrong}");
    // The server has it.
    let store = Embedded::open(&at("new"), KvLimits::default(), &Arc::default()).unwrap();
    assert!(tool::check(&at("new")).unwrap_err().to_string().contains("is in use"));
    assert_eq!(commit(&store.space("two"), &[], &[put("x", "")]), committed(30));
    // A leaf is not as it was written.
    let place = bytes.windows(6).rposition(|window| window == b"xxxxxx").unwrap();
    let mut damaged = bytes;
    damaged[place] = b'y';
    std::fs::write(at("damaged"), &damaged).unwrap();
    let error = tool::check(&at("damaged")).unwrap_err().to_string();
    assert!(error.contains("is damaged") && error.contains("sledge kv salvage"), "{error}");
    assert_eq!(std::fs::read(at("damaged")).unwrap(), damaged, "checking changes nothing");
    let rescued = tool::rescue(&at("damaged"), &at("rescued")).unwrap();
    assert!(!rescued.lost.is_empty() && rescued.unverified > 0, "{rescued}");
    assert!(tool::check(&at("rescued")).unwrap().tenants[0].entries > 0);
}
