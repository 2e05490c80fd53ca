//! Types of a component's functions, written once more: a component that imports a function has to name the types of its values.

use wasm_encoder::{
    ComponentBuilder, ComponentDefinedTypeEncoder, ComponentExportKind, ComponentTypeRef, ComponentValType as Written, TypeBounds,
};
use wasmparser::PrimitiveValType;
use wasmparser::component_types::{ComponentDefinedType, ComponentFuncType, ComponentValType};
use wasmparser::types::TypesRef;

/// Writes types into a component that imports those that have to have a name, and into the one around it, which gives them to it.
pub(super) struct Writer<'t> {
    pub(super) types: TypesRef<'t>,
    pub(super) inner: ComponentBuilder,
    /// What the inner component is instantiated with.
    pub(super) arguments: Vec<(String, ComponentExportKind, u32)>,
}

/// A type in both components.
type Both = (Written, Written);

/// One of the two.
type Side = fn(Both) -> Written;

impl Writer<'_> {
    /// Imports a function into the inner component: its index there.
    pub(super) fn import(
        &mut self,
        outer: &mut ComponentBuilder,
        name: &str,
        ty: &ComponentFuncType,
        given: u32,
    ) -> Result<u32, String> {
        let mut params = Vec::new();
        for (name, ty) in &ty.params {
            params.push((name.as_str(), self.value(outer, *ty)?.1));
        }
        let result = ty.result.map(|ty| self.value(outer, ty)).transpose()?.map(|both| both.1);
        let (index, mut encoder) = self.inner.type_function(None);
        encoder.async_(ty.async_).params(params).result(result);
        self.arguments.push((name.to_owned(), ComponentExportKind::Func, given));
        Ok(self.inner.import(name, ComponentTypeRef::Func(index)))
    }

    fn value(&mut self, outer: &mut ComponentBuilder, ty: ComponentValType) -> Result<Both, String> {
        let id = match ty {
            ComponentValType::Primitive(primitive) => return primitive_both(primitive),
            ComponentValType::Type(id) => id,
        };
        let types = self.types;
        match &types[id] {
            ComponentDefinedType::Primitive(primitive) => primitive_both(*primitive),
            ComponentDefinedType::Record(record) => {
                let names = record.fields.keys().map(|name| name.as_str());
                let fields: Vec<_> = names.zip(self.all(outer, record.fields.values().copied())?).collect();
                Ok(self.named(outer, |encoder, side| encoder.record(fields.iter().map(|(name, both)| (*name, side(*both))))))
            }
            ComponentDefinedType::Variant(variant) => {
                let mut cases = Vec::new();
                for (name, case) in &variant.cases {
                    cases.push((name.as_str(), case.ty.map(|ty| self.value(outer, ty)).transpose()?));
                }
                Ok(self.named(outer, |encoder, side| encoder.variant(cases.iter().map(|(name, both)| (*name, both.map(side))))))
            }
            ComponentDefinedType::Enum(names) => {
                Ok(self.named(outer, |encoder, _| encoder.enum_type(names.iter().map(|name| name.as_str()))))
            }
            ComponentDefinedType::Flags(names) => {
                Ok(self.named(outer, |encoder, _| encoder.flags(names.iter().map(|name| name.as_str()))))
            }
            ComponentDefinedType::Tuple(tuple) => {
                let fields = self.all(outer, tuple.types.iter().copied())?;
                Ok(self.unnamed(outer, |encoder, side| encoder.tuple(fields.iter().map(|both| side(*both)))))
            }
            ComponentDefinedType::List { element, .. } => {
                let element = self.value(outer, *element)?;
                Ok(self.unnamed(outer, |encoder, side| encoder.list(side(element))))
            }
            ComponentDefinedType::FixedLengthList { element, length, .. } => {
                let element = self.value(outer, *element)?;
                Ok(self.unnamed(outer, |encoder, side| encoder.fixed_length_list(side(element), *length)))
            }
            ComponentDefinedType::Map { key, value, .. } => {
                let (key, value) = (self.value(outer, *key)?, self.value(outer, *value)?);
                Ok(self.unnamed(outer, |encoder, side| encoder.map(side(key), side(value))))
            }
            ComponentDefinedType::Option { ty, .. } => {
                let some = self.value(outer, *ty)?;
                Ok(self.unnamed(outer, |encoder, side| encoder.option(side(some))))
            }
            ComponentDefinedType::Result { ok, err, .. } => {
                let ok = ok.map(|ty| self.value(outer, ty)).transpose()?;
                let err = err.map(|ty| self.value(outer, ty)).transpose()?;
                Ok(self.unnamed(outer, |encoder, side| encoder.result(ok.map(side), err.map(side))))
            }
            ComponentDefinedType::Own(_) | ComponentDefinedType::Borrow(_) => Err("a resource that a script holds".to_owned()),
            ComponentDefinedType::Future { .. } | ComponentDefinedType::Stream { .. } => {
                Err("a stream or future that a script holds".to_owned())
            }
        }
    }

    fn all(&mut self, outer: &mut ComponentBuilder, types: impl Iterator<Item = ComponentValType>) -> Result<Vec<Both>, String> {
        types.map(|ty| self.value(outer, ty)).collect()
    }

    /// Writes a type into both components; its indices. `write` is told which side of the types in it is meant.
    fn write(&mut self, outer: &mut ComponentBuilder, write: impl Fn(ComponentDefinedTypeEncoder<'_>, Side)) -> (u32, u32) {
        let (outside, encoder) = outer.type_defined(None);
        write(encoder, |both| both.0);
        let (inside, encoder) = self.inner.type_defined(None);
        write(encoder, |both| both.1);
        (outside, inside)
    }

    fn unnamed(&mut self, outer: &mut ComponentBuilder, write: impl Fn(ComponentDefinedTypeEncoder<'_>, Side)) -> Both {
        let (outside, inside) = self.write(outer, write);
        (Written::Type(outside), Written::Type(inside))
    }

    /// Likewise, and gives the type a name: the inner component imports it.
    fn named(&mut self, outer: &mut ComponentBuilder, write: impl Fn(ComponentDefinedTypeEncoder<'_>, Side)) -> Both {
        let (outside, inside) = self.write(outer, write);
        let name = format!("t{}", self.arguments.len());
        let imported = self.inner.import(name.as_str(), ComponentTypeRef::Type(TypeBounds::Eq(inside)));
        self.arguments.push((name, ComponentExportKind::Type, outside));
        (Written::Type(outside), Written::Type(imported))
    }
}

fn primitive_both(primitive: PrimitiveValType) -> Result<Both, String> {
    use PrimitiveValType as P;
    use wasm_encoder::PrimitiveValType as W;
    let written = match primitive {
        P::Bool => W::Bool,
        P::S8 => W::S8,
        P::U8 => W::U8,
        P::S16 => W::S16,
        P::U16 => W::U16,
        P::S32 => W::S32,
        P::U32 => W::U32,
        P::S64 => W::S64,
        P::U64 => W::U64,
        P::F32 => W::F32,
        P::F64 => W::F64,
        P::Char => W::Char,
        P::String => W::String,
        P::ErrorContext => return Err("an error context".to_owned()),
    };
    Ok((Written::Primitive(written), Written::Primitive(written)))
}
