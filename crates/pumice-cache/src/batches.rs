//! Requests of very many chunks, some of them at a time.
//!
//! What a request keeps of each of its chunks, and what the order keeps, is small beside most chunks, but not
//! beside millions of tiny ones. A request of more than [`TOGETHER`] chunks therefore does not name them in the order.
//! It takes the dataset as a whole: a read is in the way of all writes, as a flush is, a write in that of everybody.
//! When it has its turn, it has its chunks served so many at a time, as they come. To others it is one request.

use crate::access::Request;
use crate::cache::Shared;
use crate::layout::Family;
use crate::member::{Data, Member};
use crate::order::{Entry, Keys, Kind, Order, Place};
use crate::reach::Reach;
use crate::request::Share;
use crate::sync::Arc;

/// So many chunks of a request are served at a time.
#[cfg(not(shuttle))]
pub(crate) const TOGETHER: usize = 1 << 13;

/// Few, so that schedules with larger requests are tried as well.
#[cfg(shuttle)]
pub(crate) const TOGETHER: usize = 4;

/// The parts of a request by dataset.
pub(crate) type ByDataset<'d, F, P> = Vec<(&'d Arc<Member<F>>, P)>;

impl<F: Family> Shared<F> {
    /// Serves a request, whose datasets are in their order and may occur more than once.
    pub(crate) fn serve<A, R, P>(
        &self,
        kind: Kind,
        requests: ByDataset<'_, F, P>,
        access: impl Fn(R) -> A,
    ) -> Result<(), F::Error>
    where
        A: Request<F>,
        P: IntoIterator<Item = (F::Key, R)>,
    {
        let members: Vec<_> = requests.iter().map(|(member, _)| *member).collect();
        let access = &access;
        let mut items = requests.into_iter().flat_map(|(member, parts)| {
            parts.into_iter().map(move |(key, request)| Share::new(member, key, access(request)))
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
    pub(crate) fn serve_all<'d, A: Request<F>>(
        &self,
        kind: Kind,
        members: &[&'d Arc<Member<F>>],
        items: impl Iterator<Item = Share<'d, F, A>>,
    ) -> Result<(), F::Error> {
        let mut members = members.to_vec();
        members.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let entries = members.iter().map(|member| Entry::of(&member.order, kind));
        let _places = Order::enter_all(entries.collect());
        self.run_batches(items)
    }

    /// Serves a request that has its turn, some chunks at a time.
    pub(crate) fn run_batches<'d, A: Request<F>>(
        &self,
        mut items: impl Iterator<Item = Share<'d, F, A>>,
    ) -> Result<(), F::Error> {
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
pub(crate) fn keys<F: Family, A>(items: &[Share<'_, F, A>]) -> Keys<F::Key> {
    items.iter().map(|item| item.key.clone()).collect()
}

/// What a request of one dataset touches, if its data are not in chunks and it can say so.
pub(crate) fn reach<F: Family, A: Request<F>>(items: &[Share<'_, F, A>]) -> Option<Reach> {
    let (first, others) = items.split_first()?;
    let Data::Unchunked(data) = &first.member.data else { return None };
    let reach = |share: &Share<'_, F, A>| share.access.reach(&**data, &share.key);
    // Places of several chunks would be taken for those of one.
    if others.iter().any(|other| other.key != first.key) {
        return None;
    }
    others.iter().try_fold(reach(first)?, |all, other| Some(all.join(reach(other)?)))
}

/// A place in the order of each dataset.
fn enter_all<'m, F: Family, A: Request<F>>(
    kind: Kind,
    items: &[Share<'m, F, A>],
) -> Vec<Place<'m, F::Key>> {
    let entry = |same: &[Share<'m, F, A>]| {
        let (order, keys, reach) = (&same[0].member.order, keys(same), reach(same));
        Entry { order, kind, keys, reach }
    };
    let runs = items.chunk_by(|a, b| Arc::ptr_eq(a.member, b.member));
    Order::enter_all(runs.map(entry).collect())
}
