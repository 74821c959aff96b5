"""Filters."""

FILTER_NONE, FILTER_DEFLATE, FILTER_SHUFFLE, FILTER_FLETCHER32 = 0, 1, 2, 3
FILTER_SZIP, FILTER_NBIT, FILTER_SCALEOFFSET = 4, 5, 6
FILTER_LZF = 32000
FILTER_ALL, FILTER_MAX, FILTER_RESERVED = 0, 65535, 256
FLAG_DEFMASK, FLAG_MANDATORY, FLAG_OPTIONAL = 255, 0, 1
FLAG_INVMASK, FLAG_REVERSE, FLAG_SKIP_EDC = 65280, 256, 512
SZIP_ALLOW_K13_OPTION_MASK, SZIP_CHIP_OPTION_MASK, SZIP_EC_OPTION_MASK, SZIP_NN_OPTION_MASK = 1, 2, 4, 32
SZIP_MAX_PIXELS_PER_BLOCK = 32
SO_FLOAT_DSCALE, SO_FLOAT_ESCALE, SO_INT, SO_INT_MINBITS_DEFAULT = 0, 1, 2, 0
FILTER_CONFIG_ENCODE_ENABLED, FILTER_CONFIG_DECODE_ENABLED = 1, 2
ENABLE_EDC, DISABLE_EDC = 1, 0
CLASS_T_VERS = 1

# What can be read; of these, what can be written, too.
_READ = {1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32013, 32015, 32026}
_WRITTEN = {1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32015}


def filter_avail(filter_code):
    """Whether a filter is there."""
    return filter_code in _READ


def get_filter_info(filter_code):
    """Whether a filter can be used for reading and writing."""
    if filter_code not in _READ:
        raise RuntimeError("Filter is not registered")
    written = FILTER_CONFIG_ENCODE_ENABLED if filter_code in _WRITTEN else 0
    return FILTER_CONFIG_DECODE_ENABLED | written


def register_filter(cls_pointer_address):
    """Not there: filters in C are not taken."""
    raise NotImplementedError("Filters in C cannot be registered with pumice")


def unregister_filter(filter_code):
    """Built-in filters stay."""
    raise RuntimeError("Unable to unregister filter (predefined filter, or one that is not registered)")
