//! `Debug` of handles: kind and path, not contents.

use crate::{CommittedDatatype, Context, Dataset, DatasetBuilder, File, Group, Node};
use std::fmt::{Debug, Formatter, Result};

impl Debug for Group {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        formatter.debug_tuple("Group").field(&self.path()).finish()
    }
}

impl Debug for File {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        formatter.debug_tuple("File").field(&self.path()).finish()
    }
}

impl Debug for CommittedDatatype {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let mut shown = formatter.debug_struct("CommittedDatatype");
        shown.field("path", &self.path()).field("datatype", self.datatype()).finish()
    }
}

impl Debug for Dataset {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let mut shown = formatter.debug_struct("Dataset");
        shown.field("path", &self.path()).field("shape", &self.shape());
        shown.field("layout", &self.layout()).finish_non_exhaustive()
    }
}

impl Debug for DatasetBuilder {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let mut shown = formatter.debug_struct("DatasetBuilder");
        shown.field("group", self.group()).finish_non_exhaustive()
    }
}

impl Debug for Node {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Group(group) => group.fmt(formatter),
            Self::Dataset(dataset) => dataset.fmt(formatter),
            Self::Datatype(datatype) => datatype.fmt(formatter),
        }
    }
}

impl Debug for Context {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        formatter.debug_tuple("Context").field(&self.cache_config()).finish()
    }
}
