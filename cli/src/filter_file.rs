//! Filter files, read in place.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Error, Result, anyhow, ensure};
use bloomline::bank::{BankView, IndexView};
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{BloomFilter, BloomView, ErrorKind, StandaloneKind};
use memmap2::Mmap;

use crate::input::{is_stdin, name_of};
use crate::output::io_error;
use crate::state::{FilterView, State};
use crate::streams;

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

/// What a file can hold. Its last bytes say which of these.
pub enum Content<'a> {
    Blocked(BloomView<'a>),
    Standard(StandardBloomFilter),
    Counting(CountingBloomFilter),
    Scalable(ScalableBloomFilter),
    State(State),
    Frontier(Frontier<Vec<u8>>),
    Bank(BankView<'a>),
    Index(IndexView<'a>),
}

impl Content<'_> {
    /// Its name in JSON, and its name in text.
    pub fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::Blocked(_) => ("blocked", "blocked filter"),
            Self::Standard(_) => ("standard", "standard filter"),
            Self::Counting(_) => ("counting", "counting filter"),
            Self::Scalable(_) => ("scalable", "scalable filter"),
            Self::State(_) => ("state", "state of dedup"),
            Self::Frontier(_) => ("frontier", "frontier"),
            Self::Bank(_) => ("bank", "filter bank"),
            Self::Index(_) => ("index", "file index"),
        }
    }

    /// What to do where a filter is needed. An index answers another command.
    fn remedy<'b>(&self, otherwise: &'b str) -> &'b str {
        if let Self::Index(_) = self { "look up keys in it with `bloomline find`" } else { otherwise }
    }
}

impl FilterFile {
    /// Opens a file, or standard input if it is called -.
    pub fn open(path: &Path) -> Result<Self> {
        static STDIN_WAS_READ: AtomicBool = AtomicBool::new(false);
        let name = name_of(path);
        ensure!(
            !is_stdin(path) || !STDIN_WAS_READ.swap(true, Relaxed),
            "{name}: is named twice, and can be read only once (name the file of one)"
        );
        let bytes = if is_stdin(path) { streams::input().and_then(all_bytes) } else { bytes_of(path) };
        let bytes = bytes.map_err(|error| io_error(&name, &error))?;
        Ok(Self { name, bytes })
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }

    /// What the file holds. A blocked filter, a bank and an index are not read, so only their end is checked.
    /// [`verified`](Self::verified) checks all of them.
    pub fn content(&self) -> Result<Content<'_>> {
        let bytes = self.bytes();
        if State::is_state(bytes) {
            return State::from_bytes(&self.name, bytes).map(Content::State);
        }
        let content = match StandaloneKind::of(bytes) {
            Some(StandaloneKind::Standard) => {
                StandardBloomFilter::from_standalone(bytes).map(Content::Standard)
            }
            Some(StandaloneKind::Counting) => {
                CountingBloomFilter::from_standalone(bytes).map(Content::Counting)
            }
            Some(StandaloneKind::Scalable) => {
                ScalableBloomFilter::from_standalone(bytes).map(Content::Scalable)
            }
            Some(StandaloneKind::Frontier) => Frontier::from_standalone(bytes).map(Content::Frontier),
            Some(StandaloneKind::Index) => IndexView::from_standalone_unverified(bytes).map(Content::Index),
            Some(StandaloneKind::Bank) => BankView::from_standalone_unverified(bytes).map(Content::Bank),
            _ => BloomView::from_standalone_unverified(bytes).map(Content::Blocked),
        };
        content.map_err(|error| self.error(error))
    }

    /// What the file holds, with all checksums verified, because a damaged filter could report that its keys are
    /// absent.
    pub fn verified(&self) -> Result<Content<'_>> {
        let content = self.content()?;
        self.verify(&content)?;
        Ok(content)
    }

    /// Verifies the checksums that [`content`](Self::content) does not.
    pub fn verify(&self, content: &Content) -> Result<()> {
        let verified = match content {
            Content::Blocked(view) => view.verify(),
            Content::Bank(bank) => bank.verify(),
            Content::Index(index) => index.verify(),
            _ => Ok(()),
        };
        verified.map_err(|error| self.error(error))
    }

    /// The filter in the file if it is of the kind that `build` makes. Only its footer is checked.
    pub fn view(&self) -> Result<BloomView<'_>> {
        match self.content()? {
            Content::Blocked(view) => Ok(view),
            other => {
                let (name, (_, kind)) = (&self.name, other.kind());
                let remedy = other.remedy("give one that `bloomline build` made");
                Err(anyhow!("{name}: a {kind}, not a blocked filter ({remedy})"))
            }
        }
    }

    /// The blocks of the filter in the file, or 0 if the file is not of the kind that `build` makes.
    pub fn filter_blocks(&self) -> usize {
        BloomView::from_standalone_unverified(self.bytes()).map_or(0, |view| view.n_blocks())
    }

    /// The filter in the file, verified and in memory.
    pub fn filter(&self) -> Result<BloomFilter> {
        let view = self.view()?;
        view.verify().map_err(|error| self.error(error))?;
        view.to_filter().with_context(|| self.name.clone())
    }

    /// The filter, and the state around it, of content that can be united.
    pub fn part<'a>(
        &self,
        content: &'a Content,
        do_this: &str,
    ) -> Result<(FilterView<'a>, Option<&'a State>)> {
        Ok(match content {
            Content::Blocked(view) => (FilterView::Fixed(*view), None),
            Content::Scalable(filter) => (FilterView::Growing(filter), None),
            Content::State(state) => (state.filter.as_view(), Some(state)),
            _ => {
                let remedy = "give blocked or scalable filters, or states of dedup";
                return Err(self.cannot(content, do_this, remedy));
            }
        })
    }

    /// The error for content that a command cannot use.
    pub fn cannot(&self, content: &Content, do_this: &str, remedy: &str) -> Error {
        let remedy = content.remedy(remedy);
        anyhow!("{}: a {} cannot {do_this} ({remedy})", self.name, content.kind().1)
    }

    pub fn error(&self, error: bloomline::Error) -> Error {
        let name = &self.name;
        match error.kind() {
            ErrorKind::Unrecognized => {
                anyhow!("{name}: not a bloomline file, or cut short (create one with `bloomline build`)")
            }
            ErrorKind::Damaged => anyhow!("{name}: {error} (rebuild it, or fetch it again)"),
            // `main` adds the remedy if memory ran out, and the texts of all other kinds say what to do.
            _ => Error::new(error).context(name.clone()),
        }
    }
}

fn all_bytes(mut file: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Bytes::Read(bytes))
}

fn bytes_of(path: &Path) -> io::Result<Bytes> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.is_file() {
        #[expect(unsafe_code, reason = "there is no safe way to map a file")]
        // SAFETY: a mapping is sound as long as nobody changes the file. `output::NewFile` never changes a file,
        // because it replaces it. If another program overwrites or truncates a file that is being read, answers are
        // wrong or a bus error ends the process. Any byte is a valid `u8`, and no reference to what the bytes decode to
        // is kept.
        return unsafe { Mmap::map(&file) }.map(Bytes::Mapped);
    }
    all_bytes(file)
}
