#!/usr/bin/env bash
# anndata's own tests of h5ad files with pumice in h5py's place, then with h5py.
#
#   anndata_suite.sh CHECKOUT    a checkout of anndata at the version that is installed
#
# Needs beside anndata: joblib, filelock, awkward, pytest-mock, pytest-xdist, scikit-learn, openpyxl, boltons, distributed.
set -euo pipefail
here="$(cd "$(dirname "$0")/.." && pwd)"
cd "$1"
export PYTHONPATH="$here:$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
options=(-q -p no:cacheprovider --tb=line -W ignore --override-ini addopts= --override-ini strict=false
    --override-ini filterwarnings= -ptesting.anndata._pytest --import-mode=importlib -k "not zarr")
files=(tests/test_readwrite.py tests/test_io_*.py tests/test_backed_*.py)
for way in "-m pumice.compat -m pytest" "-m pytest"; do
    echo "== python $way"
    # shellcheck disable=SC2086
    "${PYTHON:-python}" $way "${options[@]}" "${files[@]}" | tail -n 25 || true
done
