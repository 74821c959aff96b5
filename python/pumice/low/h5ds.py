"""Dimension scales."""

from .h5g import text
from .h5i import wrap


def set_scale(dset, dimname=b""):
    """Makes a dataset a scale."""
    dset.ds.make_scale(text(dimname))


def is_scale(dset):
    """Whether a dataset is a scale."""
    return dset.ds.is_scale()


def attach_scale(dset, dscale, idx):
    """Gives an axis a scale."""
    dset.ds.attach_scale(idx, dscale.ds)


def is_attached(dset, dscale, idx):
    """Whether an axis has a scale."""
    return dscale.native.address in dset.ds.scales(idx)


def detach_scale(dset, dscale, idx):
    """Takes a scale from an axis."""
    dset.ds.detach_scale(idx, dscale.ds)


def get_num_scales(dset, dim):
    """How many scales an axis has."""
    return len(dset.ds.scales(dim))


def set_label(dset, idx, label):
    """Gives an axis a label."""
    dset.ds.set_label(idx, text(label))


def get_label(dset, idx):
    """The label of an axis, as bytes."""
    return (dset.ds.label(idx) or "").encode("utf-8", "surrogateescape")


def get_scale_name(dscale):
    """The name of a scale, as bytes."""
    return (dscale.ds.scale_name() or "").encode("utf-8", "surrogateescape")


def scales(dset, dim):
    """The scales of an axis."""
    group = dset.owner.group
    found = []
    for address in dset.ds.scales(dim):
        path = group.path_of(address)
        if path is not None:
            found.append(wrap(group.open(path), dset))
    return found


def iterate(dset, dim, func, startidx=0):
    """Calls a function with each scale of an axis until it returns something."""
    for scale in scales(dset, dim)[startidx:]:
        result = func(scale)
        if result is not None:
            return result
    return None
