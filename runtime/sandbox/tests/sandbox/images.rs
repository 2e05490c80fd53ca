//! What images that are shared take of the process: file descriptors, and memory that only resets read.

use std::time::Instant;

use awsm_abi::types::Bounds;
use sledge_sandbox::*;

use crate::guest::worker;
use crate::shared::{BIG, MIB, bytes, data, own_bytes, store};
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

/// What resets have read of an image counts as memory of the process until a trim. In a process of its own: others have images, too.
#[test]
fn a_trim_gives_back_what_resets_have_read_of_an_image() {
    if !is_doomed() {
        let output = in_another_process("images::a_trim_gives_back_what_resets_have_read_of_an_image");
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let _worker = worker();
    let data = data(4 * MIB);
    let template = data.template(Bounds::Guard);
    let budget = Budget::new(1 << 30);
    let template = template.within(&budget);
    let pools = Pools::new(1);
    let run = || {
        let mut sandbox = pools.take(0, &template).unwrap();
        (0..60).for_each(|i| store(&mut sandbox, (1 + i) * 65_536));
        pools.put(0, sandbox, Instant::now());
    };
    (0..3).for_each(|_| run());
    assert!(image_bytes_mapped() > 0);
    // The first trim only notes what is there.
    assert!((0..2).all(|_| pools.trim(0, 16)) && pools.idle(0) == 0);
    assert_eq!(image_bytes_mapped(), 0);
    run();
    let mut sandbox = pools.take(0, &template).unwrap();
    assert!(bytes(&mut sandbox) == data.memory(), "it is read again");
}

/// Bytes of images that this process has mapped and touched.
fn image_bytes_mapped() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut sum, mut inside) = (0, false);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Rss:") if inside => sum += words.next().unwrap().parse::<usize>().unwrap() << 10,
            Some(first) if !first.ends_with(':') => inside = line.contains("memfd:sledge-image"),
            _ => {}
        }
    }
    sum
}
