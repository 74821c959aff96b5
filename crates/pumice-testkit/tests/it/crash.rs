//! What a program leaves that ends, or cannot write, in the middle of editing: the file as of the
//! last commit, or of the one under way.

use pumice::{
    AllocationTime, ByKind, Context, Durability, File, FileOptions, FileSpaceStrategy,
    LibraryVersion, Node, Selection,
};
use pumice_store::Store;
use pumice_testkit::faults::{Call, FaultyStore};
use pumice_testkit::moments::{is_tried, share, torn};
use pumice_testkit::parts::PartedMemory;
use pumice_testkit::recording::RecordingStore;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything in a file: values by path.
type Content = BTreeMap<String, Vec<i32>>;

/// Steps of the workload; every third one ends with a commit.
const STEPS: usize = 24;

/// Files of every kind that is edited in a way of its own.
fn kinds() -> Vec<(&'static str, FileOptions)> {
    let paged = File::options().space_strategy(FileSpaceStrategy::Paged).page_size(512);
    let old = File::options().library_version(LibraryVersion::Earliest);
    vec![
        ("new format", File::options()),
        ("old format", old.clone()),
        ("remembered space", File::options().persist_free_space(true)),
        ("pages", paged.persist_free_space(true)),
        ("split", File::options().by_kind(ByKind::Split)),
        ("old multi", old.by_kind(ByKind::Multi)),
        ("multi", File::options().by_kind(ByKind::Multi)),
    ]
}

/// The offsets of the parts of a store for such a file.
fn starts(kind: &str) -> Vec<u64> {
    match kind {
        "split" => ByKind::Split.starts(),
        "multi" | "old multi" => ByKind::Multi.starts(),
        _ => vec![0],
    }
}

fn recording(kind: &str) -> Arc<RecordingStore> {
    Arc::new(RecordingStore::of_parts(&starts(kind)))
}

fn values(seed: usize, count: usize) -> Vec<i32> {
    (0..count).map(|number| (seed * 1_000 + number) as i32).collect()
}

/// Step number `step`: what it changes, and whether a commit follows.
fn apply(file: &File, step: usize) -> pumice::Result<bool> {
    let name = |step: usize| format!("g{}/d{step}", step % 3);
    if step < 3 {
        file.create_group(&format!("g{step}"))?;
    }
    match step % 4 {
        // Enough attributes for dense storage, where there is such a thing.
        0 => {
            for number in 0..6 {
                file.set_attribute(&format!("a{number} of {step}"), values(step, 3).as_slice())?;
            }
        }
        1 => {
            let builder = file.new_dataset::<i32>().shape([40]).max_shape([None]).chunk([8]);
            builder.deflate(1).create(&name(step))?.write(.., &values(step, 40))?;
        }
        2 => {
            let builder = file.new_dataset::<i32>().shape([30]);
            builder.create(&name(step))?.write(.., &values(step, 30))?;
            for number in 0..4 {
                file.create_group(&format!("g{}/sub{step}-{number}", step % 3))?;
            }
        }
        _ => {
            // The chunked dataset of two steps ago grows, the contiguous one of before goes.
            let grown = file.dataset(&name(step - 2))?;
            grown.resize([55])?;
            grown.write(10..55, &values(step, 45))?;
            drop(grown);
            file.unlink(&name(step - 1))?;
            if step > 4 {
                file.remove_attribute(&format!("a1 of {}", step - 3))?;
            }
        }
    }
    Ok(step % 3 == 2 || step + 1 == STEPS)
}

fn content(file: &File) -> pumice::Result<Content> {
    let mut found = Content::new();
    add(file, "", &mut found)?;
    Ok(found)
}

fn add(group: &pumice::Group, path: &str, found: &mut Content) -> pumice::Result<()> {
    // A broken file may have a group in itself.
    if path.len() > 200 {
        return Err(pumice::Error::Invalid("groups in groups without end".into()));
    }
    for attribute in group.attributes()? {
        found.insert(format!("{path}@{}", attribute.name()), attribute.read::<i32>()?);
    }
    for member in group.members()? {
        let below = format!("{path}/{}", member.name);
        match group.node(&member.name)? {
            Node::Group(inner) => {
                found.insert(below.clone(), Vec::new());
                add(&inner, &below, found)?;
            }
            Node::Dataset(dataset) => drop(found.insert(below, dataset.read::<i32>(..)?)),
            Node::Datatype(_) => {}
        }
    }
    Ok(())
}

