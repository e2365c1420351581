//! Which sizes of huge pages this machine has.

use std::path::Path;
use std::{fs, io};

use oarsman_core::resources::hugepages::size_of_directory;

/// The sizes in bytes, smallest first; none on a kernel without huge pages.
///
/// # Errors
/// When the kernel's list cannot be read.
pub fn sizes() -> io::Result<Vec<u64>> {
    sizes_in(Path::new("/sys/kernel/mm/hugepages"))
}

fn sizes_in(directory: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut sizes = Vec::new();
    for entry in entries {
        sizes.extend(entry?.file_name().to_str().and_then(size_of_directory));
    }
    sizes.sort_unstable();
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_names_of_directories() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["hugepages-1048576kB", "hugepages-2048kB", "other"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        assert_eq!(sizes_in(directory.path()).unwrap(), [2 << 20, 1 << 30]);
        assert!(sizes_in(&directory.path().join("none")).unwrap().is_empty());
    }
}
