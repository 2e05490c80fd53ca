//! Certificates, which are taken and not used: the host looks at those of the other side.

/// A certificate.
#[derive(Debug, Clone)]
pub struct Certificate {
    pem: Vec<u8>,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Identity(());

impl Certificate {
    /// Takes one.
    pub fn from_pem(pem: impl AsRef<[u8]>) -> Self {
        Self { pem: pem.as_ref().into() }
    }

    /// Its text.
    pub fn get_ref(&self) -> &[u8] {
        &self.pem
    }

    /// Its text.
    pub fn get_mut(&mut self) -> &mut [u8] {
        &mut self.pem
    }

    /// Its text.
    pub fn into_inner(self) -> Vec<u8> {
        self.pem
    }
}

impl AsRef<[u8]> for Certificate {
    fn as_ref(&self) -> &[u8] {
        &self.pem
    }
}

impl AsMut<[u8]> for Certificate {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.pem
    }
}

impl Identity {
    /// Takes one.
    pub fn from_pem(_: impl AsRef<[u8]>, _: impl AsRef<[u8]>) -> Self {
        Self(())
    }
}

/// Options that are taken and have no meaning in a function.
macro_rules! without_meaning {
    ($($name:ident($kind:ty)),* $(,)?) => {
        $(
            /// Taken, without meaning.
            #[must_use]
            pub fn $name(self, _: $kind) -> Self {
                self
            }
        )*
    };
}
pub(crate) use without_meaning;
