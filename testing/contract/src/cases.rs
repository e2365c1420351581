//! The cases of the contract, by subject.

mod containers;
mod errors;
mod events;
mod exec;
mod images;
mod isolation;
mod lists;
mod logs;
mod names;
mod node;
mod sandboxes;
mod stops;

use crate::ContractCase;

/// Makes cases of async functions that take a context, named after them.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        vec![$(crate::ContractCase {
            name: stringify!($name),
            run: |cx| Box::pin(async move { $name(&cx).await }),
        }),*]
    };
}
use cases;

pub(crate) fn all() -> Vec<ContractCase> {
    [
        node::all(),
        sandboxes::all(),
        containers::all(),
        stops::all(),
        names::all(),
        errors::all(),
        lists::all(),
        events::all(),
        exec::all(),
        logs::all(),
        images::all(),
        isolation::all(),
    ]
    .concat()
}