fn read(store: Arc<dyn Store>) -> pumice::Result<Content> {
    content(&File::options().open_in(store)?)
}

#[test]
fn a_program_may_end_after_any_write_and_in_the_middle_of_it() {
    for (kind, options) in kinds() {
        let store = recording(kind);
        let file = options.create_in(store.clone()).unwrap();
        // For each commit: how many changes there were before and after, and what it contains.
        let mut commits = vec![(0, store.count(), content(&file).unwrap())];
        for step in 0..STEPS {
            if apply(&file, step).unwrap() {
                let before = store.count();
                file.flush().unwrap();
                commits.push((before, store.count(), content(&file).unwrap()));
            }
        }
        let (before, last) = (store.count(), content(&file).unwrap());
        file.close().unwrap();
        commits.push((before, store.count(), last));
        let first = commits[0].1;
        for count in first..=store.count() {
            let done = commits.iter().rposition(|commit| commit.1 <= count).unwrap();
            for torn in torn(count) {
                let at = format!("{kind}: after {count} of {} changes, {torn}", store.count());
                let copy = Arc::new(store.blank());
                store.play(count, torn, &*copy).unwrap();
                let found = read(copy.clone()).unwrap_or_else(|error| panic!("{at}: {error}"));
                let under_way = commits.get(done + 1).filter(|commit| commit.0 <= count);
                let new = under_way.is_some_and(|commit| found == commit.2);
                assert!(found == commits[done].2 || new, "{at}");
                go_on(copy, found, &at);
            }
        }
    }
}

/// The file can be edited from there.
fn go_on(store: Arc<dyn Store>, mut content: Content, at: &str) {
    let file = File::options().edit_in(store.clone()).unwrap_or_else(|e| panic!("{at}: {e}"));
    file.create_group("after").unwrap();
    file.set_attribute("after", 7i32).unwrap();
    file.close().unwrap();
    content.insert("/after".into(), Vec::new());
    content.insert("@after".into(), vec![7]);
    assert!(read(store).unwrap() == content, "{at}: after editing");
}

/// Changes that are each one call, so that what may be committed between two calls is known.
fn single_change(file: &File, number: usize) -> pumice::Result<()> {
    let name = |number: usize| format!("member with a long name, number {number}");
    match number % 8 {
        6 => file.unlink(&name(number - 4)),
        7 => file.rename(&name(number - 4), &format!("renamed {number}")),
        5 => {
            let dataset = file.new_dataset::<i32>().shape([6]).max_shape([None]).chunk([4]);
            dataset.create(&name(number)).map(drop)
        }
        4 if number > 8 => file.dataset(&name(number - 7))?.write(.., &values(number, 6)),
        4 | 3 => file.create_group(&name(number)).map(drop),
        2 => file.create_group(&name(number)).map(drop),
        _ => file.set_attribute(&format!("a{number}"), values(number, 9).as_slice()),
    }
}

#[test]
fn a_program_may_end_while_changed_metadata_is_written_before_its_commit() {
    for (kind, options) in kinds() {
        let store = recording(kind);
        let file = options.metadata_limit(3000).create_in(store.clone()).unwrap();
        file.flush().unwrap();
        // What there was before each call, and how many changes of the store before it.
        let mut known = vec![(store.count(), content(&file).unwrap())];
        let mut spilled = 0;
        for number in 0..80 {
            let before = store.count();
            single_change(&file, number).unwrap();
            spilled += usize::from(store.count() > before);
            known.push((store.count(), content(&file).unwrap()));
        }
        assert!(spilled > 5, "{kind}: {spilled} calls wrote something before the last commit");
        file.close().unwrap();
        let mut oldest = 0;
        for count in known[0].0..=store.count() {
            for torn in torn(count) {
                let at = format!("{kind}: after {count} of {} changes, {torn}", store.count());
                let copy = Arc::new(store.blank());
                store.play(count, torn, &*copy).unwrap();
                let found = read(copy.clone()).unwrap_or_else(|error| panic!("{at}: {error}"));
                // Not before what was found last, not after what had been called for.
                let called = known.iter().rposition(|call| call.0 <= count).unwrap() + 1;
                let seen = &known[oldest..known.len().min(called + 1)];
                let place = seen.iter().position(|call| call.1 == found);
                oldest += place.unwrap_or_else(|| panic!("{at}: between two calls"));
                if torn {
                    go_on(copy, found, &at);
                }
            }
        }
        assert_eq!(known[oldest..].last().unwrap().1, known[oldest].1, "{kind}: all is there");
    }
}

