//! Labels of types: names of fields, cases and flags.
//!
//! Two of them are the same if they differ in case only (`id` and `ID`), so two components may spell one type differently. Validation knows that. What writes adapters
//! looks labels up as they are spelt and panics, twice, which ends the process. So it gets the component with all of them in small letters. They mean nothing in code.

use std::borrow::Cow;

use wasmparser::{ComponentDefinedType, ComponentType, ComponentTypeDeclaration, InstanceTypeDeclaration, Parser, Payload};

/// The component with labels in small letters. What cannot be read stays as it is.
pub(super) fn in_small_letters(component: &[u8]) -> Cow<'_, [u8]> {
    let mut labels = Vec::new();
    for payload in Parser::new(0).parse_all(component).map_while(Result::ok) {
        if let Payload::ComponentTypeSection(section) = payload {
            section.into_iter().map_while(Result::ok).for_each(|ty| add(&ty, &mut labels));
        }
    }
    let mut bytes = Cow::Borrowed(component);
    for label in labels.into_iter().filter(|label| label.bytes().any(|byte| byte.is_ascii_uppercase())) {
        // It is part of the component.
        let at = label.as_ptr().addr().wrapping_sub(component.as_ptr().addr());
        let Some(place) = bytes.to_mut().get_mut(at..at.saturating_add(label.len())) else { continue };
        // A word of both is no label; it must not become one.
        let words = place.split_mut(|byte| *byte == b'-').filter(|word| !word.iter().any(u8::is_ascii_lowercase));
        words.for_each(<[u8]>::make_ascii_lowercase);
    }
    bytes
}

/// The labels of a type, and of those that it declares.
fn add<'a>(ty: &ComponentType<'a>, labels: &mut Vec<&'a str>) {
    match ty {
        ComponentType::Defined(ComponentDefinedType::Record(fields)) => labels.extend(fields.iter().map(|(label, _)| *label)),
        ComponentType::Defined(ComponentDefinedType::Variant(cases)) => labels.extend(cases.iter().map(|case| case.name)),
        ComponentType::Defined(ComponentDefinedType::Flags(names) | ComponentDefinedType::Enum(names)) => {
            labels.extend(names.iter().copied());
        }
        ComponentType::Component(declarations) => {
            for declaration in declarations {
                if let ComponentTypeDeclaration::Type(ty) = declaration {
                    add(ty, labels);
                }
            }
        }
        ComponentType::Instance(declarations) => {
            for declaration in declarations {
                if let InstanceTypeDeclaration::Type(ty) = declaration {
                    add(ty, labels);
                }
            }
        }
        ComponentType::Defined(_) | ComponentType::Func(_) | ComponentType::Resource { .. } => {}
    }
}
