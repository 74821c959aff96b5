//! Operations on groups, links and attributes, for `pumice-interop write` and `edit`.

use anyhow::{Context, Result};
use pumice::{CopyOptions, File, GroupOptions, Node, Reference, ReferenceType, References};
use serde_json::Value;

/// Carries out an operation if it is one of these; returns whether it was.
pub(crate) fn apply(file: &File, path: &str, operation: &Value) -> Result<bool> {
    let text = |field: &str| -> Result<&str> {
        operation[field].as_str().with_context(|| format!("no {field}"))
    };
    match operation["op"].as_str() {
        Some("group_with") => drop(file.create_group_with(path, &options(operation))?),
        Some("groups") => {
            let group = file.group(path)?;
            for number in 0..operation["count"].as_u64().context("no count")? {
                group.create_group(&format!("{}{number}", text("name")?))?;
            }
        }
        Some("hard") => file.create_hard_link(path, text("target")?)?,
        Some("soft") => file.create_soft_link(path, text("target")?)?,
        Some("external") => file.create_external_link(path, text("file")?, text("target")?)?,
        Some("commit") => {
            let datatype = crate::datatype::parse(&operation["dtype"])?;
            drop(file.commit_datatype(path, &datatype)?);
        }
        Some("rename") => file.rename(path, text("to")?)?,
        Some("unlink") => file.unlink(path)?,
        Some("copy") => {
            let from = match operation["from"].as_str() {
                Some(other) => File::open(other)?,
                None => file.clone(),
            };
            from.copy_object(path, file, text("to")?, &copy_options(operation))?;
        }
        Some("references") => {
            let meaning = match text("meaning")? {
                "object" => ReferenceType::Object,
                "region" => ReferenceType::Region,
                _ => ReferenceType::Any,
            };
            let list = references(file, operation)?;
            let builder = file.new_references(meaning).shape([list.len() as u64]);
            builder.create(path)?.write_references(.., &list)?;
        }
        Some("reference_attribute") => {
            let list = References(references(file, operation)?);
            crate::write::attach(file, path, text("name")?, list)?;
        }
        Some("flush") => file.flush()?,
        Some("comment") => {
            let comment = operation["text"].as_str();
            match file.node(path)? {
                Node::Group(group) => group.set_comment(comment)?,
                Node::Dataset(dataset) => dataset.set_comment(comment)?,
                Node::Datatype(datatype) => datatype.set_comment(comment)?,
            }
        }
        Some("remove_attribute") => match file.node(path)? {
            Node::Group(group) => group.remove_attribute(text("name")?)?,
            Node::Dataset(dataset) => dataset.remove_attribute(text("name")?)?,
            Node::Datatype(datatype) => datatype.remove_attribute(text("name")?)?,
        },
        Some("rename_attribute") => match file.node(path)? {
            Node::Group(group) => group.rename_attribute(text("name")?, text("to")?)?,
            Node::Dataset(dataset) => dataset.rename_attribute(text("name")?, text("to")?)?,
            Node::Datatype(datatype) => datatype.rename_attribute(text("name")?, text("to")?)?,
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn options(operation: &Value) -> GroupOptions {
    let flag = |field: &str| operation[field].as_bool().unwrap_or(false);
    let mut options = GroupOptions::new()
        .track_order(flag("track_order"))
        .track_attribute_order(flag("track_attribute_order"));
    if let Some([max, min]) = operation["phase_change"].as_array().map(Vec::as_slice) {
        let number = |value: &Value| value.as_u64().unwrap_or(0) as u16;
        options = options.phase_change(number(max), number(min));
    }
    options
}

fn copy_options(operation: &Value) -> CopyOptions {
    let flag = |field: &str| operation[field].as_bool().unwrap_or(false);
    CopyOptions::new()
        .shallow(flag("shallow"))
        .expand_soft_links(flag("expand_soft"))
        .expand_external_links(flag("expand_external"))
        .expand_references(flag("expand_references"))
        .without_attributes(flag("without_attributes"))
        .merge_committed_datatypes(flag("merge_committed"))
}

/// References to `targets`: null, or a path with a block or the name of an attribute.
fn references(file: &File, operation: &Value) -> Result<Vec<Option<Reference>>> {
    let targets = operation["targets"].as_array().context("no targets")?;
    let reference = |target: &Value| -> Result<Option<Reference>> {
        let Some(path) = target["path"].as_str() else { return Ok(None) };
        Ok(Some(match target["attribute"].as_str() {
            Some(name) => file.attribute_reference(path, name)?,
            None if target["start"].is_null() => file.reference(path)?,
            None => file.region_reference(path, crate::write::block(target)?)?,
        }))
    };
    targets.iter().map(reference).collect()
}
