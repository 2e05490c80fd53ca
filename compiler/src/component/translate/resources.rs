//! Resource types: how the state knows them, and what ends a resource.

use awsm_abi::component as abi;
use wasmtime_environ::component::{TypeResourceTable, TypeResourceTableIndex};

use super::super::glue::{Destructor, Row};
use super::Builder;

/// Where numbers of imported resources begin that the host does not know: a component may name them as long as it calls nothing of them.
const UNKNOWN_RESOURCES_START: u32 = 1 << 20;

impl Builder<'_> {
    /// A resource type, as the state knows it.
    pub(super) fn row(&self, index: TypeResourceTableIndex) -> Row {
        let TypeResourceTable::Concrete { ty, instance } = self.types[index] else {
            return Row { instance: 0, resource: UNKNOWN_RESOURCES_START, is_home: false };
        };
        let instance_index = instance.as_u32();
        match self.component.defined_resource_index(ty) {
            Some(defined) => {
                let home = self.component.defined_resource_instances[defined];
                Row { instance: instance_index, resource: abi::OWN_RESOURCES_START + defined.as_u32(), is_home: home == instance }
            }
            None => {
                let (import, path) = &self.component.imports[self.component.imported_resources[ty]];
                let interface = abi::track(&self.component.import_types[*import].0);
                let known = path.first().and_then(|name| abi::resource(&interface, name));
                Row { instance: instance_index, resource: known.unwrap_or(UNKNOWN_RESOURCES_START + ty.as_u32()), is_home: false }
            }
        }
    }

    /// What ends a resource.
    pub(super) fn destructor(&self, ty: TypeResourceTableIndex) -> Destructor {
        let TypeResourceTable::Concrete { ty, instance } = self.types[ty] else { return Destructor::None };
        let Some(defined) = self.component.defined_resource_index(ty) else { return Destructor::Host };
        let Some(function) = self.destructors.get(&ty).cloned() else { return Destructor::None };
        let home = self.component.defined_resource_instances[defined];
        let is_call = home != instance && self.state.concurrency.is_some();
        Destructor::Guest { function, home: is_call.then_some(home.as_u32()) }
    }
}
