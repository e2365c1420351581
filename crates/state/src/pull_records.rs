//! The seam to records of image pulls, and their files below `image_manager`, where the Go kubelet has them too.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use oarsman_core::image::pull_records::{
    CompletedPull, ImagePulledRecord, PullIntents, PullRecordCounts, file_name, intent_text,
    parse_intent,
};
use oarsman_host::blocking::{BlockingKind, BlockingPool};
use oarsman_host::files::{FileContents, read_regular};
use oarsman_seam::seam;

use crate::error::{FileError, failed};
use crate::files::{make_directory, names_in, remove_for_good, replace_through, sync_parent};

/// Only root may read whose credentials opened what.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The Go kubelet ignores files with this ending, so that it takes none of ours that is unfinished for a record.
const UNFINISHED: &str = ".tmp";
const PREFIX: &str = "sha256-";
/// No record is longer.
const LIMIT: u64 = 4 << 20;

/// Which images are being pulled, and with whose credentials images were pulled. What was written survives a crash of the machine.
#[seam]
pub trait PullRecords: Send + Sync + 'static {
    /// Records that an image, as a pod names it, is about to be pulled. Tells whether that was recorded already.
    #[seam(call = "write the pull intent of", object = image)]
    async fn write_intent(&self, image: &str) -> Result<bool, FileError>;

    /// Removes that record, if there is one.
    #[seam(call = "remove the pull intent of", object = image)]
    async fn remove_intent(&self, image: &str) -> Result<(), FileError>;

    /// The pulls that have not ended as far as the disk says.
    #[seam(call = "list pull intents")]
    async fn intents(&self) -> Result<PullIntents, FileError>;

    /// Adds a pull to the record of its image. A record that cannot be read is replaced.
    #[seam(call = "write the pull record of", object = pull.image_ref)]
    async fn record_pulled(&self, pull: &CompletedPull) -> Result<(), FileError>;

    /// The record of an image, as the runtime calls it.
    #[seam(call = "read the pull record of", object = image_ref)]
    async fn pulled(&self, image_ref: &str) -> Result<Option<ImagePulledRecord>, FileError>;

    /// The images that have a record which can be read.
    #[seam(call = "list pull records")]
    async fn recorded_images(&self) -> Result<BTreeSet<String>, FileError>;

    /// Removes the record of an image that was gone when images were listed, unless the record was written since.
    #[seam(call = "remove the pull record of", object = image_ref)]
    async fn remove_pulled(&self, image_ref: &str, listed: Timestamp) -> Result<(), FileError>;

    /// How many records there are, without a look into them.
    #[seam(call = "count pull records")]
    async fn counts(&self) -> Result<PullRecordCounts, FileError>;
}

/// Records as files below the root directory.
#[derive(Clone, Debug)]
pub struct PullRecordFiles(Arc<PullRecordDirectories>);

#[derive(Debug)]
struct PullRecordDirectories {
    pulling: PathBuf,
    pulled: PathBuf,
    pool: BlockingPool,
}

impl PullRecordFiles {
    /// Those below this root directory. An agent starts though its disk is full or read-only: what cannot be made now is made with the
    /// first record.
    pub fn open(root: &Path) -> Self {
        let place = root.join("image_manager");
        let directories = PullRecordDirectories {
            pulling: place.join("pulling"),
            pulled: place.join("pulled"),
            pool: BlockingPool::new(BlockingKind::PullRecords),
        };
        if let Err(error) = directories.make(&place) {
            tracing::warn!(path = %place.display(), %error, "directories of pull records not made, will retry with the next record");
        }
        Self(Arc::new(directories))
    }

    /// One call at a time for each image: a record is read and written in one.
    async fn blocking<T: Send + 'static>(
        &self,
        object: &str,
        work: impl FnOnce(&PullRecordDirectories) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let directories = Arc::clone(&self.0);
        let panicked = failed("work in", &self.0.pulled);
        self.0.pool.run(object, move || work(&directories), panicked).await
    }
}

#[async_trait]
impl PullRecords for PullRecordFiles {
    async fn write_intent(&self, image: &str) -> Result<bool, FileError> {
        let owned = image.to_owned();
        self.blocking(image, move |directories| directories.write_intent(&owned)).await
    }

    async fn remove_intent(&self, image: &str) -> Result<(), FileError> {
        let owned = image.to_owned();
        let work = move |directories: &PullRecordDirectories| {
            let path = directories.pulling.join(file_name(&owned));
            remove_for_good(&path).map_err(failed("remove", &path))
        };
        self.blocking(image, work).await
    }

    async fn intents(&self) -> Result<PullIntents, FileError> {
        self.blocking("", PullRecordDirectories::intents).await
    }

    async fn record_pulled(&self, pull: &CompletedPull) -> Result<(), FileError> {
        let owned = pull.clone();
        self.blocking(&pull.image_ref, move |directories| directories.record_pulled(&owned)).await
    }

    async fn pulled(&self, image_ref: &str) -> Result<Option<ImagePulledRecord>, FileError> {
        let owned = image_ref.to_owned();
        self.blocking(image_ref, move |directories| directories.read_pulled(&owned)).await
    }

