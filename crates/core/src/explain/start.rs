//! Containers that are not started, or do not stay: the first that has a trouble decides, the others are told of besides.

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::{Explanation, config, crashes, hooks, images, order};

type OfContainer = fn(&ExplainContext<'_>, &ContainerSnapshot<'_>) -> Option<Explanation>;

const OF_CONTAINER: &[OfContainer] =
    &[hooks::explain, images::explain, config::explain, crashes::explain, order::takes_long];

pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    let of = |seen: &ContainerSnapshot<'_>| {
        OF_CONTAINER.iter().find_map(|explain| explain(context, seen))
    };
    let mut found = context.containers.iter().filter_map(of);
    let first = found.next()?;
    Some(found.fold(first, |first, other| first.with(Some(other.sentence))))
}
