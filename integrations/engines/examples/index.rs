//! Which of 300 files have a key? The answer from an index in an object store, of which a lookup reads a few ranges:
//!
//! ```text
//! cargo run --release --manifest-path integrations/engines/Cargo.toml --example index
//! ```
//!
//! The ranges are read by one `get_ranges`, which sends a remote store a request for each, all at once. It joins ranges
//! less than 1 MB apart, and so reads all of a small index. The end is read by `GetRange::Suffix`, which Azure does not
//! support. There, use the size that `head` returns.

use bloomline::bank::{FileVersion, IndexBuilder, IndexFooter, SlotBitmap};
use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

const FILES: usize = 300;

fn name(file: usize) -> String {
    format!("logs/{file:03}.log")
}

/// 10 to 5,120 words of one file only, and one of three files.
fn words(file: usize) -> Vec<String> {
    let mut words: Vec<_> = (0..10 << (file % 10)).map(|i| format!("request-{file}-{i}")).collect();
    words.extend((file % 100 == 17).then(|| "10.20.30.40".into()));
    words
}

async fn last(store: &impl ObjectStore, bytes: u64) -> anyhow::Result<Bytes> {
    let options = GetOptions::new().with_range(Some(GetRange::Suffix(bytes)));
    Ok(store.get_opts(&"logs.index".into(), options).await?.bytes().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = InMemory::new();
    // At a rate below 1 ÷ the number of files, a lookup of an absent key mostly finds none.
    let mut builder = IndexBuilder::with_fpr(0.0001)?;
    let mut keys = builder.filter_builder();
    for file in 0..FILES {
        keys.extend(words(file));
        builder.insert(name(file), FileVersion::default(), keys.finish()?)?;
    }
    let index = builder.to_standalone()?;
    println!("{FILES} files, an index of {} bytes", index.len());
    store.put(&"logs.index".into(), index.into()).await?;

    let end = last(&store, IndexFooter::read_len(&last(&store, 64).await?)?).await?;
    println!("opening: 2 requests, {} bytes", 64 + end.len());
    let footer = IndexFooter::read(&end)?; // kept for all lookups

    for key in ["10.20.30.40", "request-299-5000", "absent"] {
        let hash = footer.hash_key(key);
        let ranges: Vec<_> = footer.ranges(hash).collect();
        let bytes = store.get_ranges(&"logs.index".into(), &ranges).await?;
        let mut found = SlotBitmap::new();
        // After an error, any file can have the key.
        footer.find_in_ranges(hash, &bytes, &mut found)?;
        let names: Vec<_> =
            found.iter().filter_map(|file| footer.name(file)).map(String::from_utf8_lossy).collect();
        let read: usize = bytes.iter().map(Bytes::len).sum();
        println!("{key}: 1 call for {} ranges, {read} bytes: {names:?}", ranges.len());

        let has_key = |file: &usize| words(*file).iter().any(|word| word == key);
        assert!((0..FILES).filter(has_key).all(|file| names.contains(&name(file).into())));
        assert!(ranges.len() <= 8 && names.len() <= 4);
    }
    Ok(())
}
