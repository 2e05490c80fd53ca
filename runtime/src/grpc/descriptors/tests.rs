use prost_types::{FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto};

use super::*;

fn service(name: &str) -> ServiceDescriptorProto {
    let method = MethodDescriptorProto { name: Some("M".to_owned()), ..MethodDescriptorProto::default() };
    ServiceDescriptorProto { name: Some(name.to_owned()), method: vec![method], options: None }
}

fn file(name: &str, imports: &[&str], services: &[&str]) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some("p".to_owned()),
        dependency: imports.iter().map(|import| (*import).to_owned()).collect(),
        service: services.iter().map(|name| service(name)).collect(),
        ..FileDescriptorProto::default()
    }
}

fn descriptors(file: Vec<FileDescriptorProto>, services: &[&str]) -> Descriptors {
    let services: Vec<String> = services.iter().map(|name| (*name).to_owned()).collect();
    Descriptors::new(FileDescriptorSet { file }.encode_to_vec().into(), &services).unwrap()
}

fn names(files: Vec<Bytes>) -> Vec<String> {
    files.into_iter().map(|file| FileDescriptorProto::decode(file).unwrap().name().to_owned()).collect()
}

#[test]
fn files_that_import_each_other_come_once() {
    let files =
        vec![file("a", &["b", "missing"], &["A"]), file("b", &["c", "a"], &[]), file("c", &["b"], &["C"]), file("d", &[], &[])];
    let all = descriptors(files, &["p.A"]);
    let mut known = Vec::new();
    assert_eq!(names(all.with_imports(all.file_of("p.A.M").unwrap(), &mut known)), ["a", "b", "c"]);
    assert_eq!(names(all.with_imports(all.file("b").unwrap(), &mut known)), ["b"]);
    assert_eq!((all.file("d"), all.file("missing"), all.file_of("p.C")), (None, None, None));
}

#[test]
fn services_that_are_not_offered_are_cut_out_and_the_rest_stays_as_it_is() {
    let proto = file("a", &[], &["A", "B", "C"]);
    // A field that this server does not know, in front of all others.
    let unknown = [0xfa, 0x3f, 2, b'h', b'i'];
    let bytes = Bytes::from([&unknown[..], &proto.encode_to_vec()].concat());
    let cut = without(&bytes, &[true, false, true]).unwrap();
    assert_eq!(cut[..unknown.len()], unknown);
    assert_eq!(FileDescriptorProto::decode(cut).unwrap(), file("a", &[], &["A", "C"]));
    assert_eq!(without(&bytes, &[true; 3]).unwrap(), bytes);
}

#[test]
fn what_is_no_set_of_files_is_an_error() {
    let good = FileDescriptorSet { file: vec![file("a", &[], &["A"])] }.encode_to_vec();
    for end in 1..good.len() {
        assert!(Descriptors::new(Bytes::copy_from_slice(&good[..end]), &[]).is_err(), "{end}");
    }
    assert!(Descriptors::new(Bytes::from_static(b"no descriptors"), &[]).is_err());
    let empty = Descriptors::new(Bytes::new(), &["p.A".to_owned()]).unwrap();
    assert_eq!(empty.file_of("p.A"), None);
}
