//! The tree by itself: what is given up, and what is counted.

use super::*;

fn folder(lower: Option<&str>) -> Node {
    Node::new(Kind::Folder(BTreeMap::new()), lower.map(PathBuf::from), (1, 1))
}

fn file(lower: Option<&str>) -> Node {
    Node::new(Kind::File(Contents::Shared(None)), lower.map(PathBuf::from), (1, 2))
}

/// What the kept entries count, from the tree as it is.
fn counted(tree: &Tree) -> u64 {
    let entries = |node: &Node| match &node.kind {
        Kind::Folder(entries) => {
            entries.iter().filter(|(_, entry)| entry.is_kept).map(|(name, _)| entry_bytes(name)).sum::<u64>()
        }
        _ => node.text_bytes(),
    };
    tree.nodes.values().map(entries).sum()
}

#[test]
fn what_is_only_open_is_given_up_with_its_folders() {
    let mut tree = Tree::new((1, 1));
    let a = tree.adopt(ROOT, "a".as_ref(), folder(Some("a")));
    let one = tree.adopt(a, "one".as_ref(), file(Some("a/one")));
    tree.open(one);
    tree.prune();
    assert!(tree.node(one).is_some() && tree.entry(a, "one".as_ref()).is_some());
    tree.close(one);
    tree.prune();
    assert_eq!((tree.nodes.len(), tree.kept_bytes()), (1, 0));
    assert_eq!(tree.entry(ROOT, "a".as_ref()), None);
}

#[test]
fn what_is_removed_hides_the_hosts_and_what_was_made_leaves_nothing() {
    let mut tree = Tree::new((1, 1));
    tree.hide(ROOT, "host".as_ref());
    assert_eq!(tree.entry(ROOT, "host".as_ref()).map(|entry| (entry.node, entry.hides)), Some((None, true)));
    // Made in its place, and removed again: still hidden.
    let id = tree.make(ROOT, "host".as_ref(), file(None));
    assert!(tree.entry(ROOT, "host".as_ref()).is_some_and(|entry| entry.node == Some(id) && entry.hides));
    tree.unname(ROOT, "host".as_ref());
    tree.prune();
    assert!(tree.entry(ROOT, "host".as_ref()).is_some_and(|entry| entry.node.is_none()));
    assert!(tree.node(id).is_none());
    tree.make(ROOT, "new".as_ref(), file(None));
    tree.unname(ROOT, "new".as_ref());
    tree.prune();
    assert_eq!(tree.entry(ROOT, "new".as_ref()), None);
    assert_eq!((tree.kept_bytes(), counted(&tree)), (ENTRY_BYTES + 4, ENTRY_BYTES + 4));
}

#[test]
fn a_copy_goes_with_its_last_name_or_descriptor() {
    let slot = crate::host::wasi::scratch::store::Store::new(0).slot().unwrap();
    let mut tree = Tree::new((1, 1));
    let copy = Node::new(Kind::File(Contents::Private(slot, 7)), None, (0, 1));
    let id = tree.make(ROOT, "one".as_ref(), copy);
    tree.name(ROOT, "two".as_ref(), id);
    tree.unname(ROOT, "one".as_ref());
    assert_eq!((tree.prune(), tree.node(id).map(Node::names)), (Vec::new(), Some(1)));
    tree.open(id);
    tree.unname(ROOT, "two".as_ref());
    assert_eq!((tree.prune(), tree.node(id).map(Node::names)), (Vec::new(), Some(0)));
    tree.close(id);
    assert_eq!((tree.prune(), tree.kept_bytes()), (vec![(slot, 7)], 0));
}

/// After any changes, what is counted is what is there.
#[test]
fn what_is_counted_is_what_is_kept() {
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut tree = Tree::new((1, 1));
    let mut folders = vec![ROOT];
    for step in 0..20_000 {
        let folder_id = folders[random(folders.len() as u64) as usize];
        let name = OsString::from(format!("name-{}", random(12)));
        let entry = tree.entry(folder_id, &name);
        match (random(6), entry) {
            _ if tree.node(folder_id).is_none() => folders.retain(|id| *id == ROOT || tree.node(*id).is_some()),
            (0, None) => folders.push(tree.adopt(folder_id, &name, folder(Some("x")))),
            (1, None) => {
                tree.adopt(folder_id, &name, file(Some("x")));
            }
            (2, None) => tree.hide(folder_id, &name),
            (0..3, Some(Entry { node: None, .. })) => {
                tree.make(folder_id, &name, file(None));
            }
            (3, Some(Entry { node: Some(id), .. })) => tree.keep(id),
            (4, Some(Entry { node: Some(id), .. })) if tree.entries(id).is_none_or(BTreeMap::is_empty) => {
                tree.unname(folder_id, &name);
            }
            (5, Some(Entry { node: Some(id), .. })) => {
                tree.open(id);
                tree.prune();
                tree.close(id);
            }
            _ => drop(tree.prune()),
        }
        assert_eq!(tree.kept_bytes(), counted(&tree), "step {step}");
    }
}
