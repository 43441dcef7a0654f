"""File formats, one module each; `registry` chooses the module by the file's suffix."""
