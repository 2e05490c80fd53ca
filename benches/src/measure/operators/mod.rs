//! The group `operators`: what operators and authors of functions meet.

pub(super) mod dev;
pub(super) mod flood;
pub(super) mod imports;
pub(super) mod many;
pub(super) mod ruby;
