//! What images that are shared take of the process: file descriptors.

use awsm_abi::types::Bounds;
use sledge_sandbox::*;

use crate::guest::worker;
use crate::shared::{BIG, MIB, bytes, data, own_bytes};
use crate::traps::{in_another_process, is_doomed};

/// Descriptors are for connections first. In a process of its own: the limit is the process's.
#[test]
fn an_eighth_of_the_descriptors_is_for_images_and_further_ones_are_copied() {
    const FILES: u64 = 256;
    if !is_doomed() {
        let output = in_another_process("images::an_eighth_of_the_descriptors_is_for_images_and_further_ones_are_copied");
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let _worker = worker();
    let limit = rustix::process::Rlimit { current: Some(FILES), maximum: Some(FILES) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let data = data(MIB);
    let artifact = data.template(Bounds::Guard).artifact().clone();
    let image = |template: &Template| own_bytes(&mut template.instantiate().unwrap()).1;
    let mut templates: Vec<Template> = (0..FILES / 8 + 3).map(|_| Template::new(&artifact, &BIG).unwrap()).collect();
    let shared = templates.iter().filter(|&template| image(template)).count();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
        let to = std::fs::read_link(entry.as_ref().unwrap().path());
        to.is_ok_and(|to| to.to_string_lossy().contains("memfd:sledge-image"))
    });
    assert_eq!((shared as u64, open.count() as u64), (FILES / 8, FILES / 8));
    let mut copied = templates.last().unwrap().instantiate().unwrap();
    assert!(bytes(&mut copied) == data.memory());
    // The place of one that goes is another's.
    drop(templates.remove(0));
    assert!(image(&Template::new(&artifact, &BIG).unwrap()));
}
