"""What programs use: files, groups, datasets, attributes."""
