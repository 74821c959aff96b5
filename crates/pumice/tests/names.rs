//! Names, links and attributes: what happens to objects when names come, go and collide.

use pumice::{Element, File, RawAttribute};

#[test]
fn removing_a_name_makes_no_groups_on_the_way() {
    let file = File::in_memory().unwrap();
    assert!(file.unlink("a/b/c").is_err());
    assert!(!file.contains("a"));
}

#[test]
fn an_absolute_path_is_that_of_the_object_wherever_it_is_asked_for() {
    let file = File::in_memory().unwrap();
    file.new_dataset::<u8>().shape([1]).create("x").unwrap();
    let group = file.create_group("g").unwrap();
    assert_eq!(group.dataset("/x").unwrap().path(), "/x");
    assert_eq!(file.group("/").unwrap().path(), "/");
}

#[test]
fn a_name_that_is_taken_costs_no_space() {
    let file = File::in_memory().unwrap();
    file.create_group("g").unwrap();
    file.flush().unwrap();
    let before = file.create_group("h").unwrap().address();
    file.unlink("h").unwrap();
    for _ in 0..10 {
        assert!(file.create_group("g").is_err());
    }
    assert!(file.create_group("i").unwrap().address() < before + 1000);
}

#[test]
fn threads_that_make_the_same_groups_share_them() {
    for _ in 0..50 {
        let file = File::in_memory().unwrap();
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (file, barrier) = (&file, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let builder = file.new_dataset::<u8>().shape([1]);
                    builder.create(&format!("run/part/{thread}")).unwrap();
                });
            }
        });
        assert_eq!(file.members().unwrap().len(), 1);
        assert_eq!(file.group("run/part").unwrap().members().unwrap().len(), 4);
    }
}

#[test]
fn of_threads_that_want_the_same_name_one_gets_it() {
    for _ in 0..50 {
        let file = File::in_memory().unwrap();
        let barrier = std::sync::Barrier::new(4);
        let made: usize = std::thread::scope(|scope| {
            let make = || {
                barrier.wait();
                usize::from(file.new_dataset::<u8>().shape([1]).create("d").is_ok())
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((made, file.members().unwrap().len()), (1, 1));
    }
}

#[test]
fn threads_that_set_and_remove_attributes_leave_the_others_alone() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<u8>().shape([2]).create("d").unwrap();
    dataset.set_attribute("kept", 7i32).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let dataset = &dataset;
            scope.spawn(move || {
                let name = format!("a{thread}");
                for i in 0..300i32 {
                    dataset.set_attribute(&name, i).unwrap();
                    dataset.set_attribute(&name, i + 1).unwrap();
                    assert_eq!(dataset.attribute(&name).unwrap().read::<i32>().unwrap(), [i + 1]);
                    dataset.remove_attribute(&name).unwrap();
                }
            });
        }
    });
    assert_eq!(dataset.attributes().unwrap().len(), 1);
    assert_eq!(dataset.attribute("kept").unwrap().read::<i32>().unwrap(), [7]);
}

#[test]
fn an_attribute_too_large_for_the_header_is_refused_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.h5");
    let file = File::create(&path).unwrap();
    let large = RawAttribute::new(u8::datatype(), &[70_000], vec![1; 70_000]).unwrap();
    assert!(file.set_attribute("large", large).is_err());
    let long = "n".repeat(70_000);
    assert!(file.create_group(&long).is_err());
    file.set_attribute("small", 1u8).unwrap();
    file.close().unwrap();
    assert_eq!(File::open(&path).unwrap().attributes().unwrap().len(), 1);
}

#[test]
fn a_buffer_that_cannot_exist_is_an_error() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u8>().shape([1 << 31, 1 << 31]).chunk([1024, 1024]).sparse();
    let dataset = builder.create("vast").unwrap();
    assert!(dataset.read::<u8>(..).is_err());
    assert!(dataset.read_bytes(..).is_err());
}

#[test]
fn erasing_what_was_never_written_defines_nothing() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<i32>().shape([10]).create("d").unwrap();
    dataset.erase(..).unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), 0);
    assert_eq!(dataset.stored_bytes().unwrap(), 0);
}

#[test]
fn points_far_out_keep_their_coordinates() {
    let file = File::in_memory().unwrap();
    let far = (1u64 << 63) + 5;
    let builder = file.new_dataset::<u8>().shape([u64::MAX - 1]).chunk([1 << 52]).sparse();
    let dataset = builder.create("far").unwrap();
    dataset.write_points(&[[far], [3]], &[1u8, 2]).unwrap();
    let defined = dataset.read_defined::<u8>(..).unwrap();
    assert_eq!((defined.coordinates, defined.values), (vec![3, far], vec![2, 1]));
    assert_eq!(dataset.defined(..).unwrap().count(&[u64::MAX - 1]), 2);
}
