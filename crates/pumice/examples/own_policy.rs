//! A replacement policy of the program's own: chunks of one dataset stay until nothing else could
//! leave.
//!
//! The policy ranks chunks by their last use, as `Lru` does, in two groups: those of a favourite
//! dataset leave after all others. The dataset that is used first is the favourite.
//!
//! ```sh
//! cargo run --release -p pumice --example own_policy
//! ```

use pumice::policy::{Lru, Policy, Usage};
use pumice::{Context, Dataset, File, MemoryStore};
use std::collections::HashSet;
use std::sync::Arc;

/// Two orders of last use, one after the other.
#[derive(Default)]
struct Favourite {
    favourite: Option<u64>,
    /// The chunks of the favourite, by number.
    dear: HashSet<u32>,
    /// The order of the other datasets, and of the favourite.
    orders: [Lru; 2],
}

impl Favourite {
    fn order(&mut self, id: u32) -> &mut Lru {
        &mut self.orders[usize::from(self.dear.contains(&id))]
    }
}

impl Policy for Favourite {
    fn admit(&mut self, id: u32, identity: u64, weight: u64, usage: Usage) {
        if *self.favourite.get_or_insert(usage.dataset) == usage.dataset {
            self.dear.insert(id);
        }
        self.order(id).admit(id, identity, weight, usage);
    }

    fn touch(&mut self, id: u32, usage: Usage) {
        self.order(id).touch(id, usage);
    }

    fn reweigh(&mut self, _id: u32, _weight: u64) {}

    fn evict(&mut self, id: u32) {
        self.order(id).evict(id);
        self.dear.remove(&id);
    }

    fn remove(&mut self, id: u32) {
        self.order(id).remove(id);
        self.dear.remove(&id);
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let mut wanted = true;
        for order in &self.orders {
            order.coldest(&mut |id| {
                wanted = wanted && visit(id);
                wanted
            });
        }
    }

    fn set_capacity(&mut self, _capacity: u64) {}
}

pub(crate) fn main() -> pumice::Result<()> {
    let own = Context::builder().own_policy(|_capacity| Box::<Favourite>::default());
    let usual = Context::builder().policy(pumice::PolicyKind::Lru);
    let mut misses = Vec::new();
    for (name, builder) in [("own", own), ("LRU", usual)] {
        let context = builder.cache_bytes(1 << 20).threads(1).build()?;
        let store = Arc::new(MemoryStore::default());
        let file = File::options().context(&context).create_in(store)?;
        let table = create(&file, "table", 16)?;
        let archive = create(&file, "archive", 256)?;
        context.evict()?;
        // The first use makes the table the favourite.
        table.read::<f64>(..)?;
        let before = table.cache_stats().misses;
        for row in 0..256u64 {
            archive.read::<f64>((row, ..))?;
            if row % 64 == 63 {
                table.read::<f64>((.., 0))?;
            }
        }
        misses.push(table.cache_stats().misses - before);
        println!(
            "{name}: {} chunks of the table were read again",
            table.cache_stats().misses - before
        );
    }
    assert!(misses[0] == 0 && misses[1] > 0);
    Ok(())
}

/// Chunks of 32 KiB, a row each.
fn create(file: &File, name: &str, rows: u64) -> pumice::Result<Dataset> {
    let dataset = file.new_dataset::<f64>().shape([rows, 4096]).chunk([1, 4096]).deflate(1);
    let dataset = dataset.create(name)?;
    dataset.write(.., &vec![1.0; rows as usize * 4096])?;
    Ok(dataset)
}
