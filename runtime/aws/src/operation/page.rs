//! What lists have in common.

use super::members::{Members, Rule};
use crate::error::ApiError;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};

/// Which part of a list is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Items, at most: from 1 to [`PAGE_MAX`].
    pub max_results: u32,
    /// What the answer with the page before gave as `nextToken`. The caller answers [`ApiError::invalid_token`] to one that it never gave.
    pub token: Option<String>,
}

impl Page {
    pub(super) fn read(members: &mut Members, token_max: usize) -> Result<Page, ApiError> {
        let asked = members.integer("maxResults", PAGE_MAX)?.filter(|asked| *asked > 0);
        Ok(Page { max_results: asked.unwrap_or(PAGE_DEFAULT), token: members.text("nextToken", Rule::text(1, token_max))? })
    }
}
