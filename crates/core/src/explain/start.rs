//! Containers that are not started, or do not stay: the first that has a trouble decides, the others are told of besides.

use super::case::Case;
use super::seen::Seen;
use super::{Explanation, config, crashes, hooks, images, order};

type OfContainer = fn(&Case<'_>, &Seen<'_>) -> Option<Explanation>;

const OF_CONTAINER: &[OfContainer] =
    &[hooks::explain, images::explain, config::explain, crashes::explain, order::takes_long];

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    let of = |seen: &Seen<'_>| OF_CONTAINER.iter().find_map(|explain| explain(case, seen));
    let mut found = case.containers.iter().filter_map(of);
    let first = found.next()?;
    Some(found.fold(first, |first, other| first.with(Some(other.sentence))))
}
