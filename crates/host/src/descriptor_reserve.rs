//! A few descriptors that are kept for what must not fail: when others have opened all that this process may have, pods still end.

use std::fs::File;
use std::sync::OnceLock;

use oarsman_sync::Guarded;

/// To read, kill and remove a control group takes fewer at once.
const KEPT: usize = 8;

static RESERVE: OnceLock<Guarded<Vec<File>>> = OnceLock::new();

/// Opens what is kept, unless that is done.
pub(crate) fn hold() {
    fill(&mut RESERVE.get_or_init(Guarded::default).lock());
}

/// Does the work, and once more with the kept descriptors free when there were none left for it.
pub(crate) fn retry<T, E>(
    is_out_of_descriptors: impl Fn(&E) -> bool,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    match work() {
        Err(error) if is_out_of_descriptors(&error) => {
            let mut reserve = RESERVE.get_or_init(Guarded::default).lock();
            reserve.clear();
            let again = work();
            fill(&mut reserve);
            again
        }
        done => done,
    }
}

/// What cannot be opened now is opened after the next use.
fn fill(reserve: &mut Vec<File>) {
    while reserve.len() < KEPT {
        let Ok(file) = File::open("/dev/null") else { return };
        reserve.push(file);
    }
}