/// Layouts of strings: whatever chunk index there is, and where elements wait for the commit or go elsewhere.
const STRINGS: [&str; 9] = [
    "in one piece",
    "compact",
    "filtered",
    "single",
    "implicit",
    "fixed",
    "extensible",
    "tree",
    "edges without filters",
];

/// Layouts of references.
const REGIONS: [&str; 3] = ["regions", "regions in chunks", "sparse regions"];

/// Strings and references of datasets in which elements refer to what is elsewhere in the file.
fn referring(file: &File) -> pumice::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in STRINGS {
        let strings = file.dataset(name)?.read_strings(..)?;
        found.extend(strings.iter().map(|text| String::from_utf8_lossy(text).into_owned()));
    }
    for name in REGIONS {
        for reference in file.dataset(name)?.read_references(..)?.iter().flatten() {
            let (dataset, selection) = file.dereference_region(reference)?;
            found.push(format!("{} of {}", selection.count(&dataset.shape()), dataset.path()));
        }
    }
    Ok(found)
}

fn make_referring(file: &File) -> pumice::Result<()> {
    for name in STRINGS {
        let line = file.new_strings().shape([60, 1]);
        let chunks = file.new_strings().shape([60, 1]).chunk([16, 1]);
        let builder = match name {
            "in one piece" => line,
            "compact" => line.compact(),
            "filtered" => chunks.deflate(1),
            "single" => line.chunk([60, 1]),
            "implicit" => chunks.allocation_time(AllocationTime::Early),
            "fixed" => chunks,
            "extensible" => chunks.max_shape([None, Some(1)]),
            "tree" => chunks.max_shape([None, None]),
            "edges without filters" => chunks.deflate(1).dont_filter_partial_chunks(),
            other => panic!("no layout {other}"),
        };
        builder.create(name)?;
    }
    for name in REGIONS {
        let builder = file.new_references(pumice::ReferenceType::Region).shape([20]);
        let builder = match name {
            "regions" => builder,
            "regions in chunks" => builder.chunk([7]),
            _ => builder.chunk([7]).sparse().no_filters(),
        };
        builder.create(name)?;
    }
    file.new_dataset::<i32>().shape([100]).create("a")?.write(.., &values(1, 100))
}

/// Makes such datasets, or overwrites some elements of each, or all.
fn refer(file: &File, number: u64) -> pumice::Result<()> {
    if number == 0 {
        make_referring(file)?;
    }
    let range = if number.is_multiple_of(5) { 0..60 } else { 7 * number..7 * number + 20 };
    let texts: Vec<String> = range.clone().map(|cell| format!("{cell} of {number}")).collect();
    let cells = Selection::block(&[range.start, 0], &[texts.len() as u64, 1])?;
    for name in STRINGS {
        file.dataset(name)?.write_strings(cells.clone(), &texts)?;
    }
    let regions = (0..20).map(|at| file.region_reference("a", 0..at + number + 1).map(Some));
    let regions: Vec<_> = regions.collect::<pumice::Result<_>>()?;
    REGIONS.iter().try_for_each(|name| file.dataset(name)?.write_references(.., &regions))
}

/// Ends the program after every write and in the middle of each; `again` times elements are overwritten
/// between two commits. In the end all are, and the file is closed.
fn end_while_overwriting(kind: &str, options: FileOptions, again: u64) {
    let store = recording(kind);
    let file = options.create_in(store.clone()).unwrap();
    refer(&file, 0).unwrap();
    file.flush().unwrap();
    let mut commits = vec![(store.count(), referring(&file).unwrap())];
    for number in 1..4 {
        (0..again).for_each(|time| refer(&file, 1 + (number + time) % 4).unwrap());
        let seen = referring(&file).unwrap();
        file.flush().unwrap();
        commits.push((store.count(), seen));
    }
    refer(&file, 5).unwrap();
    let seen = referring(&file).unwrap();
    file.close().unwrap();
    commits.push((store.count(), seen));
    for count in commits[0].0..=store.count() {
        let done = commits.iter().rposition(|commit| commit.0 <= count).unwrap();
        for torn in torn(count) {
            let at = format!("{kind}: after {count} of {} changes, {torn}", store.count());
            let copy = Arc::new(store.blank());
            store.play(count, torn, &*copy).unwrap();
            let found = File::options().open_in(copy).and_then(|file| referring(&file));
            let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
            let new = commits.get(done + 1).is_some_and(|commit| commit.1 == found);
            assert!(found == commits[done].1 || new, "{at}: neither old nor new");
        }
    }
}

