//! Requests of very many chunks, some of them at a time.
//!
//! What a request keeps of each of its chunks, and what the order keeps, is small beside most chunks, but not
//! beside millions of tiny ones. A request of more than [`TOGETHER`] chunks therefore does not name them in the order.
//! It takes the dataset as a whole: a read is in the way of all writes, as a flush is, a write in that of everybody.
//! When it has its turn, it has its chunks served so many at a time, as they come. To others it is one request.

use crate::access::Access;
use crate::cache::Shared;
use crate::layout::Layout;
use crate::member::Member;
use crate::order::{Entry, Keys, Kind, Order, Place};
use crate::reach::Reach;
use crate::request::{Item, runs};
use crate::sync::Arc;

/// So many chunks of a request are served at a time.
#[cfg(not(shuttle))]
pub(crate) const TOGETHER: usize = 1 << 13;

/// Few, so that schedules with larger requests are tried as well.
#[cfg(shuttle)]
pub(crate) const TOGETHER: usize = 4;

/// The parts of a request by dataset.
pub(crate) type ByDataset<'d, L, P> = Vec<(&'d Arc<Member<L>>, P)>;

impl<L: Layout> Shared<L> {
    /// Serves a request, whose datasets are in their order and may occur more than once.
    pub(crate) fn serve<A, R, P>(
        &self,
        kind: Kind,
        requests: ByDataset<'_, L, P>,
        access: impl Fn(R) -> A,
    ) -> Result<(), L::Error>
    where
        A: Access<L>,
        P: IntoIterator<Item = (L::Key, R)>,
    {
        let members: Vec<_> = requests.iter().map(|(member, _)| *member).collect();
        let access = &access;
        let mut items = requests.into_iter().flat_map(|(member, parts)| {
            parts.into_iter().map(move |(key, request)| Item::new(member, key, access(request)))
        });
        let (first, more) = take(&mut items);
        if first.is_empty() {
            return Ok(());
        }
        let Some(more) = more else {
            let _places = enter_all(kind, &first);
            return self.run(first);
        };
        let kind = if kind == Kind::Read { Kind::Flush } else { Kind::Exclusive };
        self.serve_all(kind, &members, first.into_iter().chain([more]).chain(items))
    }

    /// Serves a request of very many chunks of datasets, which are in their order.
    pub(crate) fn serve_all<'d, A: Access<L>>(
        &self,
        kind: Kind,
        members: &[&'d Arc<Member<L>>],
        items: impl Iterator<Item = Item<'d, L, A>>,
    ) -> Result<(), L::Error> {
        let mut members = members.to_vec();
        members.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let entries = members.iter().map(|member| Entry::of(&member.order, kind));
        let _places = Order::enter_all(entries.collect());
        self.run_batches(items)
    }

    /// Serves a request that has its turn, some chunks at a time.
    pub(crate) fn run_batches<'d, A: Access<L>>(
        &self,
        mut items: impl Iterator<Item = Item<'d, L, A>>,
    ) -> Result<(), L::Error> {
        loop {
            let some: Vec<_> = items.by_ref().take(TOGETHER).collect();
            if some.is_empty() {
                return Ok(());
            }
            self.run(some)?;
        }
    }
}

/// As many as are served at a time, and the next one if there are more.
pub(crate) fn take<T>(items: &mut impl Iterator<Item = T>) -> (Vec<T>, Option<T>) {
    let some: Vec<_> = items.by_ref().take(TOGETHER).collect();
    let more = if some.len() < TOGETHER { None } else { items.next() };
    (some, more)
}

/// What a request names in the order.
pub(crate) fn keys<L: Layout, A>(items: &[Item<'_, L, A>]) -> Keys<L::Key> {
    items.iter().map(|item| item.key.clone()).collect()
}

/// What a request of one dataset touches, if its layout goes past the cache and can say so.
pub(crate) fn reach<L: Layout, A: Access<L>>(items: &[Item<'_, L, A>]) -> Option<Reach> {
    let (first, others) = items.split_first().filter(|(first, _)| first.member.layout.bypass())?;
    let reach = |item: &Item<'_, L, A>| item.access.reach(&item.member.layout, &item.key);
    // Places of several chunks would be taken for those of one.
    if others.iter().any(|other| other.key != first.key) {
        return None;
    }
    others.iter().try_fold(reach(first)?, |all, other| Some(all.join(reach(other)?)))
}

/// A place in the order of each dataset.
fn enter_all<'m, L: Layout, A: Access<L>>(
    kind: Kind,
    items: &[Item<'m, L, A>],
) -> Vec<Place<'m, L::Key>> {
    let entry = |same: &[Item<'m, L, A>]| {
        let (order, keys, reach) = (&same[0].member.order, keys(same), reach(same));
        Entry { order, kind, keys, reach }
    };
    Order::enter_all(runs(items).map(entry).collect())
}
