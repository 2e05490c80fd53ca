//! A deployer with real files, as executions use it.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::*;
use crate::invoke::by_hand;
use crate::load;

/// A configuration with one function, whose file is in that folder.
fn config(folder: &Path, deadline_ms: u64) -> Config {
    let function = FunctionConfig { deadline_ms, ..FunctionConfig::new("f", folder.join("f.so")) };
    Config { kv: Some(folder.join("kv.redb")), functions: vec![function], ..Config::default() }
}

/// Writes the file of a version in place, as `cp` does; its digest.
fn write(folder: &Path, version: &str) -> Hash {
    let file = by_hand::artifact(version);
    fs::write(folder.join("f.so"), &file).unwrap();
    blake3::hash(&file)
}

fn deployer(config: &Config) -> (Arc<Deployer>, Keeping) {
    let deployer = Arc::new(Deployer::new(config, load::compiler(config)).unwrap());
    let keeping = Keeping(Arc::downgrade(&deployer));
    (deployer, keeping)
}

fn served(deployer: &Deployer) -> Arc<Function> {
    Arc::clone(deployer.catalogue().get("f").unwrap().function())
}

#[test]
fn a_version_that_was_replaced_is_loaded_beside_the_served_one_with_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(folder.path(), "first");
    let (deployer, keeping) = deployer(&config(folder.path(), 1_000));
    assert_eq!(served(&deployer).digest, Some(first));
    keeping.keep(&served(&deployer)).unwrap();
    let second = write(folder.path(), "second");
    deployer.reload(&config(folder.path(), 2_000)).unwrap();
    let now = served(&deployer);
    assert_eq!(now.digest, Some(second));

    let pinned = keeping.load("default", "f", &first).unwrap();
    assert_eq!((pinned.digest, pinned.name(), pinned.deadline), (Some(first), "f", Duration::from_secs(2)));
    assert!(Arc::ptr_eq(&pinned.gate, &now.gate), "both together keep the limits");
    assert!(Arc::ptr_eq(&now, &now.neighbours.find("f").unwrap()), "functions and routes find the served one");
    assert!(Arc::ptr_eq(&pinned, &keeping.load("default", "f", &first).unwrap()), "it is loaded once");

    // Settings change for it, too.
    deployer.reload(&config(folder.path(), 3_000)).unwrap();
    let anew = keeping.load("default", "f", &first).unwrap();
    assert_eq!((anew.digest, anew.deadline), (Some(first), Duration::from_secs(3)));
    keeping.unload(&HashSet::from([first]));
    assert!(
        pinned.retired.load(Ordering::Relaxed) && !anew.retired.load(Ordering::Relaxed),
        "the one with the earlier settings goes"
    );

    // The next server has it again, as long as it is needed.
    drop((keeping, deployer));
    let (deployer, keeping) = self::deployer(&config(folder.path(), 3_000));
    let again = keeping.load("default", "f", &first).unwrap();
    assert_eq!(again.digest, Some(first));
    keeping.sweep(&HashSet::new(), false);
    keeping.unload(&HashSet::new());
    assert!(again.retired.load(Ordering::Relaxed) && !keeping.has(&first));
    assert!(keeping.load("default", "f", &first).is_err());
    assert!(!served(&deployer).retired.load(Ordering::Relaxed));
}

#[test]
fn what_cannot_be_kept_or_loaded_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(folder.path(), "first");
    let (deployer, keeping) = deployer(&config(folder.path(), 1_000));
    let before = served(&deployer);
    let second = write(folder.path(), "second");
    let error = keeping.keep(&before).unwrap_err().to_string();
    assert!(error.contains("f.so") && error.contains("kill -HUP"), "{error}");
    deployer.reload(&config(folder.path(), 1_000)).unwrap();
    keeping.keep(&served(&deployer)).unwrap();
    // What is served stays for the next execution, unless there is no room.
    keeping.sweep(&HashSet::new(), false);
    assert!(keeping.has(&second));
    keeping.sweep(&HashSet::new(), true);
    assert!(!keeping.has(&second));
    assert!(keeping.load("default", "f", &first).unwrap_err().contains(first.to_hex().as_str()), "it names the file");
    keeping.keep(&served(&deployer)).unwrap();
    let third = write(folder.path(), "third");
    deployer.reload(&config(folder.path(), 1_000)).unwrap();
    let file = folder.path().join("kv.redb.pinned").join(second.to_hex().as_str());
    let good = fs::read(&file).unwrap();
    fs::write(&file, &good[..good.len() / 2]).unwrap();
    assert!(keeping.load("default", "f", &second).unwrap_err().contains("damaged"));
    fs::write(&file, good).unwrap();
    assert_eq!(keeping.load("default", "f", &second).unwrap().digest, Some(second));
    // Another tenant's function is not served to it, and one that was removed is not.
    assert!(keeping.load("other", "f", &second).unwrap_err().contains("not served"));
    deployer.reload(&Config { functions: Vec::new(), ..config(folder.path(), 1_000) }).unwrap();
    assert!(keeping.load("default", "f", &second).unwrap_err().contains("not served"));
    assert_ne!(third, second);
    drop(deployer);
    assert!(keeping.load("default", "f", &second).unwrap_err().contains("stopping"));
}
