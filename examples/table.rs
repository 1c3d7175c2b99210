//! A toy table, with rows in a mapped file, and a filter in the same file that saves searching the rows.
//!
//! ```text
//! cargo run --release --example table
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::{env, process, str, thread};

use bloomline::{FilterBuilder, OwnedView};
use bytes::Bytes;
use memmap2::Mmap;

struct Table {
    rows: Bytes,
    filter: OwnedView<Bytes>,
}

impl Table {
    /// Writes the rows, then the filter's standalone bytes, then the offset of these, in 8 bytes.
    fn write(path: &Path, rows: impl Iterator<Item = (u64, String)>) -> Result<(), Box<dyn Error>> {
        let (mut table, mut filter) = (Vec::new(), FilterBuilder::with_fpr(0.01)?);
        for (key, value) in rows {
            writeln!(table, "{key} {value}")?;
            filter.insert(key);
        }
        table.resize(table.len().next_multiple_of(64), b'\n'); // each block of the filter is then one cache line
        let start = table.len() as u64;
        filter.finish()?.write_standalone(&mut table)?;
        table.extend(start.to_le_bytes());
        Ok(fs::write(path, table)?)
    }

    fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        // SAFETY: Nobody changes the file while it is mapped.
        let file = Bytes::from_owner(unsafe { Mmap::map(&File::open(path)?)? });
        let (table, start) = file.split_last_chunk().ok_or("not a table: too short")?;
        let (start, end) = (usize::try_from(u64::from_le_bytes(*start))?, table.len());
        if start > end {
            return Err("not a table: the filter would start behind its end".into());
        }
        Ok(Self { rows: file.slice(..start), filter: OwnedView::from_standalone(file.slice(start..end))? })
    }

    fn get(&self, key: u64) -> Option<&str> {
        if !self.filter.contains(key) {
            return None; // definitely absent
        }
        let rows = str::from_utf8(&self.rows).ok()?;
        rows.lines().find_map(|row| row.strip_prefix(&format!("{key} ")))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("bloomline-table-{}", process::id()));
    fs::create_dir(&folder)?;
    let path = folder.join("table");
    Table::write(&path, (0..10_000).map(|key| (key, format!("row {key}"))))?;
    let table = Table::open(&path)?;
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(table.get(42), Some("row 42")));
        scope.spawn(|| assert_eq!(table.get(10_042), None));
    });
    let mut damaged = fs::read(&path)?;
    let place = damaged.len() - 1_000;
    damaged[place] ^= 1;
    drop(table);
    fs::write(&path, damaged)?;
    let error = Table::open(&path).err().ok_or("damage was not noticed")?;
    fs::remove_dir_all(&folder)?;
    println!("two threads found what they should; the damaged table: {error}");
    Ok(())
}