    async fn recorded_images(&self) -> Result<BTreeSet<String>, FileError> {
        self.blocking("", PullRecordDirectories::recorded_images).await
    }

    async fn remove_pulled(&self, image_ref: &str, listed: Timestamp) -> Result<(), FileError> {
        let owned = image_ref.to_owned();
        self.blocking(image_ref, move |directories| directories.remove_pulled(&owned, listed)).await
    }

    async fn counts(&self) -> Result<PullRecordCounts, FileError> {
        self.blocking("", PullRecordDirectories::counts).await
    }
}

impl PullRecordDirectories {
    /// Records are lost with a directory that a crash of the machine takes back.
    fn make(&self, place: &Path) -> Result<(), FileError> {
        make_directory(&self.pulling, DIRECTORY_MODE)?;
        make_directory(&self.pulled, DIRECTORY_MODE)?;
        for made in [&self.pulled, place] {
            sync_parent(made).map_err(failed("sync the directory of", made))?;
        }
        Ok(())
    }

    fn write_intent(&self, image: &str) -> Result<bool, FileError> {
        let path = self.pulling.join(file_name(image));
        let was_there = path.try_exists().map_err(failed("read", &path))?;
        write(&path, &intent_text(image))?;
        Ok(was_there)
    }

    /// One that cannot be read counts by the name of its file.
    fn intents(&self) -> Result<PullIntents, FileError> {
        let files = record_names(&self.pulling)?;
        let mut images = BTreeSet::new();
        for path in files.iter().map(|name| self.pulling.join(name)) {
            match read(&path)?.map(|text| parse_intent(&text)) {
                Some(Ok(image)) => _ = images.insert(image),
                Some(Err(error)) => {
                    tracing::warn!(path = %path.display(), %error, "pull intent not decoded, images of its name are verified");
                }
                None => {}
            }
        }
        Ok(PullIntents { images, files })
    }

    fn record_pulled(&self, pull: &CompletedPull) -> Result<(), FileError> {
        let path = self.pulled.join(file_name(&pull.image_ref));
        let before = self.read_pulled(&pull.image_ref).unwrap_or_else(|error| {
            tracing::warn!(image = pull.image_ref, %error, "pull record not decoded, a new one is written");
            None
        });
        match ImagePulledRecord::after(before.as_ref(), pull) {
            Some(record) => write(&path, &record.text()),
            None => Ok(()),
        }
    }

    fn read_pulled(&self, image_ref: &str) -> Result<Option<ImagePulledRecord>, FileError> {
        let path = self.pulled.join(file_name(image_ref));
        let Some(text) = read(&path)? else { return Ok(None) };
        let record = ImagePulledRecord::parse(&text).map_err(failed("decode", &path))?;
        if record.image_ref != image_ref {
            let why = format!("it is about {:?}", record.image_ref);
            return Err(failed("use", &path)(why));
        }
        Ok(Some(record))
    }

    fn recorded_images(&self) -> Result<BTreeSet<String>, FileError> {
        let mut images = BTreeSet::new();
        for name in record_names(&self.pulled)? {
            // One that cannot be read stays: it forces a pull, which replaces it.
            let text = read(&self.pulled.join(name))?;
            let record = text.and_then(|text| ImagePulledRecord::parse(&text).ok());
            images.extend(record.map(|record| record.image_ref));
        }
        Ok(images)
    }

    fn counts(&self) -> Result<PullRecordCounts, FileError> {
        let (intents, pulled) = (record_names(&self.pulling)?, record_names(&self.pulled)?);
        Ok(PullRecordCounts { intents: count(&intents), pulled: count(&pulled) })
    }

    fn remove_pulled(&self, image_ref: &str, listed: Timestamp) -> Result<(), FileError> {
        let path = self.pulled.join(file_name(image_ref));
        match self.read_pulled(image_ref)? {
            Some(record) if record.is_older_than(listed) => {
                remove_for_good(&path).map_err(failed("remove", &path))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// As many as a machine can have.
fn count(names: &BTreeSet<String>) -> u64 {
    u64::try_from(names.len()).unwrap_or(u64::MAX)
}

/// The names of records in a directory; those of unfinished files and of others are left out.
fn record_names(directory: &Path) -> Result<BTreeSet<String>, FileError> {
    let is_record = |name: &String| name.starts_with(PREFIX) && !name.ends_with(UNFINISHED);
    Ok(names_in(directory)?.into_iter().filter(is_record).collect())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match read_regular(path, LIMIT) {
        Ok(FileContents::Bytes(bytes)) => Ok(Some(bytes)),
        Ok(FileContents::TooLong) => {
            Err(failed("read", path)(format!("it is longer than {LIMIT} bytes")))
        }
        Ok(FileContents::Other(kind)) => {
            Err(failed("read", path)(format!("it is {kind} and no regular file")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// The directory may have been removed with all that was in it, as a cleanup by hand does.
fn write(path: &Path, text: &str) -> Result<(), FileError> {
    if let Some(directory) = path.parent().filter(|directory| fs::metadata(directory).is_err()) {
        make_directory(directory, DIRECTORY_MODE)?;
    }
    replace_through(UNFINISHED, path, text.as_bytes(), FILE_MODE, true)
        .map_err(failed("write", path))
}
