//! The .proto files of the services that the server itself offers: grpc/health/v1/health.proto, grpc/reflection/v1/reflection.proto and
//! grpc/reflection/v1alpha/reflection.proto of github.com/grpc/grpc-proto. Written here, since the server does not read .proto files.

use std::sync::LazyLock;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MessageOptions, MethodDescriptorProto, OneofDescriptorProto, ServiceDescriptorProto,
};

use super::Descriptors;

/// Tells whether services are served.
pub const HEALTH: &str = "grpc.health.v1.Health";
/// Tells of the .proto files.
pub const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
/// The same under its earlier name, with the same messages.
pub const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

/// What clients are told of them.
#[must_use]
pub(super) fn descriptors() -> &'static Descriptors {
    static OWN: LazyLock<Descriptors> = LazyLock::new(|| {
        let set = Bytes::from(set().encode_to_vec());
        let services = [HEALTH, REFLECTION, REFLECTION_ALPHA].map(str::to_owned);
        // What was encoded here can be decoded.
        Descriptors::new(set, &services).unwrap_or_default()
    });
    &OWN
}

/// The same, to make other forms of their messages.
#[must_use]
pub fn pool() -> &'static DescriptorPool {
    static OWN: LazyLock<DescriptorPool> = LazyLock::new(|| DescriptorPool::from_file_descriptor_set(set()).unwrap_or_default());
    &OWN
}

fn set() -> FileDescriptorSet {
    FileDescriptorSet { file: vec![health(), reflection("v1"), reflection("v1alpha")] }
}

fn health() -> FileDescriptorProto {
    let status = |(number, name): (i32, &str)| EnumValueDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        options: None,
    };
    let statuses = [(0, "UNKNOWN"), (1, "SERVING"), (2, "NOT_SERVING"), (3, "SERVICE_UNKNOWN")];
    let serving = EnumDescriptorProto {
        name: Some("ServingStatus".to_owned()),
        value: statuses.into_iter().map(status).collect(),
        ..EnumDescriptorProto::default()
    };
    let response = ".grpc.health.v1.HealthCheckResponse";
    let status = field("status", 1, &of_enum(".grpc.health.v1.HealthCheckResponse.ServingStatus"));
    let entry = DescriptorProto {
        options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
        ..message("StatusesEntry", vec![field("key", 1, &text()), field("value", 2, &of_message(response))])
    };
    let statuses = field("statuses", 1, &many(of_message(".grpc.health.v1.HealthListResponse.StatusesEntry")));
    file(
        "grpc.health.v1",
        "health",
        vec![
            message("HealthCheckRequest", vec![field("service", 1, &text())]),
            DescriptorProto { enum_type: vec![serving], ..message("HealthCheckResponse", vec![status]) },
            message("HealthListRequest", Vec::new()),
            DescriptorProto { nested_type: vec![entry], ..message("HealthListResponse", vec![statuses]) },
        ],
        service(
            "Health",
            &[
                ("Check", ".grpc.health.v1.HealthCheckRequest", response, [false, false]),
                ("List", ".grpc.health.v1.HealthListRequest", ".grpc.health.v1.HealthListResponse", [false, false]),
                ("Watch", ".grpc.health.v1.HealthCheckRequest", response, [false, true]),
            ],
        ),
    )
}