#[test]
fn a_program_may_end_while_strings_and_references_are_overwritten() {
    for (kind, options) in kinds() {
        end_while_overwriting(kind, options.clone(), 1);
        end_while_overwriting(kind, options, 3);
    }
}

#[test]
fn a_program_may_end_while_chunks_of_strings_leave_the_cache() {
    for (kind, options) in kinds() {
        let context = Context::builder().cache_bytes(1000).threads(1).build().unwrap();
        end_while_overwriting(kind, options.context(&context), 2);
    }
}

/// Strings and numbers that are overwritten as a whole, in another opening.
fn overwrite(file: &File, round: usize) -> pumice::Result<()> {
    let texts: Vec<String> = (0..1200).map(|at| format!("{at:8} of round {round:8}")).collect();
    for name in ["strings", "strings in chunks"] {
        file.dataset(name)?.write_strings(.., &texts)?;
    }
    let noise = (0..3000u32).map(|at| (at + round as u32).wrapping_mul(2_654_435_761) as i32 >> 8);
    file.dataset("numbers")?.write(.., &noise.collect::<Vec<_>>())
}

fn overwritten(file: &File) -> pumice::Result<(Vec<Vec<u8>>, Vec<i32>)> {
    let mut found = Vec::new();
    for name in ["strings", "strings in chunks"] {
        found.extend(file.dataset(name)?.read_strings(..)?.iter().map(<[u8]>::to_vec));
    }
    Ok((found, file.dataset("numbers")?.read(..)?))
}

#[test]
fn a_program_may_end_while_closing_moves_what_was_overwritten() {
    for (kind, options) in kinds() {
        let store = recording(kind);
        let file = options.create_in(store.clone()).unwrap();
        file.new_strings().shape([1200]).create("strings").unwrap();
        file.new_strings().shape([1200]).chunk([500]).create("strings in chunks").unwrap();
        file.new_dataset::<i32>().shape([3000]).chunk([200]).deflate(1).create("numbers").unwrap();
        overwrite(&file, 0).unwrap();
        let old = overwritten(&file).unwrap();
        file.close().unwrap();
        let (first, length) = (store.count(), store.volume().unwrap());
        let file = File::options().edit_in(store.clone()).unwrap();
        overwrite(&file, 1).unwrap();
        let new = overwritten(&file).unwrap();
        file.close().unwrap();
        // What was moved is where the old was. Where space is remembered, nothing is moved.
        let remembers = ["remembered space", "pages"].contains(&kind);
        let now = store.volume().unwrap();
        assert!(now < length * 6 / 5 || remembers, "{kind}: {length} to {now}");
        let (mut seen, mut last) = ([0; 2], false);
        for count in first..=store.count() {
            for torn in torn(count) {
                let at = format!("{kind}: after {count} of {} changes, {torn}", store.count());
                let copy = Arc::new(store.blank());
                store.play(count, torn, &*copy).unwrap();
                let found = File::options().open_in(copy).and_then(|file| overwritten(&file));
                let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
                assert!(found == new || (found == old && !last), "{at}: neither old nor new");
                last = found == new;
                seen[usize::from(last)] += 1;
            }
        }
        assert!(seen[0] > 10 && seen[1] > 10, "{kind}: {seen:?}");
    }
}

/// How many of many ways in which power can fail leave a file that is neither old nor new.
fn broken_by_power_loss(kind: &str, options: FileOptions) -> usize {
    let store = recording(kind);
    let file = options.create_in(store.clone()).unwrap();
    store.sync().unwrap();
    let mut commits = vec![(store.count(), content(&file).unwrap())];
    for step in 0..STEPS {
        if apply(&file, step).unwrap() {
            file.flush().unwrap();
            commits.push((store.count(), content(&file).unwrap()));
        }
    }
    let mut draw = 1u64;
    let mut broken = 0;
    for count in commits[0].0..=store.count() {
        for _ in 0..share(6) {
            draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bits = draw >> 20;
            let copy = Arc::new(store.blank());
            let kept = |number: usize| bits >> (number % 40) & 1 == 1;
            store.play_power_loss(count, kept, &*copy).unwrap();
            let done = commits.iter().rposition(|commit| commit.0 <= count).unwrap();
            let mut known = commits[done..commits.len().min(done + 2)].iter();
            // A commit that waits for the device is there as soon as it returns.
            let sound = read(copy).is_ok_and(|found| known.any(|commit| commit.1 == found));
            broken += usize::from(!sound);
        }
    }
    broken
}

