"""The library as a whole."""

INDEX_NAME, INDEX_CRT_ORDER = 0, 1
ITER_INC, ITER_DEC, ITER_NATIVE = 0, 1, 2


def _pair(names):
    names = tuple(names)
    if len(names) != 2:
        raise TypeError("complex_names must be a pair of names")
    return names


class H5PYConfig:
    """Settings of the package."""

    def __init__(self):
        self._r_name, self._i_name = b"r", b"i"
        self._true, self._false = b"TRUE", b"FALSE"
        self._track_order = False
        self._default_file_mode = "r"

    @property
    def complex_names(self):
        """The members of compounds that are complex numbers."""
        return self._r_name.decode(), self._i_name.decode()

    @complex_names.setter
    def complex_names(self, names):
        real, imaginary = (name if isinstance(name, bytes) else name.encode() for name in _pair(names))
        self._r_name, self._i_name = real, imaginary

    @property
    def bool_names(self):
        """The names of an enumeration that is truth values: false, true."""
        return self._false, self._true

    @bool_names.setter
    def bool_names(self, names):
        self._false, self._true = names

    @property
    def has_native_complex(self):
        """Whether HDF5's own complex numbers are understood."""
        return True

    @property
    def mpi(self):
        """Whether there is MPI."""
        return False

    @property
    def ros3(self):
        """Whether files of object stores can be opened."""
        return False

    @property
    def direct_vfd(self):
        """Whether files can be read past the system's cache."""
        return False

    @property
    def swmr_min_hdf5_version(self):
        """The first version with SWMR."""
        return (1, 9, 178)

    @property
    def vds_min_hdf5_version(self):
        """The first version with virtual datasets."""
        return (1, 9, 233)

    @property
    def track_order(self):
        """Whether new groups keep the order of creation."""
        return self._track_order

    @track_order.setter
    def track_order(self, track):
        self._track_order = bool(track)

    @property
    def default_file_mode(self):
        """The mode of files that are opened without one: always "r"."""
        return "r"

    @default_file_mode.setter
    def default_file_mode(self, mode):
        if mode != "r":
            raise ValueError("Using default_file_mode other than 'r' is no longer supported. Pass the mode to File()")


_config = H5PYConfig()


def get_config():
    """The settings of the package."""
    return _config


def get_libversion():
    """The version of HDF5 whose files are understood."""
    return (2, 0, 0)
