//! `repack --cloud`: a file whose metadata is one range at the front, so that one request brings it.
//!
//! Room for metadata is set aside at the front before anything is written. How much it takes is known for sure only
//! when the file is there, so the file is made with the room that the old file's metadata would take, and once
//! more if that was too little, or far too much.

use super::options::SpaceRequest;
use super::{Options, Planner, Table};
use anyhow::{Result, ensure};
use pumice::{File, FileSpaceStrategy, Node, Place, WalkOrder};
use std::ops::ControlFlow;
use std::path::Path;

/// Room that may stay unused, beside an eighth of what is used.
const SPARE: u64 = 4 << 10;

/// How often the file is made at most.
const ATTEMPTS: usize = 4;

/// What a file's metadata takes, and where it is.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    metadata: u64,
    /// The part of it behind the first data.
    behind: u64,
    /// The beginning of the data.
    data: Option<u64>,
}

/// Makes the file.
pub(super) fn make(
    options: &Options,
    input: &File,
    path: &Path,
    table: &Table,
    planner: &Planner<'_>,
) -> Result<()> {
    let first = Extent::of(input)?.metadata;
    let mut room = first + first / 8 + SPARE;
    for attempt in 1.. {
        let space = SpaceRequest {
            strategy: Some(FileSpaceStrategy::FreeSpaceManagers),
            persist: Some(false),
            ..options.space
        };
        let options = Options { metadata_block: Some(room), space, ..options.clone() };
        super::make(&options, input, path, table, planner)?;
        let found = Extent::of(&File::open(path)?)?;
        let unused = found.data.map_or(0, |data| data.saturating_sub(found.metadata));
        let spare = 2 * SPARE + found.metadata / 4;
        if found.behind == 0 && (unused <= spare || attempt >= ATTEMPTS) {
            return Ok(());
        }
        ensure!(attempt < 2 * ATTEMPTS, "metadata found no room at the front");
        room = match found.behind {
            0 => found.metadata + found.metadata / 16 + SPARE,
            behind => room + behind + behind / 8 + SPARE,
        };
        std::fs::remove_file(path)?;
    }
    Ok(())
}

impl Extent {
    fn of(file: &File) -> Result<Self> {
        let mut places = file.places()?;
        let ended = file.walk(WalkOrder::Name, |_, node| {
            let found = node.and_then(|node| match node {
                Node::Group(group) => group.places(),
                Node::Dataset(dataset) => dataset.places(),
                Node::Datatype(datatype) => datatype.places(),
            });
            match found {
                Ok(found) => places.extend(found),
                // What is newer than this program stays behind.
                Err(error) if error.is_newer() => {}
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(error) = ended {
            return Err(error.into());
        }
        let is_data = |place: &&Place| place.kind.is_data();
        let data = places.iter().filter(is_data).map(|place| place.address).min();
        let metadata = places.iter().filter(|place| !place.kind.is_data());
        let mut extent = Self { data, ..Self::default() };
        for place in metadata.filter(|place| place.kind != pumice::PlaceKind::FreeSpace) {
            extent.metadata += place.length;
            if data.is_some_and(|data| place.address > data) {
                extent.behind += place.length;
            }
        }
        Ok(extent)
    }
}
