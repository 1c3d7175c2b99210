//! A toy table, with rows in a mapped file, and a filter in the same file that saves searching the rows.
//!
//! ```text
//! cargo run --release --example table
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::{env, process, str, thread};

use bloomline::{FilterBuilder, OwnedView, SharedSlice};
use memmap2::Mmap;

struct Table {
    rows: SharedSlice<Mmap>,
    filter: OwnedView<SharedSlice<Mmap>>,
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
        let file = Arc::new(unsafe { Mmap::map(&File::open(path)?)? });
        let (table, start) = file.split_last_chunk().ok_or("not a table: too short")?;
        let (start, end) = (usize::try_from(u64::from_le_bytes(*start))?, table.len());
        let filter = OwnedView::from_standalone(SharedSlice::new(Arc::clone(&file), start..end)?)?;
        Ok(Self { rows: SharedSlice::new(Arc::clone(&file), 0..start)?, filter })
    }

    fn get(&self, key: u64) -> Option<&str> {
        if !self.filter.as_view().contains(key) {
            return None; // definitely absent
        }
        let rows = str::from_utf8(self.rows.as_ref()).ok()?;
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
