//! The text h5dump writes for a datatype.
