//! An attribute that was opened before it was replaced, renamed or deleted: what it reads then is its own, or
//! that of the attribute that has its name now, or an error, and never the text of something else.

use pumice::{CopyOptions, File, VariableLength};

fn text(text: &str) -> VariableLength {
    VariableLength::text(text).unwrap()
}

/// A file whose root group has so many further attributes: few are in messages, many in a heap.
fn file(others: usize) -> File {
    let file = File::in_memory().unwrap();
    for number in 0..others {
        file.set_attribute(&format!("further {number}"), text("further")).unwrap();
    }
    file.set_attribute("own", text("the first text")).unwrap();
    file.flush().unwrap();
    file
}

/// Fills the room of texts that went with others of their length.
fn fill_room(file: &File) {
    file.flush().unwrap();
    for number in 0..50 {
        let other = text(&format!("other text {number:03}"));
        file.set_attribute(&format!("other {number}"), other).unwrap();
    }
    file.flush().unwrap();
}

#[test]
fn a_replaced_attribute_reads_as_the_one_that_has_its_name() {
    for others in [0, 30] {
        let file = file(others);
        let opened = file.attribute("own").unwrap();
        file.set_attribute("own", text("the second text")).unwrap();
        fill_room(&file);
        assert_eq!(opened.read_string().unwrap(), "the second text");
        file.remove_attribute("own").unwrap();
        file.set_attribute("own", text("the third text")).unwrap();
        fill_room(&file);
        assert_eq!(opened.read_string().unwrap(), "the third text");
        assert_eq!(opened.read_strings().unwrap(), ["the third text"]);
    }
}

#[test]
fn a_deleted_or_renamed_attribute_says_so_and_so_does_one_of_another_type() {
    for others in [0, 30] {
        let file = file(others);
        let message =
            |attribute: &pumice::Attribute| attribute.read_string().unwrap_err().to_string();
        let opened = file.attribute("own").unwrap();
        file.rename_attribute("own", "another name").unwrap();
        assert!(
            message(&opened).contains("\"own\" was deleted or renamed"),
            "{}",
            message(&opened)
        );
        let renamed = file.attribute("another name").unwrap();
        file.remove_attribute("another name").unwrap();
        fill_room(&file);
        for attribute in [opened, renamed] {
            let message = message(&attribute);
            assert!(message.contains("was deleted or renamed"), "{message}");
        }
        file.set_attribute("own", text("a text")).unwrap();
        let opened = file.attribute("own").unwrap();
        file.set_attribute("own", VariableLength::strings(["a", "b"]).unwrap()).unwrap();
        fill_room(&file);
        let message = message(&opened);
        assert!(message.contains("another type or shape"), "{message}");
    }
}

#[test]
fn an_attribute_of_a_deleted_object_is_what_it_was() {
    for others in [0, 30] {
        let file = File::in_memory().unwrap();
        let group = file.create_group("group").unwrap();
        for number in 0..others {
            group.set_attribute(&format!("further {number}"), text("further")).unwrap();
        }
        group.set_attribute("own", text("the first text")).unwrap();
        let opened = group.attribute("own").unwrap();
        file.flush().unwrap();
        drop(group);
        file.unlink("group").unwrap();
        fill_room(&file);
        assert_eq!(opened.read_string().unwrap(), "the first text");
    }
}

/// Replaces a group's text and one beside it until `work` is done.
fn while_replaced(file: &File, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        let mut number = 0;
        while !worker.is_finished() || number < 100 {
            number += 1;
            let group = file.group("group").unwrap();
            group.set_attribute("own", text(&format!("own {number:09}"))).unwrap();
            group.set_attribute("other", text(&format!("other {number:07}"))).unwrap();
            if number % 3 == 0 {
                file.flush().unwrap();
            }
        }
    });
}

/// A file with such a group, which has so many texts whose names come before.
fn with_group(others: usize) -> File {
    let file = File::in_memory().unwrap();
    let group = file.create_group("group").unwrap();
    for number in 0..others {
        group.set_attribute(&format!("before {number}"), text("further")).unwrap();
    }
    group.set_attribute("own", text("own 000000000")).unwrap();
    group.set_attribute("other", text("other 0000000")).unwrap();
    file.flush().unwrap();
    file
}

#[test]
fn a_text_that_is_read_while_it_is_replaced_is_one_that_it_had() {
    let file = with_group(0);
    let opened = file.group("group").unwrap().attribute("own").unwrap();
    while_replaced(&file, || {
        for _ in 0..3000 {
            let read = opened.read_string().unwrap();
            assert!(read.starts_with("own "), "{read}");
        }
    });
}

#[test]
fn attributes_that_are_copied_while_they_are_replaced_are_copied_as_some_that_there_were() {
    // The later ones are copied long after they were found.
    let file = with_group(500);
    while_replaced(&file, || {
        for number in 0..40 {
            let target = File::in_memory().unwrap();
            let name = format!("copy {number}");
            file.copy_object("group", &target, &name, &CopyOptions::new()).unwrap();
            let copy = target.group(&name).unwrap();
            for attribute in ["own", "other"] {
                let read = copy.attribute(attribute).unwrap().read_string().unwrap();
                assert!(read.starts_with(&format!("{attribute} ")), "{attribute}: {read}");
            }
        }
    });
}
