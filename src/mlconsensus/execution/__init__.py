"""Passes over blocks of predictions: on this machine's cores or on a Dask cluster."""
