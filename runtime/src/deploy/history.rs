//! The versions of a deployed function, the oldest first and the present one last. Knows no files.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A version of a deployed function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Counts the deployments of the function, from 1.
    pub version: u64,
    /// What was deployed.
    #[serde(flatten)]
    pub what: Deployed,
}

/// What is deployed, by whom, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployed {
    /// When it was deployed, in UTC (RFC 3339); none where a server deployed it that kept no versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_at: Option<String>,
    /// The author, as the client named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The version of which it is a copy: a rollback made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_to: Option<u64>,
    /// BLAKE3 of its module.
    pub digest: String,
    /// Bytes of its module.
    pub module_bytes: u64,
    /// Its settings, as they are written.
    pub settings: Map<String, Value>,
}

/// The versions that are kept of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(Vec<Version>);

impl History {
    /// Of versions that were written: their numbers rise.
    #[must_use]
    pub fn new(versions: Vec<Version>) -> Option<History> {
        versions.is_sorted_by(|a, b| a.version < b.version).then_some(History(versions))
    }

    /// Those of one tenant: what a function was before it became that tenant's is another's.
    #[must_use]
    pub fn of(mut self, tenant: &str) -> History {
        self.0.retain(|version| version.what.settings.get("tenant").is_some_and(|known| known == tenant));
        self
    }

    /// All of them, the oldest first.
    #[must_use]
    pub fn versions(&self) -> &[Version] {
        &self.0
    }

    /// The present one.
    #[must_use]
    pub fn present(&self) -> Option<&Version> {
        self.0.last()
    }

    /// The one of that number.
    #[must_use]
    pub fn get(&self, version: u64) -> Option<&Version> {
        self.0.iter().find(|known| known.version == version)
    }

    /// What is before the present version. Before a copy is what is before its original, so that going back twice goes back further.
    #[must_use]
    pub fn before(&self) -> Option<&Version> {
        let mut original = self.present()?;
        while let Some(copied) = original.what.rollback_to.and_then(|version| self.get(version)) {
            original = copied;
        }
        let end = original.what.rollback_to.unwrap_or(original.version);
        self.0.iter().rev().find(|known| known.version < end)
    }

    /// Makes the present version what is deployed in truth. What comes behind that was written and never deployed, as a server that was killed in between leaves it;
    /// what is unknown was deployed by a server that kept no versions.
    pub fn settle(&mut self, deployed: Deployed) {
        let is_deployed = |known: &Version| known.what.digest == deployed.digest && known.what.settings == deployed.settings;
        match self.0.iter().rposition(is_deployed) {
            Some(index) => self.0.truncate(index + 1),
            None => {
                self.add(deployed);
            }
        }
    }

    /// Adds the next version, which is the present one from now on; its number.
    pub fn add(&mut self, what: Deployed) -> u64 {
        let version = self.present().map_or(0, |present| present.version) + 1;
        self.0.push(Version { version, what });
        version
    }

    /// Keeps the newest ones, at most so many, and the present one in any case.
    pub fn keep(&mut self, versions_max: usize) {
        let surplus = self.0.len().saturating_sub(versions_max.max(1));
        self.0.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployed(digest: &str) -> Deployed {
        Deployed { digest: digest.to_owned(), ..Deployed::default() }
    }

    fn history(digests: &[&str]) -> History {
        let mut history = History::default();
        for digest in digests {
            history.add(deployed(digest));
        }
        history
    }

    fn numbers(history: &History) -> Vec<u64> {
        history.versions().iter().map(|version| version.version).collect()
    }

    #[test]
    fn numbers_go_on_where_old_versions_are_dropped() {
        let mut history = history(&["a", "b", "c"]);
        history.keep(2);
        assert_eq!((numbers(&history), history.add(deployed("d"))), (vec![2, 3], 4));
        history.keep(0);
        assert_eq!(numbers(&history), [4], "the present one stays");
        assert!(History::new(self::history(&["a", "b"]).versions().to_vec()).is_some());
        let mut confused = self::history(&["a", "b"]).versions().to_vec();
        confused.reverse();
        assert_eq!(History::new(confused), None);
    }

    #[test]
    fn going_back_twice_goes_back_further() {
        let mut history = history(&["a", "b", "c"]);
        let before = |history: &History| history.before().map(|version| version.version);
        let back_to = |history: &mut History, version: u64| {
            history.add(Deployed { rollback_to: Some(version), ..deployed("x") });
        };
        assert_eq!(before(&history), Some(2));
        back_to(&mut history, 2);
        assert_eq!(before(&history), Some(1));
        // A copy of a copy is one of the first.
        back_to(&mut history, 4);
        assert_eq!(before(&history), Some(1));
        back_to(&mut history, 1);
        assert_eq!(before(&history), None);
        // What the originals were is forgotten, but not which they were.
        history.keep(2);
        assert_eq!((numbers(&history), before(&history)), (vec![5, 6], None));
        history.add(deployed("new"));
        assert_eq!(before(&history), Some(6));
        assert_eq!(History::default().before(), None);
    }

    #[test]
    fn versions_of_another_tenant_are_not_this_ones() {
        let mut history = History::default();
        for tenant in ["red", "blue", "blue", "red", "blue"] {
            let settings = Map::from_iter([("tenant".to_owned(), tenant.into())]);
            history.add(Deployed { settings, ..deployed(tenant) });
        }
        history.add(deployed("without a tenant"));
        let (blue, red) = (history.clone().of("blue"), history.of("red"));
        assert_eq!((numbers(&blue), numbers(&red)), (vec![2, 3, 5], vec![1, 4]));
        assert_eq!(
            (blue.present().map(|version| version.version), blue.before().map(|version| version.version)),
            (Some(5), Some(3))
        );
    }

    #[test]
    fn what_is_deployed_in_truth_is_the_present_version() {
        // Written before it was deployed, and then it was not.
        let mut history = history(&["a", "b", "c"]);
        history.settle(deployed("b"));
        assert_eq!(numbers(&history), [1, 2]);
        // Deployed by a server that knew nothing of versions.
        history.settle(deployed("z"));
        assert_eq!((numbers(&history), history.present().unwrap().what.digest.as_str()), (vec![1, 2, 3], "z"));
        // The same module with other settings is another version.
        let settings = Map::from_iter([("deadline_ms".to_owned(), 7.into())]);
        history.settle(Deployed { settings, ..deployed("z") });
        assert_eq!(numbers(&history), [1, 2, 3, 4]);
        // Of equal ones it is the last.
        history.add(deployed("z"));
        history.add(deployed("z"));
        history.settle(deployed("z"));
        assert_eq!(numbers(&history), [1, 2, 3, 4, 5, 6]);
    }
}