fn reflection(version: &str) -> FileDescriptorProto {
    let package = format!("grpc.reflection.{version}");
    let of = |name: &str| of_message(&format!(".{package}.{name}"));
    let one_of = |name: &str, fields: Vec<FieldDescriptorProto>| {
        let fields = fields.into_iter().map(|field| FieldDescriptorProto { oneof_index: Some(0), ..field }).collect::<Vec<_>>();
        (vec![OneofDescriptorProto { name: Some(name.to_owned()), options: None }], fields)
    };
    let (asked, requests) = one_of(
        "message_request",
        vec![
            field("file_by_filename", 3, &text()),
            field("file_containing_symbol", 4, &text()),
            field("file_containing_extension", 5, &of("ExtensionRequest")),
            field("all_extension_numbers_of_type", 6, &text()),
            field("list_services", 7, &text()),
        ],
    );
    let (answered, responses) = one_of(
        "message_response",
        vec![
            field("file_descriptor_response", 4, &of("FileDescriptorResponse")),
            field("all_extension_numbers_response", 5, &of("ExtensionNumberResponse")),
            field("list_services_response", 6, &of("ListServiceResponse")),
            field("error_response", 7, &of("ErrorResponse")),
        ],
    );
    let request = [vec![field("host", 1, &text())], requests].concat();
    let response =
        [vec![field("valid_host", 1, &text()), field("original_request", 2, &of("ServerReflectionRequest"))], responses].concat();
    let (number, bytes) = ((Type::Int32, None, Label::Optional), (Type::Bytes, None, Label::Repeated));
    let [input, output] = ["ServerReflectionRequest", "ServerReflectionResponse"].map(|name| format!(".{package}.{name}"));
    file(
        &package,
        "reflection",
        vec![
            DescriptorProto { oneof_decl: asked, ..message("ServerReflectionRequest", request) },
            message("ExtensionRequest", vec![field("containing_type", 1, &text()), field("extension_number", 2, &number)]),
            DescriptorProto { oneof_decl: answered, ..message("ServerReflectionResponse", response) },
            message("FileDescriptorResponse", vec![field("file_descriptor_proto", 1, &bytes)]),
            message(
                "ExtensionNumberResponse",
                vec![field("base_type_name", 1, &text()), field("extension_number", 2, &many(number.clone()))],
            ),
            message("ListServiceResponse", vec![field("service", 1, &many(of("ServiceResponse")))]),
            message("ServiceResponse", vec![field("name", 1, &text())]),
            message("ErrorResponse", vec![field("error_code", 1, &number), field("error_message", 2, &text())]),
        ],
        service("ServerReflection", &[("ServerReflectionInfo", &input, &output, [true, true])]),
    )
}

/// What a field is: its type, that type's name, and whether there are many.
type Kind = (Type, Option<String>, Label);

fn text() -> Kind {
    (Type::String, None, Label::Optional)
}

fn of_message(name: &str) -> Kind {
    (Type::Message, Some(name.to_owned()), Label::Optional)
}

fn of_enum(name: &str) -> Kind {
    (Type::Enum, Some(name.to_owned()), Label::Optional)
}

fn many((ty, name, _): Kind) -> Kind {
    (ty, name, Label::Repeated)
}

fn field(name: &str, number: i32, (ty, type_name, label): &Kind) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(*label as i32),
        r#type: Some(*ty as i32),
        type_name: type_name.clone(),
        json_name: Some(json_name(name)),
        ..FieldDescriptorProto::default()
    }
}

/// The name of a field in JSON: in camel case.
fn json_name(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_ascii_uppercase() + &word[1..])
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.to_owned()), field, ..DescriptorProto::default() }
}

/// A service with methods: name, request, response, and whether both are streams.
fn service(name: &str, methods: &[(&str, &str, &str, [bool; 2])]) -> ServiceDescriptorProto {
    let method = |(name, input, output, [asks, answers]): &(&str, &str, &str, [bool; 2])| MethodDescriptorProto {
        name: Some((*name).to_owned()),
        input_type: Some((*input).to_owned()),
        output_type: Some((*output).to_owned()),
        client_streaming: asks.then_some(true),
        server_streaming: answers.then_some(true),
        options: None,
    };
    ServiceDescriptorProto { name: Some(name.to_owned()), method: methods.iter().map(method).collect(), options: None }
}

/// The file `NAME.proto` of a package, in the folder of the package's name.
fn file(package: &str, name: &str, message_type: Vec<DescriptorProto>, service: ServiceDescriptorProto) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(format!("{}/{name}.proto", package.replace('.', "/"))),
        package: Some(package.to_owned()),
        message_type,
        service: vec![service],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}
