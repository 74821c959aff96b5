"""The metadata cache: nothing to set."""


class CacheConfig:
    """Settings of libhdf5's metadata cache, which pumice has no use for."""
