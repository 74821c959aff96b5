"""Committed datatypes."""

import posixpath

from ..low.h5t import TypeID
from .base import HLObject


class Datatype(HLObject):
    """A datatype that a file stores under a name."""

    def __init__(self, bind):
        if not isinstance(bind, TypeID):
            raise ValueError(f"{bind} is not a TypeID")
        super().__init__(bind)

    @property
    def dtype(self):
        """The dtype that elements are read as."""
        return self.id.dtype

    def __repr__(self):
        if not self.id:
            return "<Closed HDF5 named type>"
        if self.name is None:
            named = "(anonymous)"
        else:
            named = f'"{posixpath.basename(self.name) or "/"}"'
        return f"<HDF5 named type {named} (dtype {self.dtype.str})>"
