//! Why components cannot be composed.

/// Why components do not become one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// A part is none.
    #[error("{component}: {message}")]
    Part {
        /// The component.
        component: String,
        /// What is wrong with it.
        message: String,
    },
    /// No import has that name.
    #[error("{component} does not import {import:?}; {offer}")]
    NoImport {
        /// The component.
        component: String,
        /// The name.
        import: String,
        /// What it imports.
        offer: String,
    },
    /// No export has that name.
    #[error("{component} does not export {export:?}; {offer}")]
    NoExport {
        /// The component.
        component: String,
        /// The name.
        export: String,
        /// What it exports.
        offer: String,
    },
    /// The name stands for several.
    #[error("{component}: {name:?} stands for several: {found}; give the version")]
    Ambiguous {
        /// The component.
        component: String,
        /// The name.
        name: String,
        /// What it stands for.
        found: String,
    },
    /// An export is not what an import has to be.
    #[error("{component} imports {import:?}, and the {export:?} that {provider} exports is not what it has to be: {reason}")]
    Mismatch {
        /// The component that imports.
        component: String,
        /// The import.
        import: String,
        /// The component that exports.
        provider: String,
        /// The export.
        export: String,
        /// How they differ.
        reason: String,
    },
    /// A plug has nothing that another component imports.
    #[error("{plug} exports nothing that {others} imports: it exports {exports}, imported are {imports}")]
    Useless {
        /// The plug.
        plug: String,
        /// The other components.
        others: String,
        /// What the plug exports.
        exports: String,
        /// What the others import.
        imports: String,
    },
    /// Two plugs have the same.
    #[error("{first} and {second} both export {import:?}, which {importer} imports once")]
    Twice {
        /// The first plug.
        first: String,
        /// The second plug.
        second: String,
        /// The import.
        import: String,
        /// What imports it.
        importer: String,
    },
    /// There is no such instance.
    #[error("{place}: there is no instance {name:?}; there are {offer}")]
    NoInstance {
        /// Where it is named.
        place: String,
        /// The name.
        name: String,
        /// The instances that there are.
        offer: String,
    },
    /// Instances need each other.
    #[error("the instances {0} need each other: none of them can be made first")]
    Circle(String),
    /// The composition exports nothing.
    #[error("nothing is exported: `exports` has to be the name of an instance, or a table of names and instances")]
    NoExports,
    /// The parts do not go together.
    #[error("the components do not go together: {0}")]
    Encoding(String),
}
