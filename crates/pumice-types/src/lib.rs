//! Elements: the datatype model, conversion kernels, data-transform expressions.
