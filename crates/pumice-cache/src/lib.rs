//! The shared chunk cache: knows chunks, budgets, policies and threads; knows nothing of HDF5.
