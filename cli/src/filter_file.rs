//! Filter files, read in place.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Error, Result, anyhow};
use bloomline::{BloomFilter, BloomView, DecodeError, MismatchError, StandaloneKind};
use memmap2::Mmap;

use crate::output::io_error;

/// The bytes of a filter file.
pub struct FilterFile {
    pub name: String,
    bytes: Bytes,
}

enum Bytes {
    Mapped(Mmap),
    /// A pipe cannot be mapped.
    Read(Vec<u8>),
}

impl FilterFile {
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let bytes = bytes_of(path).map_err(|error| io_error(&name, &error))?;
        Ok(Self { name, bytes })
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }

    /// The filter, with only its footer checked.
    pub fn view(&self) -> Result<BloomView<'_>> {
        BloomView::from_standalone(self.bytes()).map_err(|error| self.error(error))
    }

    /// The filter, read whole to verify its checksum: a damaged one could report its keys absent.
    pub fn verified(&self) -> Result<BloomView<'_>> {
        let view = self.view()?;
        view.verify().map_err(|error| self.error(error))?;
        Ok(view)
    }

    /// The verified filter, in memory.
    pub fn filter(&self) -> Result<BloomFilter> {
        Ok(self.verified()?.to_filter())
    }

    /// Whether it is a scalable filter.
    pub fn is_scalable(&self) -> bool {
        StandaloneKind::of(self.bytes()) == Some(StandaloneKind::Scalable)
    }

    pub fn mismatch(&self, other: &Path, error: MismatchError) -> Error {
        let (name, other) = (&self.name, other.display());
        anyhow!("{name}: does not match {other}: {error} (build both with the same --keys and --fpr)")
    }

    pub fn error(&self, error: DecodeError) -> Error {
        let name = &self.name;
        match error {
            DecodeError::TooShort { .. } => {
                anyhow!("{name}: not a filter, or truncated: {error} (create one with `bloomline build`)")
            }
            DecodeError::Magic { .. } if self.is_scalable() => {
                anyhow!(
                    "{name}: a scalable filter (use it with `bloomline dedup --state`, or build one of fixed size)"
                )
            }
            DecodeError::Magic { .. } => anyhow!("{name}: {error} (create one with `bloomline build`)"),
            // These errors say what to do.
            DecodeError::Version { .. } | DecodeError::HashValue { .. } => {
                anyhow!("{name}: {error}")
            }
            _ => anyhow!("{name}: {error} (rebuild it, or fetch it again)"),
        }
    }
}

fn bytes_of(path: &Path) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.is_file() {
        #[expect(unsafe_code, reason = "there is no safe way to map a file")]
        // SAFETY: a mapping is sound as long as nobody changes the file. `output::NewFile` never does: it replaces the
        // file. Another program that overwrites or truncates a file being read causes wrong answers, or a bus error
        // that ends the process; any byte is a valid `u8`, and no reference to what they decode to is kept.
        return unsafe { Mmap::map(&file) }.map(Bytes::Mapped);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Bytes::Read(bytes))
}
