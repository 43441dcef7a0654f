"""Names of the methods, for help texts that should not import the methods."""

# In the order of tables. `register` appends the name of a user's own combiner.
METHOD_NAMES = ["MV", "DS", "BGCM", "MLCM-r", "MLCM-a", "Weighted"]