#[test]
fn power_may_fail_at_any_moment_where_that_was_asked_for() {
    for (kind, options) in kinds() {
        let plain = broken_by_power_loss(kind, options.clone().durability(Durability::Process));
        assert!(plain > 0, "{kind}: this test would see a commit that waits for nothing");
        assert_eq!(broken_by_power_loss(kind, options.durability(Durability::Power)), 0, "{kind}");
    }
}

#[test]
fn without_a_journal_an_end_in_the_middle_of_a_commit_shows() {
    let store = Arc::new(RecordingStore::default());
    let options = File::options().durability(Durability::None);
    let file = options.create_in(store.clone()).unwrap();
    let mut contents = vec![content(&file).unwrap()];
    let first = store.count();
    for step in 0..STEPS {
        if apply(&file, step).unwrap() {
            file.flush().unwrap();
            contents.push(content(&file).unwrap());
        }
    }
    let broken = (first..store.count()).filter(|&count| {
        let copy = Arc::new(store.blank());
        store.play(count, false, &*copy).unwrap();
        !read(copy).is_ok_and(|found| contents.contains(&found))
    });
    assert!(broken.count() > 0, "this test would see a file that is neither old nor new");
}

#[test]
fn a_fault_at_any_call_leaves_a_commit_and_a_later_one_succeeds() {
    for (kind, options) in kinds() {
        let calls = run(kind, &options, None);
        // One fault of each call, in turn the first and the second that it can have.
        for (number, call) in calls.iter().enumerate().filter(|call| is_tried(call.0)) {
            run(kind, &options, Some((number, call.faults()[number % 2])));
        }
    }
}

/// Runs the workload with a fault, if one is given; returns the calls of the store.
fn run(
    kind: &str,
    options: &FileOptions,
    fault: Option<(usize, pumice_testkit::faults::Fault)>,
) -> Vec<Call> {
    let memory = Arc::new(PartedMemory::new(&starts(kind)));
    let store = Arc::new(FaultyStore::new(memory.clone()));
    let file = options.clone().create_in(store.clone()).unwrap();
    let mut committed = content(&file).unwrap();
    match fault {
        Some((call, fault)) => store.fail_at(call, fault),
        None => store.forget(),
    }
    for step in 0..STEPS {
        let before = content(&file);
        let done = apply(&file, step);
        let Ok(commit) = done else {
            // What the step did until then stays, in memory only; the file is as it was.
            let at = format!("{kind}: {fault:?} in step {step}");
            store.heal();
            assert!(read_copy(&memory, &at) == committed, "{at}: the file has changed");
            assert!(before.is_ok() || fault.is_some(), "{at}");
            file.flush().unwrap_or_else(|error| panic!("{at}: a later commit: {error}"));
            let now = content(&file).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert!(read_copy(&memory, &at) == now, "{at}: after a later commit");
            return Vec::new();
        };
        if commit {
            let new = match content(&file) {
                Ok(new) => new,
                Err(_) => {
                    store.heal();
                    content(&file).unwrap()
                }
            };
            if let Err(error) = file.flush() {
                let at = format!("{kind}: {fault:?} in the commit of step {step}, {error}");
                store.heal();
                let found = read_copy(&memory, &at);
                assert!(found == committed || found == new, "{at}: neither old nor new");
                file.flush().unwrap_or_else(|error| panic!("{at}: again: {error}"));
                assert!(read_copy(&memory, &at) == new, "{at}: after the second try");
                return Vec::new();
            }
            committed = new;
        }
    }
    store.calls()
}

/// The contents that another program would find in the file now.
fn read_copy(memory: &PartedMemory, at: &str) -> Content {
    read(Arc::new(memory.copied())).unwrap_or_else(|error| panic!("{at}: {error}"))
}
