//! Values of components in scripts, and their types, as the canonical ABI of the tests has them.

use sledge_tests::canonical::{Type, Value};
use wasmparser::PrimitiveValType;
use wasmparser::component_types::{ComponentDefinedType, ComponentFuncType, ComponentValType};
use wasmparser::types::TypesRef;
use wast::component::WastVal;

/// The most flags of one type.
const FLAGS_MAX: usize = 32;

/// Types of a component.
#[derive(Clone, Copy)]
pub(super) struct Values<'t>(pub(super) TypesRef<'t>);

impl Values<'_> {
    /// The types of a function's parameters, and of its result.
    pub(super) fn signature(self, function: &ComponentFuncType) -> Result<(Vec<Type>, Option<Type>), String> {
        let params = function.params.iter().map(|(_, ty)| self.ty(*ty)).collect::<Result<_, _>>()?;
        Ok((params, function.result.map(|ty| self.ty(ty)).transpose()?))
    }

    fn ty(self, ty: ComponentValType) -> Result<Type, String> {
        let defined = match ty {
            ComponentValType::Primitive(primitive) => return primitive_type(primitive),
            ComponentValType::Type(id) => &self.0[id],
        };
        let boxed = |ty: &ComponentValType| self.ty(*ty).map(Box::new);
        let optional = |ty: &Option<ComponentValType>| ty.as_ref().map(boxed).transpose();
        Ok(match defined {
            ComponentDefinedType::Primitive(primitive) => return primitive_type(*primitive),
            ComponentDefinedType::Record(record) => {
                Type::Record(record.fields.values().map(|ty| self.ty(*ty)).collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Tuple(tuple) => {
                Type::Tuple(tuple.types.iter().map(|ty| self.ty(*ty)).collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::FixedLengthList { element, length, .. } => Type::Fixed(boxed(element)?, *length),
            ComponentDefinedType::Variant(variant) => {
                let cases = variant.cases.values().map(|case| case.ty.map(|ty| self.ty(ty)).transpose());
                Type::Variant(cases.collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Enum(cases) => Type::Enum(cases.len() as u32),
            ComponentDefinedType::Option { ty, .. } => Type::Option(boxed(ty)?),
            ComponentDefinedType::Result { ok, err, .. } => Type::Result(optional(ok)?, optional(err)?),
            ComponentDefinedType::List { element, .. } => Type::List(boxed(element)?),
            ComponentDefinedType::Map { key, value, .. } => Type::Map(boxed(key)?, boxed(value)?),
            ComponentDefinedType::Flags(names) if names.len() <= FLAGS_MAX => Type::Flags(names.len() as u32),
            other => return Err(format!("a value of type {other:?}")),
        })
    }

    /// A value of that type.
    pub(super) fn value(self, ty: ComponentValType, value: &WastVal<'_>) -> Result<Value, String> {
        let defined = match ty {
            ComponentValType::Primitive(primitive) => return simple(primitive, value),
            ComponentValType::Type(id) => &self.0[id],
        };
        let choose = |cases: &mut dyn Iterator<Item = (&str, Option<ComponentValType>)>| {
            let (name, payload) = case(value)?;
            let (index, (_, ty)) = cases.enumerate().find(|(_, known)| known.0 == name).ok_or_else(|| mismatch(value))?;
            let payload = ty.zip(payload).map(|(ty, payload)| self.value(ty, payload)).transpose()?;
            Ok(Value::Case(index as u32, payload.map(Box::new)))
        };
        match defined {
            ComponentDefinedType::Record(record) => self.fields(record.fields.values().copied(), value),
            ComponentDefinedType::Tuple(tuple) => self.fields(tuple.types.iter().copied(), value),
            ComponentDefinedType::FixedLengthList { element, length, .. } => {
                self.fields(std::iter::repeat_n(*element, *length as usize), value)
            }
            ComponentDefinedType::Variant(variant) => {
                choose(&mut variant.cases.iter().map(|(name, case)| (name.as_str(), case.ty)))
            }
            ComponentDefinedType::Enum(cases) => choose(&mut cases.iter().map(|name| (name.as_str(), None))),
            ComponentDefinedType::Option { ty, .. } => choose(&mut [("none", None), ("some", Some(*ty))].into_iter()),
            ComponentDefinedType::Result { ok, err, .. } => choose(&mut [("ok", *ok), ("err", *err)].into_iter()),
            ComponentDefinedType::List { element, .. } => {
                let WastVal::List(elements) = value else { return Err(mismatch(value)) };
                Ok(Value::List(elements.iter().map(|value| self.value(*element, value)).collect::<Result<_, _>>()?))
            }
            ComponentDefinedType::Map { key, value: held, .. } => {
                let WastVal::Map(entries) = value else { return Err(mismatch(value)) };
                let entry = |entry: &(WastVal<'_>, WastVal<'_>)| {
                    Ok(Value::Fields(vec![self.value(*key, &entry.0)?, self.value(*held, &entry.1)?]))
                };
                Ok(Value::List(entries.iter().map(entry).collect::<Result<_, String>>()?))
            }
            ComponentDefinedType::Flags(names) => {
                let WastVal::Flags(set) = value else { return Err(mismatch(value)) };
                set.iter()
                    .try_fold(0_u64, |bits, flag| {
                        let index = names.iter().position(|name| name.as_str() == *flag).ok_or_else(|| mismatch(value))?;
                        Ok(bits | 1 << index)
                    })
                    .map(Value::Bits)
            }
            ComponentDefinedType::Primitive(primitive) => simple(*primitive, value),
            _ => Err(mismatch(value)),
        }
    }

    fn fields(self, types: impl ExactSizeIterator<Item = ComponentValType>, value: &WastVal<'_>) -> Result<Value, String> {
        let values: Vec<&WastVal<'_>> = match value {
            WastVal::Record(values) => values.iter().map(|(_, value)| value).collect(),
            WastVal::Tuple(values) | WastVal::List(values) => values.iter().collect(),
            other => return Err(mismatch(other)),
        };
        if values.len() != types.len() {
            return Err(mismatch(value));
        }
        Ok(Value::Fields(types.zip(values).map(|(ty, value)| self.value(ty, value)).collect::<Result<_, _>>()?))
    }
}

fn primitive_type(primitive: PrimitiveValType) -> Result<Type, String> {
    use PrimitiveValType as P;
    Ok(match primitive {
        P::Bool => Type::Bool,
        P::S8 => Type::S8,
        P::U8 => Type::U8,
        P::S16 => Type::S16,
        P::U16 => Type::U16,
        P::S32 => Type::S32,
        P::U32 => Type::U32,
        P::S64 => Type::S64,
        P::U64 => Type::U64,
        P::F32 => Type::F32,
        P::F64 => Type::F64,
        P::Char => Type::Char,
        P::String => Type::String,
        P::ErrorContext => return Err("an error context".to_owned()),
    })
}

/// A string, or a number's bits. What is shorter than a core value is extended as its type says.
fn simple(primitive: PrimitiveValType, value: &WastVal<'_>) -> Result<Value, String> {
    if matches!(value, WastVal::String(_)) != (primitive == PrimitiveValType::String) {
        return Err(mismatch(value));
    }
    let signed = |value: i32| u64::from(value.cast_unsigned());
    Ok(Value::Bits(match value {
        WastVal::String(text) => return Ok(Value::String((*text).to_owned())),
        WastVal::Bool(value) => u64::from(*value),
        WastVal::U8(value) => u64::from(*value),
        WastVal::S8(value) => signed(i32::from(*value)),
        WastVal::U16(value) => u64::from(*value),
        WastVal::S16(value) => signed(i32::from(*value)),
        WastVal::U32(value) => u64::from(*value),
        WastVal::S32(value) => signed(*value),
        WastVal::U64(value) => *value,
        WastVal::S64(value) => value.cast_unsigned(),
        WastVal::F32(value) => u64::from(value.bits),
        WastVal::F64(value) => value.bits,
        WastVal::Char(value) => u64::from(u32::from(*value)),
        other => return Err(mismatch(other)),
    }))
}

fn mismatch(value: &WastVal<'_>) -> String {
    format!("{value:?} is not of the function's type")
}

/// The name of a case, and what it holds.
fn case<'v, 'w>(value: &'v WastVal<'w>) -> Result<(&'w str, Option<&'v WastVal<'w>>), String> {
    Ok(match value {
        WastVal::Variant(name, payload) => (*name, payload.as_deref()),
        WastVal::Enum(name) => (*name, None),
        WastVal::Option(None) => ("none", None),
        WastVal::Option(Some(payload)) => ("some", Some(&**payload)),
        WastVal::Result(Ok(payload)) => ("ok", payload.as_deref()),
        WastVal::Result(Err(payload)) => ("err", payload.as_deref()),
        other => return Err(mismatch(other)),
    })
}
